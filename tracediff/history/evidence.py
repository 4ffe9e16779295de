"""What distinguishes a slower step from others: counts of operators and GPU events, which are exact, and step times of
sets that were recorded beside each other.
"""

import math
from collections.abc import Sequence
from datetime import date
from statistics import median

from tracediff import thresholds
from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.comparison import Comparison
from tracediff.diff.gate.judge import PASS, REGRESSION, SINGLE_RUN, Gate, check
from tracediff.diff.gate.limits import GateSettings, Limit
from tracediff.diff.ops import GPU_WORK, Op
from tracediff.explain.compare import compare_sets
from tracediff.formatting import counts, percent, plural, signed_percent
from tracediff.history.series import pooled
from tracediff.history.store import medians_us
from tracediff.structs import FrozenStruct

COUNTED = ("cpu_op", *GPU_WORK)
"""Categories of operators and GPU events: how often the host polls is not a count of work."""
GOOD, BAD, SKIPPED, INCONCLUSIVE = "good", "bad", "skipped", "inconclusive"
Round = tuple[TraceSet, ...]
"""One set of each of several commits, recorded after each other."""


class Criterion(FrozenStruct):
    """What makes a commit bad.

    Attributes:
        max_regression: relative change against the good one, from which it is; None for half of that of the bad one.
        allow: accepted cautions.
    """

    max_regression: float | None = None
    allow: frozenset[str] = frozenset()

    def check(self, control: TraceSet, test: TraceSet, limit: float) -> Gate:
        """Whether ``test`` is slower than ``control`` by more than ``limit``."""
        settings = GateSettings((Limit("step", limit),), self.allow | {SINGLE_RUN})
        return check(compare_sets(control, test, force=True), settings, date.today())


class Decision(FrozenStruct):
    """What was decided of one commit, good, bad, skipped or inconclusive, and why in words."""

    result: str
    why: str


class Difference(FrozenStruct):
    """How two commits differ that were recorded beside each other.

    Attributes:
        comparison: of all rounds. other_counts: see `other_counts`.
        slower: whether the second is slower, None if step times do not decide. why: the evidence, in words.
        share: part of the step's change that the operators with other counts take; None if step times do not decide.
        stopping: codes of why the two are not comparable; may be empty.
    """

    comparison: Comparison
    other_counts: Sequence[Op]
    slower: bool | None
    why: str
    share: float | None
    stopping: str

    @property
    def counts_decide(self) -> bool:
        """Whether what makes the second one slower is work that one of them does more often, as far as is known."""
        return bool(self.other_counts) and (self.share is None or self.share >= thresholds.COUNTED_PART)

    @property
    def sentence(self) -> str:
        """All evidence in words."""
        if not self.other_counts:
            return f"{self.why}; the same counts of operators and GPU events per step"
        effect = "whether they make it slower is unknown"
        if self.share is not None:
            effect = f"these take {percent(self.share)} of the change"
        return f"{self.why}; other counts per step: {counts_text(self.comparison, self.other_counts)}; {effect}"


def difference(rounds: Sequence[Round], criterion: Criterion) -> Difference:
    """How the two sides of ``rounds`` differ. With too few undisturbed ones, step times do not decide."""
    limit, undisturbed = criterion.max_regression or 0.0, quiet(rounds)
    control, test = sides(rounds)
    gate = criterion.check(control, test, limit)
    comparison, slower, share = gate.comparison, None, None
    changed = other_counts(comparison)
    why = disturbed_text(rounds)
    if len(undisturbed) >= thresholds.LEAST_ROUNDS:
        if len(undisturbed) < len(rounds):
            control, test = sides(undisturbed)
            gate = criterion.check(control, test, limit)
        slower, why = {REGRESSION: True, PASS: False}.get(gate.result), change_text(gate.comparison)
        share = _share(gate.comparison, changed) if slower else None
    return Difference(comparison, changed, slower, why, share, gate.codes)


