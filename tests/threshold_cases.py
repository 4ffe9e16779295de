"""What a threshold decides: cases that change if it is scaled (test_thresholds.py), by the names in the register.

Each returns something that can be compared. The real ones are comparisons of published traces.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import cast

import numpy as np
from build_trace import Event, annotation, call, document, event, kernel, op, step, write
from msgspec.structs import replace
from one_file import profile_file
from traces import FOLDER, PAIRS_FOLDER

from tracediff import thresholds
from tracediff.aggregate.averages import UsedStep
from tracediff.aggregate.clock_sync import _link
from tracediff.aggregate.summary import Side
from tracediff.aggregate.traceset import TraceSet
from tracediff.analysis import analyze_set, outliers, straggler
from tracediff.collect.record import Recorder, _recorded
from tracediff.diff.call_trees import flame_graph, largest
from tracediff.diff.comparison import Comparison
from tracediff.diff.gate.judge import on_interval
from tracediff.diff.gate.limits import Limit
from tracediff.diff.ops import Op
from tracediff.diff.preflight import different_results
from tracediff.diff.statistics.many import Significance, compare_many
from tracediff.diff.statistics.runs import estimate, within_runs
from tracediff.diff.verdict import Judging, conclusion_of, contradicting, how_long
from tracediff.diff.views import WorkChange
from tracediff.engine import load_sets
from tracediff.errors import TracediffError, did_you_mean
from tracediff.explain.compare import compare_sets
from tracediff.git import Repository
from tracediff.history import change_points
from tracediff.history.change_points import Change
from tracediff.history.evidence import Criterion, difference
from tracediff.history.series import Point, Series, _nearest, explain
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.manifest import Computed, Manifest, Results
from tracediff.present.answer import changed_code_sentence
from tracediff.present.sections import _significance, changed_work, step_sums
from tracediff.report.page.script_data import comparison_flame
from tracediff.report.to_json import to_json
from tracediff.source.changed_code import Touching

SAMPLES = Path(__file__).parents[1] / "sample_traces"


@cache
def sets(control: str, test: str) -> list[TraceSet]:
    return load_sets([control, test])


def compared(*paths: Path) -> str:
    """All that a comparison says."""
    return to_json(compare_sets(*sets(*map(str, paths)), force=True))


REAL = {
    "graph-breaks": (SAMPLES / "graph-breaks" / "eager", SAMPLES / "graph-breaks" / "compile"),
    "switch_batch": (PAIRS_FOLDER / "switch_batch" / "b4x128", PAIRS_FOLDER / "switch_batch" / "b8x1024"),
    "deepseek_decode": (PAIRS_FOLDER / "deepseek_decode" / "b300", PAIRS_FOLDER / "deepseek_decode" / "mi300"),
    "tinylm": (FOLDER / "tinylm_compile", FOLDER / "tinylm_cudagraph"),
    "hta": (FOLDER / "hta_control", FOLDER / "hta_test"),
}
"""Sides of the real comparisons, the first two of which are in this repository."""


def planted(control: list[Event], test: list[Event]) -> Comparison:
    """The comparison of two traces of these events."""
    with TemporaryDirectory() as folder:
        paths = [write(Path(folder) / f"{name}.json", document(e)) for name, e in (("a", control), ("b", test))]
        return compare_sets(*load_sets([str(path) for path in paths]), force=True)


def cautions(comparison: Comparison) -> list[str]:
    return [reason.code for reason in comparison.comparability.reasons]


def launched(
    *work: tuple[str, str, float], period: float = 2000, dtype: str = "float", first: int = 1, size: int = 64
) -> list[Event]:
    """A step of (operator, kernel, µs) one after the other on a busy GPU."""
    args = {"Input Dims": [[size, 64], [64, 64]], "Input type": [dtype, dtype]}
    out, at = [step(1, 0, period)], 5.0
    for k, (operator, name, us) in enumerate(work, first):
        at = max(at, 2 * k + 2)
        out += [op(operator, 2 * k, 2, **args), call("cudaLaunchKernel", 2 * k + 0.5, 1, k), kernel(name, at, us, k)]
        at += us
    return out


def runs() -> list[object]:
    """Samples of every size and spread, judged by the procedure that they allow."""
    five, shifted = [0.0, 0.01, 0.02, 0.03, 0.045], [0.031, 0.052, 0.06, 0.081, 0.09]
    wider = [0.031, 0.06, 0.08, 0.1, 0.12]
    many = [math.sin(k) / 50 for k in range(40)]
    pairs = [(five, shifted), (five, wider), ([0.02], [0.01, 0.05, 0.06]), ([0.0] * 3, [0.004] * 3)]
    return [estimate(*pair) for pair in (*pairs, (many, [x + 0.005 for x in many]))]


def batches() -> object:
    return within_runs([0.0, 0.02, 0.01, 0.05, 0.03, 0.04], [0.1, 0.14, 0.11, 0.15, 0.17, 0.12])


def many() -> list[object]:
    """Operators of little time, of a small change, and of a change within the band of equivalence; three runs."""
    us = np.array([7.0, 14.0, 500.0, 500.0, 500.0, 500.0, 800.0])
    times = 1 + np.array([[0, 1, -1], [1, 0, -1], [0, 1, -1], [1, -1, 0], [0, 3, -2], [0, 9, -9], [2, -9, 7]]) / 1000
    change = np.array([1.3, 1.3, 1.012, 1.04, 1.006, 1.009, 1.06])
    found = compare_many(us[:, None] * times, (us * change)[:, None] * times[:, ::-1], thresholds.NOISE_FLOOR)
    return [(row.time_change, row.q_value, row.interval) for row in found.rows]


def sentence() -> list[object]:
    noisy = estimate([0.0, 0.5], [0.1, 0.6])
    texts = [how_long(change) for change in (0.003, 0.006)]
    less_noisy = estimate([0.0, 0.1], [0.02, 0.13])
    texts += [conclusion_of(estimated, "inconclusive", (2, 2), Judging(), 0.0) for estimated in (noisy, less_noisy)]
    return [*texts, contradicting(0.0, 0.04), contradicting(0.0, 0.06)]


def gate() -> list[str]:
    limit = Limit("step", thresholds.MAX_REGRESSION)
    return [on_interval(limit, 100.0, (change, change)) for change in (0.04, 0.06)]


def steps(*periods: float, work: Callable[[float], list[Event]] = lambda _: []) -> list[Event]:
    """Steps of one operator, one after the other, the first of which is not used."""
    out, at = [], 0.0
    for k, period in enumerate((100.0, *periods)):
        out += [step(k + 1, at, period), op("aten::mm", at, period - 1), *work(at)]
        at += period
    return out


def compiling() -> list[str]:
    def scope(us: float) -> Callable[[float], list[Event]]:
        return lambda at: [annotation("entire_frame_compile (dynamo_timed)", at + 1, us)]

    return [code for us in (7, 13) for code in cautions(planted(steps(1000), steps(1000, work=scope(us))))]


def warm_up() -> list[str]:
    slow = [(160.0, 100.0, 100.0, 100.0), (140.0, 100.0, 100.0, 100.0), (300.0, 100.0, 100.0)]
    return [code for periods in slow for code in cautions(planted(steps(*periods), steps(*periods)))]


def dtype() -> list[str]:
    """Operators of 8 % and of 13 % of the work have inputs of another dtype."""
    found = []
    for us in (8.0, 14.0):
        rest = launched(("aten::bmm", "bgemm", 50.0), ("aten::add", "add", 50.0))
        sides = [[*rest, *launched(("aten::mm", "sgemm", us), dtype=kind, first=8)[1:]] for kind in ("float", "half")]
        found += cautions(planted(*sides))
    return found


def missing_work() -> list[str]:
    """Products are gone, and pointwise kernels that take 7 % or 13 % of their time came."""
    kept, gone = ("aten::add", "add_kernel", 1000.0), ("aten::mm", "sgemm", 100.0)
    found = cautions(planted(launched(kept, (*gone[:2], 8.0)), launched(kept)))
    for us in (7.0, 13.0):
        found += cautions(planted(launched(kept, gone), launched(kept, ("own::mlp", "my_kernel", us))))
    return found


def slowest_rank() -> list[object]:
    """Ranks whose steps differ by less and by more than what borders of steps do, of which the slower one waits for
    the other in a collective; and ranks that do not communicate, of which one is the slowest in 7 of 10 steps.
    """

    def rank(folder: Path, number: int, periods: list[float], waited: float) -> None:
        events, start = [], 0.0
        for n, period in enumerate((100.0, *periods)):
            events += [step(n + 1, start, period), op("aten::mm", start, 10)]
            events += [annotation("gloo:all_reduce", start + 20, waited, tid=9)] if waited else []
            start += period
        write(folder / f"rank{number}.json", document(events))

    found: list[object] = []
    for slow, waited in (([1040.0] * 10, 500.0), ([1070.0] * 10, 500.0), ([1004.0] * 7 + [990.0] * 3, 0.0)):
        with TemporaryDirectory() as folder:
            for side in ("a", "b"):
                rank(Path(folder, side), 0, slow, waited)
                rank(Path(folder, side), 1, [1000.0] * 10, waited and 1.0)
            comparison = compare_sets(*load_sets([str(Path(folder, side)) for side in ("a", "b")]), force=True)
            found += [comparison.control.slowest_rank, comparison.test.slowest_rank]
    return found


def results() -> list[bool]:
    """Results that differ by 0.7 and 1.3 times what rounding explains."""
    rounding = {"float64": 1e-6, "float32": 1e-3, "float16": 2e-2, "bfloat16": 5e-2}
    out = []
    for kind, usual in rounding.items():
        for step_, factor in (("first", 1), ("later", 10)):
            for much in (0.7, 1.3):
                other = Computed(1 - much * factor * usual)
                sides = [_manifest(kind, **{step_: c}) for c in (Computed(1.0), other)]
                out.append(different_results(*sides) is None)
    return out


def _manifest(dtype: str, first: Computed | None = None, later: Computed | None = None) -> Manifest:
    """All that is read of the manifest of one run with these results."""
    found = Results(dtype, False, first or Computed(1.0), later or Computed(1.0))
    return cast(Manifest, SimpleNamespace(runs=[SimpleNamespace(results=found)]))


def batched() -> str:
    """One operator that is called six times on one side, and once on the other."""
    several = launched(*[("aten::mm", "sgemm", 10.0)] * 6, ("aten::bmm", "bgemm", 10.0))
    return to_json(planted(several, launched(("aten::bmm", "bgemm", 10.0), ("aten::mm", "sgemm", 60.0))))


def replays() -> list[str]:
    """Generated kernels in replays of graphs: at places that moved, and of operators that none of both share."""

    def graph(*kernels: tuple[str, float]) -> list[Event]:
        work = [kernel(name, 20 + 100 * k, us, 1) for k, (name, us) in enumerate(kernels)]
        return [step(1, 0, 2000), op("CompiledFunction", 0, 10), call("cudaGraphLaunch", 1, 2, 1), *work]

    a, b, c, d = ((f"{name}_kernel", 20.0) for name in ("softmax", "layer_norm", "ampere_sgemm", "embedding"))
    fused, moved = ("triton_poi_fused_add_mul_0", 8.0), ("triton_per_fused_add_mul_3", 9.0)
    other = ("triton_red_fused_tanh_sum_1", 14.0)
    return [
        *levels(planted(graph(fused, a, b, c, d), graph(a, b, moved, c, d))),
        *levels(planted(graph(a, fused, b, c, d), graph(a, other, b, c, d))),
    ]


def levels(comparison: Comparison) -> list[str]:
    """How each group was matched."""
    return sorted(f"{g.level} {len(g.members.control)}:{len(g.members.test)}" for g in comparison.gpu_time.groups)


def wide() -> list[str]:
    """Work of one module that other operators do, beside work that takes 8, 12 or 20 times as long."""

    def module(*ops: str) -> list[Event]:
        inside = event("python_function", "nn.Module: Net_0", 0, 5 * len(ops), tid=100)
        return [*launched(*((f"aten::{name}", f"kernel_{name}", 5.0) for name in ops)), inside]

    return [
        level
        for us in (60.0, 90.0, 140.0)
        for level in levels(
            planted(
                [*module("pow", "mean"), *launched(("aten::mm", "sgemm", us), first=30)[1:]],
                [*module("rms_norm"), *launched(("aten::mm", "sgemm", us), first=30)[1:]],
            )
        )
    ]


def pace() -> list[str]:
    """As many products, in 1.2 % and in 2.6 % more time."""
    inputs, out = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}, []
    for factor in (1.012, 1.026):
        control, test = (
            [step(1, 0, 10 * us), *(op("aten::mm", us * k, us - 1, **inputs) for k in range(10))]
            for us in (1_000.0, 1_000 * factor)
        )
        out += [cause.what for cause in planted(control, test).explanation.causes]
    return out


def program() -> list[str]:
    """Programs of 12 other calls."""
    return _of_calls(0)


def common_calls() -> list[list[str]]:
    """Programs of 12 calls that have 41 % and 85 % of all in common."""
    return [_of_calls(7), _of_calls(11)]


def _of_calls(shared: int) -> list[str]:
    names = [
        [*(f"aten::{k}" for k in range(shared)), *(f"aten::{side}{k}" for k in range(shared, 12))] for side in "ab"
    ]
    control, test = ([step(1, 0, 1000), *(op(name, 20 * k, 8) for k, name in enumerate(calls))] for calls in names)
    return [fact.code for fact in planted(control, test).explanation.facts]


def flame_graph_title() -> list[str]:
    """A call that does 0.6, 0.7 and 0.9 of its caller's work."""
    found = []
    for part in (0.6, 0.9):
        inner, outer = 100 * part, 100 - 100 * part
        work = [step(1, 0, 500), op("own::outer", 0, 40), *launched(("own::inner", "kernel", inner), first=5)[1:],
                call("cudaLaunchKernel", 20, 1, 99), kernel("other", 200, outer, 99)]  # fmt: skip
        comparison = planted(work, work)
        found.append(largest(flame_graph(comparison.trees, comparison.pairing), sum)[0])
    return found


