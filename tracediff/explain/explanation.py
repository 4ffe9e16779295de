"""`Explanation`: why the step got faster or slower, as one tree that closes."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracediff.aggregate.call_tree import Occurrence
from tracediff.explain.facts import Fact
from tracediff.explain.leaves import Leaves
from tracediff.explain.reasons import Reason
from tracediff.explain.tree import Node


@dataclass(frozen=True)
class Significance:
    """What the runs of both sides say of a node: faster, slower, same, unclear or untested; q, and the 95 % interval of
    the relative change of its time, None where untested.
    """

    result: str
    q_value: float | None = None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Amount:
    """How much more work the test side does."""

    ratio: float
    """test / control"""
    unit: str
    """FLOPs, elements, threads, tiles, bytes, calls or events"""
    known_part: float
    """part of the time whose amount is known, 0 to 1"""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One line of the explanation. Times in µs per step.

    Attributes:
        label: what changed. trail: the labels around it in the tree, from the outermost on.
        control_us, test_us: all of its time in the period, on the critical path or not.
        delta_us: what of the step's change it accounts for.
        effect: the effect that is most of it: presence, amount, speed, time; what happened, in words.
        what: what happened, in words.
        amount: None where the trace does not tell. reasons: what its data says of why.
        significance: from the runs. first: (side, where) of its longest instance, of a single event.
        node: its place in the tree.
    """

    label: str
    trail: tuple[str, ...]
    control_us: float
    test_us: float
    delta_us: float
    effect: str
    what: str
    amount: Amount | None
    reasons: tuple[Reason, ...]
    significance: Significance
    first: tuple[int, Occurrence] | None
    node: Node


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why the step got faster or slower. Times in µs per step.

    Attributes:
        facts: about the comparison, which carry no time.
        causes: the lines, those in the direction of the step's change first, the largest first.
        exposure_us: first label → the same work, now on the critical path or off it.
        rest_us: what is in no line; causes, exposure and rest add up to the step's change.
        scale_us: what the size of a line is judged against: the change, or where changes cancel part of them all.
        root: the whole tree. leaves: what it is built from.
        period: what it is the time of: a step or, without steps, a file.
    """

    facts: tuple[Fact, ...]
    causes: tuple[Cause, ...]
    exposure_us: dict[str, float]
    rest_us: float
    scale_us: float
    root: Node
    leaves: Leaves = field(repr=False, compare=False)
    period: str = "step"

    @property
    def change_us(self) -> float:
        """Of the step."""
        return self.root.change / 1000
