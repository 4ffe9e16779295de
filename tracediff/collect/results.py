"""What a step computes, as a few numbers: variants that do the same work compute the same, within rounding."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tracediff.collect.variant import Task, Variant


def random_state() -> list[bytes]:
    """The state of torch's random numbers: a step that changes it draws some."""
    import torch

    states = [torch.get_rng_state()]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states.append(torch.cuda.get_rng_state())
    return [state.numpy().tobytes() for state in states]


def computed(returned: Any, task: Task, variant: Variant) -> dict[str, float | bool | None]:
    """The norms of what a step returned and of the gradients that it left in the task's model, or else in those that
    the variant transformed, None where there are none; ``finite`` is False if one is not a number.
    """
    models = [m for m in ([task.model] if task.model is not None else variant.models) if hasattr(m, "parameters")]
    parameters = {id(p): p for model in models for p in model.parameters()}.values()
    norms = {
        "value": _norm(_leaves(returned)),
        "gradients": _norm(p.grad for p in parameters if p.grad is not None),
    }
    finite = all(norm is None or math.isfinite(norm) for norm in norms.values())
    return {**(norms if finite else dict.fromkeys(norms)), "finite": finite}


def dtype_of(returned: Any, variant: Variant) -> str:
    """The least exact dtype of a step: what it returns, and autocast's."""
    if variant.has("amp"):
        return "bfloat16"
    if variant.has("fp16"):
        return "float16"
    if variant.has("tf32"):
        return "tf32"
    names = (str(leaf.dtype).removeprefix("torch.") for leaf in _leaves(returned) if hasattr(leaf, "dtype"))
    return min((name for name in names if "float" in name), key=_digits, default="float32")


def _digits(dtype: str) -> int:
    return {"bfloat16": 8, "float16": 11, "float32": 24}.get(dtype, 53)


def _leaves(returned: Any) -> Iterator[Any]:
    """Tensors, arrays and numbers inside of lists, tuples and mappings."""
    if isinstance(returned, Mapping):
        returned = list(returned.values())
    if isinstance(returned, list | tuple):
        for inner in returned:
            yield from _leaves(inner)
    elif hasattr(returned, "dtype") or (isinstance(returned, int | float) and not isinstance(returned, bool)):
        yield returned


def _norm(leaves: Iterable[Any]) -> float | None:
    """The root of the sum of squares; None of nothing."""
    import torch

    norms = [_norm_of(torch.as_tensor(leaf).detach()) for leaf in leaves]
    return math.hypot(*norms) if norms else None


def _norm_of(tensor: Any) -> float:
    import torch

    if not (tensor.is_floating_point() or tensor.is_complex()):
        tensor = tensor.double()
    return float(torch.linalg.vector_norm(tensor, dtype=torch.complex128 if tensor.is_complex() else torch.float64))
