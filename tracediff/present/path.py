"""`Explanation` → the critical path as it is read: its parts in one unit, their causes, and what is only exposed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import mul, sub

from msgspec import Struct

from tracediff import bounds, thresholds
from tracediff.explain.explanation import Cause, Explanation
from tracediff.explain.facts import wait_of
from tracediff.explain.leaves import GPU, HOST, OPERATORS, QUEUE, START
from tracediff.formatting import ARROW, Unit, closing, time_unit, with_digits
from tracediff.pair import Pair, total

NOW, MORE_OR_LESS = ("now hidden", "now exposed"), ("less exposed", "more exposed")
"""What became of work that did not change: behind other work, or on the critical path."""


IN_ALL = "in all "
"""Before what work takes, on the critical path or not."""


class Times(Struct, frozen=True):
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

    def within(self, reach: Pair[float], unit: Unit) -> Times:
        """The same, of its own change only the part that can reach the step, of what is less and of what is more."""
        return Times(self.path, self.every, self.delta - unit.rounded(self.own * reach[self.own > 0]))

    @property
    def as_own(self) -> Times:
        """The same with all of its change its own, for what is little of it."""
        return Times(self.path, self.every)

    def without(self, others: Iterable[Times]) -> Times:
        """What is left without ``others``."""
        rest = together(others)
        path, every = (Pair(*map(sub, mine, its)) for mine, its in ((self.path, rest.path), (self.every, rest.every)))
        return times_of(path, every)

    def in_all(self, unit: Unit, least: float = 0.0) -> str:
        """``in all 11.4 → 2.7``, if that changes otherwise than on the path, by ``least`` µs; empty if it reads the
        same.
        """
        reads_same = self.every == self.path or abs(self.every.delta - self.path.delta) < least
        return "" if reads_same else f"{IN_ALL}{ARROW.join(map(unit.plain, self.every))}"


def times_of(path: Pair[float], every: Iterable[float]) -> Times:
    """Of work with these times: its own is what changes on the path as far as it does in all, and the rest exposure."""
    in_all = Pair(*map(max, path, every))
    own = min(path.delta, in_all.delta, key=abs) if path.delta * in_all.delta > 0 else 0.0
    return Times(path, in_all, path.delta - own)


def together(times: Iterable[Times]) -> Times:
    """The sum of ``times``."""
    both = [*times]
    exposure = sum(one.exposure for one in both)
    return Times(total(one.path for one in both), total(one.every for one in both), exposure)


class WhyRow(Struct, frozen=True):
    """A cause with its times."""

    cause: Cause
    times: Times

    @property
    def part(self) -> str:
        """The part of the path that it is of."""
        return self.cause.chain[0]


class PathPart(Struct, frozen=True, kw_only=True):
    """A part of the critical path.

    Attributes:
        label: the first one of its place in the tree.
        rows: the causes in it that are visible, in the order of `ReadPath.rows`. rest: what is in none of them.
        reach: how much of what is less, and of what is more, the other part of the path leaves to it, 0 to 1.
        exposure: what became of ``rest``, if more or less of the same work is on the path; else empty. because: of what
            most of it is, and why.
    """

    label: str
    times: Times
    rows: tuple[WhyRow, ...]
    rest: Times
    reach: Pair[float] = Pair(1.0, 1.0)
    exposure: str = ""
    because: str = ""

    def beside(self, us: float) -> str:
        """How much of a change of ``us`` runs beside the other part of the path; empty if nothing of it has to."""
        reach, other = self.reach[us > 0], f"{HOST} work" if self.label == GPU else GPU
        part = "mostly" if reach < thresholds.MOSTLY else "partly"
        return f"{part} beside {other}" if reach < 1 - thresholds.WORTH_A_LINE else ""

    @property
    def noun(self) -> str:
        """``other host work``: what is in none of its rows."""
        return f"{'other ' if self.rows else ''}{self.work}"

    @property
    def work(self) -> str:
        """``host work``: all of it."""
        return f"{self.label}{' work' if self.label == HOST else ''}"

    @property
    def exposed(self) -> str:
        """``other host work, now exposed``; empty without exposure."""
        return f"{self.noun}, {self.exposure}" if self.exposure else ""


class ReadPath(Struct, frozen=True):
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
        """The parts in which something changes visibly."""
        return [part for part in self.parts.values() if self._has_changed(part)]

    @property
    def exposed(self) -> list[PathPart]:
        """The parts with exposure."""
        return [part for part in self.parts.values() if part.exposure]

    @property
    def unchanged(self) -> list[PathPart]:
        """The others that take time."""
        others = (part for part in self.parts.values() if not self._has_changed(part))
        return [part for part in others if any(map(self.unit.rounded, part.times.path))]

    def _has_changed(self, part: PathPart) -> bool:
        return bool(part.rows) or is_visible(part.rest.delta, self.unit)

    def name_of(self, part: PathPart) -> str:
        """What a part is called after ``critical path:``."""
        return {GPU: "GPU", HOST: "other host time" if OPERATORS in self.parts else HOST}.get(part.label, part.label)

    def with_time(self, part: PathPart) -> str:
        """The same with its time on the path, if that is another than in all: ``GPU 33.4 → 110.7``."""
        on_path, in_all = (ARROW.join(map(self.unit.plain, us)) for us in (part.times.path, part.times.every))
        return self.name_of(part) if on_path == in_all else f"{self.name_of(part)} {on_path}"

    @property
    def is_split(self) -> bool:
        """Whether each part needs a line of its own: several change, or the others' time would be missing."""
        return len(self.changed) > 1 or bool(self.changed and self.unchanged)


