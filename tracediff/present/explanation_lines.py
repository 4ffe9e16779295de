"""The lines of an explanation as texts, the same for every output format: they add up to the step's change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import log

from tracediff import bounds, thresholds
from tracediff.diff.comparison import OPERATOR
from tracediff.explain.explanation import Cause, Explanation
from tracediff.explain.leaves import (
    CODE,
    COPIED,
    GPU,
    HOST,
    HOST_CALLS,
    LONG,
    MIXED,
    NO_OPERATOR,
    ON_THE_HOST,
    ONE,
    OPERATORS,
    OTHER_CALLERS,
    SHARED_CALLS,
    SINGLES,
)
from tracediff.explain.lines import OTHERS, UNKNOWN
from tracediff.explain.tree import REPLACED, SINGLE
from tracediff.formatting import ARROW, Unit, joined, plural
from tracediff.present.path import PathPart, ReadPath, Times, WhyRow, exposures, read_path, together
from tracediff.present.plain_text import shortened_pairs
from tracediff.structs import FrozenStruct, Pair

CLOSED = "0 ns unexplained"
TOTAL = "total: also what other work hides"
DECISIVE = (
    "dtype",
    "layout",
    "sizes",
    "memory",
    "device",
    "tensor-cores",
    "phase",
    "no-operator",
    "dominant",
    "gap",
)
"""Reasons that say what makes as much work take another time, or where it is added: before how much it is."""
OF_OTHER_WORK = ("dtype", "layout")
"""Reasons that say that other work is done."""
INNER = "· "
"""Before the label of a line that is a part of the one above, where nothing else shows that."""
IN_WORK, ON_HOST = "groups", "ops"
"""Tables of the report and of the dashboard that hold what a line is about."""


class ExplanationLine(FrozenStruct, kw_only=True):
    """One line.

    Attributes:
        label: what changed. because: what happened and why; may be empty.
        every: what it takes in all, on both sides, in µs; None of what is only exposed. delta_us: its part of the
            step's change, in µs.
        table: the one that holds its work, empty where none does. find: what the rows of that work contain there.
        bar: where its part begins in a waterfall from control's step to test's, and how long it is; parts of its width.
        short: the label in few characters, in which lines that differ look different.
        inner: of a part of the critical path the lines that it is the sum of.
    """

    label: str
    because: str = ""
    every: Pair[float] | None
    delta_us: float
    table: str = ""
    find: tuple[str, ...] = ()
    bar: tuple[float, float] = (0.0, 0.0)
    short: str = ""
    inner: tuple[ExplanationLine, ...] = ()

    @property
    def direction(self) -> str:
        """Of its part of the step's change: ``slower``, ``faster`` or empty."""
        return direction(self.delta_us)


class ExplanationTable(FrozenStruct, kw_only=True):
    """Lines that add up to `total`.

    Attributes:
        unit: of all times. heads: of the columns: what changed, then of what `figures` gives.
    """

    unit: Unit
    heads: tuple[str, ...]
    lines: tuple[ExplanationLine, ...]
    total: ExplanationLine

    @property
    def rows(self) -> list[tuple[int, ExplanationLine]]:
        """(level, line) of all lines: 1 of those inside the last one of level 0."""
        return leveled(self.lines)

    def figures(self, line: ExplanationLine) -> tuple[str, ...]:
        """Its time of both sides in all, and its part of the step's change."""
        return ARROW.join(map(self.unit.plain, line.every or ())), self.unit.signed(line.delta_us)


def leveled(lines: Iterable[ExplanationLine]) -> list[tuple[int, ExplanationLine]]:
    """Each line with its level, followed by those inside it."""
    return [row for line in lines for row in ((0, line), *((1, inner) for inner in line.inner))]


def direction(delta_us: float) -> str:
    """``slower``, ``faster`` or empty."""
    return "slower" if delta_us > 0 else "faster" if delta_us < 0 else ""


def explanation_table(explanation: Explanation, most: int | None = None) -> ExplanationTable:
    """The causes in their order, and the rest, without lines that do not change, what is only exposed, and the step;
    where several parts of its critical path changed, each with its lines. Of ``most`` lines, several causes of a part
    that are not significant are one, and the smallest are in the rest.
    """
    path, period = read_path(explanation), explanation.period
    unit, in_step, exposed = path.unit, explanation.change_us, exposures(path, explanation.facts)
    unclear = [] if most is None else [row for row in path.rows if is_unclear(row.cause)]
    room = None if most is None else max(most - len(exposed) - len({row.part for row in unclear}), 1)
    alone = _leading_first([row for row in path.rows if row not in unclear])[:room]
    inner = {label: _lines_of_part(explanation, unit, part, alone, unclear) for label, part in path.parts.items()}
    changed = sorted(path.changed, key=lambda part: -sum(_along(row.times.own, in_step) for row in part.rows))
    lines = [line for part in changed for line in inner[part.label]]
    if path.is_split:
        order = [*changed, *path.unchanged]
        lines = [_of_part(path, part, inner[part.label]) for part in order]
    lines += [ExplanationLine(label=one.label, because=one.what, every=None, delta_us=one.delta_us) for one in exposed]
    whole = Pair(*(unit.rounded(float(ns) / 1000) for ns in explanation.root.path))
    total = ExplanationLine(label=period, because=CLOSED, every=whole, delta_us=whole.delta)
    heads = _head(explanation), f"total ({unit.name})", f"adds to {period.split()[-1]}"
    return ExplanationTable(unit=unit, heads=heads, lines=_waterfall(lines), total=total)


