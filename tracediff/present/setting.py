"""`Comparison` → what was compared: the sides' names, their devices, runs, ranks and steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import log

from tracediff import bounds, thresholds
from tracediff.aggregate.summary import Side
from tracediff.diff.comparison import Comparison
from tracediff.diff.statistics.runs import estimate
from tracediff.formatting import ARROW, common_unit, joined, once, plural, ranges, time_unit
from tracediff.ingest.model.unread import unread_devices
from tracediff.present.plain_text import common_start
from tracediff.profile.kernels.match_names import is_generated
from tracediff.structs import SIDES, Pair

SEPARATORS = "_-./@ "
"""Where a name that begins like the other's may be cut."""


def heading(comparison: Comparison) -> str:
    """``A → B``; where columns cannot have the labels, which is which: ``control: A → test: B``."""
    labels = comparison.labels
    if side_names(comparison) == SIDES != labels:
        labels = Pair(f"control: {labels.control}", f"test: {labels.test}")
    return ARROW.join(labels)


def side_names(comparison: Comparison) -> Pair[str]:
    """What columns of the sides are called: their labels, without what both begin with if they are long; ``control``
    and ``test`` where they are long even so.
    """
    names = comparison.labels
    if max(map(len, names)) > bounds.SIDE_NAME:
        start = _common_start(names)
        names = names.map(lambda label: label[start:])
    is_usable = min(map(len, names)) > 0 and max(map(len, names)) <= bounds.SIDE_NAME and names[0] != names[1]
    return names if is_usable else SIDES


def _common_start(names: Pair[str]) -> int:
    """How many characters both names begin with, up to a separator; a number keeps the word before it."""
    places = [0, *(k for k, character in enumerate(common_start(names), 1) if character in SEPARATORS)]
    rests = names.map(lambda name: name[places[-1] :])
    return places[-2] if len(places) > 1 and all(map(str.isdigit, rests)) else places[-1]


def spread(comparison: Comparison) -> tuple[str, str]:
    """(``clear in these recordings``, ``step times disjoint: 33.1–35.9 → 30.2–31.0 ms``): what the shortest and the
    longest used steps say of the change, if they leave no doubt, and these; that no side has several; nothing of files
    without steps.
    """
    spans = spans_us(comparison)
    if spans is None or all(least == most for least, most in spans):
        is_of_steps = not any(side.whole_file for side in comparison.sides)
        return ("too little to tell from one step per side", "") if is_of_steps else ("", "")
    common = common_unit(time_unit, [us for span in spans for us in span])
    texts = []
    for least, most in spans:
        unit = common or time_unit([least, most])
        both = unit.plain(least) if least == most else f"{unit.plain(least)}–{unit.plain(most)}"
        texts.append(both if common else f"{both} {unit.name}")
    says = "" if may_be_chance(comparison) else "clear in these recordings"
    overlapping = "overlap, but not most of them" if says else "overlap"
    how = overlapping if overlap(spans) else f"disjoint{_in_doubt(comparison)}"
    times = f"{comparison.each} times {how}: {texts[0]} → {texts[1]}{f' {common.name}' if common else ''}"
    return says, times


def may_be_chance(comparison: Comparison) -> bool:
    """Whether the steps leave open that the sides differ: enough of them by the interval within runs, others by whether
    they overlap, or are too few for how much they vary; those of one step per side leave that to the reader.
    """
    within, spans = comparison.verdict.within_runs_us, spans_us(comparison)
    if within:
        return within[0] <= 0 <= within[1]
    if spans is None or all(least == most for least, most in spans):
        return False
    return overlap(spans) or bool(_in_doubt(comparison))


def _in_doubt(comparison: Comparison) -> str:
    """Why steps that do not overlap decide nothing; empty if they do: runs differ more than their steps, and of few
    steps that vary all of one side may take longer than all of the other by chance.
    """
    if comparison.verdict.result == "inconclusive":
        return ", but too few runs"
    logs = [[log(us) for us in side] for side in _periods_us(comparison)]
    p, few = estimate(*logs).p, min(map(len, logs))
    is_chance = p is None or p > thresholds.SIGNIFICANCE
    return f", but of only {plural(few, comparison.each)}" if is_chance else ""


def overlap(spans: Pair[tuple[float, float]]) -> bool:
    """Whether the steps of a side take as long as some of the other."""
    (low, high), (least, most) = spans
    return least <= high and low <= most


def spans_us(comparison: Comparison) -> Pair[tuple[float, float]] | None:
    """The shortest and the longest used step of both sides; None where a side has none."""
    periods = _periods_us(comparison)
    return Pair(*((min(side), max(side)) for side in periods)) if all(periods) else None


