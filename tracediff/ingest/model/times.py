"""Times: microseconds as the trace spells them → whole nanoseconds, exactly.

A float64 of microseconds is exact to the nanosecond below 2⁴³ µs (its spacing there is under 1 ns, so the nearest
nanosecond is the written one); larger fractional times, such as epoch microseconds with decimals, must be read as text.
"""

import math
from collections.abc import Sequence
from decimal import Decimal, DecimalException
from typing import Any, cast

import numpy as np

from tracediff.arrays import MISSING, AnyArray, Int64

EXACT_US = 2**43
LARGEST_US = 2**52
"""Limit of times (the year 2112 in epoch microseconds); the difference of any two such times fits int64 nanoseconds."""
LONGEST_US = 2**42
"""Limit of durations (50 days): a longer one is an error of the profiler."""


class Inexact(ValueError):
    """These floats are not exact to the nanosecond; read the text instead."""


def from_numbers(values: Sequence[int | float]) -> Int64:
    """Nanoseconds of microseconds given as int or float.

    Raises:
        Inexact: a fractional column reaches 2⁴³ µs, or a time is beyond any clock.
    """
    try:
        us = np.array(values)
    except OverflowError:
        raise Inexact from None
    absent = us == MISSING
    us[absent] = 0
    out = _from_array(us)
    out[absent] = MISSING
    return out


def _from_array(us: AnyArray) -> Int64:
    if us.dtype == np.int64:
        if us.size and not -LARGEST_US < int(us.min()) <= int(us.max()) < LARGEST_US:
            raise Inexact
        return cast(Int64, us * 1000)
    if us.dtype != np.float64 or (us.size and not float(np.abs(us).max()) < EXACT_US):
        raise Inexact
    whole = np.floor(us)
    return cast(Int64, whole.astype(np.int64) * 1000 + np.rint((us - whole) * 1000).astype(np.int64))


def from_text(texts: Sequence[Any]) -> Int64:
    """Nanoseconds of microseconds given as JSON text (``b'1712195495519689.047'``); MISSING if that is not a number."""
    return np.fromiter((_nanoseconds(bytes(text)) for text in texts), np.int64, len(texts))


def _nanoseconds(text: bytes) -> int:
    text = text.strip(b'"')
    whole, _, fraction = text.partition(b".")
    if len(whole) <= 16 and len(fraction) <= 3 and whole.isdigit() and (fraction.isdigit() or not fraction):
        us, ns = int(whole), int(fraction.ljust(3, b"0"))
        return us * 1000 + ns if us < LARGEST_US else MISSING
    try:
        value = Decimal(text.decode().replace("_", "?"))  # Python would take 1_0 for 10
        return int((value * 1000).to_integral_value()) if value.copy_abs() < LARGEST_US else MISSING
    except (DecimalException, UnicodeDecodeError):
        return MISSING


def number(text: bytes) -> int | float | None:
    """The number that JSON text spells, also inside a string (as ROCm writes them); None if that is not a number."""
    digits = text.strip(b'"').replace(b"_", b"?")  # Python would take 1_0 for 10
    try:
        return int(digits)
    except ValueError:
        pass
    try:
        parsed = float(digits)
    except ValueError:
        return None
    return parsed if math.isfinite(parsed) else None
