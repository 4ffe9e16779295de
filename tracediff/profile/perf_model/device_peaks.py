"""Peaks of known devices: what vendors' datasheets say of dense arithmetic (no sparsity) and of memory.

One device is what torch calls one: of AMD's two-die cards each die. Matrix units are NVIDIA's tensor cores and AMD's
MFMA; there a float32 product runs in
TF32 on NVIDIA and in float32 on AMD. Figures are at the boost clock that the vendor names; a card that clocks higher
can exceed them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Device:
    """A known device.

    Attributes:
        name: for eyes. pattern: what its whole recorded name matches.
        memory: GB/s (10⁹ bytes). vector, matrix: TFLOP/s by dtype, without and with matrix units.
    """

    name: str
    pattern: str
    memory: float
    vector: Mapping[str, float]
    matrix: Mapping[str, float]

    def peak(self, dtype: str, on_matrix_units: bool | None) -> float | None:
        """TFLOP/s in ``dtype``; None where the datasheet has none, or where other units have another peak and which
        ones computed is not known.

        Dtypes of two bytes and less are what matrix units are for: their peak is that of these, whichever ran.
        """
        if dtype not in self.vector:
            return self.matrix.get(dtype)
        return None if on_matrix_units is None else (self.matrix if on_matrix_units else self.vector).get(dtype)


def _tensor_cores(half: float, **others: float) -> dict[str, float]:
    return {"float16": half, "bfloat16": half, **others}


HOPPER_SXM = (
    {"float64": 33.5, "float32": 66.9},
    _tensor_cores(989.4, float64=66.9, float32=494.7, float8=1978.9, int8=1978.9),
)
AMPERE = {"float64": 9.7, "float32": 19.5}, _tensor_cores(312, float64=19.5, float32=156, int8=624)
VOLTA = {"float64": 7.8, "float32": 15.7}, {"float16": 125.0}
CDNA3 = (
    {"float64": 81.7, "float32": 163.4},
    _tensor_cores(1307.4, float64=163.4, float32=163.4, float8=2614.9, int8=2614.9),
)

DEVICES = (
    # "NVIDIA H100 Tensor Core GPU" datasheet, figures with sparsity halved; digits of "NVIDIA H100 Tensor Core GPU
    # Architecture" (whitepaper), table 2
    Device("H100 SXM", r"NVIDIA H100 80GB HBM3", 3350, *HOPPER_SXM),
    Device(
        "H100 PCIe",
        r"NVIDIA H100 PCIe",
        2000,
        {"float64": 25.6, "float32": 51.2},
        _tensor_cores(756, float64=51.2, float32=378, float8=1513, int8=1513),
    ),
    Device(
        "H100 NVL",
        r"NVIDIA H100 NVL",
        3900,
        {"float64": 30, "float32": 60},
        _tensor_cores(835.5, float64=60, float32=417.5, float8=1670.5, int8=1670.5),
    ),
    # "NVIDIA H200 Tensor Core GPU" datasheet
    Device("H200 SXM", r"NVIDIA H200", 4800, *HOPPER_SXM),
    Device(
        "H200 NVL",
        r"NVIDIA H200 NVL",
        4800,
        {"float64": 30, "float32": 60},
        _tensor_cores(835.5, float64=60, float32=417.5, float8=1670.5, int8=1670.5),
    ),
    # "NVIDIA A100 Tensor Core GPU" datasheets of the 40 GB and the 80 GB version
    Device("A100 40GB", r"(?:NVIDIA )?A100-(?:SXM4|PCIE)-40GB", 1555, *AMPERE),
    Device("A100 80GB SXM", r"(?:NVIDIA )?A100-SXM4-80GB", 2039, *AMPERE),
    Device("A100 80GB PCIe", r"(?:NVIDIA )?A100 80GB PCIe", 1935, *AMPERE),
    # "NVIDIA A10 Tensor Core GPU" datasheet
    Device("A10", r"NVIDIA A10", 600, {"float32": 31.2}, _tensor_cores(125, float32=62.5, int8=250)),
    # "NVIDIA V100 Tensor Core GPU" datasheet; the DGX Station's: 500 TFLOPS of tensor cores with four of them, as SXM2
    Device("V100 SXM2", r"(?:NVIDIA )?Tesla V100-(?:SXM2|DGXS)-(?:16|32)GB", 900, *VOLTA),
    Device(
        "V100 PCIe",
        r"(?:NVIDIA )?Tesla "
        r"V100-PCIE-(?:16|32)GB",
        900,
        {"float64": 7.0, "float32": 14.0},
        {"float16": 112.0},
    ),
    # "NVIDIA T4 Tensor Core GPU" datasheet; memory: "NVIDIA Turing GPU Architecture" (whitepaper)
    Device("T4", r"(?:NVIDIA )?(?:Tesla )?T4", 320, {"float32": 8.1}, {"float16": 65.0, "int8": 130.0}),
    # "NVIDIA L4 Tensor Core GPU" and "NVIDIA L40S" datasheets, figures with sparsity halved
    Device("L4", r"NVIDIA L4", 300, {"float32": 30.3}, _tensor_cores(121, float32=60, float8=242.5, int8=242.5)),
    Device("L40S", r"NVIDIA L40S", 864, {"float32": 91.6}, _tensor_cores(362, float32=183, float8=733, int8=733)),
    # "NVIDIA Ada GPU Architecture" and "NVIDIA Ampere GA102 GPU Architecture" (whitepapers, appendix A), products
    # accumulated in float32 as torch does
    Device(
        "RTX 4090",
        r"NVIDIA GeForce RTX 4090",
        1008,
        {"float32": 82.6},
        _tensor_cores(165.2, float32=82.6, float8=330.3, int8=660.6),
    ),
    Device("RTX 3090", r"NVIDIA GeForce RTX 3090", 936, {"float32": 35.6}, _tensor_cores(71, float32=35.6, int8=284)),
    # product page: 3584 cores at 1.777 GHz, 192 bits at 15 Gb/s; tensor cores in the proportion of the RTX 3090
    Device("RTX 3060", r"NVIDIA GeForce RTX 3060", 360, {"float32": 12.7}, _tensor_cores(25.5, float32=12.7, int8=102)),
    # "AMD Instinct MI300X Accelerator" and "MI325X" data sheets; VF is a whole card handed to a virtual machine
    Device("MI300X", r"AMD Instinct MI300X(?: VF)?", 5300, *CDNA3),
    Device("MI325X", r"AMD Instinct MI325X(?: VF)?", 6000, *CDNA3),
    # "AMD Instinct MI250X", "MI250" and "MI210" data sheets; of the first two a die is half
    Device(
        "MI250X (one die)",
        r"AMD Instinct MI250X",
        1638,
        {"float64": 23.95, "float32": 23.95},
        _tensor_cores(191.5, float64=47.85, float32=47.85, int8=191.5),
    ),
    Device(
        "MI250 (one die)",
        r"AMD Instinct MI250",
        1638,
        {"float64": 22.65, "float32": 22.65},
        _tensor_cores(181, float64=45.25, float32=45.25, int8=181),
    ),
    Device(
        "MI210",
        r"AMD Instinct MI210",
        1638,
        {"float64": 22.6, "float32": 22.6},
        _tensor_cores(181, float64=45.3, float32=45.3, int8=181),
    ),
)


@lru_cache(maxsize=256)
def device_named(name: str) -> Device | None:
    """The device that a trace calls ``name``; None for one that is not in the table."""
    return next((d for d in DEVICES if re.fullmatch(d.pattern, name.strip())), None)


def device_of(names: tuple[str, ...]) -> Device | None:
    """The device of a set whose GPUs have these names; None where they are several, or not known."""
    return device_named(names[0]) if len(names) == 1 else None