def read_path(explanation: Explanation) -> ReadPath:
    """The critical path as it is read."""
    unit, every = unit_of(explanation), cause_rows(explanation)
    wholes = {
        label: _times(unit, us, explanation.root.children[label].total / 1000)
        for label, us in path_us(explanation, unit).items()
    }
    rows = _of_work(every, explanation)
    rests = {label: whole.without(row.times for row in rows if row.part == label) for label, whole in wholes.items()}
    waiting = _reach(explanation, QUEUE, (row.times for row in rows if QUEUE in row.cause.chain))
    rows = [WhyRow(row.cause, row.times.within(waiting, unit)) if QUEUE in row.cause.chain else row for row in rows]
    reach = {label: _reach(explanation, label, times) for label, times in _by_part(rows, rests).items()}
    rows, rests = _within(rows, rests, reach, unit)
    left = _left(explanation, _by_part(rows, rests))
    rows, rests = _within(rows, rests, left, unit)
    exposed = (abs(times.exposure) for part in _by_part(rows, rests).values() for times in part)
    if max(exposed, default=0.0) < thresholds.WORTH_A_LINE * explanation.scale_us:
        rows = [WhyRow(row.cause, row.times.as_own) for row in rows]
        rests = {label: rest.as_own for label, rest in rests.items()}
    rows = _in_order(rows, explanation)
    parts = {}
    for label, whole in wholes.items():
        of_part, rest = tuple(row for row in rows if row.part == label), rests[label]
        exposure, because = _exposure(explanation, of_part, rest, label)
        times = Times(whole.path, whole.every, together((rest, *(row.times for row in of_part))).exposure)
        parts[label] = PathPart(
            label=label,
            times=times,
            rows=of_part,
            rest=rest,
            reach=Pair(*map(mul, reach[label], left[label])),
            exposure=exposure,
            because=because,
        )
    return ReadPath(unit, parts, (*rows,))


def _by_part(rows: Sequence[WhyRow], rests: Mapping[str, Times]) -> dict[str, list[Times]]:
    """The times of each part of the path: of its rows and of the rest."""
    return {label: [rest, *(row.times for row in rows if row.part == label)] for label, rest in rests.items()}


def _within(
    rows: Sequence[WhyRow], rests: Mapping[str, Times], reach: Mapping[str, Pair[float]], unit: Unit
) -> tuple[list[WhyRow], dict[str, Times]]:
    """Both, of each part as far as ``reach`` says."""
    return (
        [WhyRow(row.cause, row.times.within(reach[row.part], unit)) for row in rows],
        {label: rest.within(reach[label], unit) for label, rest in rests.items()},
    )


def _reach(explanation: Explanation, label: str, every: Iterable[Times]) -> Pair[float]:
    """How much of what is less, and of what is more, in a part of the path can reach the step, 0 to 1."""
    own, slack = [times.own for times in every], explanation.slack_us.get(label)
    sums = [sum(us for us in own if sign * us > 0) for sign in (-1, 1)]
    if slack is None:
        return Pair(1.0, 1.0)
    return Pair(*(min(1.0, most / abs(us)) if us else 1.0 for us, most in zip(sums, slack, strict=True)))


