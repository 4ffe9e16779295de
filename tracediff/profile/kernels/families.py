"""Families: one table of (pattern on the words of the name) → family; the first match decides. And whether a kernel
runs on matrix units (NVIDIA's tensor cores, AMD's MFMA), as far as its name says (docs/families.md).
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from tracediff.errors import TracediffError
from tracediff.ingest.files.documents import read_toml
from tracediff.patterns import NAMES_KEPT, followed, late
from tracediff.profile.kernels.match_names import is_wrapper
from tracediff.runtimes import DEVICE_CATEGORIES, collective_of_scope, copy_direction, is_communication, is_memset
from tracediff.structs import FrozenStruct

COMMUNICATION, OTHER = "communication", "other"
ONNX_EVENT = "_(?:kernel_time|fence_(?:before|after))$"
"""How ONNX Runtime's events end."""
REDUCE_EVENT = followed(r"(?:^|[/_])Reduce\w", ONNX_EVENT)

PATTERNS = rf"""
wait           spin_?kernel (?<![a-z])sleep busy_?wait delay_?stream
# generated: a template is what it was made from, anything else is several ops in one
attention      {followed("triton_tem_", "attention|flex|sdpa")}
conv           {followed("triton_tem_", "conv")}
gemm           triton_tem_
fused          ^(?:graph_\d+_)?(?:triton_(?:poi|red|per|for|spl|unk|fused)|triton__|cpp_fused) nvfuser
communication  c10d:: all_?reduce all_?gather reduce_?scatter all_?to_?all all2all record_param_comms
memset         mem_?set fillBuffer FillFunctor aten::(?:new_)?(?:zeros|ones|full|fill|zero)(?:_like)?_?\b
# what names a bigger thing beside what it does to it
copy           reshape_and_cache store_kv append_paged_kv (?:mla|kv)_(?:kv_)?buffer concat_and_cache _foreach_copy
               expandInputRows {followed("multi_tensor_apply", "native::Copy<", gap=".")}
pointwise      rotary (?<![a-z])rope(?![a-z]) reducer::mul_out moe_sum moe::dev::(?:activation|finalize) finalizeMoe
               doActivation
# which expert each token goes to
sort           routing(?:_?(?:Indices|Main|Init)|::) moe_?(?:align|sort|topk|fused_gate) top_?k_?(?:gating|renorm)
               expert_(?:tokens|maps?|ids|first) buildExpertMaps
reduction      {followed("linalg_", "norm")} aten::(?:_foreach_)?norm\b Norm_?(?:Two|One|Zero)?_?Ops LpNorm
attention      flash fmha scaled_dot_product attention attn (?<![a-z])mha(?![a-z]) cutlass_?[FB]_ sdpa fused_sdp
               multi_head transform_bias_rescale_qkv (?<![a-z])mla_ aiter::pa_ (?<![a-z])qk_int\d*_sv ^%?rpa-
               (?<![a-z])sage_(?:fwd|bwd) (?:paged|ragged)_?kv_?cache MergeStates mqa_logits kv_(?:indices|splits)
               (?<![a-z])xqa delta_rule
copy           permute_pooled_embs permute_(?:1D|2D)_ permute_(?:sparse|indices) recat_
embedding      embedding EmbeddingBag SplitLookup index_?select linearize_index bounds_check_indices
               aten::_?index_select
optimizer      multi_tensor _foreach_ fused_?adam {followed("adam", "functor|kernel|_step")}
               (?<![a-z])(?:adam|adamw|adagrad|lion|rmsprop|sgd)(?![a-z]) ^Optimizer\. FusedSgd FusedAdagrad FusedLamb
               ApplyAdam
norm           norm(?!al(?!iz)) (?<![a-z0-9_])bn_ GammaBetaBackward RowwiseMoments ComputeInternalGradients
               ComputeFusedParams
loss           nll_?loss cross_?entropy mse_(?:loss|kernel|backward) mseloss (?<![a-z])bce smooth_l1 huber ctc_loss
               kl_div ClassNLL l1_loss margin_loss
softmax        soft_?max
copy           nchwToNhwc nhwcToNchw batched_transpose
pool           (?:max|avg|average|adaptive|fractional|lp|global)_?pool pooling
# XLA runs its products, dot_general, as convolutions
gemm           (?:cudnn|mi_?open|mkldnn)_rnn RNN_block {followed("persist", "LSTM|GRU|RNN")}
               aten::(?:lstm|gru|rnn_tanh|rnn_relu)\b dot_general
conv           conv(?!ert|ex) dgrad wgrad fprop implicit_gemm igemm winograd mi_?open SubTensorOp Im2Col Col2Im
               im2d2_?Col cudnn
gemm           gemm gemv
               aten::(?:add)?(?:mm|bmm|mv|linear|matmul|baddbmm|einsum|tensordot|dot|vdot|addr|ger|outer|_scaled_mm|_grouped_mm)\b
               addmm mat_?mul _mm\b mkldnn(?:::)?_linear mkl_linear cijk_ nvjet cutlass xmma split_?K dot_kernel cublas
               fused_moe epilogue::impl ^bmm_ (?<![a-z])fmoe_ moe_stage[12] marlin machete mul_mat_ moe_q\d_k
quantise       (?<!un)(?<!un_)quant(?!ile) fp8 cast_to_fp
copy           index_(?:elementwise|put|copy|add|fill|kernel) indexFunc indexing_backward scatter gather
sort           sort topk top_k radix (?<![a-z])unique bitonic bucketize aten::(?:median|nanmedian|kthvalue|mode)\b
               _routing_compute
rng            dropout (?<![a-z])rand sampling(?:_from|_kernel|::) philox bernoulli uniform_ normal_ distribution_
               multinomial exponential_ aten::normal\b
reduction      reduce(?!r)
               aten::_?(?:sum|mean|max|min|prod|argmax|argmin|aminmax|amax|amin|any|all|std|var|std_mean|var_mean|sum_dim)\b
               cum_?(?:sum|prod|max|min)\b cumulative (?<![a-z])scan log_?sum_?exp cub:: rocprim:: _sum_bitmatrix
               count_nonzero grad_sum_to_size
copy           mem_?cpy copy CatArray (?<!aten::)(?:transpose|permute)(?!_?Backward)
               aten::(?:to|clone|contiguous|type_as|_cat|concat|roll|flip|take)\b
               aten::(?:cat|[hvd]?stack|repeat|repeat_interleave|constant_pad_nd|pad|index|masked_select|nonzero|item|_local_scalar_dense)\b
               aten::_?(?:pin_memory|flatten_dense_tensors|slice_backward|select_backward|masked_scatter|reflection_pad\w+|replication_pad\w+)\b
pointwise      element_?wise point_?wise unrolled vectorized (?:act|silu|gelu)_and_mul swiglu clamp_ offsets_range
               future_token_ids upsample grid_sampl interpolat
               aten::_?_?(?:add|sub|mul|div|divide|neg|rsub|addcmul|addcdiv|lerp|s_where|where|clamp|clamp_min|clamp_max|masked_fill)_?(?:_backward)?\b
               aten::_?(?:relu6?|leaky_relu|p?r?relu|[cgs]?elu|silu|mish|glu|tanh|softplus|threshold|(?:log_)?sigmoid)_?(?:_backward|_forward)?\b
               aten::(?:hardtanh|hardswish|hardsigmoid|logit)_?(?:_backward)?\b
               aten::(?:arange|linspace|eye|tril|triu|one_hot)_?\b
               aten::(?:exp|exp2|expm1|log|log2|log10|log1p|sqrt|rsqrt|pow|square|sin|cos|abs|sign|erf|erfc|floor|ceil|round|trunc|reciprocal|fmod)_?\b
               aten::_?_?(?:lt|gt|eq|ne|ge|le|bitwise_\w+|logical_\w+|remainder|floor_divide|nan_to_num|isnan|isinf|isfinite|maximum|minimum|logit)_?\b
               (?:^|[/_])(?:Add|Sub|Mul|Div|Erf|Exp|Pow|Sqrt|Relu|Sigmoid|Tanh|Where|Equal|Clip|[^\W_]*Gelu)(?:_\d+)?{ONNX_EVENT}
copy           (?:^|[/_])(?:Concat|Slice|Split|Expand|Cast|Tile|Pad)(?:_\d+)?{ONNX_EVENT}
               {followed("(?:^|[/_])(?:Gather|Scatter)", ONNX_EVENT)}
reduction      {REDUCE_EVENT}
copy           data\sformatting ^%?(?:async|slice)-(?:start|done)\b
fused          ^triton_ ^fused_ FusionGroup TensorExprGroup (?:loop|input|output|custom)\sfusion\b
"""
"""Families and their patterns, separated by white space; searched in the words of the name (`_words`) in this order.
The communication rule is for operators: `tracediff.runtimes` recognises communication kernels, so that family and state
agree.
"""
RULE = late(r"^(\w+) +(.*(?:\n .*)*)", re.MULTILINE)
RULES: tuple[tuple[str, str], ...] = tuple(RULE.findall(PATTERNS))
"""(family, patterns) in order."""

