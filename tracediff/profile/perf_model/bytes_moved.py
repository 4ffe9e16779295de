"""Bytes that pointwise operators, softmax and layer norm move: every input read and the result written once, from
sizes, dtypes and strides.
"""

from __future__ import annotations

import re
from math import prod

from tracediff.profile.kernels.match_names import match_name
from tracediff.profile.perf_model.flops import LARGEST, Work, base_of, broadcast
from tracediff.profile.perf_model.op_inputs import Inputs, Tensor, times

KEEPING = {
    1: "abs neg sign threshold clamp clamp_min clamp_max bitwise_not floor ceil round trunc",
    2: "add sub mul maximum minimum fmod remainder bitwise_and bitwise_or bitwise_xor masked_fill threshold_backward "
    "hardtanh_backward",
    3: "addcmul lerp where",
}
"""Operators by their number of tensors, whose result has the dtype of these. None is made of another one (relu is a
clamp_min inside).
"""
FLOATING = {
    1: "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan tanh sigmoid erf erfc reciprocal "
    "gelu silu mish elu leaky_relu hardswish hardsigmoid softplus",
    2: "div pow atan2 sigmoid_backward tanh_backward gelu_backward silu_backward elu_backward leaky_relu_backward "
    "hardswish_backward "
    "hardsigmoid_backward softplus_backward mish_backward",
    3: "addcdiv",
}
"""The same, but integers become floats of a dtype that is not recorded."""
ASKING = {1: "logical_not", 2: "eq ne lt le gt ge logical_and logical_or logical_xor"}
"""The same, with bool as result."""
LIKE_FIRST = {1: "_softmax _log_softmax", 3: "native_layer_norm"}
"""The same, with a result like the first tensor: not pointwise, but reading and writing once is enough."""
RESULTS = {"keeping": KEEPING, "floating": FLOATING, "asking": ASKING, "like first": LIKE_FIRST}
ARITY = {
    name: (arity, kind) for kind, table in RESULTS.items() for arity, names in table.items() for name in names.split()
}
HALF_TO_FLOAT = 2
"""Position of softmax's flag that its result is float32."""
WRITTEN_ONLY = ("fill", "zero")
POINTWISE_KERNEL = re.compile(r"^triton_poi_")
CATEGORIES = ("bool", "int", "float", "complex")
"""Kinds of dtypes; the result of two has the later."""


def has_traffic(op: str) -> bool:
    """Whether `traffic_work` has a formula for ``op``."""
    base = base_of(op)
    return base in ARITY or base in WRITTEN_ONLY or base == "copy" or POINTWISE_KERNEL.match(op) is not None


def traffic_work(op: str, inputs: Inputs) -> Work:
    """The work of a call of an operator that `has_traffic`; of a compiled pointwise kernel each argument counts
    once.
    """
    base = base_of(op)
    tensors = [t for t in inputs.tensors if t is not None]
    name = match_name(op)
    if not tensors:
        return Work(name)
    if base in WRITTEN_ONLY:
        return _work(name, [], tensors[0], tensors[:1])
    if base == "copy":
        return _work(name, tensors[1:2], tensors[0], tensors[:2][::-1])
    if not base:
        return _work(name, tensors, None, tensors)
    arity, kind = ARITY[base]
    read = tensors[:arity]
    if op.endswith("_") or (kind == "like first" and inputs.value(HALF_TO_FLOAT) != "True"):
        return _work(name, read, read[0], read)
    return _work(name, read, _result(read, kind), read)


def _work(name: str, read: list[Tensor], written: Tensor | None, shown: list[Tensor]) -> Work:
    """The work of a call; ``written`` is None if it is in ``read``, and has no size if that is unknown."""
    moved = [*read, *([written] if written else [])]
    known = bool(moved) and all(t.size is not None for t in moved)
    amount = sum(t.distinct * (t.size or 0) for t in moved) if known else None
    dtypes = list(dict.fromkeys(t.dtype for t in shown if t.dims)) or [shown[0].dtype]
    shapes = ", ".join(dict.fromkeys(times(t.dims) for t in shown if t.dims))
    return Work(
        name,
        shapes,
        " → ".join(dtypes) if base_of(name) == "copy" else dtypes[0],
        None,
        amount if amount is None or amount < LARGEST else None,
    )


def _result(read: list[Tensor], kind: str) -> Tensor:
    dims = broadcast(*(t.dims for t in read))
    dtype, size = ("bool", 1) if kind == "asking" else _promoted(read)
    if dims is None or kind == "like first" or (kind == "floating" and _category(dtype) in ("bool", "int")):
        return Tensor((), "", None, 0)
    return Tensor(dims, dtype, size, prod(dims))


def _promoted(read: list[Tensor]) -> tuple[str, int | None]:
    """The dtype of a result and its size; None if not recorded."""
    deciding = [t for t in read if t.dims] or read
    order = [CATEGORIES.index(_category(t.dtype)) for t in read]
    top = max(CATEGORIES.index(_category(t.dtype)) for t in deciding)
    dtypes = {(t.dtype, t.size) for t in deciding if CATEGORIES.index(_category(t.dtype)) == top}
    if max(order) > top or any(
        size is None for _, size in dtypes
    ):  # numbers of a higher kind give the default dtype, whatever that is
        return "", None
    largest = max(size or 0 for _, size in dtypes)
    widest = [dtype for dtype, size in dtypes if size == largest]
    return (widest[0], largest) if len(widest) == 1 else ("", None)


def _category(dtype: str) -> str:
    return next((c for c in CATEGORIES if c in dtype), "bool")
