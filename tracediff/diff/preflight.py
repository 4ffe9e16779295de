"""The preflight: whether two sets are comparable (docs/preflight.md), and whether they computed the same."""

from collections.abc import Callable, Iterable

import numpy as np

from tracediff import bounds, thresholds
from tracediff.aggregate.averages import weighted_files
from tracediff.aggregate.traceset import TraceSet, alike, in_steps
from tracediff.arrays import distinct
from tracediff.formatting import ARROW, joined, ranges
from tracediff.ingest.manifest import Computed, Manifest, Results
from tracediff.ingest.model.health import counted
from tracediff.ingest.model.unread import shortened, unread_devices
from tracediff.patterns import late
from tracediff.profile.model.profile import Profile
from tracediff.profile.placement.captures import CODE as CAPTURE_CODE, KERNELS, UNMATCHED
from tracediff.profile.placement.gpu_events import NOT_RECORDED
from tracediff.runtimes import is_graph_launch, version_of
from tracediff.structs import FrozenStruct, Pair

OK, CAUTION, REFUSED = "ok", "caution", "refused"
REFUSING = ("one-side-no-gpu", "nothing-shared")
"""Codes of the reasons to refuse."""
DOUBTFUL = ("workload", "missing-work", "gpu", "gpu-count", "world-size", "dtype")
"""Codes of which each makes it doubtful what a difference in time means. Other operators or results alone do not:
rewritten code does the same work, and a change of the model may be what is compared.
"""
ANY_SIDE = (
    "unread-device",
    "gpu-not-recorded",
    "other-capture",
    "copied-runs",
    "unequal-runs",
    "contended",
    "truncated",
    "compile-in-window",
    "warm-up",
)
"""Codes of problems of one side, which need no difference between the sides."""
COMPILING = late(
    r"^(?:_?compile|entire_|bytecode_tracing|build_guards|backend_compile|call_user_compiler|create_aot|aot_"
    r"|fx_codegen|inductor_co|GraphLowering|Scheduler|code_gen|codegen|joint_graph|_?recursive_|post_grad|pre_grad"
    r"|pass\.|additional_fake|fake_tensor|TritonTemplate|async_compile|benchmark_|cudagraphify|min_cut|dynamo|inductor"
    r"|CachingAutotuner|precompile|PyCodeCache|CppCodeCache|FxGraphCache|AOTAutogradCache)\S* \(dynamo_timed\)"
    r"|^(?:fx_codegen_and_compile|compile_fx_inner|inductor_codegen)$"
)
"""Phases of compilation that torch.compile records as scopes; the compiled function's own frames are none of them."""
NO_FLAGS = "none"
OTHER_OPTIONS = "profiler-flags"
SAME_SET = "same-set"
SHORT = {
    "unread-device": "device events not read",
    "gpu-not-recorded": "GPU activity was not recorded",
    SAME_SET: "both sides read the same file",
    "operators": "other program (operators differ)",
    "gpu": "GPU",
    "gpu-count": "GPUs per file",
    "world-size": "world size",
    "ranks": "recorded",
    "driver": "",  # which the values name
    OTHER_OPTIONS: "profiler options",
    "results": "different results",
    "threads": "CPU threads",
    "steps": "used steps",
    "compile-in-window": "torch.compile ran in used steps",
    "warm-up": "slow first step",
    "copied-runs": "copies of runs",
    "unequal-runs": "unequal runs",
    "contended": "disturbed by other processes:",
    "graph-capture": "operators of graphs on one side",
    "other-capture": "capture of another graph",
    "truncated": "truncated file",
    "outside-steps": "most GPU time in no step",
}
"""What cautions are called where a line holds all of them; a code that is missing is a word already."""
WITH_VALUES = (
    "contended",
    "gpu",
    "gpu-count",
    "world-size",
    "ranks",
    "driver",
    "torch",
    "dtype",
    "threads",
    "steps",
    "workload",
)