def history() -> list[object]:
    """Levels of commits that change: series of one run each and of three, and a regression with its fix."""
    change_points._largest_by_chance.cache_clear()
    found: list[object] = []
    for seed, commits, runs, change in (
        (20, 20, 1, (10, 20)),
        (8, 8, 3, (6, 8)),
        (6, 6, 1, (4, 6)),
        (15, 16, 1, (5, 11)),
    ):
        values = 0.03 * np.random.default_rng(seed).standard_normal((commits, runs))
        values[slice(*change)] += 0.08
        changes, noise = change_points.find_changes(values.tolist())
        found.append(([(change.first, change.p) for change in changes], noise))
    return found


def single() -> list[str]:
    """One call of two, of three and of four that takes 100 times as long as the others."""

    def allocating(*us: float) -> list[Event]:
        calls = [call("cudaMalloc", 10 + 1500 * k, took) for k, took in enumerate(us)]
        return [step(1, 0, 8000), op("aten::mm", 0, 5), *calls]

    pairs = [([10.0] * n, [10.0] * (n - 1) + [1000.0]) for n in (2, 3, 4)]
    causes = (planted(allocating(*a), allocating(*b)).explanation.causes for a, b in pairs)
    return [f"{cause.label} {cause.reasons}" for found in causes for cause in found]


