"""Families: one table of (pattern on the name) → family; the first match decides."""

from __future__ import annotations

import re
from functools import lru_cache

RULES: tuple[tuple[str, str], ...] = (
    ("wait", r"spin_?kernel sleep busy_?wait"),
    ("communication", r"nccl rccl oneccl gloo: c10d:: all_?reduce all_?gather reduce_?scatter all_?to_?all record_param_comms"),
    ("fused", r"(?<!tem)_fused_ ^triton_(?!tem)"),
    ("memset", r"memset fillBuffer zero_$ aten::fill_ aten::zeros?\b FillFunctor"),
    ("attention", r"flash fmha scaled_dot_product attention attn mha_ cutlassF cutlassB"),
    ("optimizer", r"multi_tensor _foreach_ fused_adam fused_sgd optimizer adamw?_ ApplyAdam"),
    ("quantise", r"quant fp8 int8_ dequant cast_to_fp"),
    ("embedding", r"embedding indexing_backward index_select EmbeddingBag"),
    ("loss", r"nll_loss cross_entropy mse_loss bce smooth_l1 ctc_loss kl_div"),
    ("conv", r"conv(?!ert) dgrad wgrad fprop implicit_gemm winograd miopen(?!.*(BatchNorm|Pool)) Im2Col Col2Im im2d2col"),
    ("gemm", r"gemm gemv aten::(add)?(mm|bmm|mv|linear|matmul|baddbmm|einsum|dot)\b addmm matmul _mm\b mkldnn_linear mkl_linear"),
    ("gemm", r"cijk_ nvjet cutlass xmma splitK dot_kernel"),
    ("softmax", r"softmax"),
    ("norm", r"norm bn_ rms"),
    ("pool", r"pool"),
    ("sort", r"sort topk radix unique bitonic"),
    ("rng", r"dropout rand philox bernoulli uniform_ normal_ distribution"),
    ("reduction", r"reduce aten::(sum|mean|max|min|prod|argmax|argmin|any|all|std|var|cumsum)\b scan cub:: logsumexp"),
    ("copy", r"memcpy copy aten::(to|_to_copy|contiguous|clone|cat|stack)\b CatArray transpose permute"),
    ("pointwise", r"elementwise pointwise unrolled vectorized aten::(add|sub|mul|div|neg|rsub|addcmul|addcdiv|lerp|where|clamp|masked_fill)_?(_backward)?\b"),
    ("pointwise", r"aten::(relu|gelu|silu|tanh|sigmoid|threshold|leaky_relu|hardtanh)_?(_backward)?\b aten::(exp|log|sqrt|rsqrt|pow|sin|cos|abs|sign|erf)_?\b"),
    ("pointwise", r"aten::(lt|gt|eq|ne|ge|le|bitwise_\w+|logical_\w+)_?\b"),
    ("index", r"index scatter gather aten::(select|slice|narrow|nonzero)\b"),
)
"""Family and its patterns, separated by white space; searched in the name in either case, in this order."""

OTHER = "other"

_COMPILED = tuple((family, re.compile("|".join(patterns.split()), re.IGNORECASE)) for family, patterns in RULES)


@lru_cache(maxsize=1 << 16)
def family_of(name: str) -> str:
    """The family of a kernel or op by its name; ``other`` where no rule knows it."""
    for family, pattern in _COMPILED:
        if pattern.search(name):
            return family
    return OTHER


def family_of_kernel(name: str, op: str | None) -> str:
    """The family of a kernel: by its own name, else by the op that launched it."""
    own = family_of(name)
    return family_of(op) if own == OTHER and op else own
