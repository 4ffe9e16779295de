"""FLOPs of matrix products, convolutions and attention from the sizes of their tensors; bytes that pointwise operators,
softmax and layer norm move: every input read and the result written once.

A multiplication and an addition are two FLOPs; bias, scaling and softmax are left out, as in torch.utils.flop_counter.
Causal attention counts what its mask leaves. The counts are of the definition: Winograd's convolutions do with fewer,
and may seem faster than the device.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from tracediff.patterns import late
from tracediff.profile.kernels.match_names import match_name
from tracediff.profile.perf_model.recorded_sizes import Dims, Inputs, Tensor, times
from tracediff.structs import FrozenStruct

LARGEST = 1 << 56
"""FLOPs or bytes of one call beyond which its sizes are taken for wrong."""

Outputs = Mapping[tuple[Dims, Dims], Dims]
"""(input, weight) → output of convolutions, where backward calls record it."""


class OperatorWork(FrozenStruct):
    """The work of one call.

    Attributes:
        kind: the operation, whatever operator does it. shapes: sizes that identify equal work. dtype: of its operands,
            empty where not recorded.
        flop: None where the trace does not record it. bytes: read and written if each operand is moved once, None where
            the trace does not record it.
    """

    kind: str
    shapes: str = ""
    dtype: str = ""
    flop: int | None = None
    bytes: int | None = None


def flop_work(op: str, inputs: Inputs, outputs: Outputs) -> OperatorWork | None:
    """The work of a call of ``op``; None where there is no formula for it."""
    base = base_of(op)
    if base not in FORMULAS:
        return None
    work = FORMULAS[base](base, inputs, outputs)
    factor = 4 if work.dtype.startswith("complex") else 1  # a complex multiplication and addition are eight real ones
    flop = None if work.flop is None else factor * work.flop
    return work.replace(flop=_believed(flop), bytes=_believed(work.bytes))


def has_flop(op: str) -> bool:
    """Whether there is a formula for ``op``."""
    return base_of(op) in FORMULAS


def base_of(op: str) -> str:
    """``aten::addmm_`` → ``addmm``, empty for operators that are not torch's own."""
    return op.removeprefix("aten::").split(".")[0].rstrip("_") if op.startswith("aten::") else ""


def _believed(amount: int | None) -> int | None:
    return amount if amount is not None and 0 <= amount < LARGEST else None


def _bytes(dtype_of: Tensor, *elements: int) -> int | None:
    return None if dtype_of.size is None else dtype_of.size * sum(elements)


CONSTANTS = {"no": False, "yes": True, "-": None, "input": (True, False), "weight": (False, True)}


def _positions(table: str) -> dict[str, tuple[Any, ...]]:
    """Operator → the positions of its arguments, or what is so in each of its calls, from a table."""
    rows = (row.split() for row in table.splitlines() if row and not row.startswith("#"))
    return {op: tuple(CONSTANTS[c] if c in CONSTANTS else int(c) for c in columns) for op, *columns in rows}


# matrix products

PRODUCTS = _positions("""
# operator           first of its two operands
mm                   0
bmm                  0
mv                   0
dot                  0
vdot                 0
matmul               0
linear               0
_int_mm              0
_scaled_mm           0
addmm                1
baddbmm              1
addbmm               1
addmv                1
_addmm_activation    1
""")
OTHER_RESULT = ("_int_mm", "_scaled_mm")
"""Operators whose result has another dtype than their operands."""
PRODUCT = "matrix product"


def _product(op: str, inputs: Inputs, _outputs: Outputs) -> OperatorWork:
    (first,) = PRODUCTS[op]
    a, b = inputs.tensor(first), inputs.tensor(first + 1)
    if a is None or b is None or not a.dims or not b.dims:
        return OperatorWork(PRODUCT)
    left = a.dims if len(a.dims) > 1 else (1, *a.dims)
    right = b.dims if len(b.dims) > 1 else (*b.dims, 1)
    if op == "linear":
        right = right[::-1]
    if len(right) == 2:
        left = (prod(left[:-1]), left[-1])
    batch = broadcast(left[:-2], right[:-2])
    (m, k), (k2, n) = left[-2:], right[-2:]
    if k != k2 or batch is None:
        return OperatorWork(PRODUCT, "", a.dtype)
    many = prod(batch)
    moved = None if op in OTHER_RESULT else _bytes(a, a.distinct, b.distinct, m * n if op == "addbmm" else many * m * n)
    return OperatorWork(
        PRODUCT, f"{f'{many} of ' if many != 1 else ''}{m}×{k} @ {k}×{n}", a.dtype, 2 * many * m * n * k, moved
    )