def _periods_us(comparison: Comparison) -> list[list[float]]:
    """The used steps of both sides."""
    return [[step.period_ns / 1000 for steps in side.steps.values() for step in steps] for side in comparison.sides]


def facts(comparison: Comparison) -> str:
    """One line on what was compared: devices, versions, runs, ranks, steps; but for what a caution states of both."""
    return facts_of(*comparison.sides, stated=comparison.comparability.codes)


def facts_of(*sides: Side, stated: Collection[str] = ()) -> str:
    """One line on one set, or on two; but for what cautions with these codes have ``stated``."""
    parts = [] if "gpu" in stated else [once(hardware(side) for side in sides)]
    for prefix, versions in (("torch ", [side.torch for side in sides]), ("", [side.driver for side in sides])):
        parts += [f"{prefix}{versions[0]}"] if versions[0] and len({*versions}) == 1 else []
    runs = {side.runs for side in sides}
    parts.append(once(plural(side.runs, "run") for side in sides))
    parts[-1] += " per side" if len(sides) > 1 and len(runs) == 1 else ""
    ranks = {side.ranks for side in sides}
    if "ranks" not in stated and (len(ranks) > 1 or len(sides[0].ranks) > 1):
        parts.append(ranks_of(*sides) if len(ranks) == 1 else once(map(ranks_of, sides)))
    return " · ".join([*parts, once(map(steps_used, sides))])


def hardware(side: Side) -> str:
    """The GPUs of a set; of one without any GPU event, why there is none, as far as the traces say."""
    gpus = joined(*side.devices)
    if side.has_gpu:
        return gpus or "device unknown"
    if side.unrecorded_launches:
        return f"{gpus}: {not_recorded(side)}" if gpus else not_recorded(side)
    if unread_devices(side.notes):
        return "CPU only"
    return f"CPU only (no work of the {gpus} recorded)" if gpus else "CPU"


def not_recorded(side: Side) -> str:
    """``GPU activity was not recorded (420 launches)``."""
    launches = side.unrecorded_launches
    return f"GPU activity was not recorded ({launches:,} {'launch' if launches == 1 else 'launches'})"


def ranks_of(*sides: Side) -> str:
    """``ranks 0–7 (step and why: rank 0 → rank 3; tables: mean of ranks)`` of sides with the same ranks."""
    listed = ranges(sides[0].ranks)
    if len(sides[0].ranks) == 1:
        return f"rank {listed}"
    slowest = ["any rank" if side.slowest_rank is None else f"rank {side.slowest_rank}" for side in sides]
    which = "one of each step" if {*slowest} == {"any rank"} else once(slowest)
    return f"ranks {listed} (step and why: {which}; tables: mean of ranks)"


def steps_used(side: Side) -> str:
    """``steps 3–6 (warm-up: step 2)``; of others than the first ``steps 3–4 (recorded: 2–6)``."""
    if side.whole_file:
        return "the whole file: no steps recorded"
    left_out = side.steps_recorded[: -len(side.steps_used)]
    if side.steps_used == side.steps_recorded:
        others = ""
    elif (*left_out, *side.steps_used) == (*side.steps_recorded,):
        others = f" (warm-up: {_numbered(left_out)})"
    else:
        others = f" (recorded: {ranges(side.steps_recorded)})"
    return f"{_numbered(side.steps_used)}{others}"


def _numbered(steps: Sequence[int]) -> str:
    return f"{'step' if len(steps) == 1 else 'steps'} {ranges(steps)}"


SOFTWARE = ("torch", "triton", "cuda", "cudnn", "hip", "python", "driver", "gpu", "threads")
"""What of the environment changes how the same code runs, the likeliest first."""
COMPILERS = ("torch", "triton")


def other_software(comparison: Comparison) -> list[str]:
    """What else differs between the sides, of what is recorded."""
    manifests = comparison.control.manifest, comparison.test.manifest
    before, after = (manifest.environment if manifest else {} for manifest in manifests)
    compiled = sum(is_generated(member.name) for group in comparison.work.groups for member in group.members.test)
    out = []
    for name in SOFTWARE:
        if name in before and name in after and before[name] != after[name]:
            anew = f", which compiles {plural(compiled, 'kernel')} anew" if compiled and name in COMPILERS else ""
            out.append(f"{name} {before[name]} → {after[name]}{anew}")
    return [f"what else differs: {', '.join(out)}"] if out else ["nothing else that was recorded differs"]
