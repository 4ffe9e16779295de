"""Measure steps without the profiler: wall time, process time, context switches, memory; the environment; the GPU of a
run, and its clocks, temperature and throttling while it is measured; and what a step computes, as a few numbers:
variants that do the same work compute the same, within rounding.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tracediff.collect.variant import Step, Task, Variant
from tracediff.errors import number_of

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

Samples = list[dict[str, Any]]
"""Of each step what `StepTimer` measures."""


def synchronise(device: str) -> None:
    """Wait until the GPU has finished; does nothing for the CPU."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()


class StepTimer:
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

    def samples(self) -> Samples:
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
        switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw if resource else 0
        return _Mark(time.perf_counter_ns(), time.process_time_ns(), switches, event)


class _Mark(NamedTuple):
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


def timing_pass(step: Step, steps: int, device: str) -> Samples:
    """Run ``steps`` steps and return their samples."""
    measured = StepTimer(device)
    for _ in range(steps):
        measured.run(step)
    return measured.samples()


def occupancy(samples: Samples, threads: int) -> float:
    """Process time / (wall time × threads): lower than in other runs if other processes took CPU time."""
    wall = sum(s["wall_us"] for s in samples)
    return float(sum(s["cpu_us"] for s in samples) / (wall * threads)) if wall else 0.0


def waiting_ns() -> int | None:
    """Nanoseconds that all threads of this process were ready to run and had no processor; None where the system does
    not report it (only Linux does).
    """
    try:
        return sum(int((task / "schedstat").read_text().split()[1]) for task in Path("/proc/self/task").iterdir())
    except (OSError, IndexError, ValueError):
        return None


def waited(before: int | None, after: int | None, samples: Samples, threads: int) -> float | None:
    """The part of the samples' time in which threads waited for a processor, by `waiting_ns` before and after them."""
    wall = sum(s["wall_us"] for s in samples)
    return None if before is None or after is None or not wall else max(after - before, 0) / (1000 * wall * threads)


def peak_memory(device: str) -> dict[str, int | None]:
    """Peak memory in bytes since `reset_peak_memory`: resident on the host; on the device allocated, and reserved,
    which has the pools of CUDA graphs, too (None on the CPU).
    """
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 if resource else None
    allocated, reserved = None, None
    if device.startswith("cuda"):
        import torch

        allocated, reserved = int(torch.cuda.max_memory_allocated()), int(torch.cuda.max_memory_reserved())
    return {"host": host, "device": allocated, "reserved": reserved}


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


def random_state() -> list[bytes]:
    """The state of torch's random numbers: a step that changes it draws some."""
    import torch

    states = [torch.get_rng_state()]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states.append(torch.cuda.get_rng_state())
    return [state.numpy().tobytes() for state in states]


def computed(returned: Any, task: Task, variant: Variant) -> dict[str, float | bool | None]:
    """The norms of what a step returned and of the gradients that it left in the task's model, or else in those that
    the variant transformed, None where there are none; ``finite`` is False if one is not a number.
    """
    models = [m for m in ([task.model] if task.model is not None else variant.models) if hasattr(m, "parameters")]
    parameters = {id(p): p for model in models for p in model.parameters()}.values()
    norms = {
        "value": _norm(_leaves(returned)),
        "gradients": _norm(p.grad for p in parameters if p.grad is not None),
    }
    finite = all(norm is None or math.isfinite(norm) for norm in norms.values())
    return {**(norms if finite else dict.fromkeys(norms)), "finite": finite}


def dtype_of(returned: Any, variant: Variant) -> str:
    """The least exact dtype of a step: what it returns, and autocast's."""
    if variant.has("amp"):
        return "bfloat16"
    if variant.has("fp16"):
        return "float16"
    if variant.has("tf32"):
        return "tf32"
    names = (str(leaf.dtype).removeprefix("torch.") for leaf in _leaves(returned) if hasattr(leaf, "dtype"))
    return min((name for name in names if "float" in name), key=_digits, default="float32")


def _digits(dtype: str) -> int:
    return {"bfloat16": 8, "float16": 11, "float32": 24}.get(dtype, 53)


def _leaves(returned: Any) -> Iterator[Any]:
    """Tensors, arrays and numbers inside of lists, tuples and mappings."""
    if isinstance(returned, Mapping):
        returned = list(returned.values())
    if isinstance(returned, list | tuple):
        for inner in returned:
            yield from _leaves(inner)
    elif hasattr(returned, "dtype") or (isinstance(returned, int | float) and not isinstance(returned, bool)):
        yield returned


