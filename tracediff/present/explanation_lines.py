"""The lines of an explanation as texts, the same for every output format: they add up to the step's change."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import log

from msgspec import Struct
from msgspec.structs import replace

from tracediff import bounds, thresholds
from tracediff.diff.comparison import OPERATOR
from tracediff.explain.explanation import Cause, Explanation
from tracediff.explain.facts import NEW_WAIT
from tracediff.explain.leaves import (
    GPU,
    HOST,
    HOST_CALLS,
    MIXED,
    NO_OPERATOR,
    ON_THE_HOST,
    ONE,
    OPERATORS,
    SINGLES,
    UNPAIRED,
)
from tracediff.explain.lines import UNKNOWN
from tracediff.formatting import ARROW, Unit, closing, percent, time_unit, with_digits
from tracediff.pair import SIDES, Pair
from tracediff.present.plain_text import shortened_pairs

CLOSED = "0 ns unexplained"
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
BOTH_WAYS = "change of overlap"
"""The label of exposure both ways."""
IN_WORK, ON_HOST = "groups", "ops"
"""Tables of the report and of the dashboard that hold what a line is about."""


class ExplanationLine(Struct, frozen=True, kw_only=True):
    """One line.

    Attributes:
        label: what changed. because: what happened and why; may be empty.
        times: all of its time on both sides; empty of lines that have none. share: the part of their change that the
            step waits for; empty if that is all of it. step: its part of the step's change. delta_us: the same in µs.
        table: the one that holds its work, empty where none does. find: what the rows of that work contain there.
        bar: where its part begins in a waterfall from control's step to test's, and how long it is; parts of its width.
        short: the label in few characters, in which lines that differ look different.
    """

    label: str
    because: str = ""
    times: str = ""
    share: str = ""
    step: str
    delta_us: float
    table: str = ""
    find: tuple[str, ...] = ()
    bar: tuple[float, float] = (0.0, 0.0)
    short: str = ""

    @property
    def direction(self) -> str:
        """Of its part of the step's change: ``slower``, ``faster`` or empty."""
        return direction(self.delta_us)


class ExplanationTable(Struct, frozen=True, kw_only=True):
    """Lines that add up to `total`.

    Attributes:
        unit: of all times. heads: of the columns: what changed, all of its time in the period, the part of its change
            on the path, its part of the step's change.
        closing: what is unexplained.
    """

    unit: str
    heads: tuple[str, str, str, str]
    lines: tuple[ExplanationLine, ...]
    total: ExplanationLine
    closing: str = CLOSED


def direction(delta_us: float) -> str:
    """``slower``, ``faster`` or empty."""
    return "slower" if delta_us > 0 else "faster" if delta_us < 0 else ""


def explanation_table(explanation: Explanation, most: int | None = None, names: Pair[str] = SIDES) -> ExplanationTable:
    """The causes in their order, exposure, the rest in one line, and the step, without lines of 0: the rest is what is
    in no line. Of ``most`` lines, several causes that are not significant are one, and the smallest are in the rest.
    ``names`` are those of the sides.
    """
    unit = unit_of(explanation)
    label, what, exposure_us = exposure_of(explanation, unit)
    unclear = [] if most is None else list(filter(is_unclear, visible_causes(explanation)))
    room = None if most is None else most - bool(label) - bool(unclear)
    listed = {id(cause) for cause in _leading_first(explanation, unclear)[:room]}
    small = [cause for cause in explanation.causes if id(cause) not in listed and cause not in unclear]
    lines = [_of_cause(cause, unit) for cause in explanation.causes if id(cause) in listed]
    lines += [_of_unclear(unclear, explanation.scale_us, unit)] if unclear else []
    if label == BOTH_WAYS:
        both = _both_ways(explanation, unit)
        label = f"overlap: {', '.join(f'{name} {unit.signed(us)}' for name, us in both)}"
        what = new_wait(explanation) or ", ".join(f"{name} {'hidden' if us < 0 else 'no longer'}" for name, us in both)
    lines += [_of_rest(label, what, exposure_us, unit)] if label else []
    control, test = (float(ns) / 1000 for ns in explanation.root.path)
    change = unit.rounded(test) - unit.rounded(control)  # as it is read; so is the rest
    rest = change - sum(unit.rounded(line.delta_us) for line in lines)
    moved = [*explanation.rests_us, *(cause.delta_us for cause in small), 0.0 if label else exposure_us]
    name = f"{len(small)} smaller and the rest" if small else "the rest"
    lines.append(_of_rest(f"{name}{_longer_and_shorter(moved, rest, explanation.scale_us, unit)}", "", rest, unit))
    lines = [line for line in lines if is_visible(line.delta_us, unit)]
    total = ExplanationLine(
        label=explanation.period,
        times=_times(unit, control, test),
        step=unit.signed(change),
        delta_us=change,
        because=CLOSED,
    )
    period = explanation.period
    effect = "effect on step" if period == "step" else "effect"
    heads = _head(explanation), f"{ARROW.join(names)} ({unit.name})", "of Δ", effect
    return ExplanationTable(unit=unit.name, heads=heads, lines=_waterfall(lines), total=total)


