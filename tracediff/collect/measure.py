"""Measure steps without the profiler: wall time, process time, context switches, memory; and the environment."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

from tracediff.collect.variant import Step


@dataclass(frozen=True)
class Sample:
    """The measurements of one step.

    Attributes:
        wall_us, cpu_us: wall time and process time in µs.
        involuntary_switches: number of involuntary context switches.
    """

    wall_us: float
    cpu_us: float
    involuntary_switches: int


def synchronise(device: str) -> None:
    """Wait until the GPU has finished; does nothing for the CPU."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()


def timed(step: Step, device: str) -> Sample:
    """Run and measure one step, including its GPU work."""
    switches, cpu, wall = _switches(), time.process_time_ns(), time.perf_counter_ns()
    step()
    synchronise(device)
    return Sample((time.perf_counter_ns() - wall) / 1000, (time.process_time_ns() - cpu) / 1000, _switches() - switches)


def timing_pass(step: Step, steps: int, device: str) -> list[dict[str, Any]]:
    """Run ``steps`` steps and return their samples as dictionaries."""
    return [asdict(timed(step, device)) for _ in range(steps)]


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


def waited(before: int | None, samples: list[dict[str, Any]], threads: int) -> float | None:
    """The part of the samples' time in which threads waited for a processor, since `waiting_ns` was ``before``."""
    now, wall = waiting_ns(), sum(s["wall_us"] for s in samples)
    return None if before is None or now is None or not wall else max(now - before, 0) / (1000 * wall * threads)


def peak_memory(device: str) -> dict[str, int | None]:
    """Peak memory in bytes: resident on the host, and allocated on the device (None on the CPU)."""
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 if resource else None
    if not device.startswith("cuda"):
        return {"host": host, "device": None}
    import torch

    return {"host": host, "device": int(torch.cuda.max_memory_allocated())}


def load_average() -> float | None:
    """The load average of the last minute; None if the system has none."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None


def gpu_clocks() -> dict[str, float] | None:
    """Clocks (MHz) and power (W) of the first GPU; None without nvidia-ml-py or a driver."""
    try:
        import pynvml

        pynvml.nvmlInit()
        gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
        return {
            "sm_mhz": float(pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM)),
            "memory_mhz": float(pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_MEM)),
            "power_w": pynvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
        }
    except Exception:  # no driver, no permission, no package: clocks are optional
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
    }
