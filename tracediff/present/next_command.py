"""`Comparison` → the command that looks closer at the work that changed most, or at what of the host did."""

from __future__ import annotations

import math
import shlex
from itertools import chain

from tracediff import bounds, thresholds
from tracediff.diff.comparison import Comparison
from tracediff.diff.preflight import SAME_SET
from tracediff.diff.statistics.runs import runs_to_detect
from tracediff.diff.verdict import interval_per_item
from tracediff.explain.explanation import Cause, Explanation
from tracediff.explain.facts import (
    BACKLOG,
    COMPILES_ANEW,
    FIRST_CALLS,
    FIRST_DIMENSION,
    NOT_STEADY,
    ONE_MODULE,
    UNIFORM,
)
from tracediff.explain.leaves import (
    HOST,
    HOST_CALLS,
    LOADING,
    LONG,
    NOT_RECORDED,
    ON_THE_HOST,
    ONE,
    OTHER_CALLERS,
    PYTHON,
    QUEUE,
    WAITING,
)
from tracediff.explain.lines import waits_for_ranks
from tracediff.explain.tree import SINGLE
from tracediff.formatting import ARROW, count as counted
from tracediff.present.causes import by_chance, by_options, is_same_work
from tracediff.present.explanation_lines import is_unclear
from tracediff.present.limits import CERTAIN
from tracediff.present.path import read_path
from tracediff.present.sections import changed_work
from tracediff.profile.kernels.families import COMMUNICATION
from tracediff.runtimes import call_role

PARTS = {
    LOADING: "--table loading",
    WAITING: "--table synchronisations",
    QUEUE: "--table launches",
}
"""What of the host changed → the option that shows its parts; of all else the critical path has them."""
IN_FUNCTIONS = "--table idle"
"""Of loading data: which of the program's functions take the time, if they are recorded."""
FUNCTIONS = "--table python"
LATE_RANKS = "--table stragglers"
RECOMPILES = "see why each step compiles anew (TORCH_LOGS=recompiles): sizes may change from step to step"
AFTER_WARM_UP = "leave out the steps that warm up (--skip-first), or record after the warm-up"
WITH_STEPS = "record after the warm-up, with profiler.step() after each step"
MORE_STEPS = "record more steps per run, until the GPU no longer works off a queue"
OTHER_SETS = "compare two different recordings"
SAME_OPTIONS = "record both sides with the same profiler options"
SAME_MACHINE = "compare the clocks, the temperature and the load of both machines while they record"
MORE_RUNS = "record {} runs per side, alternating"
"""Of which five are the least that tell much, and more show the change in 80 % of cases."""
QUIETER = "record on a quieter host (fixed clocks, no other load)"
WITHOUT_PROFILER = "time the steps without the profiler, which slows the host (tracediff collect)"


def next_command(comparison: Comparison, command: str) -> str | None:
    """``command``, which compared the sides, with what looks closer: at the first row of changed work, or where the
    first line is of the host, at its events or their table, or at the ranks that others wait for; None if nothing
    changed.
    """
    explanation = comparison.explanation
    if explanation is None:
        return None
    if advice := _on_recording(comparison, explanation, command):
        return advice
    if comparison.verdict.result == "same":
        return None
    first = _first(explanation)
    is_gone = first is not None and first.path_test_us < thresholds.MOSTLY * first.path_control_us
    if comparison.verdict.delta_us < 0 and is_gone and (analysis := _of_test(comparison, command)):
        return analysis
    rows = [row for row in changed_work(comparison, bounds.TABLE_ROWS).rows if row.operator]
    along = [row for row in rows if row.delta_us * explanation.change_us > 0]
    changed = [row.name for row in (along or rows)[:1]]
    waits = first is not None and waits_for_ranks(first.chain)
    communicates = waits or any(group.family == COMMUNICATION for group in comparison.work.groups)
    several = explanation.ranks > 1 and communicates
    late = comparison.test.late_rank or comparison.control.late_rank
    if several and waits:
        return f"{command} {f'--rank {late.rank}' if late else LATE_RANKS}"
    table = LATE_RANKS if several and not late else "--table critical"  # of one rank there are no others
    if late:
        command = f"{command} --rank {late.rank}"
    explain = command.replace(" compare ", " explain ", 1)
    if first is not None and comparison.has_gpu and along and abs(along[0].delta_us) > abs(first.delta_us):
        first = None  # more changes off the path
    if first is not None and OTHER_CALLERS in first.trail:
        return f"{explain} {shlex.quote(first.label)}"
    if first is not None and (first.chain[0] == HOST or not changed):
        if name := _event(comparison, first):
            members = (member for group in comparison.work.groups for member in chain(*group.members))
            is_work = any(name in (member.op, member.name) for member in members)
            return f"{explain} {shlex.quote(name)}{'' if is_work and first.node.note != SINGLE else ' --events'}"
        kind, leaves = "".join(first.chain[1:2]), explanation.leaves
        has_functions = (leaves.names[:, leaves.kinds == "python"] != "").any()
        if kind == PYTHON and has_functions and not first.node.children and first.chain[-1] != NOT_RECORDED:
            return f"{command} {FUNCTIONS}"
        if first.node.children and kind not in PARTS:
            return f"{explain} {shlex.quote(first.label)}"
        return f"{command} {IN_FUNCTIONS if kind == LOADING and has_functions else PARTS.get(kind, table)}"
    return f"{explain} {shlex.quote(changed[0].split(ARROW)[-1])}" if changed else None


