"""The GPU of a run: which one it is, and its clocks, temperature and throttling while it is measured."""

from __future__ import annotations

import os
import threading
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

from tracediff.environment import number_of

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
        if device.startswith("cuda") and _is_nvidia():
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


def _is_nvidia() -> bool:
    import torch

    return torch.version.hip is None


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
    """The version of the driver, or why NVML does not tell; None without nvidia-ml-py."""
    try:
        version = _nvml().nvmlSystemGetDriverVersion()
    except ImportError:
        return None
    except Exception as error:  # NVML's own
        return f"unknown ({_reason(error)})"
    return str(version.decode() if isinstance(version, bytes) else version)