def nearest() -> list[object]:
    """How many runs are compared; which operator is named that takes 7 % of the change; and how sure the level of a
    commit is, of which few runs tell the noise.
    """
    sides = [
        launched(("aten::mm", "sgemm", us), ("aten::bmm", "bgemm", 50.0 + us / 13), period=20) for us in (100.0, 400.0)
    ]
    with TemporaryDirectory() as folder:
        paths = [write(Path(folder) / f"{k}.json", document(side)) for k, side in enumerate(sides)]
        points = [SimpleNamespace(traces=traces, commit="") for traces in load_sets(list(map(str, paths)))]
    compared_runs = len(_nearest(cast(list[Point], [points[0]] * 20), cast(Point, points[0])).runs)
    change = SimpleNamespace(earliest=1, latest=1, start=0, end=2, estimate=SimpleNamespace(effect=1.0))
    repository = SimpleNamespace(folder=Path(), distance=lambda *_: None)
    named = explain(cast(Series, SimpleNamespace(points=points)), cast(Change, change), cast(Repository, repository))
    point = cast(Point, SimpleNamespace(runs_us=(100.0,), step_us=100.0))
    series = (Series((), True, (), change_points.Noise(0.02, freedom, 0.15)) for freedom in (2, 3, 4))
    return [compared_runs, [row.name for row in named.operators], *(one.interval_us(point) for one in series)]