def by_counts(good: TraceSet, commit: TraceSet, bad: TraceSet) -> Decision | None:
    """Which of two sets of other counts ``commit`` has the counts of; None if of neither."""
    from_good, to_bad = (compare_sets(*pair, force=True) for pair in ((good, commit), (commit, bad)))
    changed = other_counts(from_good), other_counts(to_bad)
    if changed[0] and not changed[1]:
        return Decision(BAD, f"the counts per step are those of bad: {counts_text(from_good, changed[0])}")
    if changed[1] and not changed[0]:
        return Decision(GOOD, f"the counts per step are those of good; in bad {counts_text(to_bad, changed[1])}")
    return None


def by_times(rounds: Sequence[Round], criterion: Criterion) -> Decision:
    """What the step times of ``rounds`` of a commit, the good and the bad one decide."""
    if len(quiet(rounds)) < thresholds.LEAST_ROUNDS:
        return Decision(INCONCLUSIVE, disturbed_text(rounds))
    commit, good, bad = sides(quiet(rounds))
    whole = median(medians_us(bad)) / median(medians_us(good))
    limit = math.sqrt(max(whole, 1)) - 1 if criterion.max_regression is None else criterion.max_regression
    if whole <= 1 + limit:
        return Decision(INCONCLUSIVE, f"beside it, bad takes {signed_percent(whole - 1)} against good")
    from_good = criterion.check(good, commit, limit)
    to_bad = criterion.check(commit, bad, whole / (1 + limit) - 1)
    if from_good.stopping:
        return Decision(SKIPPED, f"not comparable with good ({from_good.codes})")
    why = (
        f"{change_text(from_good.comparison)} from good to it, {change_text(to_bad.comparison)} from it to bad; "
        f"limit {signed_percent(limit)}; {plural(len(commit.runs), 'run')} each"
    )
    result = {(REGRESSION, PASS): BAD, (PASS, REGRESSION): GOOD}.get((from_good.result, to_bad.result), INCONCLUSIVE)
    return Decision(result, why if result != INCONCLUSIVE else f"agrees with neither good nor bad for certain: {why}")


def other_counts(comparison: Comparison) -> list[Op]:
    """The operators and GPU events that every step has equally often, but not as often on both sides; the largest
    difference first.
    """
    ops = [
        op
        for op in comparison.ops
        if op.category in COUNTED
        and op.count.delta
        and not (op.counts_vary or any(n % comparison.scale for n in op.count))
    ]
    return sorted(ops, key=lambda op: (-abs(op.count.delta), op.name))


def counts_text(comparison: Comparison, changed: Sequence[Op]) -> str:
    """``aten::mul 1 → 155, 2 others``."""
    first = changed[0]
    others = f", {plural(len(changed) - 1, 'other')}" if len(changed) > 1 else ""
    return f"{first.name} {counts(*map(comparison.number, first.count))}{others}"


def change_text(comparison: Comparison) -> str:
    """``+8.2 % (95 % interval +7.8 % to +8.8 %)`` of the median step."""
    verdict = comparison.verdict
    base, interval = verdict.median_control_us, verdict.ci95_us
    change = signed_percent(verdict.median_test_us / base - 1)
    if interval is None:
        return f"{change} (significance unknown)"
    low, high = (signed_percent(us / base) for us in interval)
    return f"{change} (95 % interval {low} to {high})"


def sides(rounds: Sequence[Round]) -> list[TraceSet]:
    """The sets of each commit as one."""
    return [pooled(sets, sets[0].label) for sets in zip(*rounds, strict=True)]


def quiet(rounds: Sequence[Round]) -> list[Round]:
    """The rounds in which no run was disturbed by other processes, as far as the collector measured it."""
    return [
        sets
        for sets in rounds
        if not any(run.contended for traces in sets if traces.manifest for run in traces.manifest.runs)
    ]


def disturbed_text(rounds: Sequence[Round]) -> str:
    """How many rounds were disturbed."""
    disturbed = len(rounds) - len(quiet(rounds))
    return f"the machine is contended: other processes disturbed {disturbed} of {plural(len(rounds), 'round')}"


def _share(comparison: Comparison, changed: Sequence[Op]) -> float:
    """The part of the step's change that ``changed`` take, on the GPU or on the host."""
    of_gpu = sum(op.delta for op in changed if op.category in GPU_WORK)
    of_host = sum(op.delta for op in changed if op.category not in GPU_WORK)
    return max(of_gpu, of_host) / max(comparison.step_time.delta, 1)