AUTOGRAD_NODE = late(r"^(?P<op>[A-Z]\w*?)Backward\d*$")
ESCAPE_OR_CAPITALS = re.compile(r"\\.|[A-Z]+")
NEXT_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
NO_WORK = late(
    r"flashinfer|fbgemm|cudnn::fusion::"  # libraries
    r"|^kernel_cutlass_(?:kernel_)?|_object_at_.*"  # what the CuTe DSL writes around a name
    r"|cutlass::\w+_t\b|__(?:nv|hip)_fp8\w*|Fp8KVCacheDataType",  # types of arguments
    re.IGNORECASE | re.DOTALL,
)
"""Parts of a name that say nothing of what the kernel does, though they hold words that do."""
MANGLED = late(r"L[a-z]n?\d+E|S[0-9A-Z]?_|T\d?_|DF16|([1-9]\d{0,3})(?=[A-Za-z_])|.", re.DOTALL)
"""An argument, a reference back, or the length of the identifier that follows."""


class Families(FrozenStruct):
    """Rules that map names to families: a user's own, then the built-in ones.

    Attributes:
        own: (family, pattern) in order; patterns are searched in the name, ignoring case.
    """

    user_rules: tuple[tuple[str, str], ...] = ()

    def of_name(self, name: str) -> str:
        """The family of an operator, call or annotation by its name; ``other`` if no rule matches."""
        return _family(self.user_rules, name, on_device=False)

    def of_kernel(self, name: str, op: str | None) -> str:
        """The family of a kernel: by its own name, else by the op that launched it."""
        family = _family(self.user_rules, name, on_device=True)
        inherited = self.of_name(op) if family == OTHER and op else family
        return family if inherited == COMMUNICATION else inherited

    def of_work(self, name: str, op: str | None) -> str:
        """The family of an operator that counts as work: by its own name, else by the op around it."""
        family = self.of_name(name)
        return self.of_name(op) if family == OTHER and op else family

    def of_event(self, category: str, name: str) -> str:
        """The family of an event by its name alone."""
        return self.of_kernel(name, None) if category in DEVICE_CATEGORIES else self.of_name(name)


