"""`Explanation` → the critical path as it is read: its parts in one unit, their causes, and what is only exposed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from operator import sub

from tracediff import bounds, thresholds
from tracediff.explain.explanation import Cause, Explanation
from tracediff.explain.facts import Fact, wait_of
from tracediff.explain.leaves import GPU, HOST, OPERATORS
from tracediff.formatting import ARROW, Unit, closing, joined, time_unit, with_digits
from tracediff.structs import FrozenStruct, Pair, total

IN_ALL = "in all "
"""Before what work takes, on the critical path or not."""
FOR_GPU = "waiting for the GPU"
BOTH = ", both "
"""After the parts of the path that change together."""


class Times(FrozenStruct):
    """The time of both sides as it is read, in µs.

    Attributes:
        path: on the critical path. every: in all, which is no less.
        exposure: what of the change is not its own, but the same work that the step now waits for, too, or no longer.
    """

    path: Pair[float]
    every: Pair[float]
    exposure: float = 0.0

    @property
    def delta(self) -> float:
        """What the step takes longer."""
        return self.path.delta

    @property
    def own(self) -> float:
        """What it takes longer itself, as far as the step waits for it."""
        return self.delta - self.exposure

    def without(self, others: Iterable[Times]) -> Times:
        """What is left without ``others``."""
        rest = together(others)
        path, every = (Pair(*map(sub, mine, its)) for mine, its in ((self.path, rest.path), (self.every, rest.every)))
        return Times(path, Pair(*map(max, path, every)), self.exposure - rest.exposure)

    @property
    def exposed(self) -> str:
        """``less exposed``: what became of work that the step no longer waits for, or ``more exposed``."""
        return f"{'more' if self.exposure > 0 else 'less'} exposed"

    def in_all(self, unit: Unit) -> str:
        """``in all 11.4 → 2.7``; empty if that is all of it on the path."""
        return "" if self.every == self.path else f"{IN_ALL}{ARROW.join(map(unit.plain, self.every))}"


def together(times: Iterable[Times]) -> Times:
    """The sum of ``times``."""
    both = [*times]
    exposure = sum(one.exposure for one in both)
    return Times(total(one.path for one in both), total(one.every for one in both), exposure)


class WhyRow(FrozenStruct):
    """A cause with its times."""

    cause: Cause
    times: Times

    @property
    def part(self) -> str:
        """The part of the path that it is of."""
        return self.cause.chain[0]


class PathPart(FrozenStruct, kw_only=True):
    """A part of the critical path.

    Attributes:
        label: the first one of its place in the tree.
        rows: the causes in it that are visible, in the order of `ReadPath.rows`. rest: what is in none of them.
        reach: how much of what is less, and of what is more, the other part of the path leaves to it, 0 to 1.
        mostly: what most of its exposure is of, if no row says so; may be empty.
    """

    label: str
    times: Times
    rows: tuple[WhyRow, ...]
    rest: Times
    reach: Pair[float] = Pair(1.0, 1.0)
    mostly: str = ""

    @property
    def other(self) -> str:
        """What works beside it."""
        return f"{HOST} work" if self.label == GPU else GPU

    def grew_with_other(self, us: float) -> bool:
        """Whether ``us`` of exposure are its own work that changed so, beside the other part's, which did so, too."""
        in_all_us, is_beside = self.times.every.delta, self.reach[us > 0] < 1 - thresholds.WORTH_A_LINE
        return is_beside and us * in_all_us > 0 and abs(in_all_us) >= abs(us)

    @property
    def work(self) -> str:
        """``host time``: all of it, of which some may be no work that was recorded."""
        return f"{self.label}{' time' if self.label == HOST else ''}"


class StepPart(FrozenStruct):
    """A part of the step's change.

    Attributes:
        label: what changed. delta_us: in µs. what: what happened.
        chain: the labels of its place in the tree; empty of what is in none.
        is_pace: whether it is the same work, whose time no change of the program explains.
    """

    label: str
    delta_us: float
    what: str
    chain: tuple[str, ...] = ()
    is_pace: bool = False

    @property
    def size_us(self) -> float:
        """How much it changes, in either direction."""
        return abs(self.delta_us)


def change_us(parts: Iterable[StepPart]) -> float:
    """What ``parts`` change together."""
    return sum(part.delta_us for part in parts)