class Reason(FrozenStruct):
    """One difference between the sides that may make the comparison misleading."""

    code: str
    """stable code (docs/preflight.md)"""
    message: str
    """what it means for the comparison"""
    control: str
    """value on the control side"""
    test: str
    """value on the test side"""

    @property
    def level(self) -> str:
        """caution or refused."""
        return REFUSED if self.code in REFUSING else CAUTION

    @property
    def is_unlike(self) -> bool:
        """Whether the sides do not do the same work on the same hardware."""
        return self.code in (*DOUBTFUL, "operators", "results")

    def in_short(self, sides: Pair[str]) -> str:
        """A few words that say what differs, with the values where these are short; ``sides`` are the names of both."""
        if self.code == "missing-work":
            missing = "missing" if self.test == "none" else "partly missing"
            return f"{self.control.split('(')[0]} is {missing} in {sides.test}, with little in its place"
        words = SHORT.get(self.code, self.code)
        if self.code == OTHER_OPTIONS:
            control, test = ({*flags.split(", ")} - {NO_FLAGS} for flags in (self.control, self.test))
            only = zip((control - test, test - control), sides, strict=True)
            return f"{words}: {'; '.join(f'{_joined(flags)} only in {side}' for flags, side in only if flags)}"
        if self.code in ("warm-up", "compile-in-window"):
            both = zip((self.control, self.test), sides, strict=True)
            return f"{words} of {' and '.join(side for value, side in both if value not in ('', NO_FLAGS))}"
        values = Pair(self.control, self.test)
        if self.code == "ranks":  # which are numbers of ranks, not how many
            values = values.map(lambda numbers: f"rank{'' if numbers.split('; ')[0].isdecimal() else 's'} {numbers}")
        changed = ARROW.join(values) if self.code in WITH_VALUES else ""
        return joined(words, changed if len(changed) < bounds.SHORT_VALUES else "", by=" ")


class Comparability(FrozenStruct):
    """Whether the sides are comparable, and the cautions."""

    reasons: tuple[Reason, ...]

    @property
    def codes(self) -> frozenset[str]:
        """The codes of all reasons."""
        return frozenset(reason.code for reason in self.reasons)

    @property
    def level(self) -> str:
        """ok, caution or refused."""
        levels = {r.level for r in self.reasons}
        return REFUSED if REFUSED in levels else CAUTION if levels else OK


def preflight(control: TraceSet, test: TraceSet, shared: bool) -> Comparability:
    """Every difference between two sets that makes them less comparable, from their metadata.

    Args:
        shared: whether the sides have any operation in common.
    """
    reasons = []
    files = [{p.origin.file for p in side.profiles} for side in (control, test)]
    if files[0] & files[1]:
        reasons.append(Reason(SAME_SET, "both sides read the same file", control.label, test.label))
    reasons += [*_differences(control, test), *_other_ranks(control, test)]
    other = different_results(control.manifest, test.manifest)
    if other and not any(reason.code == "workload" for reason in reasons):
        message = f"the sides do not do the same work: the {other.what} differs after the {other.step} step"
        reasons.append(Reason("results", message, other.control, other.test))
    if control.has_gpu != test.has_gpu:
        accounts = ["GPU events" if side.has_gpu else "none" for side in (control, test)]
        message = "only one side has GPU events: record both with ProfilerActivity.CUDA"
        reasons.append(Reason("one-side-no-gpu", message, *accounts))
    if not shared:
        message = "the sides have no operation in common: check that both are traces of the same program"
        reasons.append(Reason("nothing-shared", message, control.label, test.label))
    return Comparability(tuple(reasons))


def _differences(control: TraceSet, test: TraceSet) -> list[Reason]:
    checks = (
        (
            "unread-device",
            "events of a device that is not supported yet are not read: where neither side has GPU time, this compares"
            " the host's side only",
            _unread_devices,
        ),
        (
            "gpu-not-recorded",
            "GPU activity was not recorded, though files have launches: steps end where the host does",
            _unrecorded_launches,
        ),
        ("gpu", "different GPUs: times would differ even with identical code", _each(lambda p: p.origin.gpus)),
        (
            "gpu-count",
            "different numbers of GPUs in a file: the work per GPU differs",
            _each(lambda p: [p.origin.gpu_count or None]),
        ),
        ("world-size", "different world sizes: the work per rank differs", _each(lambda p: [p.origin.world_size])),
        ("driver", "different versions of CUDA or HIP", _each(lambda p: [version_of(p.origin.driver)])),
        ("torch", "different versions of torch", _each(lambda p: [p.origin.torch])),
        (OTHER_OPTIONS, "different profiler options, which have different overheads", _flags),
        ("workload", "collected with different workloads or sizes", _workloads),
        ("threads", "collected with different numbers of CPU threads", _threads),
        ("steps", "different numbers of used steps: means over few steps are noisier", _steps),
        (
            "compile-in-window",
            "torch.compile ran during the used steps, so they are not steady state: record more warm-up steps",
            _compiling,
        ),
        ("warm-up", "the first used step is much slower than the others: leave it out with --skip-first", _warming_up),
        (
            "copied-runs",
            "files are copies of one recording, which counts as several runs: leave them out",
            _copied_runs,
        ),
        ("unequal-runs", "runs of one side do different amounts of work per step", _unequal_runs),
        (
            "graph-capture",
            "graph replays have operators on one side only, or for a part of their kernels: give the captures of both"
            " (--capture)",
            _captured,
        ),
        ("other-capture", "the capture has no kernel of the graph replays: it is of another graph", _foreign_capture),
        ("contended", "other processes disturbed runs while they were collected", _contended),
        ("truncated", "a file is truncated: its last steps are incomplete", _truncated),
    )
    reasons = []
    for code, message, value in checks:
        c, t = value(control), value(test)
        differs = c != t and "" not in (c, t) if code not in ANY_SIDE else bool(c or t)
        if differs:
            reasons.append(Reason(code, message, c or "none", t or "none"))
    return reasons


