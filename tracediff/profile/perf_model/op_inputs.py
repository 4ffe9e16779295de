"""The recorded arguments of one call by position: sizes, dtypes and strides of tensors, and values of others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import msgspec

Dims = tuple[int, ...]

DTYPES = {
    "double": ("float64", 8),
    "float": ("float32", 4),
    "c10::Half": ("float16", 2),
    "c10::BFloat16": ("bfloat16", 2),
    "c10::complex<double>": ("complex128", 16),
    "c10::complex<float>": ("complex64", 8),
    "bool": ("bool", 1),
    "int": ("int32", 4),
    "long int": ("int64", 8),
    "long": ("int64", 8),
    "long long": ("int64", 8),
    "short int": ("int16", 2),
    "short": ("int16", 2),
    "signed char": ("int8", 1),
    "unsigned char": ("uint8", 1),
    "c10::Float8_e4m3fn": ("float8", 1),
    "c10::Float8_e5m2": ("float8", 1),
    "c10::Float8_e4m3fnuz": ("float8", 1),
    "c10::Float8_e5m2fnuz": ("float8", 1),
}
"""The profiler's C++ names of element types → (dtype, bytes of an element)."""

MOST_DIMS = 64


@dataclass(frozen=True)
class Tensor:
    """A tensor as a call was given it.

    Attributes:
        dims: its sizes. dtype: empty where not recorded. size: bytes of an element, None where not known.
        distinct: elements that differ in memory (expanded dimensions count once).
    """

    dims: Dims
    dtype: str
    size: int | None
    distinct: int


@dataclass(frozen=True)
class Inputs:
    """The arguments of one call.

    Attributes:
        tensors: by position, None for what is no single tensor. values: by position as text, empty where none was
            recorded.
    """

    tensors: tuple[Tensor | None, ...] = ()
    values: tuple[str, ...] = ()

    def tensor(self, position: int) -> Tensor | None:
        """The tensor at ``position``; None where there is none."""
        return self.tensors[position] if position < len(self.tensors) else None

    def value(self, position: int) -> str:
        """The value at ``position``, empty where it was not recorded."""
        return self.values[position] if position < len(self.values) else ""

    def numbers(self, position: int) -> Dims | None:
        """A list of integers such as ``[2, 2]``; None where it was not recorded."""
        found = _list(self.value(position))
        return tuple(found) if found and all(isinstance(n, int) for n in found) else None

    def flags(self, position: int) -> tuple[bool, ...] | None:
        """A list of truth values such as ``[True, False]``; None where it was not recorded."""
        words = [word.strip() for word in self.value(position).strip("[]").split(",")]
        return tuple(word == "True" for word in words) if set(words) <= {"True", "False"} else None


def read_inputs(dims: str | None, types: str | None, strides: str | None = None, values: str | None = None) -> Inputs:
    """The arguments from the texts of ``Input Dims``, ``Input type``, ``Input Strides`` and ``Concrete Inputs``; what
    is no list is not recorded.
    """
    named, steps = _list(types), _list(strides)
    tensors = []
    for position, sizes in enumerate(_list(dims)):
        name = named[position] if position < len(named) else ""
        step = steps[position] if position < len(steps) else None
        tensors.append(_tensor(sizes, name if isinstance(name, str) else "", step))
    return Inputs(tuple(tensors), tuple(v if isinstance(v, str) else "" for v in _list(values)))


def _list(text: str | None) -> list[Any]:
    try:
        found = msgspec.json.decode(text or "[]")
    except (msgspec.DecodeError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def _tensor(sizes: Any, type_name: str, strides: Any) -> Tensor | None:
    if (
        not isinstance(sizes, list)
        or len(sizes) > MOST_DIMS
        or not all(isinstance(n, int) and 0 <= n < 1 << 48 for n in sizes)
    ):
        return None
    dtype, size = DTYPES.get(type_name, ("", None))
    if not sizes and not dtype:  # a scalar, a list or nothing is written as a tensor without dimensions
        return None
    has_strides = isinstance(strides, list) and len(strides) == len(sizes)
    return Tensor(
        tuple(sizes),
        dtype,
        size,
        prod(n for n, s in zip(sizes, strides, strict=True) if s != 0) if has_strides else prod(sizes),
    )


def times(dims: Iterable[int]) -> str:
    """``8×64``; a number alone has no dimensions."""
    return "×".join(map(str, dims)) or "1"
