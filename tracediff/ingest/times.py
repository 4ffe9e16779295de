"""Times: microseconds as the trace spells them → whole nanoseconds, exactly.

A float64 of microseconds is exact to the nanosecond below 2⁴³ µs (its spacing there is under 1 ns, so the nearest nanosecond is the written one);
larger fractional times, such as epoch microseconds with decimals, must come as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]

EXACT_US = 2**43
LARGEST_US = 2**53
MISSING = np.iinfo(np.int64).min
"""Marks a time (or an integer argument) that the event does not carry."""


class Inexact(ValueError):
    """These floats cannot be told to the nanosecond; read the text instead."""


def from_numbers(values: Sequence[int | float]) -> Int64:
    """Nanoseconds of microseconds given as int or float.

    Raises:
        Inexact: a fractional column reaches 2⁴³ µs, or a time is beyond any clock.
    """
    us = np.array(values)
    if us.dtype == np.int64:
        if us.size and int(np.abs(us).max()) >= LARGEST_US:
            raise Inexact
        return us * 1000
    if us.dtype != np.float64:
        raise Inexact
    if us.size and not float(np.abs(us).max()) < EXACT_US:
        raise Inexact
    whole = np.floor(us)
    return whole.astype(np.int64) * 1000 + np.rint((us - whole) * 1000).astype(np.int64)


def from_text(texts: Sequence[Any]) -> Int64:
    """Nanoseconds of microseconds given as JSON text (``b'1712195495519689.047'``); MISSING where that is no number."""
    out = np.empty(len(texts), np.int64)
    for i, text in enumerate(texts):
        out[i] = _one(bytes(text))
    return out


def _one(text: bytes) -> int:
    whole, _, fraction = text.strip(b'"').partition(b".")
    try:
        if len(whole) <= 16 and len(fraction) <= 3 and (fraction.isdigit() or not fraction):
            ns = int(fraction.ljust(3, b"0"))
            return int(whole) * 1000 + (-ns if whole[:1] == b"-" else ns)
        value = Decimal(text.strip(b'"').decode())
        return int((value * 1000).to_integral_value()) if abs(value) < LARGEST_US else MISSING
    except (ValueError, InvalidOperation, UnicodeDecodeError):
        return MISSING
