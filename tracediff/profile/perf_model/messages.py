"""Messages of collective operations: the bytes that a communication kernel moves, as NCCL's metadata tell."""

from __future__ import annotations

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.times import Int64
from tracediff.ingest.trace import Trace

SENT, RECEIVED, DTYPE = "In msg nelems", "Out msg nelems", "dtype"
"""Arguments of communication kernels: elements of the input and the output, and what they are."""
DTYPES = {
    "float32": (4, "float", "float32"),
    "float64": (8, "double", "float64"),
    "float16": (2, "half", "c10::half", "float16"),
    "bfloat16": (2, "bfloat16", "c10::bfloat16"),
    "int8": (1, "char", "signed char", "int8"),
    "uint8": (1, "byte", "unsigned char", "uint8"),
    "int16": (2, "short", "short int", "int16"),
    "int32": (4, "int", "int32"),
    "int64": (8, "long", "long int", "int64"),
    "bool": (1, "bool"),
    "float8_e4m3fn": (1, "float8_e4m3fn", "c10::float8_e4m3fn"),
    "float8_e5m2": (1, "float8_e5m2", "c10::float8_e5m2"),
    "complex64": (8, "complexfloat", "c10::complex<float>"),
    "complex128": (16, "complexdouble", "c10::complex<double>"),
}
"""dtype → its bytes, and how NCCL's metadata and recorded inputs spell it, in lower case."""
SPELLED = {spelling: (dtype, int(size)) for dtype, (size, *spellings) in DTYPES.items() for spelling in spellings}


MOST = 1 << 50
"""Elements of one message beyond which they are taken for a recording error."""


def message_dtype(spelled: str) -> tuple[str, int] | None:
    """(dtype, bytes of an element), None where it is not known."""
    return SPELLED.get(spelled.lower())


def message_bytes(trace: Trace, rows: Int64, records: Int64) -> Int64:
    """int64[m]: bytes of the larger of input and output of each communication kernel, 0 of others and where nothing
    tells.

    Args:
        rows: of kernels. records: of the operators around their launches, −1 for none: ``record_param_comms`` has the
            arguments where the kernel does not.
    """
    known = np.flatnonzero(records >= 0)
    out = _bytes(trace, rows, cat.KERNEL)
    out[known] = np.maximum(out[known], _bytes(trace, records[known], cat.CPU_OP))
    return out


def _bytes(trace: Trace, rows: Int64, category: int) -> Int64:
    elements = np.maximum(*(trace.integer_column(name, (category,), 0)[rows] for name in (SENT, RECEIVED)))
    codes, place = np.unique(trace.text_column(DTYPE, category)[rows], return_inverse=True)
    sizes = [message_dtype(trace.texts[c]) if c >= 0 else None for c in codes.tolist()]
    return np.clip(elements, 0, MOST) * np.array([size[1] if size else 0 for size in sizes], np.int64)[place]