def _norm(leaves: Iterable[Any]) -> float | None:
    """The root of the sum of squares; None of nothing."""
    import torch

    norms = [_norm_of(torch.as_tensor(leaf).detach()) for leaf in leaves]
    return math.hypot(*norms) if norms else None


def _norm_of(tensor: Any) -> float:
    import torch

    if not (tensor.is_floating_point() or tensor.is_complex()):
        tensor = tensor.double()
    return float(torch.linalg.vector_norm(tensor, dtype=torch.complex128 if tensor.is_complex() else torch.float64))


INTERVAL_S = 0.1
SLOWED = 0x08 | 0x20 | 0x40 | 0x80
"""NVML's reasons of throttling that are faults: heat, and a supply that brakes. A power limit is the usual state."""


def use_device(device: str) -> None:
    """Make the GPU of ``device`` the current one: ``cuda:1`` is number 1, ``cuda`` under torchrun that of the local
    rank.
    """
    import torch

    index = torch.device(device).index
    torch.cuda.set_device(index if index is not None else number_of("LOCAL_RANK", 0))


def allow_tf32() -> None:
    """Have products and convolutions of float32 computed in TF32, as the variant ``tf32`` asks."""
    import torch

    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True


def gpu_environment() -> dict[str, Any]:
    """What else the times on a GPU depend on: driver, precision and allocator settings, Triton."""
    import torch

    triton = find_spec("triton")
    return {
        "driver": _driver(),
        "capability": ".".join(map(str, torch.cuda.get_device_capability())),
        "tf32": torch.get_float32_matmul_precision() != "highest",
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn_tf32": torch.backends.cudnn.allow_tf32,
        "allocator": os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF"),
        "triton": import_module("triton").__version__ if triton else None,
    }


class GpuWatch:
    """Reads the current GPU ten times a second while it is entered; does nothing without NVML (nvidia-ml-py).

    Attributes:
        error: why the GPU could not be read, or no longer; None if it could.
    """

    def __init__(self, device: str) -> None:
        self.error: str | None = None
        self._nvml, self._gpu = None, None
        self._samples: list[dict[str, float]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        import torch

        if device.startswith("cuda") and torch.version.hip is None:
            try:
                self._nvml = _nvml()
                self._gpu = _handle(self._nvml)
            except Exception as error:  # NVML's own errors are known only where it is installed
                self.error = _reason(error)

    def __enter__(self) -> GpuWatch:
        if self._gpu is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._gpu is not None:
            self._thread.join()

    def summary(self) -> dict[str, float] | None:
        """Clocks in MHz, power in W, temperature in °C, and the part of the time in which the GPU was slowed down by
        heat or its supply; None where nothing could be read.
        """
        if not self._samples:
            return None
        columns = {name: [sample[name] for sample in self._samples] for name in self._samples[0]}
        return {
            "sm_mhz": median(columns["sm_mhz"]),
            "sm_mhz_least": min(columns["sm_mhz"]),
            "memory_mhz": median(columns["memory_mhz"]),
            "power_w": max(columns["power_w"]),
            "temperature_c": max(columns["temperature_c"]),
            "throttled": sum(columns["slowed"]) / len(self._samples),
        }

    def _watch(self) -> None:
        try:
            self._samples.append(self._read())
            while not self._ended.wait(INTERVAL_S):
                self._samples.append(self._read())
        except Exception as error:  # no permission, or not on this GPU
            self.error = _reason(error)

    def _read(self) -> dict[str, float]:
        nvml, gpu = self._nvml, self._gpu
        assert nvml is not None
        return {
            "sm_mhz": float(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)),
            "memory_mhz": float(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM)),
            "power_w": nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
            "temperature_c": float(nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)),
            "slowed": float(bool(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu) & SLOWED)),
        }


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _nvml() -> Any:
    """NVML, started; an error of its own without a driver.

    Raises:
        ImportError: nvidia-ml-py is not installed.
    """
    try:
        import pynvml
    except ImportError:
        raise ImportError("nvidia-ml-py is not installed") from None
    pynvml.nvmlInit()
    return pynvml


def _handle(nvml: Any) -> Any:
    """NVML's handle of torch's current GPU, by its UUID: NVML knows nothing of CUDA_VISIBLE_DEVICES."""
    import torch

    uuid = str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid)
    return nvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")


def _driver() -> str | None:
    """The version of the driver, or why NVML does not report it; None without nvidia-ml-py."""
    try:
        version = _nvml().nvmlSystemGetDriverVersion()
    except ImportError:
        return None
    except Exception as error:  # NVML's own
        return f"unknown ({_reason(error)})"
    return str(version.decode() if isinstance(version, bytes) else version)
