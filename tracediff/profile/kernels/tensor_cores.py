"""Whether a kernel runs on matrix units (NVIDIA's tensor cores, AMD's MFMA), as far as its name says
(docs/families.md).
"""

from __future__ import annotations

import re
from functools import lru_cache

from tracediff.profile.kernels.families import LONGEST_SEARCHED

USES = re.compile(
    r"(?<!sub)tensorop|wmma|tcgen\d|nvjet"
    # the shape of one instruction: s16816gemm, h884gemm, i8816cudnn
    r"|(?<![a-z])[shidcz]\d{3,6}_?(?:gemm|cudnn|fprop|dgrad|wgrad)"
    r"|[hibqd]gmma|(?:^|_)(?:w?gmma|[hidq]?mma|mfma\d*)(?:_|$)"
    r"|xmma\w*(?:bf16|(?<!b)f16|tf32|e4m3|e5m2|i8|tensor\d)"
    r"|^cijk_\w*_MI\d+x\d+"  # Tensile's matrix instruction
    r"|igemm_\w+_gtcx|xdl"
    r"|(?:flash_(?:fwd|bwd)|fmha_cutlass)\w*(?:<.*(?:bfloat16|half)_t|_b?f16_)",
    re.IGNORECASE,
)
USES_NOT = re.compile(
    r"simt|ffma"
    r"|(?<![a-z])(?:fp16_)?[sdcz]gemm(?!\w*tensor)|convolve_sgemm|sgemmEx|sgemm_"
    r"|scudnn|alg0_engine<float|dgrad_engine<float"
    r"|(?<!cublas)gemv|gemmSN|gemmk1|(?<![a-z])dot_kernel"
    r"|^cijk_\w*_TT\d+_\d+",  # Tensile's thread tile: no matrix instruction
    re.IGNORECASE,
)


@lru_cache(maxsize=1 << 16)
def uses_tensor_cores(name: str) -> bool | None:
    """Whether a kernel uses matrix units, by its name; None if the name does not tell (Triton, elementwise loops)."""
    name = name[:LONGEST_SEARCHED]
    if USES.search(name):
        return True
    return False if USES_NOT.search(name) else None