def broadcast(*shapes: Dims) -> Dims | None:
    """The broadcast shape of several shapes; None if they cannot be broadcast."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


# convolutions

CONVOLUTIONS = _positions("""
# operator                     stride padding dilation transposed
convolution                         3       4        5          6
_convolution                        3       4        5          6
convolution_overrideable            3       4        5          6
cudnn_convolution                   3       2        4         no
miopen_convolution                  4       3        5         no
miopen_depthwise_convolution        4       3        5         no
mkldnn_convolution                  4       3        5         no
cudnn_convolution_relu              3       4        5         no
miopen_convolution_relu             3       4        5         no
cudnn_convolution_add_relu          5       6        7         no
cudnn_convolution_transpose         4       2        5        yes
miopen_convolution_transpose        5       3        6        yes
""")
CONVOLUTION_BACKWARD = _positions("""
# operator                         gradient of output   input   weight   transposed   which gradients
convolution_backward                                0       1        2            7                10
convolution_backward_overrideable                   0       1        2            6                 9
cudnn_convolution_backward_input                    1       0        2           no             input
cudnn_convolution_backward_weight                   1       0        2           no            weight
""")
"""For the last two the positions are those of ``cudnn_convolution_backward`` around them (torch before 1.11), since
they record no weight.
"""
CONVOLUTION = "convolution"


def _convolution(op: str, inputs: Inputs, outputs: Outputs) -> OperatorWork:
    stride_at, padding_at, dilation_at, transposed_at = CONVOLUTIONS[op]
    x, w = inputs.tensor(0), inputs.tensor(1)
    if x is None or w is None or len(x.dims) != len(w.dims) or len(x.dims) < 3:
        return OperatorWork(CONVOLUTION)
    transposed = _flag(inputs, transposed_at)
    shapes = f"{times(x.dims)} * {times(w.dims)}"
    if transposed:
        return OperatorWork(
            f"{CONVOLUTION} transposed", shapes, x.dtype, 2 * x.dims[0] * prod(x.dims[2:]) * prod(w.dims)
        )
    settings = [inputs.numbers(position) for position in (stride_at, padding_at, dilation_at)]
    places = _places(x.dims[2:], w.dims[2:], settings) or outputs.get((x.dims, w.dims), ())[2:]
    if not places or transposed is None:
        return OperatorWork(CONVOLUTION, shapes, x.dtype)
    out = x.dims[0] * w.dims[0] * prod(places)
    return OperatorWork(
        CONVOLUTION,
        f"{shapes} → {times(places)}",
        x.dtype,
        2 * out * prod(w.dims[1:]),
        _bytes(x, x.distinct, w.distinct, out),
    )


def _places(sizes: Dims, kernel: Dims, settings: list[Dims | None]) -> Dims:
    """Sizes of the output; empty where stride, padding or dilation was not recorded."""
    columns = [setting * (len(sizes) if len(setting) == 1 else 1) for setting in settings if setting]
    if [len(column) for column in columns] != [len(sizes)] * len(settings):
        return ()
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // max(s, 1) + 1 for n, k, s, p, d in zip(sizes, kernel, *columns, strict=True)
    )


def _convolution_backward(op: str, inputs: Inputs, _outputs: Outputs) -> OperatorWork:
    gradient_at, x_at, w_at, transposed_at, mask_at = CONVOLUTION_BACKWARD[op]
    kind = f"{CONVOLUTION} backward"
    grad, x, w = inputs.tensor(gradient_at), inputs.tensor(x_at), inputs.tensor(w_at)
    if grad is None or x is None or w is None or not len(grad.dims) == len(x.dims) == len(w.dims) >= 3:
        return OperatorWork(kind)
    mask = mask_at if isinstance(mask_at, tuple) else inputs.flags(mask_at)
    transposed = _flag(inputs, transposed_at)
    shapes = f"{times(x.dims)} * {times(w.dims)} → {times(grad.dims[2:])}"
    if mask is None or transposed is None:
        return OperatorWork(kind, shapes, x.dtype)
    gradients = [name for name, computed in zip(("input", "weight"), mask, strict=False) if computed]
    flop_each = 2 * x.dims[0] * prod((x if transposed else grad).dims[2:]) * prod(w.dims)
    return OperatorWork(
        kind,
        f"{shapes} of {' and '.join(gradients) or 'bias'}",
        x.dtype,
        len(gradients) * flop_each,
        _bytes(x, len(gradients) * (grad.distinct + x.distinct + w.distinct)),
    )


def _flag(inputs: Inputs, position: int | bool) -> bool | None:
    """The flag recorded at a position, or the constant given instead of a position."""
    return position if isinstance(position, bool) else {"True": True, "False": False}.get(inputs.value(position))


def recorded_outputs(calls: list[tuple[str, Inputs]]) -> Outputs:
    """Output sizes of convolutions, from the backward convolutions in ``calls``. Sizes on which calls with equal input
    and weight disagree are left out.
    """
    sizes_of_call: dict[tuple[Dims, Dims], set[Dims]] = {}
    for op, inputs in calls:
        positions = CONVOLUTION_BACKWARD.get(base_of(op))
        grad, x, w = (inputs.tensor(position) for position in positions[:3]) if positions else (None, None, None)
        if grad and x and w:
            sizes_of_call.setdefault((x.dims, w.dims), set()).add(grad.dims)
    return {key: sizes.pop() for key, sizes in sizes_of_call.items() if len(sizes) == 1}


# attention

ATTENTION = _positions("""
# operator                                                  query   causal   offsets   positions before heads
_scaled_dot_product_flash_attention                             0        4         -                       no
_scaled_dot_product_flash_attention_backward                    1       11         6                       no
_scaled_dot_product_efficient_attention                         0        6         -                       no
_scaled_dot_product_efficient_attention_backward                1       11         -                       no
_scaled_dot_product_cudnn_attention                             0        6         -                       no
_scaled_dot_product_cudnn_attention_backward                    1       14         9                       no
_scaled_dot_product_flash_attention_for_cpu                     0        4         -                       no
_scaled_dot_product_flash_attention_for_cpu_backward            1        7         -                       no
_scaled_dot_product_fused_attention_overrideable                0        5         -                       no
_scaled_dot_product_fused_attention_overrideable_backward       1       13         8                       no
_flash_attention_forward                                        0        8         3                      yes
_flash_attention_backward                                       1       11         6                      yes
_efficient_attention_forward                                    0        9         4                      yes
_efficient_attention_backward                                   1       14         6                      yes
_cudnn_attention_forward                                        0       10         4                       no
_cudnn_attention_backward                                       1       14         9                       no
""")
"""Key and value follow the query; offsets are those of sequences of several lengths."""
WINDOWS = _positions("""
# operator                     sizes of its attention window
_flash_attention_forward       11 12
_flash_attention_backward      15 16
_efficient_attention_forward   13
_efficient_attention_backward  18
""")
CAUSAL = {"False": False, "0": False, "True": True, "1": True}
"""Causal as a flag, or as efficient attention's kind of mask."""