def _leading_first(explanation: Explanation, others: Sequence[Cause]) -> list[Cause]:
    """The causes that are not among ``others``: those that a sentence names, then the largest."""
    causes = [cause for cause in visible_causes(explanation) if cause not in others]
    ways = ([cause for cause in causes if sign * cause.delta_us > 0] for sign in (1, -1))
    lead = {id(cause) for way in ways for cause in way[: leading([cause.delta_us for cause in way])]}
    return sorted(causes, key=lambda cause: (id(cause) not in lead, -abs(cause.delta_us)))


def _of_unclear(causes: Sequence[Cause], scale_us: float, unit: Unit) -> ExplanationLine:
    """The line of causes that are not significant."""
    effects = [effect_us(cause, unit) for cause in causes]
    us, largest = unit.rounded(sum(cause.delta_us for cause in causes)), max(causes, key=lambda c: abs(c.delta_us))
    ways, is_one = _longer_and_shorter(effects, us, scale_us, unit), len(causes) == 1
    took = [sum(cause.control_us for cause in causes), sum(cause.test_us for cause in causes)]
    return ExplanationLine(
        label=f"{largest.label}, not significant" if is_one else f"{len(causes)} rows, not significant{ways}",
        because=largest.what if is_one else f"largest: {largest.label}",
        times=_times(unit, *took),
        share=_share(took[1] - took[0], us, unit),
        step=unit.signed(us),
        delta_us=us,
    )


def _head(explanation: Explanation) -> str:
    """``Why``, of which step and rank."""
    step = "" if explanation.profiled else f"{explanation.period} without the profiler"
    remarks = ", ".join(filter(None, (step, explanation.of_rank)))
    return f"Why ({remarks})" if remarks else "Why"


def exposure_of(explanation: Explanation, unit: Unit) -> tuple[str, str, float]:
    """Of the exposure (what its line says, empty where it is worth none; of what, may be empty; its part of the step's
    change in µs).
    """
    parts, scale_us = explanation.exposure_us, explanation.scale_us
    label, total = exposure_label(parts, scale_us), sum(parts.values())
    if label == BOTH_WAYS:  # its total is what is left of both
        both = (
            f"{name} work {'now overlapped' if us < 0 else 'no longer'} {unit.signed(us)} {unit.name}"
            for name, us in _both_ways(explanation, unit)
        )
        return label, ", ".join(both), total
    mostly = f"mostly {explanation.exposed}" if explanation.exposed else ""
    return label, "; ".join(filter(None, (mostly, new_wait(explanation)))), total


def exposure_label(exposure_us: dict[str, float], scale_us: float) -> str:
    """What the line of the exposure says: of what the same work is now on the critical path, or overlapped by other
    work. Empty where it is part of the rest: not worth a line.
    """
    total = sum(exposure_us.values())
    large = {label: us for label, us in exposure_us.items() if abs(us) >= thresholds.EXPOSURE_NAMED * scale_us}
    if min(large.values(), default=0.0) < 0 < max(large.values(), default=0.0):
        return BOTH_WAYS
    if abs(total) < thresholds.WORTH_A_LINE * scale_us:
        return ""
    moved_alike = [f"{label} work" if label == HOST else label for label, us in large.items() if us * total > 0]
    if not moved_alike:
        return "less overlap" if total > 0 else "more overlap"
    return f"{' and '.join(moved_alike)} {'no longer' if total > 0 else 'now'} overlapped"


def new_wait(explanation: Explanation) -> str:
    """In which operator only the side that takes longer waits for the GPU; empty if in none."""
    return next((fact.text for fact in explanation.facts if fact.code == NEW_WAIT), "")


def _both_ways(explanation: Explanation, unit: Unit) -> list[tuple[str, float]]:
    """(host or GPU, its part of the exposure in µs), what is now overlapped first."""
    parts = explanation.exposure_us
    names = (name.removesuffix(" work") for name in parts)
    both = zip(names, closing(unit, [*parts.values()], sum(parts.values())), strict=True)
    return sorted(both, key=lambda part: part[1])


def _of_rest(label: str, what: str, us: float, unit: Unit) -> ExplanationLine:
    return ExplanationLine(label=label, because=what, step=unit.signed(us), delta_us=us)


def _longer_and_shorter(moved: Sequence[float], rest: float, scale_us: float, unit: Unit) -> str:
    """`` (longer +1.2, shorter −0.9)``, which add up to ``rest``, if both are worth a line; else empty."""
    longer, shorter = (sum(us for us in moved if sign * us > 0) for sign in (1, -1))
    if min(longer, -shorter) < thresholds.WORTH_A_LINE * scale_us:
        return ""
    longer = unit.rounded(longer)
    return f" (longer {unit.signed(longer)}, shorter {unit.signed(rest - longer)})"


def _waterfall(lines: list[ExplanationLine]) -> tuple[ExplanationLine, ...]:
    """``lines`` with short labels and their bars: each begins where the one before it ends."""
    ends = [0.0, *accumulate(line.delta_us for line in lines)]
    least, width = min(ends), max(ends) - min(ends) or 1.0
    short = shortened_pairs([line.label for line in lines], bounds.LABEL)
    return tuple(
        replace(line, short=label, bar=((min(begin, end) - least) / width, abs(end - begin) / width))
        for line, label, begin, end in zip(lines, short, ends, ends[1:], strict=False)
    )