def _each(values: Callable[[Profile], Iterable[str | int | None]]) -> Callable[[TraceSet], str]:
    """The different ones of ``values`` over all files of a set, as a text."""
    return lambda side: _joined({str(v) for profile in side.profiles for v in values(profile) if v not in (None, "")})


def _joined(values: set[str]) -> str:
    return ", ".join(sorted(values))


def _steps(side: TraceSet) -> str:
    return _joined({str(int(side.selection.used(p).sum())) for p in side.profiles})


def is_compiling(name: str) -> bool:
    """Whether a scope of this name is a phase of compilation."""
    return COMPILING.match(name) is not None


def _compiling(side: TraceSet) -> str:
    compilers = set()
    total = period = 0
    _, weighted = weighted_files(side)
    for group in alike(weighted, [p.ops for p, _, _ in weighted], [(p.names,) for p, _, _ in weighted]):
        names, table = group.profile.names, group.table
        phases = np.array([is_compiling(name) for name in names], bool)
        rows = in_steps(group.profile, table.step, group.used) & phases[table.name]
        total += int(table.self_ns[rows].sum())
        compilers |= {names[n] for n in distinct(table.name[rows]).tolist()}
    for profile, used, _ in weighted:
        period += int(profile.periods[used].sum())
    if total < thresholds.COMPILING * period:
        return ""
    return ", ".join(sorted(compilers)[:2])


def _unread_devices(side: TraceSet) -> str:
    return shortened(unread_devices(side.notes))


def _unrecorded_launches(side: TraceSet) -> str:
    launches = counted(side.notes, NOT_RECORDED)
    return f"{launches:,} launches" if launches else ""


def _captured(side: TraceSet) -> str:
    """How much of the graph replays a capture explains; empty without replays."""
    if not any(is_graph_launch(name) for p in side.profiles for name in p.names):
        return ""
    matched, missing = _captured_kernels(side)
    if not matched:
        return "no kernel has one"
    return "all kernels have one" if not missing else f"{matched:,} of {matched + missing:,} kernels have one"


def _foreign_capture(side: TraceSet) -> str:
    matched, missing = _captured_kernels(side)
    return f"none of {missing:,} kernels" if missing and not matched else ""


def _captured_kernels(side: TraceSet) -> tuple[int, int]:
    """Kernels of graph replays that are in a capture, and that are not."""
    counts = {n.message: n.count for n in side.notes if n.code == CAPTURE_CODE and n.message.startswith(KERNELS)}
    missing = sum(count for message, count in counts.items() if message.endswith(UNMATCHED))
    return sum(counts.values()) - missing, missing


def _unequal_runs(side: TraceSet) -> str:
    odd = counted(side.notes, "unequal-runs")
    return f"{odd} of {len(side.runs)} runs" if odd else ""


def _copied_runs(side: TraceSet) -> str:
    """``run2 = run1``: runs whose steps and operations all lasted as long as another's, to the nanosecond."""
    first: dict[tuple[bytes, ...], str] = {}
    copies = []
    for run in side.runs:
        files = [profile for rank in sorted(run.ranks) for profile in run.ranks[rank]]
        times = tuple(
            part.tobytes()
            for p in files
            for part in (p.step_numbers, p.periods, p.ops.step, p.ops.count, p.ops.total_ns)
        )
        if first.setdefault(times, run.name) != run.name:
            copies.append(f"{run.name} = {first[times]}")
    return ", ".join(copies[:2]) + (" …" if len(copies) > 2 else "")


