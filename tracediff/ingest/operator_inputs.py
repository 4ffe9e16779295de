"""The recorded inputs of operators, by argument name. Later stages rely on their form: any other is dropped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import msgspec
import numpy as np

from tracediff.ingest.health import Notes
from tracediff.ingest.syntax import NOT_JSON
from tracediff.ingest.trace import Codes

BETWEEN = ";\r\n"
"""Separates inputs that are written as text."""
TYPE_NAME = re.compile(r"(?!(?:null|true|false)$)[A-Za-z][A-Za-z0-9_:<> ]*|")
SIZES = frozenset("0123456789,")
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


@lru_cache(maxsize=4096)  # ranks of one program have the same ones
def is_well_formed(argument: str, text: str) -> bool:
    """Whether ``text`` is what the profiler writes for the argument; of arguments that are no inputs any text is."""
    check = FORMS.get(argument)
    try:
        return check is None or check(msgspec.json.decode(text))
    except NOT_JSON:
        return False


def read_inputs(argument: str, column: Codes, texts: list[str], notes: Notes) -> None:
    """Make the values of ``column`` (codes into ``texts``, which may grow) what the profiler writes; those that are in
    no known form become absent and are counted.
    """
    if argument not in FORMS:
        return
    odd = [code for code in np.unique(column).tolist() if code >= 0 and not is_well_formed(argument, texts[code])]
    if not odd:
        return
    codes = {text: code for code, text in enumerate(texts)}
    moved = np.arange(len(texts), dtype=np.int32)
    for code in odd:
        written = _as_json(argument, texts[code])
        moved[code] = codes.setdefault(written, len(codes)) if is_well_formed(argument, written) else -1
    given = column >= 0
    column[given] = moved[column[given]]
    texts += list(codes)[len(texts) :]
    lost = int((given & (column < 0)).sum())
    notes.add("odd-arguments", f"argument {argument} has an unexpected form and was dropped", lost)


def _as_json(argument: str, text: str) -> str:
    """The JSON of inputs that torch_npu writes as text, ``32,3;\r\n;\r\n``; empty if it is no such text."""
    parts = text.split(BETWEEN)
    if argument == "Input type" and text and all(TYPE_NAME.fullmatch(part) for part in parts):
        return json.dumps(parts)
    if argument == "Input Dims" and SIZES.issuperset(text.replace(BETWEEN, "")):
        return "[[" + "], [".join(part.replace(",", ", ") for part in parts) + "]]"
    return ""