class ReadPath(FrozenStruct):
    """The critical path of both sides.

    Attributes:
        unit: of all times. parts: by label; their times add up to the steps as ``unit`` shows them.
        rows: the causes that change visibly themselves: those in the direction of the step's change first, the largest
            first.
    """

    unit: Unit
    parts: dict[str, PathPart]
    rows: tuple[WhyRow, ...]

    @property
    def changed(self) -> list[PathPart]:
        """The parts in which something itself changes visibly."""
        return [part for part in self.parts.values() if self._has_changed(part)]

    @property
    def exposed(self) -> list[PathPart]:
        """The parts of which more or less is exposed."""
        return [part for part in self.parts.values() if is_visible(part.times.exposure, self.unit)]

    @property
    def unchanged(self) -> list[PathPart]:
        """The others that take a time that makes a difference of the step."""
        step = total(part.times.path for part in self.parts.values())
        others = (part for part in self.parts.values() if not self._has_changed(part))
        return [part for part in others if max(part.times.path) >= thresholds.NO_DIFFERENCE * min(step)]

    def _has_changed(self, part: PathPart) -> bool:
        return bool(part.rows) or is_visible(part.rest.own, self.unit)

    def name_of(self, part: PathPart) -> str:
        """What a part is called."""
        return {GPU: "GPU", HOST: "other host time" if OPERATORS in self.parts else HOST}.get(part.label, part.label)

    @property
    def is_split(self) -> bool:
        """Whether each part needs a line of its own: several change, or the others' time would be missing."""
        moved = is_visible(sum(part.times.exposure for part in self.exposed), self.unit)
        return len([*self.changed, *self.unchanged]) > 1 and bool(self.changed or moved)


def read_path(explanation: Explanation) -> ReadPath:
    """The critical path as it is read."""
    unit, in_unit, parts = unit_of(explanation), _unit_of_step(explanation), {}
    rows = [row for row in cause_rows(explanation) if is_visible(row.times.own, in_unit)]
    paths = path_us(explanation, unit)
    rests = [_rest(explanation, label, path, rows) for label, path in paths.items()]
    step_us = sum(path.delta for path in paths.values()) - unit.rounded(explanation.exposure_us)
    every = _as_read(unit, step_us, [*((row.times, row.cause.delta_us, row.cause.exposure_us) for row in rows), *rests])
    rows = [WhyRow(row.cause, times) for row, times in zip(rows, every, strict=False)]
    for label, rest in zip(paths, every[len(rows) :], strict=True):
        mine = tuple(row for row in rows if row.part == label)
        remainder = explanation.remainders[label]
        is_of_row = remainder.exposed in {row.cause.label for row in mine}
        whole = _in_unit(unit, paths[label], explanation.root.children[label].total / 1000)
        parts[label] = PathPart(
            label=label,
            times=whole.replace(exposure=together((rest, *(row.times for row in mine))).exposure),
            rows=mine,
            rest=rest,
            reach=remainder.reach,
            mostly=f"mostly {remainder.exposed}" if remainder.exposed and not is_of_row else "",
        )
    return ReadPath(unit, parts, (*rows,))


Exact = tuple[Times, float, float]
"""Times without exposure, and what of their change is exactly their own, and exposure, in µs."""


def _rest(explanation: Explanation, label: str, path: Pair[float], rows: Sequence[WhyRow]) -> Exact:
    """What is in no row of a part of the path."""
    unit, node = unit_of(explanation), explanation.root.children[label]
    exposure = explanation.remainders[label].exposure_us
    mine = [row for row in rows if row.part == label]
    own = node.change / 1000 - exposure - sum(row.cause.delta_us for row in mine)
    rest = _in_unit(unit, path, node.total / 1000).without(row.times for row in mine)
    return rest, own, exposure - sum(row.cause.exposure_us for row in mine)


def _in_unit(unit: Unit, path: Pair[float], every: Iterable[float]) -> Times:
    return Times(path, Pair(*map(max, path, map(unit.rounded, map(float, every)))))


def _as_read(unit: Unit, step_us: float, exact: Sequence[Exact]) -> list[Times]:
    """The times with exposure, where that has digits; what is their own is together ``step_us``."""
    is_exposed = [is_visible(exposure, unit) for *_, exposure in exact]
    without = sum(times.delta for (times, *_), is_one in zip(exact, is_exposed, strict=True) if not is_one)
    own_us = iter(closing(unit, [own for _, own, _ in compress(exact, is_exposed)], step_us - without))
    return [
        Times(times.path, times.every, times.delta - next(own_us) if is_one else 0.0)
        for (times, *_), is_one in zip(exact, is_exposed, strict=True)
    ]


