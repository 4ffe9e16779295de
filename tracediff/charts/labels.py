"""Labels of names, states and sides in charts. Names come from traces: a figure shows them only through `label` or
`full_name`, which escape them.
"""

import re
from collections.abc import Iterable
from html import escape
from textwrap import wrap

from tracediff import bounds
from tracediff.aggregate.summary import Side
from tracediff.diff.comparison import Comparison, Scaled
from tracediff.errors import TracediffError, printable, quoted
from tracediff.structs import SIDES

HOVER_WIDTH = 80
TITLE_WIDTH, SUBTITLE_WIDTH = 44, 58
"""Characters in which a title fits 390 pixels."""

BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:ns|µs|ms|s|kB|MB|GB|%)(?:\W|$))")
UNBROKEN = "\x1f"
"""Replaces a space at which no line may break; not printable, so no text contains it."""


def safe(text: str) -> str:
    """``text`` as plotly shows it letter by letter: no markup, no entity, no control character, no TeX between
    dollars.
    """
    return escape(printable(text), quote=False).replace("$", "&#36;")


def label(name: str, longest: int = bounds.CHART_LABEL) -> str:
    """``name`` for an axis or a box: safe, its middle cut out where it is long, never empty."""
    name = name.strip() or "(no name)"
    half = longest // 2
    return safe(name if len(name) <= longest else f"{name[: half - 1]}…{name[-(longest - half) :]}")


def full_name(name: str, longest: int = bounds.CHART_HOVER) -> str:
    """The whole ``name`` for a hover: safe, in lines; beyond ``longest`` characters cut with a note of how many are
    left out.
    """
    cut = printable(name[:longest])
    lines = [safe(cut[position : position + HOVER_WIDTH]) for position in range(0, len(cut), HOVER_WIDTH)] or [
        "(no name)"
    ]
    if len(name) > longest:
        lines.append(f"… and {len(name) - longest:,} more characters")
    return "<br>".join(lines)


def both_names(short: str, raw: str) -> str:
    """For a hover: the display name in bold, the raw name below if it differs."""
    return f"<b>{full_name(short)}</b>" + (f"<br>{full_name(raw)}" if raw != short else "")


def lines(text: str, width: int) -> str:
    """``text`` (no markup) in lines of at most ``width`` characters, safe; a number stays with its unit."""
    unbroken = BEFORE_UNIT.sub(UNBROKEN, printable(text).replace(UNBROKEN, " "))
    return "<br>".join(safe(line.replace(UNBROKEN, " ")) for line in wrap(unbroken, width))


def side_names(subject: Scaled) -> tuple[str, ...]:
    """Legend entries of control and test, or of the one set, safe."""
    names = set_names(subject)
    return names if len(names) == 1 else tuple(f"{which}: {name}" for which, name in zip(SIDES, names, strict=True))


def set_names(subject: Scaled) -> tuple[str, ...]:
    """The sets' own names, safe."""
    return tuple(label(side.label, 28) for side in subject.sides)


def in_set(which: int, sides: tuple[Side, ...]) -> str:
    """`` in NAME`` of a side, plain text; empty for a single set."""
    return f" in {sides[which].label[: bounds.CHART_LABEL]}" if len(sides) > 1 else ""


def not_compared(comparison: Comparison) -> str | None:
    """The sentence shown instead of a chart if the comparison was refused, else None."""
    if not comparison.was_refused:
        return None
    reasons = "; ".join(r.message for r in comparison.comparability.reasons if r.level == "refused")
    return f"The sides were not compared: {reasons or 'the preflight refused'}."


def choice(argument: str, value: str, choices: Iterable[str]) -> str:
    """``value``.

    Raises:
        TracediffError: it is none of ``choices``.
    """
    names = list(choices)
    if value not in names:
        raise TracediffError(argument, f"unknown value {quoted(value)}", f"choose from {', '.join(names)}")
    return value