def unit_of(explanation: Explanation) -> Unit:
    """The unit of the step, in which its lines have digits."""
    return with_digits(
        _unit_of_step(explanation), (explanation.change_us, *(cause.delta_us for cause in explanation.causes))
    )


def _unit_of_step(explanation: Explanation) -> Unit:
    return time_unit([float(ns) / 1000 for ns in explanation.root.path])


def effect_us(cause: Cause, unit: Unit) -> float:
    """The part of the step's change that a cause accounts for, as it is read: of one that is all of its own change, the
    difference of its times as they are shown.
    """
    own_us = cause.test_us - cause.control_us
    is_all = not is_visible(own_us - cause.delta_us, unit)
    difference = unit.rounded(cause.test_us) - unit.rounded(cause.control_us)
    return difference if is_all and difference * cause.delta_us > 0 else cause.delta_us


def is_visible(us: float, unit: Unit) -> bool:
    """Whether a change has a digit other than 0."""
    return bool(unit.signed(us).strip("+−0.,"))


def leading(deltas_us: Sequence[float]) -> int:
    """How many causes of these parts of the change a sentence names: the first ones until they are most of them all."""
    sizes, most = [abs(us) for us in deltas_us], bounds.CAUSES_NAMED
    return next((n for n in range(1, most) if sum(sizes[:n]) >= thresholds.NAMED_CAUSES * sum(sizes)), most)


def visible_causes(explanation: Explanation) -> list[Cause]:
    """The causes whose part of the step's change has a digit other than 0 in the unit of the step."""
    return [cause for cause in explanation.causes if is_visible(cause.delta_us, _unit_of_step(explanation))]


def is_unclear(cause: Cause) -> bool:
    """Whether it is another time that the runs show not to have changed, or not for sure."""
    return not is_other_work(cause) and cause.significance.time_change in ("unclear", "same")


def is_other_work(cause: Cause) -> bool:
    """Whether it is certain that other work is done, whatever its time."""
    if cause.effect in ("presence", "amount") or ARROW in cause.node.label:
        return True
    counts, is_work = cause.node.count, cause.chain[0] != HOST
    if is_work and cause.amount is None and counts.all() and abs(log(counts[1] / counts[0])) > thresholds.SAME_RATIO:
        return True
    return any(reason.code in OF_OTHER_WORK for reason in cause.reasons)


def because(cause: Cause) -> str:
    """What happened and why, in one line."""
    tested = "" if cause.significance.time_change in ("untested", "faster", "slower") else "not significant"
    decisive = [reason.text for reason in cause.reasons if reason.code in DECISIVE]
    others = [reason.text for reason in cause.reasons if reason.code not in DECISIVE]
    parts = [cause.what, *others]
    if cause.what == UNKNOWN:  # what else is said says more
        parts = [*others, cause.what]
    return "; ".join(filter(None, (*decisive, *parts, tested)))


def sentence(text: str) -> str:
    """``text`` with a capital letter."""
    return text[:1].upper() + text[1:]


def _of_cause(cause: Cause, unit: Unit) -> ExplanationLine:
    table, find = _place(cause)
    return ExplanationLine(
        label=cause.label,
        because=because(cause),
        times=_times(unit, cause.control_us, cause.test_us),
        share=_share(cause.test_us - cause.control_us, cause.delta_us, unit),
        step=unit.signed(effect_us(cause, unit)),
        delta_us=effect_us(cause, unit),
        table=table,
        find=find,
    )


def _place(cause: Cause) -> tuple[str, tuple[str, ...]]:
    """(table, what its rows there contain) of the work of a line: family, operator or module, and kernels without an
    operator; of the host its operator, of several the category; of a single event its kernel.
    """
    chain = cause.chain
    if chain[:2] == (GPU, SINGLES):
        return IN_WORK, (chain[2].removeprefix(ONE),)
    if chain[0] in (GPU, OPERATORS, MIXED) and chain[1:2] != (UNPAIRED,):
        has_operator = "::" in "".join(chain[2:3])
        labels = (label for label in chain[1 : 3 if has_operator else 4] if label != NO_OPERATOR)
        return IN_WORK, tuple(label.removesuffix(ON_THE_HOST) for label in labels)
    if chain[0] == HOST and {*chain[1:2]} & {*HOST_CALLS}:
        return ON_HOST, chain[2:3] or (OPERATOR,)
    return "", ()


def _share(own_us: float, delta_us: float, unit: Unit) -> str:
    """Which part of its own change the step waits for; empty where that is all of it, or what several did is mixed."""
    is_all = not is_visible(own_us - delta_us, unit)
    return "" if is_all or not own_us or not 0 <= delta_us / own_us <= 1 else percent(delta_us / own_us)


def _times(unit: Unit, control: float, test: float) -> str:
    return f"{unit.plain(control)} → {unit.plain(test)}"