def _attention(op: str, inputs: Inputs, _outputs: Outputs) -> OperatorWork:
    query_at, causal_at, offsets_at, positions_first = ATTENTION[op]
    kind = "attention backward" if op.endswith("backward") else "attention"
    tensors = [inputs.tensor(query_at + k) for k in range(3)]
    sizes = [
        (t.dims[0], t.dims[2], t.dims[1], t.dims[3]) if positions_first else t.dims
        for t in tensors
        if t is not None and len(t.dims) == 4
    ]
    if len(sizes) < 3 or tensors[0] is None:
        return OperatorWork(kind)
    (b, heads, n, d), key, (_, _, m, e) = sizes
    shapes = f"q {times(sizes[0])}"
    shapes += f", k {times(key)}" if key != sizes[0] else ""
    shapes += f", v {times(sizes[2])}" if sizes[2] != key else ""
    causal = CAUSAL.get(inputs.value(causal_at))
    several = offsets_at is not None and inputs.tensor(offsets_at) is not None
    windowed = any(inputs.value(k) not in ("", "-1", "None") for k in WINDOWS.get(op, ()))
    if causal is None or several or windowed:
        return OperatorWork(kind, shapes, tensors[0].dtype)
    whole = min(n, m)
    below_diagonal = whole * (whole + 1) // 2 + max(n - m, 0) * m
    pairs = below_diagonal if causal else n * m
    moved = b * (heads * n * (d + e) + key[1] * m * (d + e))  # q, k, v and the result
    flop, times_moved = (2 * (3 * d + 2 * e), 2) if kind.endswith("backward") else (2 * (d + e), 1)
    return OperatorWork(
        kind,
        f"{shapes}{', causal' if causal else ''}",
        tensors[0].dtype,
        b * heads * pairs * flop,
        _bytes(tensors[0], times_moved * moved),
    )


FORMULAS: dict[str, Callable[[str, Inputs, Outputs], OperatorWork]] = {
    **dict.fromkeys(PRODUCTS, _product),
    **dict.fromkeys(CONVOLUTIONS, _convolution),
    **dict.fromkeys(CONVOLUTION_BACKWARD, _convolution_backward),
    **dict.fromkeys(ATTENTION, _attention),
}
"""Operator → its formula."""


