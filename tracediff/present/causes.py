"""The causes of a comparison → a sentence whose times add up to the step's change, to paste."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import log
from operator import attrgetter

from tracediff import bounds, thresholds
from tracediff.diff.comparison import Comparison
from tracediff.diff.verdict import Verdict, how_long, opposed
from tracediff.explain.explanation import Cause, Explanation
from tracediff.explain.facts import SAME_CALLS, UNIFORM
from tracediff.explain.leaves import CALLS, HOST, OPERATORS, OTHER_CALLS, PYTHON, SINGLES, START, WAITING
from tracediff.explain.lines import MOSTLY_IN, UNKNOWN, waits_for_ranks
from tracediff.formatting import Unit, change, counts_of, joined, percents
from tracediff.present.explanation_lines import (
    DECISIVE,
    doubt,
    is_certain,
    is_other_work,
    is_pace,
    is_unclear,
    leading,
    longer_and_shorter,
    sentence,
)
from tracediff.present.path import (
    FOR_GPU,
    ReadPath,
    StepPart,
    change_us,
    exposures,
    is_visible,
    read_path,
    together,
)
from tracediff.present.plain_text import shortened_pairs
from tracediff.present.setting import may_be_chance
from tracediff.structs import Pair

BECAUSE, OFFSET, LARGEST, ALL_ELSE = "{}because of", "offset {}by", "largest change", "all else"
OF_WHICH = "of which "
MAINLY, PARTLY = "mainly ", "partly "
"""In these, where not all causes are named, by whether those named are most of all that has their direction."""


def causes_of(comparison: Comparison, explanation: Explanation) -> tuple[str, str, str]:
    """(because, offset by, not explained)."""
    path = read_path(explanation)
    unit = path.unit
    sign = 1 if explanation.change_us >= 0 else -1
    sure = _has_changed(comparison) and by_chance(comparison) is None
    every = _parts(path, is_of_one_dtype="dtype" not in comparison.comparability.codes)
    has_same_program = any(fact.code == SAME_CALLS for fact in explanation.facts)  # whatever has no counterpart
    other_work = [part for part, cause in every if is_other_work(cause) and not has_same_program]
    if not sure and not other_work and every and is_unclear(max(every, key=lambda both: both[0].size_us)[1]):
        return "", "", ""  # all that is left is smaller than what is by chance
    parts, clear = [part for part, _ in every], [part for part, cause in every if not is_unclear(cause)]
    if clear or other_work or not sure:  # else none is clear, though the step changed
        parts = clear
    way = sign
    same_steps = "steps" not in comparison.comparability.codes
    certain = [part for part, cause in every if part in other_work or (same_steps and is_certain(cause))]
    is_open = not sure and bool(certain)
    if is_open:  # unlike the direction of the step's change
        parts = sorted(certain, key=lambda part: -part.size_us)
        way = 1 if change_us(parts) > 0 else -1
    along, against = ([part for part in parts if sign * part.delta_us > 0] for sign in (way, -way))
    along = _with_wholes(along, explanation, path)
    first = _leading(along)
    but = {part.chain[0] for part in first}  # which would hold these, too
    against = _with_wholes(against, explanation, path, but)
    unnamed = max((part.size_us for part in along[len(first) :]), default=0.0)
    wholes = {part.chain for part in along if len(part.chain) == 1}  # what is in them is no offset
    against = [part for part in against if part.size_us > unnamed and part.chain[:1] not in wholes]
    step_us = together(part.times for part in path.parts.values()).delta
    least = thresholds.WORTH_A_LINE * explanation.scale_us
    exposed = [part for part in exposures(path, explanation.facts) if part.size_us >= least]
    rest_us = step_us - change_us((*first, *_leading(against)))
    exposed_along, exposed_against = (
        [part for part in exposed if sign * part.delta_us > 0 and _is_named(part, some, rest_us, step_us)]
        for sign, some in ((way, along), (-way, against))
    )
    if not along and not exposed_along:
        return "", "", ""
    certainty = _certainty([*first, *exposed_along], certain, other_work) if is_open else ""
    lead = _lead(comparison, certainty, BECAUSE if sure else LARGEST)
    rest_us -= change_us((*exposed_along, *exposed_against))
    rest_us = rest_us if is_visible(rest_us, unit) else 0.0
    rest = _rest(rest_us, every, [*first, *_leading(against)], [*exposed_along, *exposed_against], explanation, unit)
    because = sentence(_list(lead, along, exposed_along, unit, max(way * rest_us, 0.0)))
    offset = _list(OFFSET, against, exposed_against, unit, max(-way * rest_us, 0.0))
    return because, offset, rest


def _rest(
    rest_us: float,
    every: Sequence[tuple[StepPart, Cause]],
    causes: Sequence[StepPart],
    exposed: Sequence[StepPart],
    explanation: Explanation,
    unit: Unit,
) -> str:
    """What the sentence of ``causes`` and ``exposed`` does not name: how much of it is longer, and shorter, if that
    cancels, or else with the largest of it, if that is larger than all these in its direction.
    """
    if not rest_us:
        return ""
    all_else, wholes = f"{ALL_ELSE} {unit.signed_text(rest_us)}", {p.chain for p in causes if len(p.chain) == 1}
    unnamed = [(part, cause) for part, cause in every if part not in causes and part.chain[:1] not in wholes]
    least = max((part.size_us for part in (*causes, *exposed) if part.delta_us * rest_us > 0), default=0.0)
    moved = [part.delta_us for part, _ in unnamed]
    if ways := longer_and_shorter([*moved, rest_us - sum(moved)], rest_us, explanation.scale_us, unit):
        return f"{all_else} ({ways})"
    for part, cause in unnamed:
        if part.delta_us * rest_us > 0 and part.size_us > least:
            remark = doubt(cause) if is_unclear(cause) else ""
            return f"{all_else}, {OF_WHICH}{part.label} {unit.signed(part.delta_us)}{remark}"
    return all_else


def _lead(comparison: Comparison, certainty: str, lead: str) -> str:
    """What a sentence of causes begins with: ``lead``, or if only part of them is certain, what ``certainty`` that is;
    of which steps, if those are not what the verdict is of.
    """
    is_of_medians = comparison.verdict.is_of_medians and (certainty or lead == BECAUSE)
    is_of_mean = _is_of_mean(comparison.verdict) or is_of_medians
    if certainty:
        lead = f"{certainty}, on the critical path{' of the mean step' if is_of_mean else ''}:"
    elif is_of_mean:
        lead = f"the mean is {'longer' if comparison.verdict.delta_us > 0 else 'shorter'} {BECAUSE}"
    profiled = profiled_steps(comparison)
    return f"in {profiled}: {lead}" if profiled else lead


def _leading(parts: Sequence[StepPart]) -> Sequence[StepPart]:
    """Those of one direction that a sentence names: beside a single event also the next, if that is of each step."""
    number = leading([part.delta_us for part in parts])
    is_of_one = [SINGLES in part.chain for part in parts[:2]] == [True, False]
    return parts[: max(number, 2 if is_of_one else 0)]


def _certainty(parts: Sequence[StepPart], certain: Sequence[StepPart], other_work: Sequence[StepPart]) -> str:
    """What is certain of ``parts``, if it is the same of all: that they are ``other_work``, or take another time; of a
    whole only if next to all of it is ``certain``.
    """
    for part in parts:
        inner = change_us(one for one in certain if one.chain[: len(part.chain)] == part.chain)
        if inner / part.delta_us < thresholds.KNOWN_AMOUNT:
            return f"{LARGEST}s"
    is_other = [any(one.chain[: len(part.chain)] == part.chain for one in other_work) for part in parts if part.chain]
    if len(is_other) < len(parts) or len({*is_other}) != 1:
        return f"{LARGEST}s"
    return "work that differs" if is_other[0] else "parts that surely changed"


def _is_named(exposure: StepPart, parts: Sequence[StepPart], rest_us: float, step_us: float) -> bool:
    """Whether a sentence names an ``exposure``: if it is larger than all ``parts`` of its direction, or most of what
    the named causes leave, where that is most of the step's change.
    """
    largest = max((part.size_us for part in parts), default=0.0)
    is_rest = exposure.delta_us * rest_us > 0 and exposure.size_us >= thresholds.MOSTLY * abs(rest_us)
    return exposure.size_us > largest or (is_rest and abs(rest_us) >= thresholds.MOSTLY * abs(step_us))


def _has_changed(comparison: Comparison) -> bool:
    """Whether the step is longer or shorter by a test; without one, whether it changed and its steps leave no doubt."""
    verdict = comparison.verdict
    if verdict.ci95_us is not None or verdict.result in ("faster", "slower"):
        return verdict.result in ("faster", "slower")
    return not may_be_chance(comparison) and abs(verdict.delta_us) >= thresholds.NO_DIFFERENCE * verdict.control_us


def _is_of_mean(verdict: Verdict) -> bool:
    """Whether the mean, of which the causes are, changed in the other direction than the median."""
    by_mean, by_median = verdict.ratio, verdict.ratio_of_medians
    return by_mean is not None and by_median is not None and opposed(by_mean - 1, by_median - 1)


def _parts(path: ReadPath, *, is_of_one_dtype: bool) -> list[tuple[StepPart, Cause]]:
    """The causes, as far as they have digits, the largest first, by what they take longer themselves; the same work is
    that only ``is_of_one_dtype``.
    """
    labels = shortened_pairs([row.cause.label for row in path.rows], bounds.LABEL)
    parts = [
        (
            StepPart(
                label, row.times.own, _happened(row.cause), row.cause.chain, is_of_one_dtype and is_same_work(row.cause)
            ),
            row.cause,
        )
        for label, row in zip(labels, path.rows, strict=True)
        if is_visible(row.times.own, path.unit)
    ]
    parts.sort(key=lambda both: (both[1].label == START, -both[0].size_us))  # START is not of the program
    return parts


def is_same_work(cause: Cause) -> bool:
    """Whether it is how fast the same work is done on the host, or on a CPU."""
    return is_pace(cause.chain) or (cause.chain[0] == OPERATORS and not is_other_work(cause) and _is_as_much(cause))


def _with_wholes(
    parts: list[StepPart], explanation: Explanation, path: ReadPath, but: Collection[str] = ()
) -> list[StepPart]:
    """``parts`` of one direction, those of a part of the critical path as one if none is most of them, or all work
    changed alike, and little in it is against them, with the largest ones; ``but`` of some.
    """
    unit, is_uniform = path.unit, any(fact.code == UNIFORM for fact in explanation.facts)
    for label, whole in path.parts.items() if path.is_split or is_uniform else ():
        inner = [part for part in parts if part.chain[:1] == (label,) and label not in but]
        moved, change = change_us(inner), whole.times.own
        is_of_one = not is_uniform and any(part.size_us >= thresholds.MOSTLY * abs(moved) for part in inner)
        is_opposed = change * moved <= 0 or change * whole.times.every.delta < 0
        if is_of_one or is_opposed or abs(change) < thresholds.KNOWN_AMOUNT * abs(moved):
            continue
        number = explanation.root.children[label].count
        more = log(number[1] / number[0])
        is_as_many = label == HOST or abs(more) <= thresholds.SAME_RATIO or more * moved < 0  # which says nothing
        how_many = (
            ""
            if is_as_many
            else counts_of(float(number[0]), float(number[1]), "calls" if label == OPERATORS else "events")
        )
        largest = sorted(inner, key=attrgetter("is_pace"))[: bounds.PARTS_NAMED]
        texts = [f"{part.label} {unit.signed(part.delta_us)}" for part in largest]
        is_most = abs(change_us(largest)) >= thresholds.MOSTLY * abs(change)
        what = joined(how_many, f"{OF_WHICH if is_most else 'largest: '}{', '.join(texts)}")
        one = StepPart("host time" if label == HOST else label, change, what, (label,))
        parts = sorted((one, *(part for part in parts if part not in inner)), key=lambda part: -part.size_us)
    return parts


def _happened(cause: Cause) -> str:
    what = "" if cause.what == UNKNOWN else cause.what
    reasons = {reason.code: reason.text.split("; ")[0] for reason in cause.reasons}
    # where nothing else says what happened
    number = "" if what else reasons.get("other-kernels", reasons.get("count", ""))
    largest = reasons.get("largest", "")
    if PYTHON in cause.trail or {OTHER_CALLS, CALLS} & {*cause.chain} or largest.startswith(MOSTLY_IN):
        number = largest  # the name does not tell what it is
    reason = next((text for code, text in reasons.items() if code in DECISIVE), number)
    return joined(what, reason, reasons.get("line") or reasons.get("caller"))


def _list(lead: str, causes: Sequence[StepPart], exposure: Sequence[StepPart], unit: Unit, rest_us: float) -> str:
    """After ``lead``, the leading causes, what happened to the first but of an offset, and the exposure; the same work
    in another time last, which no change of the program explains. ``rest_us`` is what all else moves in their
    direction. Empty without any.
    """
    parts = [*_leading(causes)]
    stated, whole = (sum(part.size_us for part in (*some, *exposure)) for some in (parts, causes))
    if not stated:
        return ""
    all_but_little = 1 - thresholds.WORTH_A_LINE
    is_offset = lead == OFFSET  # whose rows say what happened
    is_all, is_most = (stated >= part * max(whole, stated + rest_us) for part in (all_but_little, thresholds.MOSTLY))
    lead = lead.format("" if is_all else MAINLY if is_most else PARTLY)
    for part in exposure:
        parts.insert(sum(cause.size_us > part.size_us for cause in parts), part)
    parts = _with_calls(parts)
    parts.sort(key=attrgetter("is_pace"))
    if lead.endswith(LARGEST):
        lead += ":" if len(parts) == 1 else "s:"
    whats = (part.what if (part is parts[0] or part.is_pace) and not is_offset else "" for part in parts)
    texts = [_with_time(part, unit, what) for part, what in zip(parts, whats, strict=True)]
    return f"{lead} {joined(', '.join(texts[:-1]), texts[-1], by=' and ')}"


def _with_calls(parts: list[StepPart]) -> list[StepPart]:
    """``parts``, in which what the calls that wait for the GPU take themselves follows that."""
    calls = [part for part in parts if part.chain[1:2] == (WAITING,)]
    wait = next((part for part in parts if part.label == FOR_GPU), None)
    if not calls or wait is None:
        return parts
    itself = StepPart("these calls themselves", change_us(calls), "")
    return [wait, itself, *(part for part in parts if part not in calls and part is not wait)]


def _with_time(part: StepPart, unit: Unit, what: str) -> str:
    """``label (+1.2 ms: what)``, or ``label (+1.2 ms, of which part +0.9)``."""
    by = ", " if what.startswith(OF_WHICH) else ": "
    return f"{part.label} ({joined(unit.signed_text(part.delta_us), what, by=by)})"


def profiled_steps(comparison: Comparison) -> str:
    """What the profiled steps take that the explanation is of, where the verdict is of those without the profiler."""
    explanation, believed = comparison.explanation, comparison.believed_unprofiled
    if believed is None or explanation is None or not explanation.profiled:
        return ""
    control, test = (float(ns) / 1000 for ns in explanation.root.path)
    aside = f"mean {change(control, test)}; the profiler adds {added_share(comparison, Pair(control, test))}"
    turned = f", which take {how_long(test / control - 1)}" if opposed(test / control - 1, believed.change) else ""
    return f"profiled steps{turned} ({aside})"


def added_share(comparison: Comparison, profiled: Pair[float]) -> str:
    """``10 → 1.2 %``: what the profiler adds to the steps of both sides, which take ``profiled`` µs with it."""
    return percents(*(with_it / us - 1 for with_it, us in zip(profiled, comparison.tested.medians, strict=True)))


def by_options(comparison: Comparison) -> str | None:
    """That what changed most is how fast the host works, which the profiler slows with other options on each side."""
    first = next(iter(comparison.causes), None)
    if first is None or not comparison.has_other_options:
        return None
    is_of_host = first.chain[0] in (HOST, OPERATORS) and first.node.total.all() and first.effect in ("speed", "time")
    if not is_of_host or any(fact.is_other_work for fact in comparison.facts):
        return None
    return "the profiler slows the host more or less with other options, so that its times do not compare"


def by_chance(comparison: Comparison) -> str | None:
    """That what changed most is how fast the host makes the same calls, or does the same work, which may differ by
    chance; None if it is otherwise, as where it launches more or less, or was tested.
    """
    gpu, verdict = comparison.gpu_time, comparison.verdict
    few = min(comparison.runs)
    if few >= thresholds.TESTED_RUNS or (verdict.result in ("faster", "slower") and verdict.ci95_us is not None):
        return None
    if any(gpu.count) and abs(gpu.count.delta) > thresholds.SAME_RATIO * max(gpu.count):
        return None
    is_small = abs(gpu.delta) <= thresholds.NO_DIFFERENCE * max(comparison.step_time.period)
    same_gpu_work = is_small and bool(gpu.groups) and all(group.level == "exact" for group in gpu.groups)
    first = next(iter(comparison.causes), None)
    if first is not None and (first.chain[0] == OPERATORS or _is_call_on_cpu(first, comparison)):
        return _of_same_work(comparison, first)
    if first is not None and _doubles(first.control_us, first.test_us):
        return None
    same_calls = first is not None and is_pace(first.chain) and _is_as_much(first)
    if not same_gpu_work and not same_calls:
        return None
    same_work = "the GPU does the same work in the same time; " if same_gpu_work and not same_calls else ""
    return f"{same_work}the time of the host may vary this much from run to run"


def _of_same_work(comparison: Comparison, first: Cause) -> str | None:
    """See `by_chance`, of sides without a GPU whose operators are what changed most."""
    codes, verdict = {fact.code for fact in comparison.facts}, comparison.verdict
    if UNIFORM in codes or waits_for_ranks(first.chain) or "dtype" in comparison.comparability.codes:
        return None
    if SAME_CALLS in codes:
        where = "the machine (load, clocks, threads) or a library"
        return f"the same calls take another time: {where} rather than the program"
    doubles = _doubles(verdict.control_us, verdict.test_us) and _doubles(first.control_us, first.test_us)
    if doubles or not _is_as_much(first) or is_other_work(first):
        return None
    return "the time of the same work may vary this much from run to run"


def _is_call_on_cpu(cause: Cause, comparison: Comparison) -> bool:
    """Whether it is one call of an operator of many, where nothing runs on a GPU."""
    return SINGLES in cause.chain and "::" in cause.label and not comparison.has_gpu


def _doubles(control: float, test: float) -> bool:
    """Whether one takes so much longer than the other, or has it alone, that it is no variation."""
    return min(control, test) < thresholds.MOSTLY * max(control, test)


def _is_as_much(cause: Cause) -> bool:
    """Whether it is as many calls on both sides, and mostly their speed that differs."""
    amount = cause.amount
    return cause.effect == "speed" and amount is not None and abs(log(amount.ratio)) <= thresholds.SAME_RATIO
