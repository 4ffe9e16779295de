"""`record_steps`: profile the steps of a loop; and `profiled`, the same for a step function."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tracediff.errors import TracediffError


class Recorder:
    """What `record_steps` yields.

    Attributes:
        path: the trace file that will be written.
        steps: how often `step` was called.
    """

    def __init__(self, profiler: Any, path: Path, first_recorded: int, metadata: dict[str, str]) -> None:
        self.path = path
        self.steps = 0
        self._profiler = profiler
        self._first_recorded = first_recorded
        self._metadata = metadata

    def step(self) -> None:
        """Say that a step has ended. Call it once a step, at its end."""
        self.steps += 1
        self._profiler.step()
        if self.steps == self._first_recorded:  # earlier, torch drops metadata with a warning
            for key, value in self._metadata.items():
                self._profiler.add_metadata(key, value)


@contextmanager
def record_steps(
    out: str | os.PathLike[str],
    *,
    wait: int = 1,
    warmup: int = 2,
    active: int = 5,
    record_shapes: bool = True,
    with_stack: bool = False,
    profile_memory: bool = False,
    rank: int | None = None,
) -> Iterator[Recorder]:
    """Record ``active`` steps of a loop as one run of the set ``out``.

    The file is ``out/run<k>/rank<r>.pt.trace.json.gz``, k the first free number; it appears whole, when the last active
    step ends.

    Args:
        out: folder of the set; runs of the same program go to the same folder.
        wait, warmup: steps left out first, without and with the profiler running.
        active: steps recorded.
        record_shapes, with_stack, profile_memory: as for torch.profiler; give both sides of a comparison the same.
        rank: of this process; by default torch.distributed's, else the environment's RANK, else 0.

    Example:
        >>> with tracediff.record_steps("traces/before") as p:
        ...     for batch in loader:
        ...         train_step(batch)
        ...         p.step()

    Raises:
        TracediffError: torch is not installed, the loop ended before the last active step, or a recorded step holds no
            operation.
    """
    torch = import_torch("record_steps")
    _show_compiled_kernels()
    path = _next_file(Path(out), _rank(torch) if rank is None else rank)
    options = {"record_shapes": record_shapes, "with_stack": with_stack, "profile_memory": profile_memory}
    with recording(path, wait, warmup, active, options) as recorder:
        yield recorder


@contextmanager
def recording(path: Path, wait: int, warmup: int, active: int, options: dict[str, bool]) -> Iterator[Recorder]:
    """Record ``active`` steps to the file ``path``; see `record_steps`."""
    torch = import_torch(str(path))
    needed = wait + warmup + active
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    empty: list[str] = []

    def write(profiler: Any) -> None:
        if recorder.steps < needed:
            return  # a loop that ends early leaves an incomplete step
        empty.extend(_empty_steps(profiler))
        partial = path.with_name(f".{path.name.removesuffix('.gz')}.{os.getpid()}.json.gz")
        try:
            profiler.export_chrome_trace(str(partial))
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)

    profiler = torch.profiler.profile(
        activities=activities,
        schedule=torch.profiler.schedule(wait=wait, warmup=warmup, active=active, repeat=1),
        on_trace_ready=write,
        **options,
    )
    recorder = Recorder(profiler, path, wait + warmup, {"torch_version": torch.__version__})
    with profiler:
        yield recorder
    if recorder.steps < needed:
        reason = f"not written: the loop ended after {recorder.steps} of {needed} steps"
        raise TracediffError(str(path), reason, "run more steps, or ask for fewer with wait, warmup and active")
    if empty:
        raise TracediffError(
            str(path), f"{', '.join(empty)} holds no operation", "does the loop run the step before each p.step()?"
        )


def _show_compiled_kernels() -> None:
    """Have kernels that are compiled from here on appear in CPU traces; without it their time is the compiled region's
    own.
    """
    os.environ.setdefault("TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE", "1")
    config = sys.modules.get("torch._inductor.config")
    if config is not None:  # it has read the environment already
        config.cpp.enable_kernel_profile = True


def _empty_steps(profiler: Any) -> list[str]:
    """Names of recorded steps in which nothing begins."""
    events = [(e.start_ns(), e.name()) for e in profiler.profiler.kineto_results.events() if e.duration_ns() >= 0]
    steps = sorted((start, name) for start, name in events if name.startswith("ProfilerStep"))
    starts = [start for start, _ in steps]
    held = [0] * len(steps)
    for start, name in events:
        if not name.startswith("ProfilerStep"):
            at = sum(s <= start for s in starts) - 1
            if at >= 0:
                held[at] += 1
    return [name for (_, name), n in zip(steps, held, strict=True) if not n]


def import_torch(subject: str) -> Any:
    """torch.

    Raises:
        TracediffError: it is not installed.
    """
    try:
        import torch
        import torch.profiler
    except ModuleNotFoundError:
        raise TracediffError(subject, "torch is not installed", "pip install 'torch-tracediff[collect]'") from None
    return torch


def _rank(torch: Any) -> int:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    return int(os.environ.get("RANK", "0"))


def _next_file(out: Path, rank: int) -> Path:
    k = 1
    while (path := out / f"run{k}" / f"rank{rank}.pt.trace.json.gz").exists():
        k += 1
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