RESULTS = """
1 keeping   abs neg sign threshold clamp clamp_min clamp_max bitwise_not floor ceil round trunc
2 keeping   add sub mul maximum minimum fmod remainder bitwise_and bitwise_or bitwise_xor masked_fill threshold_backward
2 keeping   hardtanh_backward
3 keeping   addcmul lerp where
1 floating  exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan tanh sigmoid erf erfc reciprocal
1 floating  gelu silu mish elu leaky_relu hardswish hardsigmoid softplus
2 floating  div pow atan2 sigmoid_backward tanh_backward gelu_backward silu_backward elu_backward leaky_relu_backward
2 floating  hardswish_backward hardsigmoid_backward softplus_backward mish_backward
3 floating  addcdiv
1 asking    logical_not
2 asking    eq ne lt le gt ge logical_and logical_or logical_xor
1 first     _softmax _log_softmax
3 first     native_layer_norm
1 written   fill zero
2 copied    copy
"""
"""Number of tensors, kind of result, and operators: the result has the dtype of the tensors (none is made of another
operator: relu is a clamp_min inside); the same, but integers become floats of a dtype that is not recorded; it is bool;
it is like the first tensor: not pointwise, but reading and writing once is enough; it is the first tensor, which is not
read; it is the first tensor, made of the second.
"""
ARITY = {
    name: (int(arity), kind) for arity, kind, *names in map(str.split, RESULTS.strip().splitlines()) for name in names
}
HALF_TO_FLOAT = 2
"""Position of softmax's flag that its result is float32."""
POINTWISE_KERNEL = late(r"^triton_poi_")
CATEGORIES = ("bool", "int", "float", "complex")
"""Kinds of dtypes; the result of two has the later."""


def has_traffic(op: str) -> bool:
    """Whether `traffic_work` has a formula for ``op``."""
    return base_of(op) in ARITY or POINTWISE_KERNEL.match(op) is not None


def traffic_work(op: str, inputs: Inputs) -> OperatorWork:
    """The work of a call of an operator that `has_traffic`; of a compiled pointwise kernel each argument counts
    once.
    """
    tensors = [t for t in inputs.tensors if t is not None]
    arity, kind = ARITY.get(base_of(op), (len(tensors), "kernel"))
    read, name = tensors[:arity], match_name(op)
    if not tensors:
        return OperatorWork(name)
    if kind in ("written", "copied"):
        return _work(name, read[1:], read[0], read[::-1])
    if kind == "kernel":
        return _work(name, read, None, read)
    if op.endswith("_") or (kind == "first" and inputs.value(HALF_TO_FLOAT) != "True"):
        return _work(name, read, read[0], read)
    return _work(name, read, _result(read, kind), read)


def _work(name: str, read: list[Tensor], written: Tensor | None, labelled: list[Tensor]) -> OperatorWork:
    """The work of a call; ``written`` is None if it is in ``read``, and has no size if that is unknown."""
    moved = [*read, written] if written else read
    has_sizes = all(t.size is not None for t in moved)
    amount = sum(t.distinct * (t.size or 0) for t in moved) if has_sizes else None
    dtypes = list(dict.fromkeys(t.dtype for t in labelled if t.dims)) or [labelled[0].dtype]
    shapes = ", ".join(dict.fromkeys(times(t.dims) for t in labelled if t.dims))
    return OperatorWork(
        name,
        shapes,
        " → ".join(dtypes) if base_of(name) == "copy" else dtypes[0],
        bytes=_believed(amount),
    )


def _result(read: list[Tensor], kind: str) -> Tensor:
    dims = broadcast(*(t.dims for t in read))
    dtype, size = ("bool", 1) if kind == "asking" else _promoted(read)
    if dims is None or kind == "first" or (kind == "floating" and _category(dtype) < CATEGORIES.index("float")):
        return Tensor((), "", None, 0)
    return Tensor(dims, dtype, size, prod(dims))


def _promoted(read: list[Tensor]) -> tuple[str, int | None]:
    """The dtype of a result and its size; None if not recorded."""
    deciding = [t for t in read if t.dims] or read
    top = max(_category(t.dtype) for t in deciding)
    sizes = {t.dtype: t.size for t in deciding if _category(t.dtype) == top}
    largest = max(size or 0 for size in sizes.values())
    widest = [dtype for dtype, size in sizes.items() if size in (None, largest)]
    if any(_category(t.dtype) > top for t in read):  # which gives the default dtype, whatever that is
        return "", None
    return (widest[0], sizes[widest[0]]) if len(widest) == 1 else ("", None)


def _category(dtype: str) -> int:
    """Position among CATEGORIES."""
    return next((k for k, category in enumerate(CATEGORIES) if category in dtype), 0)