def rounds() -> list[object]:
    """One and two rounds of a step that is slower, and operators that take 0.4 and 0.6 of a change."""
    with TemporaryDirectory() as folder:
        sides = [document(launched(("aten::mm", "sgemm", us))) for us in (100.0, 200.0)]
        paths = [write(Path(folder) / f"{name}.json", side) for name, side in zip("ab", sides, strict=True)]
        both = tuple(load_sets(list(map(str, paths))))
    found = [difference([both] * n, Criterion(0.1)) for n in (1, 2)]
    counted = [replace(found[0], other_counts=found[0].comparison.ops, share=share) for share in (0.4, 0.6)]
    return [*((one.slower, one.why) for one in found), *(one.counts_decide for one in counted)]


def other_run() -> int:
    """Runs of 100 events, and of 93 and 87 of them."""
    with TemporaryDirectory() as folder:
        for number, count in enumerate((100, 100, 100, 93, 87), 1):
            work = launched(*[("aten::mm", "sgemm", 5.0)] * count)
            write(Path(folder) / f"run{number}" / "rank0.json", document(work))
        (found,) = load_sets([folder])
    return next((note.count for note in found.notes if note.code == "unequal-runs"), 0)


def other_files() -> list[str]:
    """Files of one rank with 0.4 and 0.6 of their calls in common."""
    found = []
    for shared in (8, 12):
        with TemporaryDirectory() as folder:
            for number in (1, 2):
                names = (f"aten::{'both' if k < shared else number}{k}" for k in range(shared + (20 - shared) // 2))
                write(Path(folder) / f"{number}.json", document([step(1, 0, 500), *(op(n, 9, 5) for n in names)]))
            try:
                found.append(str(len(load_sets([folder])[0].runs)))
            except TracediffError as error:
                found.append(str(error).partition(" holds ")[2].partition(":")[0])
    return found


def clocks() -> list[object]:
    """What is known of two clocks from two, three and ten collectives, one of which ended late."""
    late = np.array([10_000, 10_002, 10_004, 10_006, 10_001, 10_003, 10_005, 10_007, 10_300, 10_900])
    return [_link(late[:n], late[:n] + 5000, late[:n] - 5000, 1) for n in (2, 3, 10)]


def stragglers() -> list[object]:
    """Ranks that differ by 8 % and by 12 % of the step in communication, at several places of the range."""
    found = []
    for longest in (80.0, 120.0):
        waits = {rank: part * longest for rank, part in enumerate((0.0, 0.12, 0.25, 1.0))}
        states: dict[int, dict[str, float]] = {rank: {} for rank in waits}
        side = cast(Side, SimpleNamespace(communication_us=waits, rank_states=states, label="a"))
        found.append([finding.title for _, finding in straggler(side, 1000.0)])
    return found


def outlying() -> list[int]:
    """Steps of 3, of steady and of unsteady runs."""
    runs = (100, 100, 100, 107), (100, 100, 100, 100, 113), (100, 102, 98, 120, 104, 100), (100, 100, 130)
    return [len(outliers({"a": [UsedStep(1, 0, {"op": ns}) for ns in periods]})) for periods in runs]


def findings() -> list[str]:
    """Steps whose GPU is idle for 8 % to 60 %, and which wait for data for 20 % and 30 %."""
    codes = []
    for busy, loading in ((400, 300), (600, 200), (880, 0), (930, 0)):
        scope = [annotation("enumerate(DataLoader)#_Iter.__next__", 0, loading)] if loading else []
        work = [step(1, 0, 1000), *scope, op("aten::mm", loading, 4), call("cudaLaunchKernel", loading + 1, 1, 1)]
        with TemporaryDirectory() as folder:
            events = [*work, kernel("sgemm", 1000 - busy, busy, 1)]
            (found,) = load_sets([str(write(Path(folder) / "a.json", document(events)))])
        codes += [finding.code for finding in analyze_set(found).findings]
    return codes


def contended() -> list[str]:
    return [_recorded(cast(Recorder, SimpleNamespace(recorded=(1, 2), waiting=part))) for part in (0.02, 0.04)]


def tables() -> list[object]:
    """Rows of families and states of 0.03 to 0.7 % of a step, of changes of work of as much, and which are tested."""

    def events(more: float) -> list[Event]:
        ops = [("mm", 9000.0 + more), ("relu", 60.0), ("sum", 35.0), ("max_pool2d", 30.0), ("sort", 25.0 + 1.2 * more),
               ("embedding", 70.0 + 0.7 * more)]  # fmt: skip
        out, at = [annotation("enumerate(DataLoader)#_Iter.__next__", 0, 4)], 4.0
        for name, us in ops:
            out.append(op(f"aten::{name}", at, us))
            at += us
        return [*out, call("cudaDeviceSynchronize", at, 6), step(1, 0, at + 10)]

    comparison = planted(events(0), events(10))
    found: list[object] = [
        [row.name for row in sums.rows] for sums in (step_sums(comparison), changed_work(comparison, 9))
    ]
    for part in (0.6, 0.9):
        operator = cast(Op, SimpleNamespace(delta=100, significance=Significance("slower")))
        change = cast(WorkChange, SimpleNamespace(kernels="k", operator="", delta=100 * part))
        found.append(_significance(change, {"k": operator}))
    return found


def flame_title() -> list[str]:
    """One operator becomes slower and another faster, so that they change by 1.5 and by 2.5 times the whole."""
    mm, bmm = (lambda us: ("aten::mm", "sgemm", us)), (lambda us: ("aten::bmm", "bgemm", us))
    pairs = ((mm(100.0), bmm(100.0)), (mm(250.0), bmm(50.0))), ((mm(100.0), bmm(100.0)), (mm(200.0), bmm(40.0)))
    return [comparison_flame(planted(launched(*a), launched(*b))).title for a, b in pairs]


def changed_lines() -> list[str]:
    """Places of 4 % and of 6 % of the changed work beside the first."""
    places = [
        Touching(file="a.py", name=f"f{k}", first=k, last=k, text="", lines=1, commit="", part=part, distance=0)
        for k, part in enumerate((0.9, 0.06, 0.04))
    ]
    return [changed_code_sentence(cast(Comparison, SimpleNamespace(changed_code=SimpleNamespace(
        note="", commits=("a", "b"), touching=places[:n], unplaced=part))))
        for n, part in ((3, 0.0), (1, 0.04), (1, 0.06))]  # fmt: skip


def suggestions() -> list[str]:
    names = ["aten::addmm_", "aten::add", "aten::add_", "aten::softmax"]
    return [did_you_mean("aten::ad", names, "")]


def critical() -> list[object]:
    """The critical paths of traces in which it is not recorded what an event, or a call, waited for."""

    def launch(name: str, at: float, number: int, begins: float, us: float, stream: int = 7) -> list[Event]:
        return [op(f"aten::{name}", at, 10), call("cudaLaunchKernel", at + 1, 8, number),
                kernel(name, begins, us, number, stream)]  # fmt: skip

    full = [e for i in range(800) for e in (call("cudaLaunchKernel", i, 1, i), kernel("a", 2000 + 10 * i, 10, i))]
    last = [call("cudaLaunchKernel", 801, 2000, 5000), op("aten::add", 3010, 20_000), kernel("b", 12_010, 10, 5000)]
    traces = [[step(1, 0, 30_000), *full, *last]]
    for ends, begins in ((82, 92), (122, 132), (122, 147), (162, 172)):
        other = launch("a", 0, 1, 12, ends - 12, stream=20)
        traces.append([step(1, 0, 40), *other, *launch("b", 30, 2, begins, 10)])
    for us in (14.0, 26.0):
        reading = op("aten::_local_scalar_dense", 30, us)
        traces.append([step(1, 0, 300), op("aten::a", 0, 10), kernel("a", 5, 20 + us), reading, op("aten::b", 90, 9)])
    for idle in (0.03, 0.06):
        polling, begin = [], 0.0
        for number, us in enumerate((2_000.0, 3_100.0, 2_600.0, 2_300.0)):
            polling += launch("a", begin, number, begin + 12, us)
            begin += 10 + (1 + idle) * us
        traces.append([step(1, 0, begin + 20), *polling, op("aten::a", begin, 10)])
    found = []
    for events in traces:
        with TemporaryDirectory() as folder:
            path = write(Path(folder) / "a.json", document(events))
            table = profile_file(TraceFile(str(path)), tables=("critical",)).tables["critical"]
        found.append(sorted(zip(table.keys, table.values.tolist(), strict=True)))
    return found


CASES: dict[str, Callable[[], object]] = {
    **{name: partial(compared, *sides) for name, sides in REAL.items()},
    "runs": runs,
    "batches": batches,
    "many": many,
    "sentence": sentence,
    "gate": gate,
    "compiling": compiling,
    "warm-up": warm_up,
    "dtype": dtype,
    "missing work": missing_work,
    "slowest rank": slowest_rank,
    "results": results,
    "batched": batched,
    "replays": replays,
    "wide": wide,
    "pace": pace,
    "program": program,
    "common calls": common_calls,
    "flame graph": flame_graph_title,
    "single": single,
    "history": history,
    "nearest": nearest,
    "rounds": rounds,
    "other run": other_run,
    "other files": other_files,
    "clocks": clocks,
    "critical": critical,
    "stragglers": stragglers,
    "outliers": outlying,
    "findings": findings,
    "contended": contended,
    "tables": tables,
    "flame title": flame_title,
    "changed lines": changed_lines,
    "suggestions": suggestions,
}
"""Name → what makes the case."""