def _along(us: float, change_us: float) -> float:
    """How much of a change of ``us`` has the direction of ``change_us``."""
    return max(us if change_us >= 0 else -us, 0.0)


REST = "the rest"
DOUBTS = {"unclear": "not significant", "same": "not significant", "overlapping": "may be chance"}
"""What the significance of a line says of its change, where that may be chance."""


def _of_part(path: ReadPath, part: PathPart, inner: list[ExplanationLine]) -> ExplanationLine:
    """A part of the path with its lines, or its only one."""
    name, times = path.name_of(part), part.times
    if len(inner) > 1:
        lines = tuple(line.replace(label=line.label.removesuffix(ON_THE_HOST)) for line in inner)
        return _of_times(name, times).replace(inner=lines)
    (only,) = inner or [_of_times(name, times)]
    is_all_of_it = only.label.removesuffix(" time") in (part.label, CODE) or only.label.endswith(REST)
    return only.replace(label=name if is_all_of_it else f"{name}: {only.label.removesuffix(ON_THE_HOST)}")


def _of_times(label: str, times: Times, because: str = "") -> ExplanationLine:
    more, effect = times.every.delta, times.own
    hidden = f"{'more' if more > 0 else 'less'} of it hidden" if more * effect < 0 else ""
    because = joined(hidden, because, by="; ")
    return ExplanationLine(label=label, because=because, every=times.every, delta_us=effect)


def _lines_of_part(
    explanation: Explanation, unit: Unit, part: PathPart, alone: Sequence[WhyRow], unclear: Sequence[WhyRow]
) -> list[ExplanationLine]:
    """Of one part of the path, as it is read: a line for each of its rows that stands ``alone``, one for those that are
    ``unclear``, and one for the rest.
    """
    unsure = [row for row in part.rows if row in unclear]
    small = [row for row in part.rows if row not in alone and row not in unsure]
    lines = [_of_cause(row) for row in part.rows if row in alone]
    lines += [_of_unclear(unsure, unit)] if unsure else []
    rest = together((part.rest, *(row.times for row in small)))
    name = f"{plural(len(small), 'other')} and {REST}" if small else REST
    remainder = explanation.remainders[part.label]
    moved = [remainder.longer_us, remainder.shorter_us, *(row.times.own for row in small)]
    ways = longer_and_shorter(moved, rest.own, explanation.scale_us, unit)
    is_time = any(map(unit.rounded, rest.every if lines else rest.path))  # without which the times do not add up
    return [*lines, *([_of_times(name, rest, ways)] if is_time else [])]


def _leading_first(causes: Sequence[WhyRow]) -> list[WhyRow]:
    """The causes that a sentence names, then the largest."""
    ways = ([row for row in causes if sign * row.times.own > 0] for sign in (1, -1))
    lead = {id(row) for way in ways for row in way[: leading([row.times.own for row in way])]}
    return sorted(causes, key=lambda row: (id(row) not in lead, -abs(row.times.own)))


def _of_unclear(causes: Sequence[WhyRow], unit: Unit) -> ExplanationLine:
    """The line of causes that are not significant."""
    times, by_size = together(row.times for row in causes), sorted(causes, key=lambda row: -abs(row.times.own))
    if len(by_size) == 1:
        cause = by_size[0].cause
        return _of_times(f"{cause.label}{doubt(cause)}", times, cause.what)
    each = (f"{row.cause.label.removesuffix(ON_THE_HOST)} {unit.signed(row.times.own)}" for row in by_size)
    return _of_times(f"{len(causes)} rows{doubt(by_size[0].cause)}", times, ", ".join(each))


def _head(explanation: Explanation) -> str:
    """``Why``, of which step and rank, and what an effect is."""
    step = TOTAL if explanation.profiled else f"{explanation.period} without the profiler"
    return f"Why ({joined(explanation.of_rank, step, by='; ')})"


def longer_and_shorter(moved: Sequence[float], rest: float, scale_us: float, unit: Unit) -> str:
    """``longer +1.2, shorter −0.9``, which add up to ``rest``, if that says little of either, which are worth a line;
    else empty.
    """
    longer, shorter = (sum(us for us in moved if sign * us > 0) for sign in (1, -1))
    if min(longer, -shorter) < max(thresholds.WORTH_A_LINE * scale_us, thresholds.MOSTLY * abs(rest)):
        return ""
    longer = unit.rounded(longer)
    return f"longer {unit.signed(longer)}, shorter {unit.signed(rest - longer)}"