DEFAULT = Families()


def family_of(name: str) -> str:
    """The family of an operator by its name under the built-in rules."""
    return DEFAULT.of_name(name)


def read_rules(path: str | Path) -> Families:
    """The rules of a TOML file of ``[[family]]`` tables with a ``name`` and a list of ``patterns``.

    Raises:
        TracediffError: the file cannot be read or is not TOML, or a rule lacks its name or patterns or has an invalid
            regular expression.
    """
    form = 'write [[family]] with name = "gemm" and patterns = ["my_gemm"]'
    document = read_toml(Path(path), form)
    tables = document.get("family")
    if not isinstance(tables, list) or not tables or set(document) - {"family"}:
        raise TracediffError(path, "not a list of [[family]] tables", form)
    return Families(
        tuple(
            rule
            for number, table in enumerate(tables, 1)
            for rule in _own_rules(f"{path}, family {number}", table, form)
        )
    )


def _own_rules(subject: str, table: Any, form: str) -> list[tuple[str, str]]:
    """The rules of one ``[[family]]``."""
    name, patterns = (table.get("name"), table.get("patterns")) if isinstance(table, dict) else (None, None)
    if not isinstance(name, str) or not name.strip():
        raise TracediffError(subject, "the rule has no name", form)
    if not isinstance(patterns, list) or not patterns or not all(isinstance(p, str) and p for p in patterns):
        raise TracediffError(subject, "the rule has no list of patterns", form)
    from tracediff.process.user_patterns import check_pattern  # only for a user's patterns

    for pattern in patterns:
        check_pattern(pattern, subject, "escape literal characters with a backslash")
    return [(name.strip(), p) for p in patterns]


