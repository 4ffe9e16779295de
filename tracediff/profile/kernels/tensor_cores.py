"""Whether a kernel runs on matrix units (NVIDIA's tensor cores, AMD's MFMA), as far as its name says
(docs/families.md).
"""

from __future__ import annotations

import re
from functools import lru_cache

from tracediff.patterns import NAMES_KEPT, followed

ATTENTION = r"flash_(?:fwd|bwd)|fmha_cutlass"
SGEMM = r"(?<![a-z])(?:fp16_)?[sdcz]gemm"
MATRIX_TYPE = r"bf16|(?<!b)f16|tf32|e4m3|e5m2|i8|tensor\d"
IGEMM = r"igemm_\w"

USES = re.compile(
    r"(?<!sub)tensorop|wmma|tcgen\d|nvjet"
    # the shape of one instruction: s16816gemm, h884gemm, i8816cudnn
    r"|(?<![a-z])[shidcz]\d{3,6}_?(?:gemm|cudnn|fprop|dgrad|wgrad)"
    r"|[hibqd]gmma|(?:^|_)(?:w?gmma|[hidq]?mma|mfma\d*)(?:_|$)"
    rf"|{followed('xmma', MATRIX_TYPE)}"
    r"|^cijk_\w*_MI\d+x\d+"  # Tensile's matrix instruction
    rf"|{followed(IGEMM, '_gtcx')}|xdl"
    rf"|{followed(ATTENTION, '_b?f16_')}|{followed(followed(ATTENTION, '<'), '(?:bfloat16|half)_t', gap='.')}",
    re.IGNORECASE,
)
USES_NOT = re.compile(
    r"simt|ffma"
    rf"|{SGEMM}(?!\w*?(?:{SGEMM}|tensor))|convolve_sgemm|sgemmEx|sgemm_"  # the last of a word is not followed by tensor
    r"|scudnn|alg0_engine<float|dgrad_engine<float"
    r"|(?<!cublas)gemv|gemmSN|gemmk1|(?<![a-z])dot_kernel"
    r"|^cijk_\w*_TT\d+_\d+",  # Tensile's thread tile: no matrix instruction
    re.IGNORECASE,
)


@lru_cache(maxsize=NAMES_KEPT)
def uses_tensor_cores(name: str) -> bool | None:
    """Whether a kernel uses matrix units, by its name; None if the name does not tell (Triton, elementwise loops)."""
    if USES.search(name):
        return True
    return False if USES_NOT.search(name) else None
