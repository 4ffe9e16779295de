"""Peaks of known devices from vendors' datasheets: dense arithmetic (no sparsity) and memory bandwidth.

A device is what torch counts as one: on AMD's two-die cards each die. Matrix units are NVIDIA's tensor cores and AMD's
MFMA; there a float32 product runs in TF32 on NVIDIA and in float32 on AMD. Figures are at the boost clock that the
vendor names; a card that clocks higher can exceed them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct


class DevicePeaks(Struct, frozen=True):
    """A known device.

    Attributes:
        name: as displayed. pattern: matches its whole recorded name.
        memory: GB/s (10⁹ bytes), None where the name does not say which memory it has.
        vector, matrix: TFLOP/s by dtype, without and with matrix units.
    """

    name: str
    pattern: str
    memory: float | None
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
    DevicePeaks("H100 SXM", r"NVIDIA H100 80GB HBM3", 3350, *HOPPER_SXM),
    DevicePeaks(
        "H100 PCIe",
        r"NVIDIA H100 PCIe",
        2000,
        {"float64": 25.6, "float32": 51.2},
        _tensor_cores(756, float64=51.2, float32=378, float8=1513, int8=1513),
    ),
    DevicePeaks(
        "H100 NVL",
        r"NVIDIA H100 NVL",
        3900,
        {"float64": 30, "float32": 60},
        _tensor_cores(835.5, float64=60, float32=417.5, float8=1670.5, int8=1670.5),
    ),
    # "NVIDIA H200 Tensor Core GPU" datasheet
    DevicePeaks("H200 SXM", r"NVIDIA H200", 4800, *HOPPER_SXM),
    DevicePeaks(
        "H200 NVL",
        r"NVIDIA H200 NVL",
        4800,
        {"float64": 30, "float32": 60},
        _tensor_cores(835.5, float64=60, float32=417.5, float8=1670.5, int8=1670.5),
    ),
    # "NVIDIA GH200 Grace Hopper Superchip" datasheet: 96 GB of HBM3 beside 480 GB of the host's memory
    DevicePeaks("GH200 96GB", r"NVIDIA GH200 480GB", 4000, *HOPPER_SXM),
    # H800 and H20: H100 and H200 for another market, with less arithmetic in float64, or in all dtypes
    DevicePeaks(
        "H800 SXM",
        r"NVIDIA H800",
        3350,
        {"float64": 1, "float32": 66.9},
        _tensor_cores(989.4, float64=1, float32=494.7, float8=1978.9, int8=1978.9),
    ),
    DevicePeaks(
        "H20",
        r"NVIDIA H20",
        4000,
        {"float64": 1, "float32": 44},
        _tensor_cores(148, float64=1, float32=74, float8=296, int8=296),
    ),
    # "NVIDIA DGX B200" and "NVIDIA HGX B300" datasheets, an eighth of the system, figures with sparsity halved
    DevicePeaks(
        "B200",
        r"NVIDIA B200",
        8000,
        {"float64": 37, "float32": 75},
        _tensor_cores(2250, float64=37, float32=1125, float8=4500, int8=4500),
    ),
    DevicePeaks(
        "B300",
        r"NVIDIA B300(?: SXM6 AC)?",
        8000,
        {"float64": 1.25, "float32": 75},
        _tensor_cores(2250, float64=1.25, float32=1125, float8=4500),
    ),
    # "NVIDIA GB200 NVL72" datasheet, one of 72, figures with sparsity halved
    DevicePeaks(
        "GB200",
        r"NVIDIA GB200",
        8000,
        {"float64": 40, "float32": 80},
        _tensor_cores(2500, float64=40, float32=1250, float8=5000, int8=5000),
    ),
    # "NVIDIA A100 Tensor Core GPU" datasheets of the 40 GB and the 80 GB version
    DevicePeaks("A100 40GB", r"(?:NVIDIA )?A100-(?:SXM4|PCIE)-40GB", 1555, *AMPERE),
    DevicePeaks("A100 80GB SXM", r"(?:NVIDIA )?A100-SXM4-80GB", 2039, *AMPERE),
    DevicePeaks("A100 80GB PCIe", r"(?:NVIDIA )?A100 80GB PCIe", 1935, *AMPERE),
    # board names of the same processor, which do not say how much memory is on it
    DevicePeaks("A100 (PG509)", r"(?:NVIDIA )?(?:A100-)?PG509-2\d\d", None, *AMPERE),
    # "NVIDIA A800" datasheets: an A100 with slower links
    DevicePeaks("A800 80GB SXM", r"NVIDIA A800-SXM4-80GB", 2039, *AMPERE),
    DevicePeaks("A800 80GB PCIe", r"NVIDIA A800 80GB PCIe", 1935, *AMPERE),
    # "NVIDIA A10 Tensor Core GPU" datasheet
    DevicePeaks("A10", r"NVIDIA A10", 600, {"float32": 31.2}, _tensor_cores(125, float32=62.5, int8=250)),
    # "NVIDIA A10G" datasheet, figures with sparsity halved
    DevicePeaks("A10G", r"NVIDIA A10G", 600, {"float32": 35}, _tensor_cores(70, float32=35, int8=140)),
    # "NVIDIA V100 Tensor Core GPU" datasheet; the DGX Station's: 500 TFLOPS of tensor cores with four of them, as SXM2
    DevicePeaks("V100 SXM2", r"(?:NVIDIA )?Tesla V100-(?:SXM2|DGXS)-(?:16|32)GB", 900, *VOLTA),
    DevicePeaks(
        "V100 PCIe",
        r"(?:NVIDIA )?Tesla "
        r"V100-PCIE-(?:16|32)GB",
        900,
        {"float64": 7.0, "float32": 14.0},
        {"float16": 112.0},
    ),
    # "NVIDIA T4 Tensor Core GPU" datasheet; memory: "NVIDIA Turing GPU Architecture" (whitepaper)
    DevicePeaks("T4", r"(?:NVIDIA )?(?:Tesla )?T4", 320, {"float32": 8.1}, {"float16": 65.0, "int8": 130.0}),
    # "NVIDIA L4 Tensor Core GPU" and "NVIDIA L40S" datasheets, figures with sparsity halved
    DevicePeaks("L4", r"NVIDIA L4", 300, {"float32": 30.3}, _tensor_cores(121, float32=60, float8=242.5, int8=242.5)),
    DevicePeaks("L40S", r"NVIDIA L40S", 864, {"float32": 91.6}, _tensor_cores(362, float32=183, float8=733, int8=733)),
    DevicePeaks("L40", r"NVIDIA L40", 864, {"float32": 90.5}, _tensor_cores(181, float32=90.5, float8=362, int8=362)),
    # "NVIDIA RTX A6000" and "NVIDIA RTX 6000 Ada Generation" datasheets, figures with sparsity halved
    DevicePeaks(
        "RTX A6000", r"NVIDIA RTX A6000", 768, {"float32": 38.7}, _tensor_cores(154.8, float32=77.4, int8=309.7)
    ),
    DevicePeaks(
        "RTX 6000 Ada",
        r"NVIDIA RTX 6000 Ada Generation",
        960,
        {"float32": 91.1},
        _tensor_cores(364.2, float32=182.1, float8=728.5, int8=728.5),
    ),
    # "NVIDIA Turing GPU Architecture" (whitepaper, appendix A), reference cards, products accumulated in float32
    DevicePeaks(
        "RTX 2080 Ti", r"(?:NVIDIA )?GeForce RTX 2080 Ti", 616, {"float32": 13.4}, {"float16": 53.8, "int8": 215.2}
    ),
    DevicePeaks("RTX 2080", r"(?:NVIDIA )?GeForce RTX 2080", 448, {"float32": 10.1}, {"float16": 40.3, "int8": 161.1}),
    DevicePeaks("RTX 2070", r"(?:NVIDIA )?GeForce RTX 2070", 448, {"float32": 7.5}, {"float16": 29.9, "int8": 119.4}),
    # "NVIDIA Ada GPU Architecture" and "NVIDIA Ampere GA102 GPU Architecture" (whitepapers, appendix A), products
    # accumulated in float32 as torch does
    DevicePeaks(
        "RTX 4090",
        r"NVIDIA GeForce RTX 4090",
        1008,
        {"float32": 82.6},
        _tensor_cores(165.2, float32=82.6, float8=330.3, int8=660.6),
    ),
    DevicePeaks(
        "RTX 4080",
        r"NVIDIA GeForce RTX 4080",
        717,
        {"float32": 48.7},
        _tensor_cores(97.5, float32=48.7, float8=194.9, int8=389.9),
    ),
    DevicePeaks(
        "RTX 4070 Ti",
        r"NVIDIA GeForce RTX 4070 Ti",
        504,
        {"float32": 40.1},
        _tensor_cores(80.2, float32=40.1, float8=160.4, int8=320.7),
    ),
    DevicePeaks(
        "RTX 3080", r"NVIDIA GeForce RTX 3080", 760, {"float32": 29.8}, _tensor_cores(59.5, float32=29.8, int8=238)
    ),
    DevicePeaks(
        "RTX 3070", r"NVIDIA GeForce RTX 3070", 448, {"float32": 20.3}, _tensor_cores(40.6, float32=20.3, int8=163)
    ),
    DevicePeaks(
        "RTX 3090", r"NVIDIA GeForce RTX 3090", 936, {"float32": 35.6}, _tensor_cores(71, float32=35.6, int8=284)
    ),
    # "NVIDIA RTX Blackwell GPU Architecture" (whitepaper, appendix A), products accumulated in float32
    DevicePeaks(
        "RTX 5090",
        r"NVIDIA GeForce RTX 5090",
        1792,
        {"float32": 104.8},
        _tensor_cores(209.5, float32=104.8, float8=419, int8=838),
    ),
    DevicePeaks(
        "RTX 5080",
        r"NVIDIA GeForce RTX 5080",
        960,
        {"float32": 56.3},
        _tensor_cores(112.6, float32=56.3, float8=225.1, int8=450.2),
    ),
    DevicePeaks(
        "RTX 5070 Ti",
        r"NVIDIA GeForce RTX 5070 Ti",
        896,
        {"float32": 43.9},
        _tensor_cores(87.9, float32=43.9, float8=175.8, int8=351.5),
    ),
    DevicePeaks(
        "RTX 5070",
        r"NVIDIA GeForce RTX 5070",
        672,
        {"float32": 30.9},
        _tensor_cores(61.7, float32=30.9, float8=123.5, int8=246.9),
    ),
    # product page: 3584 cores at 1.777 GHz, 192 bits at 15 Gb/s; tensor cores in the proportion of the RTX 3090
    DevicePeaks(
        "RTX 3060", r"NVIDIA GeForce RTX 3060", 360, {"float32": 12.7}, _tensor_cores(25.5, float32=12.7, int8=102)
    ),
    # "AMD Instinct MI300X Accelerator" and "MI325X" data sheets; VF is a whole card handed to a virtual machine
    DevicePeaks("MI300X", r"AMD Instinct MI300X(?: VF)?", 5300, *CDNA3),
    DevicePeaks("MI325X", r"AMD Instinct MI325X(?: VF)?", 6000, *CDNA3),
    # "AMD Instinct MI300A APU" data sheet
    DevicePeaks(
        "MI300A",
        r"AMD Instinct MI300A",
        5300,
        {"float64": 61.3, "float32": 122.6},
        _tensor_cores(980.6, float64=122.6, float32=122.6, float8=1961.2, int8=1961.2),
    ),
    # "AMD Instinct MI350X" and "MI355X" data sheets
    DevicePeaks(
        "MI350X",
        r"AMD Instinct MI350X(?: VF)?",
        8000,
        {"float64": 72.1, "float32": 144.2},
        _tensor_cores(2306.9, float64=72.1, float32=144.2, float8=4613.7, int8=4613.7),
    ),
    DevicePeaks(
        "MI355X",
        r"AMD Instinct MI355X(?: VF)?",
        8000,
        {"float64": 78.6, "float32": 157.3},
        _tensor_cores(2516.6, float64=78.6, float32=157.3, float8=5033.2, int8=5033.2),
    ),
    # "AMD Instinct MI250X", "MI250" and "MI210" data sheets; of the first two a die is half
    DevicePeaks(
        "MI250X (one die)",
        r"AMD Instinct MI250X",
        1638,
        {"float64": 23.95, "float32": 23.95},
        _tensor_cores(191.5, float64=47.85, float32=47.85, int8=191.5),
    ),
    DevicePeaks(
        "MI250 (one die)",
        r"AMD Instinct MI250",
        1638,
        {"float64": 22.65, "float32": 22.65},
        _tensor_cores(181, float64=45.25, float32=45.25, int8=181),
    ),
    DevicePeaks(
        "MI210",
        r"AMD Instinct MI210",
        1638,
        {"float64": 22.6, "float32": 22.6},
        _tensor_cores(181, float64=45.3, float32=45.3, int8=181),
    ),
)
_RECORDED = tuple((d, re.compile(d.pattern)) for d in DEVICES)


@lru_cache(maxsize=256)
def device_named(name: str) -> DevicePeaks | None:
    """The device that a trace calls ``name``; None for one that is not in the table."""
    return next((d for d, pattern in _RECORDED if pattern.fullmatch(name.strip())), None)


def device_of(names: tuple[str, ...]) -> DevicePeaks | None:
    """The device of a set whose GPUs have these names; None if they differ or are unknown."""
    return device_named(names[0]) if len(names) == 1 else None
