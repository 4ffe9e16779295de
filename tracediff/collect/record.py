"""`record_steps` profiles steps of a user's own loop and writes them as a run of a trace set, with its
manifest.
"""

import json
import os
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tracediff import thresholds
from tracediff.collect.compiler import (
    FOLDER,
    CompileTrace,
    compile_trace,
    show_compiled_kernels,
    without_importing_inductor,
)
from tracediff.collect.driver import MANIFEST, write_json
from tracediff.collect.measure import environment, peak_memory, waited, waiting_ns
from tracediff.collect.user_code import git_commit
from tracediff.errors import TracediffError, number_of, printable
from tracediff.formatting import percent
from tracediff.process.temporary import temporary_file
from tracediff.write import StrPath, make_folder

FLAGS = ("record_shapes", "with_stack", "with_modules", "profile_memory")
"""Options of torch.profiler that add to what it records, those that add more later."""


class Recorder:
    """Counts the steps of a loop; yielded by `record_steps`.

    Attributes:
        path: the trace file that will be written.
        recorded: numbers of the steps that are recorded, from 0 as in the trace.
        steps: number of calls of `step`.
        waiting: the part of the recorded steps in which the process's threads waited for a processor that others had,
            per thread of torch; None before their end, and where the system does not report it.
        device: ``cuda`` if GPU events were recorded, else ``cpu``.
        used_gpu: whether the recorded steps allocated memory of a GPU.
    """

    def __init__(self, path: Path, wait: int, recorded: range, start_profiler: Callable[[], Any]) -> None:
        self.path = path
        self.recorded = recorded
        self.steps = 0
        self.waiting: float | None = None
        self.device = "cpu"
        self.used_gpu = False
        self._wait = wait
        self._start_profiler = start_profiler
        self._profiler: Any = None
        self._next_step()

    def step(self) -> None:
        """Mark the end of a step; call it once at the end of each step."""
        self.steps += 1
        self._next_step()

    def _next_step(self) -> None:
        """Measure before the first recorded step, end the profiler's step, and start it after the steps to wait for."""
        is_first = self.steps == self.recorded.start
        if is_first:
            self._allocations = _gpu_allocations()
            self._start = waiting_ns(), time.perf_counter_ns()
        if self._profiler is not None:
            self._profiler.step()
        if self.steps == self._wait:
            self._profiler = self._start_profiler()
        if is_first:
            import torch

            self._profiler.add_metadata("torch_version", torch.__version__)  # earlier, torch drops it with a warning

    def _end(self) -> None:
        """Measure after the last recorded step, before the profiler writes the file: what it takes is in no step."""
        import torch

        waits, begin = self._start
        recorded = {"wall_us": (time.perf_counter_ns() - begin) / 1000}
        self.waiting = waited(waits, waiting_ns(), [recorded], torch.get_num_threads())
        self.used_gpu = _gpu_allocations() > self._allocations


@contextmanager
def record_steps(
    out: StrPath,
    *,
    wait: int = 1,
    warmup: int = 2,
    active: int = 5,
    record_shapes: bool = True,
    with_stack: bool = False,
    profile_memory: bool = False,
    rank: int | None = None,
    provenance: bool = True,
) -> Iterator[Recorder]:
    """Record ``active`` steps of a loop as one run of the set ``out``.

    The file is ``out/run<k>/rank<r>.pt.trace.json.gz`` with the first free number k. It is written atomically when the
    last active step ends; rank 0 then adds the run to ``out/manifest.json``, and a line on standard error says so. What
    torch.compile compiles until then is logged to ``out/run<k>/torch_trace/rank<r>.log.gz``.

    Args:
        out: folder of the set; use the same folder for runs of the same program.
        wait, warmup: numbers of steps before the recorded ones, without and with the profiler running.
        active: number of recorded steps.
        record_shapes, with_stack, profile_memory: as for torch.profiler; use the same for both sides of a comparison.
        rank: rank of this process; by default torch.distributed's, else the environment's RANK, else 0.
        provenance: log what torch.compile compiles, with the lines of code that each kernel computes, which comparisons
            then name. Compiling takes a few percent longer, steps take as long as before (docs/collect.md).

    Example:
        >>> with tracediff.record_steps("traces/before") as p:
        ...     for batch in loader:
        ...         train_step(batch)
        ...         p.step()

    Raises:
        TracediffError: torch is not installed, the loop ended before the last active step, no operation was recorded in
            a step, or the manifest of the set cannot be written.
    """
    check_torch("record_steps")
    show_compiled_kernels()
    number = of_group("rank", 0) if rank is None else rank
    name = f"rank{number}.pt.trace.json.gz"
    path = _next_folder(Path(out), name) / name
    options = {"record_shapes": record_shapes, "with_stack": with_stack, "profile_memory": profile_memory}
    logging = log_of_compiling(path, number, provenance)
    with logging as log, recording(path, wait, warmup, active, options, log) as recorder:
        yield recorder
    if not number:  # not a line for each of a thousand ranks
        settings = {"wait": wait, "warmup": warmup, "active": active, "detail": _detail(options)}
        add_run(path.parent, settings, recorder.device, recorder.waiting)
        say(f"recorded {_recorded(recorder)}: {path}")


