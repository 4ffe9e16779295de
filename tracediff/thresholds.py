"""Every number that decides what is reported, matched, tested or gated: its value, unit and reason, and a case of it.

Code reads one as ``thresholds.SAME_RATIO``, so that tests/test_thresholds.py can scale it and demand that its case
changes. docs/reference/thresholds.md is this table; other pages quote it. Bounds of safety and of display, which decide
nothing in what is usual, are in `bounds`.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple, TypeVar

Number = TypeVar("Number", int, float)


class Threshold(NamedTuple):
    """What is known of one number.

    Attributes:
        unit: ``part`` (0 to 1), ``ratio``, ``log ratio``, ``score``, or what is counted.
        why: what it decides, or bounds. case: what changes if it is scaled, a name in tests/threshold_cases.py; empty
            for a bound.
    """

    value: float
    unit: str
    why: str
    case: str


class Register(list[Threshold]):
    """What is known of the numbers of a module, in their order."""

    def __call__(self, value: Number, unit: str, why: str, case: str = "") -> Number:
        """``value``, which the table then holds."""
        self.append(Threshold(value, unit, why, case))
        return value

    def table(self, module: ModuleType) -> dict[str, Threshold]:
        """Name in ``module`` → what is known of it."""
        return dict(zip(filter(str.isupper, vars(module)), self, strict=True))


decides = Register()


# Statistics of runs (docs/statistics.md)
SIGNIFICANCE = decides(0.05, "part", "p and q up to this are significant; intervals hold with 1 − this", "runs")
POWER = decides(0.8, "part", "the detectable change is detected in so many cases", "runs")
LEAST_SPREAD = decides(0.005, "part", "the spread of runs is at least this: a few equal values prove no less", "runs")
RANKED_RUNS = decides(5, "runs", "per side, from which ranks are compared, and pairs where they are declared", "runs")
RANKED_PAIRS = decides(
    2_500, "pairs", "of runs up to which ranks are compared: beyond, a t test is exact enough", "runs"
)
ALIKE_SPREADS = decides(2.0, "ratio", "of the spreads of both sides up to which ranks are compared", "runs")
PREDICTING_RUNS = decides(3, "runs", "of one side with which a single run of the other is compared", "runs")
BATCHES = decides(5, "batches", "of the steps of one run, whose medians give the interval within runs", "batches")
TESTED_RUNS = decides(3, "runs", "per side from which operators, families and states are tested", "many")
TESTED_US = decides(10.0, "µs", "per step from which they are tested: the profiler's own resolution and cost", "many")
PRIOR_FREEDOM = decides(
    2.0, "degrees of freedom", "of the prior at most: a free prior has too many false alarms", "many"
)
NOISE_FLOOR = decides(0.01, "part", "relative change up to which none of them is called faster or slower", "many")
EQUIVALENCE_BAND = decides(0.05, "part", "relative change that counts as none, if the whole interval is within", "many")

# Verdict and gate (docs/statistics.md, docs/ci.md)
NO_DIFFERENCE = decides(0.005, "part", "relative change below which the sentence states no difference", "sentence")
CONTRADICTION = decides(
    0.05, "part", "difference from which mean and median of the change contradict each other", "sentence"
)
MAX_REGRESSION = decides(0.05, "part", "relative growth of the step that a check allows by default", "gate")

# Preflight (docs/preflight.md)
COMPILING = decides(0.01, "part", "of the used steps from which compilation during them is a caution", "compiling")
WARM_UP_STEPS = decides(4, "steps", "used, from which the first of them can be warm-up", "warm-up")
WARM_UP = decides(1.5, "ratio", "to the median of the others from which the first used step is warm-up", "warm-up")
OTHER_INPUTS = decides(
    0.1, "part", "of the work whose inputs have another dtype or layout, from which that is said", "dtype"
)
MISSING_WORK = decides(0.01, "part", "of control's work from which missing computation is a caution", "missing work")
REPLACED_WORK = decides(0.1, "part", "of the missing work's time from which added kernels replace it", "missing work")
USUALLY_SLOWEST = decides(
    0.8, "part", "of the steps in which a rank is the slowest, from which it usually is", "slowest rank"
)
RANKS_ALIKE = decides(
    0.05, "part", "relative difference up to which ranks that communicate take as long", "slowest rank"
)
ROUNDING_FLOAT64 = decides(1e-6, "part", "relative difference of the first step's results by rounding", "results")
ROUNDING_FLOAT32 = decides(1e-3, "part", "the same for float32", "results")
ROUNDING_HALF = decides(2e-2, "part", "the same for float16, and for TF32, which is as exact", "results")
ROUNDING_BFLOAT16 = decides(5e-2, "part", "the same for bfloat16", "results")
ROUNDING_LATER = decides(10, "ratio", "of what rounding does by the fourth step: training adds it up", "results")

# Sets of traces, and one set in depth (docs/trace-sets.md, docs/analysis.md)
OTHER_RUN = decides(
    0.1, "part", "of the median's events per step by which a run differs that does other work", "other run"
)
SAME_FILES = decides(
    0.5,
    "part",
    "of the calls of two files that both have, below which these are of two programs (0.8 in runs of one)",
    "other files",
)
CLOCKS_AGREE = decides(
    0.9, "part", "of the collectives whose ends agree within the uncertainty of two clocks", "clocks"
)
CLOCK_COLLECTIVES = decides(3, "collectives", "below which their spread says nothing of two clocks", "clocks")
CONTENDED = decides(
    0.03, "part", "of either pass that a run on a CPU waits for a processor, above which it was disturbed", "contended"
)
STRAGGLING = decides(
    0.1, "part", "of the step by which ranks' times in communication differ if there is a straggler", "stragglers"
)
LATE_RANGE = decides(0.2, "part", "of the range above the shortest wait within which a rank is late", "stragglers")
OUTLIER_STEPS = decides(4, "steps", "of a run below which it has no outliers", "outliers")
OUTLIER_SD = decides(
    5.0, "robust standard deviations", "from the run's median, above which a step is an outlier", "outliers"
)
OUTLIER_PART = decides(0.1, "part", "of the run's median above which it is", "outliers")
LARGE_STATE = decides(0.25, "part", "of the step from which a state is a finding", "findings")
HOST_BOUND = decides(0.5, "part", "of the step in which the GPU is idle, from which the step is host-bound", "findings")
GPU_BOUND = decides(0.1, "part", "of the step in which the GPU is idle, up to which the step is GPU-bound", "findings")

# Matching (docs/matching.md)
BATCHED_CALLS = decides(
    4, "ratio", "of calls from which one side has an operator batched that the other repeats", "batched"
)
WIDE_GROUP = decides(
    16, "pieces of work", "of a side beyond which a group of one module or family names no partner", "hta"
)
WIDE_PART = decides(0.1, "part", "of both sides' time beyond which it names none either", "wide")
MOVED_PAIRS = decides(4, "pairs", "that may lie between two places of work that moved", "hta")
MOVED_SCORE = decides(0.6, "score", "of partners that are not in order, at least", "hta")
EXCHANGED_PAIRS = decides(3, "pairs", "within which partners are exchanged", "tinylm")
EXCHANGE_GAIN = decides(0.05, "score", "by which exchanged partners must be more alike", "tinylm")
EQUAL_SCORES = decides(0.02, "score", "difference that separates nothing", "hta")
BETWEEN_PAIRS = decides(
    8, "pieces of work", "of one family between two pairs beyond which their place says nothing", "hta"
)

# How alike two pieces of work are that no operator distinguishes; an equal name scores 1 (docs/matching.md)
LEAST_SCORE = decides(0.04, "score", "of two pieces of work that can be the same", "deepseek_decode")
SAME_FAMILY = decides(0.35, "score", "of an equal family", "deepseek_decode")
SAME_STEADY_FAMILY = decides(
    0.5, "score", "of a family whose kernels change their names with their sizes", "deepseek_decode"
)
NONE_SHARED = decides(0.2, "score", "of two generated kernels that list no operator in common", "replays")
ALL_SHARED = decides(0.85, "score", "of two that list the same operators", "replays")
OTHER_DURATION = decides(
    0.12, "score", "lost where durations differ by a factor of e more than their family's do", "deepseek_decode"
)
OTHER_DURATION_MOST = decides(0.3, "score", "lost by durations at most", "deepseek_decode")
OTHER_GRID = decides(
    0.6, "score", "lost by another launch shape, as far as launch shapes recur on the other side", "hta"
)

# Explanation (docs/explanation.md)
SAME_RATIO = decides(0.02, "log ratio", "up to which two amounts, or two rates, are the same", "pace")
MOSTLY = decides(0.5, "part", "of a whole from which it represents the whole", "switch_batch")
KNOWN_AMOUNT = decides(0.9, "part", "of a side's time whose amount must be known", "switch_batch")
SAME_PROGRAM = decides(
    0.8, "part", "of the calls of outermost operators that both sides make in one program", "common calls"
)
PROGRAM_CALLS = decides(10, "calls", "of outermost operators below which they tell no programs apart", "program")
LEAST_SCALE = decides(
    0.2, "part", "of all movement that lines are judged against, where changes cancel", "graph-breaks"
)
MAIN_PART = decides(
    0.6, "part", "of its effects, or children's changes, from which one names a node", "deepseek_decode"
)
CANCELLING = decides(
    1.3, "ratio", "of what a node's children move to its change, up to which it represents them", "switch_batch"
)
LARGEST_CHILD = decides(
    1 / 3, "part", "of the children's changes from which one is named instead of the node", "deepseek_decode"
)
UNIFORM = decides(
    0.35, "part", "of the children's changes that may differ from the node's if they are uniform", "deepseek_decode"
)
WORTH_A_LINE = decides(
    0.05, "part", "of the step's change from which a line, and a single event, is worth its place", "graph-breaks"
)
EXCEPTIONAL = decides(
    10, "ratio", "of an event to the mean of the others of its name from which it is a line", "switch_batch"
)
EXCEPTION_OF = decides(3, "events", "of a name of which one can be the exception", "single")
INNER_FRAME = decides(0.75, "part", "of a call's amount from which the call below it is named instead", "flame graph")

# History (docs/history.md)
LEVEL_RUNS = decides(3, "runs", "before and after a change of level, at least: fewer may be disturbed", "history")
PROPOSAL_PENALTY = decides(3.0, "log(runs)", "that a proposed change costs: low, because each is tested", "history")
COMMIT_FREEDOM = decides(
    6, "degrees of freedom", "from which commits alone show the noise; below, runs of one commit do as well", "history"
)
LEAST_AUTOCORRELATION = decides(
    0.15,
    "correlation",
    "of neighbouring commits that is assumed: a short series cannot show that there is none",
    "history",
)
MOST_AUTOCORRELATION = decides(0.6, "correlation", "of neighbouring commits that is assumed at most", "history")
SIMULATED_SERIES = decides(2000, "series", "without a change that a change is tested against", "history")
COMPARED_RUNS = decides(10, "runs", "per side that explain a change: those of the commits nearest to it", "nearest")
NAMED_OPERATOR = decides(0.1, "part", "of the step's change from which an operator is named", "nearest")
NOISE_FREEDOM = decides(3, "degrees of freedom", "of the noise below which its intervals say nothing", "nearest")
COUNTED_PART = decides(
    0.5, "part", "of the step's change from which operators whose counts differ are what makes it slower", "rounds"
)
LEAST_ROUNDS = decides(2, "rounds", "without a disturbed run from which step times are judged", "rounds")

# Tables and sentences
NAMED_CAUSES = decides(
    2 / 3, "part", "of what moved in one direction from which a sentence names no more causes", "graph-breaks"
)
SMALL_FAMILY = decides(0.005, "part", "of the step below which families of operators share a row", "tables")
SMALL_STATE = decides(0.0005, "part", "of the step below which states share a row: each would read as 0.0", "tables")
CHANGED_WORK = decides(0.001, "part", "of the step from which a change of work is a row of its own", "tables")
TESTED_ROW = decides(
    0.8, "part", "of an operation's change that is in a row, from which its significance is the row's", "tables"
)
WRITTEN_NODE = decides(
    0.01, "part", "of what lines are judged against from which a node is written as JSON", "graph-breaks"
)
MOVED_CALLS = decides(
    2, "ratio", "of a call's change to the whole, above which calls only moved and the title names none", "flame title"
)
CHANGED_LINES = decides(
    0.05, "part", "of the changed work from which lines are named beside the first", "changed lines"
)
SUGGESTED = decides(0.15, "similarity", "of names to the nearest up to which they are suggested, too", "suggestions")

# Critical path (docs/tables/critical.md)
SUBMITTED_NS = decides(
    20_000, "ns", "after its start at which a call that returns only after its copy has submitted it", "critical"
)
FOLLOWS_NS = decides(
    20_000,
    "ns",
    "of the end of another within which an event begins that follows it (0 to 18 µs in real traces)",
    "critical",
)
UNRECORDED_WAIT_NS = decides(
    100_000,
    "ns",
    "of waiting from which it is no cost of the launch: an event waited for another stream although no record says so, "
    "or for room while others ran",
    "critical",
)
WAITS_WHILE_BUSY = decides(
    0.95,
    "part",
    "of the time without an operator or call in which the GPU works, to nearly its end, from which the host waits for "
    "it although no record says so (of 2,000 such times in 30 real traces: 3)",
    "critical",
)
FULL_QUEUE = decides(
    1_000, "launches", "without a start from which a launch waits for room: CUDA's queues hold 1,024", "critical"
)