def exposures(path: ReadPath, facts: Iterable[Fact] = ()) -> list[StepPart]:
    """What is the same work, more or less of it exposed: in causes, and in no cause; and of ``facts`` who alone waits.
    Of both directions it is one, work being exposed in place of other.
    """
    unit = path.unit
    exposed = [_exposed(part, unit) for part in path.exposed]
    exposed.sort(key=lambda part: -part.delta_us)
    change = change_us(exposed)
    more, less = ([part for part in exposed if sign * part.delta_us > 0] for sign in (1, -1))
    if wait := wait_of(facts, change):
        exposed = [StepPart(FOR_GPU, change, wait)]
    elif both := next((part for part in path.exposed if part.grew_with_other(change)), None):
        what = f"{both.label} and {both.other}{BOTH}{'longer' if change > 0 else 'shorter'}"
        every = (f"{path.name_of(one)} {ARROW.join(map(unit.plain, one.times.every))}" for one in path.parts.values())
        exposed = [StepPart(what, change, f"{IN_ALL}{', '.join(every)}", (both.label,))]
    elif more and less:
        nouns = (" and ".join(part.label.split(", ")[0] for part in parts) for parts in (more, less))
        exposed = [StepPart(" exposed in place of ".join(nouns), change, "")]  # by what else changed, whatever it is of
    return [part for part in exposed if is_visible(part.delta_us, unit)]


def _exposed(part: PathPart, unit: Unit) -> StepPart:
    """What of a part of the path is only exposed."""
    times = part.times
    in_all = times.in_all(unit) if times.exposure * times.every.delta >= 0 else ""  # which other work changes
    what = joined(in_all, part.mostly)
    return StepPart(f"{part.work}, {times.exposed}", times.exposure, what, (part.label,))


def path_us(explanation: Explanation, unit: Unit) -> dict[str, Pair[float]]:
    """First label → µs of both sides on the critical path, which add up to the steps as ``unit`` shows them."""
    parts = explanation.root.children
    sides = (
        closing(unit, [float(part.path[side]) / 1000 for part in parts.values()], float(whole) / 1000)
        for side, whole in enumerate(explanation.root.path)
    )
    return {str(label): Pair(*us) for label, *us in zip(parts, *sides, strict=True)}


def cause_rows(explanation: Explanation) -> list[WhyRow]:
    """All causes as they are read, in their order: those of a part of the path are together no more than it is."""
    unit, out = unit_of(explanation), {}
    for part, whole in path_us(explanation, unit).items():
        causes = [cause for cause in explanation.causes if cause.chain[0] == part]
        control, test = [cause.path_control_us for cause in causes], [cause.path_test_us for cause in causes]
        sides = _rounded(unit, control, whole.control), _rounded(unit, test, whole.test)
        for cause, *us in zip(causes, *sides, strict=True):
            times = _in_unit(unit, Pair(*us), (cause.control_us, cause.test_us))
            exposure = times.delta - unit.rounded(cause.delta_us) if is_visible(cause.exposure_us, unit) else 0.0
            out[id(cause)] = WhyRow(cause, Times(times.path, times.every, exposure))
    return [out[id(cause)] for cause in explanation.causes]


def _rounded(unit: Unit, us: Sequence[float], whole: float) -> list[float]:
    """``us`` rounded, so that they add up to ``whole`` at most."""
    rounded = [*map(unit.rounded, us)]
    return closing(unit, us, whole) if sum(rounded) > whole + unit.digit / 2 else rounded


def unit_of(explanation: Explanation) -> Unit:
    """The unit of the step, in which its lines have digits, and its change enough to be rebuilt from its sides."""
    changes = (cause.path_test_us - cause.path_control_us for cause in explanation.causes)
    unit = with_digits(_unit_of_step(explanation), changes)
    is_changed = abs(explanation.change_us) >= thresholds.NO_DIFFERENCE * min(explanation.root.path) / 1000
    return with_digits(unit, [explanation.change_us / bounds.GUARD if is_changed else 0.0])


def _unit_of_step(explanation: Explanation) -> Unit:
    return time_unit([float(ns) / 1000 for ns in explanation.root.path])


def is_visible(us: float, unit: Unit) -> bool:
    """Whether a change has a digit other than 0."""
    return bool(unit.signed(us).strip("+−0.,"))
