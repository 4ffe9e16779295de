"""The GPU of a run: which one it is, and its clocks, temperature and throttling while it is measured."""

from __future__ import annotations

import os
import threading
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

INTERVAL_S = 0.1
SLOWED = 0x08 | 0x20 | 0x40 | 0x80
"""NVML's reasons of throttling that are faults: heat, and a supply that brakes. A power limit is the usual state."""


def use_device(device: str) -> None:
    """Make the GPU of ``device`` the current one: ``cuda:1`` is number 1, ``cuda`` under torchrun that of the local
    rank.
    """
    import torch

    index = torch.device(device).index
    torch.cuda.set_device(index if index is not None else int(os.environ.get("LOCAL_RANK", "0")))


def allow_tf32() -> None:
    """Have products and convolutions of float32 computed in TF32, as the variant ``tf32`` asks."""
    import torch

    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True


def gpu_environment() -> dict[str, Any]:
    """What else the times on a GPU depend on: driver, precision and allocator settings, Triton."""
    import torch

    nvml = _nvml()
    driver = nvml.nvmlSystemGetDriverVersion() if nvml else None
    triton = find_spec("triton")
    return {
        "driver": driver.decode() if isinstance(driver, bytes) else driver,
        "capability": ".".join(map(str, torch.cuda.get_device_capability())),
        "tf32": torch.get_float32_matmul_precision() != "highest",
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn_tf32": torch.backends.cudnn.allow_tf32,
        "allocator": os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF"),
        "triton": import_module("triton").__version__ if triton else None,
    }


class GpuWatch:
    """Reads the current GPU ten times a second while it is entered; does nothing without NVML (nvidia-ml-py)."""

    def __init__(self, device: str) -> None:
        self._nvml = _nvml() if device.startswith("cuda") else None
        self._gpu = _handle(self._nvml) if self._nvml else None
        self._samples: list[dict[str, float]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

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
        while True:
            sample = self._read()
            if sample is None:
                return
            self._samples.append(sample)
            if self._ended.wait(INTERVAL_S):
                return

    def _read(self) -> dict[str, float] | None:
        nvml, gpu = self._nvml, self._gpu
        assert nvml is not None
        try:
            return {
                "sm_mhz": float(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)),
                "memory_mhz": float(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM)),
                "power_w": nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
                "temperature_c": float(nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)),
                "slowed": float(bool(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu) & SLOWED)),
            }
        except Exception:  # no permission, or not on this GPU: clocks are optional
            return None


def _nvml() -> Any:
    """NVML, started; None without nvidia-ml-py or a driver."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # NVML's own errors are known only where it is installed
        return None
    return pynvml


def _handle(nvml: Any) -> Any:
    """NVML's handle of torch's current GPU, by its UUID: NVML knows nothing of CUDA_VISIBLE_DEVICES."""
    import torch

    try:
        uuid = str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid)
        return nvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")
    except Exception:  # an old torch or driver
        return None