def _warming_up(side: TraceSet) -> str:
    slow_steps = []
    for profile in side.profiles:
        used = np.flatnonzero(side.selection.used(profile))
        periods = profile.periods[used]
        others = np.median(periods[1:]) if len(used) >= thresholds.WARM_UP_STEPS else 0
        if others and periods[0] > thresholds.WARM_UP * others:
            slow_steps.append(f"step {profile.step_numbers[used[0]]}: {periods[0] / others:.1f} times the others")
    return ", ".join(slow_steps[:2])


def _other_ranks(control: TraceSet, test: TraceSet) -> list[Reason]:
    """Other ranks, and which of them are compared: those that both sides have, if any."""
    ranks_of_sides = [sorted(map(int, side.ranks)) for side in (control, test)]
    common = sorted(set(ranks_of_sides[0]) & set(ranks_of_sides[1]))
    if ranks_of_sides[0] == ranks_of_sides[1] or not all(ranks_of_sides):
        return []
    message = "only the ranks that both sides have are compared" if common else "different ranks are compared"
    first, second = map(ranges, ranks_of_sides)
    ranks = "rank" if len(common) == 1 else "ranks"
    compared = f"; only {ranks} {ranges(common)} compared" if common else ""
    return [Reason("ranks", message, first, f"{second}{compared}")]


def _flags(side: TraceSet) -> str:
    lacking = {"runtime calls left out" for note in side.notes if note.code == "calls-not-recorded"}
    return _joined(lacking | {f for p in side.profiles for f in p.origin.flags}) or NO_FLAGS


def _workloads(side: TraceSet) -> str:
    manifest = side.manifest
    return joined(manifest.workload or manifest.target, manifest.size, by=" ") if manifest else ""


def _threads(side: TraceSet) -> str:
    return str(side.manifest.settings.threads) if side.manifest else ""


def _contended(side: TraceSet) -> str:
    disturbed = [f"run {r.run}" for r in side.manifest.runs if r.contended] if side.manifest else []
    return ", ".join(disturbed)


def _truncated(side: TraceSet) -> str:
    return "yes" if counted(side.notes, "truncated") else ""


class OtherResult(FrozenStruct):
    """What both sides computed otherwise: ``norm of the gradients 0.31 → none (first step)``."""

    what: str
    step: str
    control: str
    test: str

    def __str__(self) -> str:
        return f"{self.what} {self.control} → {self.test} ({self.step} step)"


def different_results(control: Manifest | None, test: Manifest | None) -> OtherResult | None:
    """The first result that differs by more than rounding; None where all are the same, or unknown: not recorded, or of
    steps that draw random numbers.
    """
    a, b = _results(control), _results(test)
    if a is None or b is None or a.is_random or b.is_random:
        return None
    tolerance = max(_rounding(results.dtype) for results in (a, b)) or thresholds.ROUNDING_FLOAT32
    steps = ("first", a.first, b.first, tolerance), ("fourth", a.later, b.later, thresholds.ROUNDING_LATER * tolerance)
    for step, x, y, allowed in steps:
        for what, norms in (("the result", (x.value, y.value)), ("the gradients", (x.gradients, y.gradients))):
            if not _is_same(*norms, allowed) or x.finite != y.finite:
                texts = (_text(norm, side) for norm, side in zip(norms, (x, y), strict=True))
                return OtherResult(f"norm of {what}", step, *texts)
    return None


def not_finite(manifest: Manifest) -> str | None:
    """The step whose result or gradients are not all numbers; None if they are, or if that is unknown."""
    results = _results(manifest)
    if results is None:
        return None
    return "first" if not results.first.finite else "fourth" if not results.later.finite else None


def _rounding(dtype: str) -> float:
    """Relative difference of the first step's results that rounding explains; 0 for an unknown dtype."""
    return {
        "float64": thresholds.ROUNDING_FLOAT64,
        "float32": thresholds.ROUNDING_FLOAT32,
        "tf32": thresholds.ROUNDING_HALF,
        "float16": thresholds.ROUNDING_HALF,
        "bfloat16": thresholds.ROUNDING_BFLOAT16,
    }.get(dtype, 0.0)


def _results(manifest: Manifest | None) -> Results | None:
    return next((run.results for run in manifest.runs if run.results), None) if manifest else None


def _is_same(x: float | None, y: float | None, allowed: float) -> bool:
    if x is None or y is None:
        return x is y
    return abs(x - y) <= allowed * max(x, y)


def _text(norm: float | None, computed: Computed) -> str:
    return "not finite" if not computed.finite else "none" if norm is None else f"{norm:.5g}"