def _on_recording(comparison: Comparison, explanation: Explanation, command: str) -> str | None:
    """What to record, or compare, to tell more; None where the recordings tell what changed."""
    if SAME_SET in comparison.comparability.codes:
        return OTHER_SETS
    codes = {fact.code for fact in explanation.facts}
    if (comparison.control.whole_file or comparison.test.whole_file) and codes & {NOT_STEADY, FIRST_CALLS}:
        return WITH_STEPS
    if COMPILES_ANEW in codes:
        return RECOMPILES
    if NOT_STEADY in codes:
        return AFTER_WARM_UP
    if BACKLOG in codes:
        return MORE_STEPS
    if comparison.verdict.result in ("faster", "slower"):
        if UNIFORM in codes:
            return SAME_MACHINE
        if ONE_MODULE in codes:
            return f"{command} --by instance"
    if by_options(comparison) is not None:
        return SAME_OPTIONS
    is_open = comparison.verdict.result == "inconclusive" and not _is_sure_per_item(comparison, explanation)
    if is_open or by_chance(comparison) is not None:
        return WITHOUT_PROFILER if _is_slowed(comparison, explanation) else _more_runs(comparison)
    return None


def _of_test(comparison: Comparison, command: str) -> str:
    """The command that shows what limits the test side now; empty where ``command`` does not name it."""
    words = [word for word in shlex.split(command) if word.rstrip("/").endswith(comparison.test.label)]
    return f"tracediff analyze {shlex.quote(words[-1])}" if words else ""


def _first(explanation: Explanation) -> Cause | None:
    """The first cause, of those that are certain if there are any, and then of what changed in the program."""
    causes = (row.cause for row in read_path(explanation).rows)
    return min(causes, key=lambda cause: (is_unclear(cause), is_same_work(cause)), default=None)


def _is_slowed(comparison: Comparison, explanation: Explanation) -> bool:
    """Whether the GPU's work is less or more for sure, in steps that wait for the host, which the profiler slows."""
    path, is_timed = explanation.root.children, comparison.unprofiled is not None
    waits_for_host = HOST in path and max(path[HOST].path / explanation.root.path) >= thresholds.MOSTLY
    return waits_for_host and not is_timed and explanation.gpu_work.word in CERTAIN


def _is_sure_per_item(comparison: Comparison, explanation: Explanation) -> bool:
    """Whether each item of another batch surely takes another time, though the step may not."""
    items = [fact.ratio for fact in explanation.facts if fact.code == FIRST_DIMENSION]
    is_tested = bool(items) and comparison.believed_unprofiled is None
    between = interval_per_item(comparison.verdict, items[0]) if is_tested else None
    return between is not None and not between[0] <= 1 <= between[1]


def _more_runs(comparison: Comparison) -> str:
    """How many runs per side show the step's change in 80 % of cases, if the spread of those that there are tells."""
    verdict, runs = comparison.verdict, min(comparison.runs)
    spread, least = comparison.tested.spread if runs > 1 else None, thresholds.RANKED_RUNS
    if spread is None:
        return MORE_RUNS.format(least if runs < least else "more")
    control, test = comparison.tested.medians
    stated = test / control if verdict.is_of_medians or comparison.believed_unprofiled else verdict.ratio
    needed = runs_to_detect(spread, abs(math.log(stated or 1.0)))
    if needed is None or needed > bounds.PRACTICAL_RUNS:
        number = f"about {counted(needed)}" if needed else f"more than {counted(bounds.RECOMMENDED_RUNS)}"
        return f"{QUIETER}: as it is, the change needs {number} runs per side"
    if needed <= least and runs < least:
        return MORE_RUNS.format(least)
    return f"{MORE_RUNS.format(needed if needed > runs else 'more')}, or fewer with more steps"


def _event(comparison: Comparison, cause: Cause) -> str:
    """What a line of one operator or call of the host, or of a single event, is called; empty for other lines."""
    if cause.node.note != SINGLE and not {*HOST_CALLS} & {*cause.trail}:
        return ""
    name = cause.node.label.removeprefix(LONG).removeprefix(ONE).removesuffix(ON_THE_HOST).split(" in ")[0]
    ops = [op for op in comparison.ops if name in (op.name, op.raw_name, call_role(op.raw_name))]
    return max(ops, key=lambda op: abs(op.delta)).name if ops else ""