def _waterfall(lines: list[ExplanationLine]) -> tuple[ExplanationLine, ...]:
    """``lines`` with short labels and their bars: each begins where the one before it ends."""
    ends = [0.0, *accumulate(inner.delta_us for line in lines for inner in line.inner or (line,))]
    short = iter(shortened_pairs([line.label for _, line in leveled(lines)], bounds.LABEL))

    def placed(some: Sequence[ExplanationLine], begin: float) -> Iterator[ExplanationLine]:
        for line in some:
            end = begin + line.delta_us
            bar = (min(begin, end) - min(ends)) / width, abs(end - begin) / width
            yield line.replace(short=next(short), bar=bar, inner=tuple(placed(line.inner, begin)))
            begin = end

    width = max(ends) - min(ends) or 1.0
    return tuple(placed(lines, 0.0))


def leading(deltas_us: Sequence[float]) -> int:
    """How many causes of these parts of the change a sentence names: the first ones until they are most of them all."""
    sizes, most = [abs(us) for us in deltas_us], bounds.CAUSES_NAMED
    return next((n for n in range(1, most) if sum(sizes[:n]) >= thresholds.NAMED_CAUSES * sum(sizes)), most)


def is_unclear(cause: Cause) -> bool:
    """Whether it is another time that the runs show not to have changed, or not for sure."""
    return not is_other_work(cause) and bool(doubt(cause))


def doubt(cause: Cause) -> str:
    """``, not significant`` or ``, may be chance``; empty of others."""
    text = DOUBTS.get(cause.significance.time_change)
    return f", {text}" if text else ""


def is_pace(chain: tuple[str, ...]) -> bool:
    """Whether what is at this place in the tree is how fast the host makes the same calls."""
    return chain[:2] == (HOST, SHARED_CALLS)


def is_certain(cause: Cause) -> bool:
    """Whether the runs show that it takes another time, which is neither the pace of the host in the same calls nor of
    a single event.
    """
    is_by_chance = is_pace(cause.chain) or cause.node.note == SINGLE
    return cause.significance.time_change in ("slower", "faster") and not is_by_chance


def is_other_work(cause: Cause) -> bool:
    """Whether it is certain that other work is done, whatever its time: more or less, mostly, or of another kind."""
    if cause.node.note == SINGLE or cause.chain[1:] == (OTHERS,):  # may be one call of many, or of several families
        return False
    if cause.effect in ("presence", "amount") or ARROW in cause.node.label:
        return True
    (control, test), is_work = cause.node.count, cause.chain[0] != HOST
    if is_work and control and test:
        more, longer = (log(after / before) for before, after in ((control, test), (cause.control_us, cause.test_us)))
        least = thresholds.SAME_RATIO if cause.amount is None else thresholds.MOSTLY * abs(longer)
        if more * longer > 0 and abs(more) > max(least, thresholds.SAME_RATIO):
            return True
    return any(reason.code in OF_OTHER_WORK for reason in cause.reasons)


def because(cause: Cause) -> str:
    """What happened and why, in one line."""
    tested = DOUBTS.get(cause.significance.time_change, "")
    decisive = [reason.text for reason in cause.reasons if reason.code in DECISIVE]
    is_counted = cause.amount is not None and cause.amount.unit == "calls"  # as it says what happened
    elsewhere = (*DECISIVE, "count") if is_counted else DECISIVE
    others = [reason.text for reason in cause.reasons if reason.code not in elsewhere]
    parts = [cause.what, *others]
    if cause.what == UNKNOWN:  # what else is said says more
        parts = [*others, cause.what]
    return joined(*decisive, *parts, tested, by="; ")


def sentence(text: str) -> str:
    """``text`` with a capital letter."""
    return text[:1].upper() + text[1:]


def _of_cause(row: WhyRow) -> ExplanationLine:
    table, find = _place(row.cause)
    return _of_times(row.cause.label, row.times, because(row.cause)).replace(table=table, find=find)


def _place(cause: Cause) -> tuple[str, tuple[str, ...]]:
    """(table, what its rows there contain) of the work of a line: family, operator or module, and kernels without an
    operator; of the host its operator, of several the category; of a single event its kernel.
    """
    part, *inner = (label.split(COPIED)[0].removesuffix(ON_THE_HOST) for label in cause.chain if label != OTHERS)
    if part in (GPU, OPERATORS) and inner[:1] == [SINGLES]:
        return IN_WORK, (inner[1].removeprefix(LONG).removeprefix(ONE),)
    if part in (GPU, OPERATORS, MIXED) and inner[:1] != [OTHER_CALLERS]:
        has_operator = "::" in "".join(inner[1:2])
        return IN_WORK, tuple(label for label in inner[: 2 if has_operator else 3] if label != NO_OPERATOR)
    if part == HOST and {*inner[:1]} & {*HOST_CALLS}:
        name = inner[1:2] if cause.node.note != REPLACED else []
        return ON_HOST, tuple(name) or (OPERATOR,)
    return "", ()