def on_trace_ready(out: StrPath, *, rank: int | None = None) -> Callable[[Any], None]:
    """A handler for ``torch.profiler.profile(on_trace_ready=…)`` that writes a run of the set ``out``.

    Every cycle of the profiler's schedule is a file of its own,
    ``out/run<k>/rank<r>.<time in ns>.pt.trace.json.gz`` with the first free number k; together they are one run, since
    steps of one process are not independent. Files are written atomically, and rank 0 adds the run to
    ``out/manifest.json``.

    Args:
        out: folder of the set; use the same folder for runs of the same program.
        rank: rank of this process; by default torch.distributed's, else the environment's RANK, else 0.

    Example:
        >>> with torch.profiler.profile(schedule=…, on_trace_ready=tracediff.on_trace_ready("traces/before")) as p:
        ...     for batch in loader:
        ...         train_step(batch)
        ...         p.step()

    Raises:
        TracediffError: torch is not installed; from the handler: the folder cannot be written.
    """
    check_torch("on_trace_ready")
    show_compiled_kernels()
    folder: list[Path] = []

    def write(profiler: Any) -> None:
        number = of_group("rank", 0) if rank is None else rank
        if not folder:
            folder.append(_next_folder(Path(out), f"rank{number}."))
        _export(profiler, folder[0] / f"rank{number}.{time.time_ns()}.pt.trace.json.gz")
        if not number:
            settings = {"detail": _detail({name: getattr(profiler, name, False) for name in FLAGS})}
            add_run(folder[0], settings, _device(profiler.profiler.kineto_results.events()))

    return write


def log_of_compiling(path: Path, rank: int, is_wanted: bool) -> AbstractContextManager[CompileTrace | None]:
    """The log of what torch.compile compiles, beside the trace ``path`` of a rank; None where it is not wanted."""
    return compile_trace(path.parent / FOLDER / f"rank{rank}.log.gz") if is_wanted else nullcontext()


@contextmanager
def recording(
    path: Path, wait: int, warmup: int, active: int, options: dict[str, bool], log: CompileTrace | None = None
) -> Iterator[Recorder]:
    """Record ``active`` steps to the file ``path``, and keep ``log`` with it; see `record_steps`."""
    torch = import_torch(str(path))
    needed = wait + warmup + active
    schedule = torch.profiler.schedule(wait=wait, warmup=warmup, active=active, repeat=1)
    activities = [torch.profiler.ProfilerActivity.CPU]
    empty: list[str] = []

    def action_of(step: int) -> Any:
        """What the profiler does in ``step``; it asks between the end of one and the begin of the next."""
        if step == needed:
            recorder._end()
        return schedule(max(step, wait))

    def start() -> Any:
        if torch.cuda.is_initialized():  # else the profiler would initialise it, for work on the CPU
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        profiler = torch.profiler.profile(activities=activities, schedule=action_of, on_trace_ready=write, **options)
        profiler.step_num = wait  # names of the steps in the trace
        with without_importing_inductor():
            return open_profiler.enter_context(profiler)

    def write(profiler: Any) -> None:
        if recorder.steps < needed:
            return  # the loop ended early, in an incomplete step
        events = profiler.profiler.kineto_results.events()
        empty.extend(_empty_steps(events))
        recorder.device = _device(events)
        _export(profiler, path)
        if log is not None:
            log.keep()

    with ExitStack() as open_profiler:
        recorder = Recorder(path, wait, range(wait + warmup, needed), start)
        yield recorder
    if recorder.steps < needed:
        reason = f"not written, because the loop ended after {recorder.steps} of {needed} steps"
        raise TracediffError(path, reason, "run more steps, or reduce wait, warmup or active")
    if recorder.used_gpu and recorder.device == "cpu":
        profiled = torch.profiler.ProfilerActivity.CUDA in activities
        others = "end other profilers of this GPU (nsys, ncu, dcgm), and allow profiling in the container"
        late = "use it before the profiler starts: increase wait"
        reason = "no GPU event was recorded, though a GPU was used"
        raise TracediffError(path, reason, others if profiled else late)
    if empty:
        raise TracediffError(
            path,
            f"no operation was recorded in {', '.join(empty)}",
            "run the step inside the loop, before p.step()",
        )


def say(line: str) -> None:
    """Print a line on standard error, if that is possible."""
    with suppress(OSError):
        print(printable(f"tracediff: {line}"), file=sys.stderr, flush=True)


def _recorded(recorder: Recorder) -> str:
    """``steps 3–7``, and whether others had the processor meanwhile."""
    steps = f"steps {recorder.recorded[0]}–{recorder.recorded[-1]}"
    if recorder.waiting is None or recorder.waiting <= thresholds.CONTENDED:
        return steps
    return f"{steps} (disturbed: waited {percent(recorder.waiting)} of the time for a processor)"


def _detail(options: dict[str, bool]) -> str:
    """What the profiler recorded beside names and times."""
    return ", ".join(name for name in FLAGS if options.get(name)) or "none"


