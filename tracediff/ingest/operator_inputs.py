"""The recorded inputs of operators, by argument name. Later stages rely on their form: any other is dropped."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import msgspec
import numpy as np

from tracediff.ingest.health import Notes
from tracediff.ingest.syntax import NOT_JSON
from tracediff.ingest.trace import Codes

MOST_DIMS = 64
LARGEST = 1 << 62
"""Limit of sizes, strides and the elements of a tensor."""


def _numbers(value: Any) -> bool:
    return len(value) <= MOST_DIMS and all(type(n) is int and -LARGEST < n < LARGEST for n in value)


def _sizes(value: Any) -> bool:
    return _numbers(value) and abs(prod(value)) < LARGEST


def _per_tensor(value: Any, check: Callable[[Any], bool]) -> bool:
    """Whether ``value`` lists what ``check`` accepts, or lists of it (inputs that are lists of tensors)."""
    if not (isinstance(value, list) and all(isinstance(inner, list) for inner in value)):
        return False
    return all(check(inner) or all(isinstance(part, list) and check(part) for part in inner) for inner in value)


FORMS: dict[str, Callable[[Any], bool]] = {
    "Input Dims": lambda value: _per_tensor(value, _sizes),
    "Input Strides": lambda value: _per_tensor(value, _numbers),
    "Input type": lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
}
"""Argument → whether a JSON value has the form that the profiler gives it: for each input sizes, strides or a type."""


def is_well_formed(argument: str, text: str) -> bool:
    """Whether ``text`` is what the profiler writes for the argument; of arguments that are no inputs any text is."""
    check = FORMS.get(argument)
    try:
        return check is None or check(msgspec.json.decode(text))
    except NOT_JSON:
        return False


def drop_odd(argument: str, column: Codes, texts: list[str], notes: Notes) -> None:
    """Make the values of ``column`` (codes into ``texts``) that are not well formed absent, and count them."""
    if argument not in FORMS:
        return
    odd = [code for code in np.unique(column).tolist() if code >= 0 and not is_well_formed(argument, texts[code])]
    if odd:
        lost = np.isin(column, odd)
        column[lost] = -1
        notes.add("odd-arguments", f"argument {argument} has an unexpected form and was dropped", int(lost.sum()))
