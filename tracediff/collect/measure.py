"""Measure steps without the profiler: wall time, process time, context switches, memory; and the environment."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

from tracediff.collect.gpu import gpu_environment
from tracediff.collect.variant import Step


def synchronise(device: str) -> None:
    """Wait until the GPU has finished; does nothing for the CPU."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()


class Steps:
    """Measures steps. On a GPU the host is not held up: a step lasts from one CUDA event to another, and only `samples`
    waits for them.
    """

    def __init__(self, device: str) -> None:
        self._on_gpu = device.startswith("cuda")
        self._marks: list[tuple[_Mark, _Mark]] = []
        synchronise(device)

    def run(self, step: Step) -> Any:
        """Run and measure one step; what it returned."""
        begin = self._mark()
        returned = step()
        self._marks.append((begin, self._mark()))
        return returned

    def samples(self) -> list[dict[str, Any]]:
        """Of each step: wall time and process time in µs, and how often the system preempted the process."""
        return [
            {
                "wall_us": begin.until(end),
                "cpu_us": (end.cpu - begin.cpu) / 1000,
                "involuntary_switches": end.switches - begin.switches,
            }
            for begin, end in self._marks
        ]

    def _mark(self) -> _Mark:
        event = None
        if self._on_gpu:
            import torch

            event = torch.cuda.Event(enable_timing=True)
            event.record()
        return _Mark(time.perf_counter_ns(), time.process_time_ns(), _switches(), event)


@dataclass(frozen=True)
class _Mark:
    """An instant: wall and process time in ns, preemptions so far, and on a GPU the event in its stream."""

    wall: int
    cpu: int
    switches: int
    event: Any

    def until(self, end: _Mark) -> float:
        """Microseconds to ``end``: the GPU's if there is one."""
        if self.event is None:
            return (end.wall - self.wall) / 1000
        end.event.synchronize()
        return float(self.event.elapsed_time(end.event)) * 1000


def timing_pass(step: Step, steps: int, device: str) -> list[dict[str, Any]]:
    """Run ``steps`` steps and return their samples."""
    measured = Steps(device)
    for _ in range(steps):
        measured.run(step)
    return measured.samples()


def _switches() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw if resource else 0


def occupancy(samples: list[dict[str, Any]], threads: int) -> float:
    """Process time / (wall time × threads): lower than in other runs if other processes took CPU time."""
    wall = sum(s["wall_us"] for s in samples)
    return float(sum(s["cpu_us"] for s in samples) / (wall * threads)) if wall else 0.0


def waiting_ns() -> int | None:
    """Nanoseconds that all threads of this process were ready to run and had no processor; None where the system does
    not tell (it is Linux that does).
    """
    try:
        return sum(int((task / "schedstat").read_text().split()[1]) for task in Path("/proc/self/task").iterdir())
    except (OSError, IndexError, ValueError):
        return None


def waited(before: int | None, after: int | None, samples: list[dict[str, Any]], threads: int) -> float | None:
    """The part of the samples' time in which threads waited for a processor, by `waiting_ns` before and after them."""
    wall = sum(s["wall_us"] for s in samples)
    return None if before is None or after is None or not wall else max(after - before, 0) / (1000 * wall * threads)


def peak_memory(device: str) -> dict[str, int | None]:
    """Peak memory in bytes since `reset_peak_memory`: resident on the host; on the device allocated, and reserved,
    which has the pools of CUDA graphs, too (None on the CPU).
    """
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 if resource else None
    if not device.startswith("cuda"):
        return {"host": host, "device": None, "reserved": None}
    import torch

    return {
        "host": host,
        "device": int(torch.cuda.max_memory_allocated()),
        "reserved": int(torch.cuda.max_memory_reserved()),
    }


def reset_peak_memory(device: str) -> None:
    """Forget what building, compiling and warming up took on the device."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats()


def load_average() -> float | None:
    """The load average of the last minute; None if the system has none."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None


def environment(device: str, threads: int) -> dict[str, Any]:
    """Versions and hardware, without names of users, hosts or paths."""
    import platform

    import torch

    on_gpu = device.startswith("cuda")
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "cudnn": torch.backends.cudnn.version() if on_gpu else None,
        "system": platform.system(),
        "machine": platform.machine(),
        "cpu_count": os.cpu_count(),
        "device": device,
        "gpu": torch.cuda.get_device_name() if on_gpu else None,
        "gpu_count": torch.cuda.device_count() if on_gpu else 0,
        "threads": threads,
    } | (gpu_environment() if on_gpu else {})