@lru_cache(maxsize=NAMES_KEPT)
def _family(user_rules: tuple[tuple[str, str], ...], name: str, on_device: bool) -> str:
    communicates = is_communication(name) or (not on_device and bool(collective_of_scope(name)))
    if user_rules:
        from tracediff.process.user_patterns import first_found

        own = first_found(tuple(pattern for _, pattern in user_rules), name, "--families", re.IGNORECASE)
        if own is not None:
            return user_rules[own][0]
    if communicates and (on_device or not is_wrapper(name)):
        return COMMUNICATION
    if on_device and (copy_direction(name) or is_memset(name)):
        return "copy" if copy_direction(name) else "memset"
    if is_wrapper(name):
        return OTHER
    family = _built_in(name, on_device)
    if not family and (node := AUTOGRAD_NODE.match(name)):  # SumBackward1 is of aten::sum
        family = _built_in("aten::" + NEXT_WORD.sub("_", node["op"]).lower(), on_device)
    return family or OTHER


def _built_in(name: str, on_device: bool) -> str | None:
    rules, words = _ON_DEVICE if on_device else _BUILT_IN, _words(name)
    return next((family for family, pattern in rules if pattern.search(words)), None)


def _words(name: str) -> str:
    """``name`` in lower case with ``_`` between the words of CamelCase, without what says nothing of the work; of
    mangled names the identifiers.
    """
    plain = "::".join(_identifiers(name)) if name.startswith("_Z") else name
    return NEXT_WORD.sub("_", NO_WORK.sub("", plain)).lower()


def _identifiers(mangled: str) -> Iterator[str]:
    """The identifiers of a mangled name, each of which follows its length."""
    place = 0
    while length := MANGLED.match(mangled, place):
        place = length.end()
        if length[1]:
            place += int(length[1])
            yield mangled[length.end() : place]


def _in_words(pattern: str) -> str:
    """``pattern`` for the words of names: in lower case, in which Python searches three times as fast as ignoring
    case.
    """
    return ESCAPE_OR_CAPITALS.sub(
        lambda m: m[0] if m[0].startswith("\\") else m[0].lower(), NEXT_WORD.sub("_", pattern)
    )


_BUILT_IN = tuple((family, late(_in_words("|".join(patterns.split())))) for family, patterns in RULES)
_ON_DEVICE = tuple(rule for rule in _BUILT_IN if rule[0] != COMMUNICATION)


ATTENTION = r"flash_(?:fwd|bwd)|fmha_cutlass"
SGEMM = r"(?<![a-z])(?:fp16_)?[sdcz]gemm"
MATRIX_TYPE = r"bf16|(?<!b)f16|tf32|e4m3|e5m2|i8|tensor\d"
IGEMM = r"igemm_\w"

USES = late(
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
USES_NOT = late(
    r"simt|ffma"
    rf"|{SGEMM}(?!\w*?(?:{SGEMM}|tensor))|convolve_sgemm|sgemmEx|sgemm_"  # the last of a word is not followed by tensor
    r"|scudnn|alg0_engine<float|dgrad_engine<float"
    r"|(?<!cublas)gemv|gemmSN|gemmk1|(?<![a-z])dot_kernel"
    r"|^cijk_\w*_TT\d+_\d+",  # Tensile's thread tile: no matrix instruction
    re.IGNORECASE,
)


@lru_cache(maxsize=NAMES_KEPT)
def uses_tensor_cores(name: str) -> bool | None:
    """Whether a kernel uses matrix units, by its name; None if the name does not say so (Triton, elementwise loops)."""
    if USES.search(name):
        return True
    return False if USES_NOT.search(name) else None