def _export(profiler: Any, path: Path) -> None:
    """Write the trace of ``profiler``, atomically."""
    partial = temporary_file(path.parent, ".json.gz")
    try:
        profiler.export_chrome_trace(str(partial))
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _is_on_host(event: Any) -> bool:
    return str(event.device_type()).endswith("CPU")


def _device(recorded: Sequence[Any]) -> str:
    """``cuda`` if a GPU has an event, else ``cpu``, whatever GPUs there are."""
    return "cpu" if all(_is_on_host(event) for event in recorded) else "cuda"


def _gpu_allocations() -> int:
    """How often torch has allocated memory of a GPU so far: what uses one does so, and initialising CUDA does not."""
    import torch

    if not torch.cuda.is_initialized():
        return 0
    with suppress(RuntimeError):  # an allocator of the user's may count nothing
        devices = range(torch.cuda.device_count())
        return sum(torch.cuda.memory_stats(device).get("allocation.all.allocated", 0) for device in devices)
    return 0


def _empty_steps(recorded: Sequence[Any]) -> list[str]:
    """Names of the recorded steps in which no event of the host starts."""
    events = [(e.start_ns(), e.name()) for e in recorded if e.duration_ns() >= 0 and _is_on_host(e)]
    steps = sorted((start, name) for start, name in events if name.startswith("ProfilerStep"))
    starts = [start for start, _ in steps]
    busy = {bisect_right(starts, start) for start, name in events if not name.startswith("ProfilerStep")}
    return [name for number, (_, name) in enumerate(steps, 1) if number not in busy]


def import_torch(subject: str) -> Any:
    """Import torch and torch.profiler, and return torch.

    Raises:
        TracediffError: it is not installed.
    """
    check_torch(subject)
    import torch
    import torch.profiler

    return torch


def check_torch(subject: str) -> None:
    """Check that torch is installed, without the seconds that importing it takes.

    Raises:
        TracediffError: it is not.
    """
    if find_spec("torch") is None:
        raise TracediffError(subject, "torch is not installed", "pip install 'torch-tracediff[collect]'")


def _next_folder(out: Path, prefix: str) -> Path:
    """The first ``run<k>`` that has no file whose name begins so."""
    k = 1
    while any((folder := out / f"run{k}").glob(f"{prefix}*")):
        k += 1
    return make_folder(folder)


def add_run(run_folder: Path, settings: dict[str, Any], device: str, waiting: float | None = None) -> None:
    """Add the run in ``run_folder``, which this process has recorded, to the manifest of the set above it; runs whose
    folders are gone are dropped.

    Unlike those of `tracediff.collect`, the steps were not timed without the profiler. Peak memory is the process's so
    far.

    Args:
        settings: of the recording: wait, warmup and active, where they are known, and detail.
        device: ``cuda`` if GPU events were recorded, else ``cpu``.
        waiting: the part of the recorded steps in which threads waited for a processor, where that is known. A run on
            the CPU that waited for long is marked as disturbed.

    Raises:
        TracediffError: another program's manifest is in the way, or the folder is not writable.
    """
    import torch

    out, threads = run_folder.parent, torch.get_num_threads()
    number = int(run_folder.name.removeprefix("run"))
    before = _read(out / "manifest.json")
    disturbed = device == "cpu" and (waiting or 0) > thresholds.CONTENDED
    run = {"run": number, "peak_memory_bytes": peak_memory(device), "profiled_waiting": waiting, "contended": disturbed}
    others = [r for r in before.get("runs", []) if r["run"] != number and (out / f"run{r['run']}").is_dir()]
    write_json(
        out / "manifest.json",
        {
            **before,
            "schema": MANIFEST,
            "variant": before.get("variant", out.resolve().name),
            "git_commit": _commit(before if others else {}),
            "world_size": of_group("world_size", 1),
            "settings": {"device": device, "threads": threads, **settings},
            "environment": environment(device, threads),
            "runs": sorted([*others, run], key=lambda r: int(r["run"])),
        },
    )


def _commit(before: dict[str, Any]) -> str | None:
    """The commit of the program that runs, with ``+changes`` if files are modified; None outside a checkout, in a
    notebook, and if a run of the set so far was of another.
    """
    program = getattr(sys.modules.get("__main__"), "__file__", None)
    commit = git_commit(program) if program else None
    return commit if before.get("git_commit", commit) == commit else None


def _read(path: Path) -> dict[str, Any]:
    """The manifest so far, empty if there is none."""
    try:
        manifest = json.loads(path.read_text())
        if manifest["schema"] == MANIFEST and all(isinstance(run["run"], int) for run in manifest["runs"]):
            return dict(manifest)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        pass
    raise TracediffError(path, "not a manifest of this version, so the run is not added", "record to another folder")


def of_group(what: str, alone: int) -> int:
    """The ``rank`` or ``world_size`` of this process: by torch.distributed, else by the environment, else ``alone``."""
    from torch import distributed

    if distributed.is_available() and distributed.is_initialized():
        return int(getattr(distributed, f"get_{what}")())
    return number_of(what.upper(), alone)