def _left(explanation: Explanation, every: Mapping[str, Sequence[Times]]) -> dict[str, Pair[float]]:
    """How much is left of what is less, and of what is more, in each part of the path, once what is exposed in another
    part in place of it is taken off, 0 to 1; all of it if one side alone waits for the GPU, which exposes by itself.
    """
    of_part = {label: sum(times.exposure for times in part) for label, part in every.items()}
    exposure = sum(of_part.values())
    along = sum(us for us in of_part.values() if us * exposure > 0)
    is_of_wait, out = bool(wait_of(explanation.facts, exposure)), {}
    for label, part in every.items():
        its_own = of_part[label] * exposure / along if of_part[label] * exposure > 0 else 0.0  # of what does not cancel
        elsewhere = exposure - its_own
        own = abs(sum(times.own for times in part if times.own * exposure < 0))
        left = max(0.0, 1 - abs(elsewhere) / own) if own and not is_of_wait else 1.0
        out[label] = Pair(left, 1.0) if exposure > 0 else Pair(1.0, left)
    return out


def _times(unit: Unit, path: Pair[float], every: Iterable[float]) -> Times:
    return times_of(path, map(unit.rounded, map(float, every)))


def _exposure(explanation: Explanation, rows: Sequence[WhyRow], rest: Times, label: str) -> tuple[str, str]:
    """(what became of ``rest`` of a part, of what it mostly is and why), if it is more or less exposed."""
    change, unit = rest.exposure, unit_of(explanation)
    if not is_visible(change, unit):
        return "", ""
    is_all = not unit.rounded(min(rest.path))  # of it
    largest = explanation.exposed[label]
    mostly = f"mostly {largest}" if largest and largest not in {row.cause.label for row in rows} else ""
    return (NOW if is_all else MORE_OR_LESS)[change > 0], mostly


def path_us(explanation: Explanation, unit: Unit) -> dict[str, Pair[float]]:
    """First label → µs of both sides on the critical path, which add up to the steps as ``unit`` shows them."""
    parts = explanation.root.children
    sides = (
        closing(unit, [float(part.path[side]) / 1000 for part in parts.values()], float(whole) / 1000)
        for side, whole in enumerate(explanation.root.path)
    )
    return {str(label): Pair(*us) for label, *us in zip(parts, *sides, strict=True)}


def cause_rows(explanation: Explanation) -> list[WhyRow]:
    """All causes as they are read: those of a part of the path are together no more than it is."""
    unit, out = unit_of(explanation), []
    for part, whole in path_us(explanation, unit).items():
        causes = [cause for cause in explanation.causes if cause.chain[0] == part]
        control, test = [cause.path_control_us for cause in causes], [cause.path_test_us for cause in causes]
        sides = _rounded(unit, control, whole.control), _rounded(unit, test, whole.test)
        out += [
            WhyRow(cause, _times(unit, Pair(*us), (cause.control_us, cause.test_us)))
            for cause, *us in zip(causes, *sides, strict=True)
        ]
    return out


def _rounded(unit: Unit, us: Sequence[float], whole: float) -> list[float]:
    """``us`` rounded, so that they add up to ``whole`` at most."""
    rounded = [*map(unit.rounded, us)]
    return closing(unit, us, whole) if sum(rounded) > whole + unit.digit / 2 else rounded


def _of_work(rows: Sequence[WhyRow], explanation: Explanation) -> list[WhyRow]:
    """Those of ``rows`` that change visibly themselves."""
    unit = _unit_of_step(explanation)
    return [row for row in rows if is_visible(row.times.own, unit) and row.times.own * row.cause.delta_us > 0]


def _in_order(rows: Sequence[WhyRow], explanation: Explanation) -> list[WhyRow]:
    """In the direction of the step's change first, the largest first."""
    sign = 1 if explanation.change_us >= 0 else -1

    def order(row: WhyRow) -> tuple[bool, bool, float]:
        is_along = sign * row.times.own > 0
        return is_along and row.cause.label == START, not is_along, -abs(row.times.own)  # START is not of the program

    return sorted(rows, key=order)


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
