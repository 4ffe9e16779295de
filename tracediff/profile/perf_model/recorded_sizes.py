"""What a trace records of sizes: the arguments of one call of an operator by position, and the bytes of a collective's
message.
"""

from collections.abc import Iterable
from math import prod
from typing import Any

import msgspec
import numpy as np

from tracediff import bounds
from tracediff.arrays import Int64, mapped
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.trace import Trace
from tracediff.structs import FrozenStruct

Dims = tuple[int, ...]

SPELLINGS = """
float64          8   double, float64
float32          4   float, float32
float16          2   half, c10::half, float16
bfloat16         2   bfloat16, c10::bfloat16
float8_e4m3fn    1   float8_e4m3fn, c10::float8_e4m3fn
float8_e5m2      1   float8_e5m2, c10::float8_e5m2
float8_e4m3fnuz  1   float8_e4m3fnuz, c10::float8_e4m3fnuz
float8_e5m2fnuz  1   float8_e5m2fnuz, c10::float8_e5m2fnuz
int8             1   char, signed char, int8
uint8            1   byte, unsigned char, uint8
int16            2   short, short int, int16
int32            4   int, int32
int64            8   long, long int, long long, int64
bool             1   bool
complex64        8   complexfloat, c10::complex<float>
complex128       16  complexdouble, c10::complex<double>
"""
"""dtype, bytes of an element, and how the profiler and NCCL's metadata spell it, in lower case."""
DTYPES = {
    spelling: (dtype, int(size))
    for dtype, size, spellings in (line.split(maxsplit=2) for line in SPELLINGS.strip().splitlines())
    for spelling in spellings.split(", ")
}


def dtype_of(spelled: str) -> tuple[str, int] | None:
    """(dtype, bytes of an element), None where it is not known."""
    return DTYPES.get(spelled.lower())


class Tensor(FrozenStruct):
    """A tensor as a call was given it.

    Attributes:
        dims: its sizes. dtype: empty where not recorded, one of all kinds of float8. size: bytes of an element, None
            where not known.
        distinct: elements that differ in memory (expanded dimensions count once).
    """

    dims: Dims
    dtype: str
    size: int | None
    distinct: int


class Inputs(FrozenStruct):
    """The arguments of one call.

    Attributes:
        tensors: by position, None for what is not a single tensor. values: by position as text, empty where none was
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
        numbers = read_list(self.value(position))
        return tuple(numbers) if numbers and all(isinstance(n, int) for n in numbers) else None

    def flags(self, position: int) -> tuple[bool, ...] | None:
        """A list of truth values such as ``[True, False]``; None where it was not recorded."""
        words = [word.strip() for word in self.value(position).strip("[]").split(",")]
        return tuple(word == "True" for word in words) if set(words) <= {"True", "False"} else None


def read_inputs(dims: str | None, types: str | None, strides: str | None = None, values: str | None = None) -> Inputs:
    """The arguments from the texts of ``Input Dims``, ``Input type``, ``Input Strides`` and ``Concrete Inputs``; what
    is not a list is not recorded.
    """
    type_names, steps = read_list(types), read_list(strides)
    tensors = []
    for position, sizes in enumerate(read_list(dims)):
        name = type_names[position] if position < len(type_names) else ""
        step = steps[position] if position < len(steps) else None
        tensors.append(_tensor(sizes, name if isinstance(name, str) else "", step))
    return Inputs(tuple(tensors), tuple(v if isinstance(v, str) else "" for v in read_list(values)))


def read_list(text: str | None) -> list[Any]:
    """The JSON list that ``text`` is; empty if it is none."""
    try:
        decoded = msgspec.json.decode(text or "[]")
    except (msgspec.DecodeError, RecursionError):
        return []
    return decoded if isinstance(decoded, list) else []


def _tensor(sizes: Any, type_name: str, strides: Any) -> Tensor | None:
    if (
        not isinstance(sizes, list)
        or len(sizes) > bounds.DIMENSIONS
        or not all(isinstance(n, int) and 0 <= n < 1 << 48 for n in sizes)
    ):
        return None
    dtype, size = dtype_of(type_name) or ("", None)
    if not sizes and not dtype:  # a scalar, a list or nothing is written as a tensor without dimensions
        return None
    has_strides = isinstance(strides, list) and len(strides) == len(sizes)
    return Tensor(
        tuple(sizes),
        dtype.partition("_")[0],
        size,
        prod(n for n, s in zip(sizes, strides, strict=True) if s != 0) if has_strides else prod(sizes),
    )


def times(dims: Iterable[int]) -> str:
    """``8×64``; a number alone has no dimensions."""
    return "×".join(map(str, dims)) or "1"


SENT, RECEIVED, DTYPE = "In msg nelems", "Out msg nelems", "dtype"
"""Arguments of communication kernels: elements of the input and the output, and what they are."""
MOST = 1 << 50
"""Elements of one message beyond which they are taken for a recording error."""


def message_bytes(trace: Trace, rows: Int64, records: Int64) -> Int64:
    """int64[m]: bytes of the larger of input and output of each communication kernel, 0 of others and where it is
    unknown.

    Args:
        rows: of kernels. records: of the operators around their launches, −1 for none: ``record_param_comms`` has the
            arguments where the kernel does not.
    """
    recorded = np.flatnonzero(records >= 0)
    out = _bytes(trace, rows)
    out[recorded] = np.maximum(out[recorded], _bytes(trace, records[recorded]))
    return out


def _bytes(trace: Trace, rows: Int64) -> Int64:
    sent, received = (trace.integer_column(name, cat.KERNEL, cat.CPU_OP, missing=0)[rows] for name in (SENT, RECEIVED))
    elements = np.maximum(sent, received)
    dtypes = trace.text_column(DTYPE, cat.KERNEL, cat.CPU_OP)[rows]
    element_bytes = mapped(dtypes, lambda code: (dtype_of(trace.text(code)) or ("", 0))[1])
    return np.clip(elements, 0, MOST) * element_bytes
