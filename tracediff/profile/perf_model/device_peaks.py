"""Peaks of known devices from vendors' datasheets: dense arithmetic (no sparsity) and memory bandwidth.

A device is what torch counts as one: on AMD's two-die cards each die. Matrix units are NVIDIA's tensor cores and AMD's
MFMA; there a float32 product runs in TF32 on NVIDIA and in float32 on AMD. Figures are at the boost clock that the
vendor names; a card that clocks higher can exceed them.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from tracediff.structs import FrozenStruct


class DevicePeaks(FrozenStruct):
    """A known device.

    Attributes:
        name: as displayed. pattern: matches its whole recorded name.
        memory: GB/s (10⁹ bytes), None where the name does not say which memory it has.
        vector, matrix: TFLOP/s by dtype, without and with matrix units; None where the datasheet has none.
    """

    name: str
    pattern: str
    memory: float | None
    vector: Mapping[str, float | None]
    matrix: Mapping[str, float | None]

    def peak(self, dtype: str, on_matrix_units: bool | None) -> float | None:
        """TFLOP/s in ``dtype``; None where the datasheet has none, or where other units have another peak and which
        ones computed is not known.

        Dtypes of two bytes and less are what matrix units are for: their peak is that of these, whichever ran.
        """
        if dtype not in self.vector:
            return self.matrix.get(dtype)
        return None if on_matrix_units is None else (self.matrix if on_matrix_units else self.vector).get(dtype)


DTYPES = ("float64", "float32", "float16", "bfloat16", "float8", "int8")
"""Of the columns of `DATASHEETS`: of the first two for vector units, of all for matrix units."""
DATASHEETS = r"""
# device          GB/s vector      matrix                                   recorded as
#                      f64   f32   f64   f32   f16    bf16   f8     int8
# "NVIDIA H100 Tensor Core GPU" datasheet, figures with sparsity halved; digits of "NVIDIA H100 Tensor Core GPU
# Architecture" (whitepaper), table 2
H100 SXM          3350 33.5  66.9  66.9  494.7 989.4  989.4  1978.9 1978.9 NVIDIA H100 80GB HBM3
H100 PCIe         2000 25.6  51.2  51.2  378   756    756    1513   1513   NVIDIA H100 PCIe
H100 NVL          3900 30    60    60    417.5 835.5  835.5  1670.5 1670.5 NVIDIA H100 NVL
# "NVIDIA H200 Tensor Core GPU" datasheet
H200 SXM          4800 33.5  66.9  66.9  494.7 989.4  989.4  1978.9 1978.9 NVIDIA H200
H200 NVL          4800 30    60    60    417.5 835.5  835.5  1670.5 1670.5 NVIDIA H200 NVL
# "NVIDIA GH200 Grace Hopper Superchip" datasheet: 96 GB of HBM3 beside 480 GB of the host's memory
GH200 96GB        4000 33.5  66.9  66.9  494.7 989.4  989.4  1978.9 1978.9 NVIDIA GH200 480GB
# H800 and H20: H100 and H200 for another market, with less arithmetic in float64, or in all dtypes
H800 SXM          3350 1     66.9  1     494.7 989.4  989.4  1978.9 1978.9 NVIDIA H800
H20               4000 1     44    1     74    148    148    296    296    NVIDIA H20
# "NVIDIA DGX B200" and "NVIDIA HGX B300" datasheets, an eighth of the system, figures with sparsity halved
B200              8000 37    75    37    1125  2250   2250   4500   4500   NVIDIA B200
B300              8000 1.25  75    1.25  1125  2250   2250   4500   -      NVIDIA B300(?: SXM6 AC)?
# "NVIDIA GB200 NVL72" datasheet, one of 72, figures with sparsity halved
GB200             8000 40    80    40    1250  2500   2500   5000   5000   NVIDIA GB200
# "NVIDIA A100 Tensor Core GPU" datasheets of the 40 GB and the 80 GB version
A100 40GB         1555 9.7   19.5  19.5  156   312    312    -      624    (?:NVIDIA )?A100-(?:SXM4|PCIE)-40GB
A100 80GB SXM     2039 9.7   19.5  19.5  156   312    312    -      624    (?:NVIDIA )?A100-SXM4-80GB
A100 80GB PCIe    1935 9.7   19.5  19.5  156   312    312    -      624    (?:NVIDIA )?A100 80GB PCIe
# board names of the same processor, which do not say how much memory is on it
A100 (PG509)      -    9.7   19.5  19.5  156   312    312    -      624    (?:NVIDIA )?(?:A100-)?PG509-2\d\d
# "NVIDIA A800" datasheets: an A100 with slower links
A800 80GB SXM     2039 9.7   19.5  19.5  156   312    312    -      624    NVIDIA A800-SXM4-80GB
A800 80GB PCIe    1935 9.7   19.5  19.5  156   312    312    -      624    NVIDIA A800 80GB PCIe
# "NVIDIA A10 Tensor Core GPU" datasheet
A10               600  -     31.2  -     62.5  125    125    -      250    NVIDIA A10
# "NVIDIA A10G" datasheet, figures with sparsity halved
A10G              600  -     35    -     35    70     70     -      140    NVIDIA A10G
# "NVIDIA V100 Tensor Core GPU" datasheet; the DGX Station's: 500 TFLOPS of tensor cores with four of them, as SXM2
V100 SXM2         900  7.8   15.7  -     -     125    -      -      -      (?:NVIDIA )?Tesla V100-(SXM2|DGXS)-(16|32)GB
V100 PCIe         900  7     14    -     -     112    -      -      -      (?:NVIDIA )?Tesla V100-PCIE-(16|32)GB
# "NVIDIA T4 Tensor Core GPU" datasheet; memory: "NVIDIA Turing GPU Architecture" (whitepaper)
T4                320  -     8.1   -     -     65     -      -      130    (?:NVIDIA )?(?:Tesla )?T4
# "NVIDIA L4 Tensor Core GPU" and "NVIDIA L40S" datasheets, figures with sparsity halved
L4                300  -     30.3  -     60    121    121    242.5  242.5  NVIDIA L4
L40S              864  -     91.6  -     183   362    362    733    733    NVIDIA L40S
L40               864  -     90.5  -     90.5  181    181    362    362    NVIDIA L40
# "NVIDIA RTX A6000" and "NVIDIA RTX 6000 Ada Generation" datasheets, figures with sparsity halved
RTX A6000         768  -     38.7  -     77.4  154.8  154.8  -      309.7  NVIDIA RTX A6000
RTX 6000 Ada      960  -     91.1  -     182.1 364.2  364.2  728.5  728.5  NVIDIA RTX 6000 Ada Generation
# "NVIDIA Turing GPU Architecture" (whitepaper, appendix A), reference cards, products accumulated in float32
RTX 2080 Ti       616  -     13.4  -     -     53.8   -      -      215.2  (?:NVIDIA )?GeForce RTX 2080 Ti
RTX 2080          448  -     10.1  -     -     40.3   -      -      161.1  (?:NVIDIA )?GeForce RTX 2080
RTX 2070          448  -     7.5   -     -     29.9   -      -      119.4  (?:NVIDIA )?GeForce RTX 2070
# "NVIDIA Ada GPU Architecture" and "NVIDIA Ampere GA102 GPU Architecture" (whitepapers, appendix A), products
# accumulated in float32 as torch does
RTX 4090          1008 -     82.6  -     82.6  165.2  165.2  330.3  660.6  NVIDIA GeForce RTX 4090
RTX 4080          717  -     48.7  -     48.7  97.5   97.5   194.9  389.9  NVIDIA GeForce RTX 4080
RTX 4070 Ti       504  -     40.1  -     40.1  80.2   80.2   160.4  320.7  NVIDIA GeForce RTX 4070 Ti
RTX 3080          760  -     29.8  -     29.8  59.5   59.5   -      238    NVIDIA GeForce RTX 3080
RTX 3070          448  -     20.3  -     20.3  40.6   40.6   -      163    NVIDIA GeForce RTX 3070
RTX 3090          936  -     35.6  -     35.6  71     71     -      284    NVIDIA GeForce RTX 3090
# "NVIDIA RTX Blackwell GPU Architecture" (whitepaper, appendix A), products accumulated in float32
RTX 5090          1792 -     104.8 -     104.8 209.5  209.5  419    838    NVIDIA GeForce RTX 5090
RTX 5080          960  -     56.3  -     56.3  112.6  112.6  225.1  450.2  NVIDIA GeForce RTX 5080
RTX 5070 Ti       896  -     43.9  -     43.9  87.9   87.9   175.8  351.5  NVIDIA GeForce RTX 5070 Ti
RTX 5070          672  -     30.9  -     30.9  61.7   61.7   123.5  246.9  NVIDIA GeForce RTX 5070
# product page: 3584 cores at 1.777 GHz, 192 bits at 15 Gb/s; tensor cores in the proportion of the RTX 3090
RTX 3060          360  -     12.7  -     12.7  25.5   25.5   -      102    NVIDIA GeForce RTX 3060
# "AMD Instinct MI300X Accelerator" and "MI325X" data sheets; VF is a whole card handed to a virtual machine
MI300X            5300 81.7  163.4 163.4 163.4 1307.4 1307.4 2614.9 2614.9 AMD Instinct MI300X(?: VF)?
MI325X            6000 81.7  163.4 163.4 163.4 1307.4 1307.4 2614.9 2614.9 AMD Instinct MI325X(?: VF)?
# "AMD Instinct MI300A APU" data sheet
MI300A            5300 61.3  122.6 122.6 122.6 980.6  980.6  1961.2 1961.2 AMD Instinct MI300A
# "AMD Instinct MI350X" and "MI355X" data sheets
MI350X            8000 72.1  144.2 72.1  144.2 2306.9 2306.9 4613.7 4613.7 AMD Instinct MI350X(?: VF)?
MI355X            8000 78.6  157.3 78.6  157.3 2516.6 2516.6 5033.2 5033.2 AMD Instinct MI355X(?: VF)?
# "AMD Instinct MI250X", "MI250" and "MI210" data sheets; of the first two a die is half
MI250X (one die)  1638 23.95 23.95 47.85 47.85 191.5  191.5  -      191.5  AMD Instinct MI250X
MI250 (one die)   1638 22.65 22.65 45.25 45.25 181    181    -      181    AMD Instinct MI250
MI210             1638 22.6  22.6  45.3  45.3  181    181    -      181    AMD Instinct MI210
"""
"""Memory in GB/s and arithmetic in TFLOP/s (of integers TOP/s) of each device, and a pattern of its recorded name."""


def _device(row: str) -> DevicePeaks:
    name, figures = row.split("  ", 1)
    *numbers, pattern = figures.split(maxsplit=9)
    memory, *peaks = (None if number == "-" else float(number) for number in numbers)
    vector, matrix = (dict(zip(DTYPES, units, strict=False)) for units in (peaks[:2], peaks[2:]))
    return DevicePeaks(name, pattern, memory, vector, matrix)


DEVICES = tuple(_device(row) for row in DATASHEETS.splitlines() if row and not row.startswith("#"))
_RECORDED = tuple((device, re.compile(device.pattern)) for device in DEVICES)


@lru_cache(maxsize=256)
def device_named(name: str) -> DevicePeaks | None:
    """The device that a trace calls ``name``; None for one that is not in the table."""
    return next((device for device, pattern in _RECORDED if pattern.fullmatch(name.strip())), None)


def device_of(names: tuple[str, ...]) -> DevicePeaks | None:
    """The device of a set whose GPUs have these names; None if they differ or are unknown."""
    return device_named(names[0]) if len(names) == 1 else None
