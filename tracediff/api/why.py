"""`Why`: the explanation of a comparison, to print, or as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import TYPE_CHECKING, Any

from tracediff.explain.explanation import Cause, Explanation
from tracediff.explain.facts import Fact
from tracediff.explain.tree import Node

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 120
"""Columns in which an explanation is printed."""


class Why:
    """Why the step changed: ``print(why)`` shows facts and lines, which add up to the step's change.

    Attributes:
        explanation: the exact numbers behind it.
    """

    def __init__(self, explanation: Explanation, document: dict[str, Any]) -> None:
        self.explanation = explanation
        self._document = document

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What differs between the recordings: code, text."""
        return self.explanation.facts

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The lines, the largest in the direction of the change first: label, what, control_us, test_us (all of its
        time), delta_us (its part of the step's change), reasons.
        """
        return self.explanation.causes

    @property
    def change_us(self) -> float:
        """The step's change in µs: the sum of delta_us of the causes, exposure_us and rest_us."""
        return self.explanation.change_us

    @property
    def exposure_us(self) -> float:
        """The same work, now on the critical path or off it, in µs per step."""
        return sum(self.explanation.exposure_us.values())

    @property
    def rest_us(self) -> float:
        """What is in no line, in µs per step."""
        return self.explanation.rest_us

    @property
    def root(self) -> Node:
        """The tree; times in ns per step."""
        return self.explanation.root

    def to_dict(self) -> dict[str, Any]:
        """The part ``explanation`` of the JSON document, times in µs per step; ``tree`` has nodes with ``children``."""
        return self._document

    def to_frame(self) -> pd.DataFrame:
        """One row per node of the tree, parents before children: depth, label, kind, control_us and test_us (all of its
        time), delta_us (its part of the step's change), and the effects that this is the sum of, in µs per step.
        """
        import pandas as pd

        return pd.DataFrame(list(_rows(self._document["tree"], 0)))

    def __str__(self) -> str:
        from rich.console import Console

        from tracediff.report.explanation_terminal import explanation

        console = Console(file=StringIO(), width=WIDTH)
        for fact in self.facts:
            console.print(fact.text, markup=False, highlight=False)
        console.print(*explanation(self.explanation, WIDTH, is_tested=True))
        shown: str = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
        return "\n".join(line.rstrip() for line in shown.rstrip().splitlines())

    def __repr__(self) -> str:
        return f"<Why {self.change_us:+,.1f} µs per step: {len(self.facts)} facts, {len(self.causes)} causes>"


def _rows(node: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    names = ("label", "kind", "control_us", "test_us", "delta_us")
    yield {"depth": depth, **{name: node[name] for name in names}, **node["effects"]}
    for child in node["children"]:
        yield from _rows(child, depth + 1)
