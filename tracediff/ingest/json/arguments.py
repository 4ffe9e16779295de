"""The arguments of events, as columns.

A category's columns are the arguments its events carry in this file: a batch is decoded against the columns known so
far, and a new name adds a column. Whole numbers and decimals have typed columns; every other argument keeps its JSON,
dictionary-coded, so that none is lost. Of the inputs of operators later stages rely on the form: any other is dropped.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import msgspec
import numpy as np

from tracediff import bounds
from tracediff.arrays import MISSING, Int64, int64_of
from tracediff.ingest.files.documents import NOT_JSON, raw_fields, repaired
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import Codes, Columns, is_present
from tracediff.patterns import late
from tracediff.runtimes import ARGUMENT, RENAMED_ARGUMENTS, TEXT_ARGUMENTS

BETWEEN = ";\r\n"
"""Separates inputs that are written as text."""
TYPE_NAME = late(r"(?!(?:null|true|false)$)[A-Za-z][A-Za-z0-9_:<> ]*|")
SIZES = frozenset("0123456789,")
LARGEST = 1 << 62
"""Limit of sizes, strides and the elements of a tensor."""


def _numbers(value: Any) -> bool:
    return len(value) <= bounds.DIMENSIONS and all(type(n) is int and -LARGEST < n < LARGEST for n in value)


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
    """Whether ``text`` is what the profiler writes for the argument; of arguments that are not inputs any text is."""
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
    used = np.flatnonzero(np.bincount(column[column >= 0])).tolist()
    odd = [code for code in used if not is_well_formed(argument, texts[code])]
    if not odd:
        return
    codes = {text: code for code, text in enumerate(texts)}
    moved = np.arange(len(texts), dtype=np.int32)
    for code in odd:
        written = _as_json(argument, texts[code])
        moved[code] = codes.setdefault(written, len(codes)) if is_well_formed(argument, written) else -1
    is_present = column >= 0
    column[is_present] = moved[column[is_present]]
    texts += list(codes)[len(texts) :]
    unusable = is_present & (column < 0)
    notes.add("odd-arguments", f"argument {argument} has an unexpected form and was dropped", unusable.sum())


def _as_json(argument: str, text: str) -> str:
    """The JSON of inputs that torch_npu writes as text, ``32,3;\r\n;\r\n``; empty if it is not such a text."""
    parts = text.split(BETWEEN)
    if argument == "Input type" and text and all(TYPE_NAME.fullmatch(part) for part in parts):
        return json.dumps(parts)
    if argument == "Input Dims" and SIZES.issuperset(text.replace(BETWEEN, "")):
        return "[[" + "], [".join(part.replace(",", ", ") for part in parts) + "]]"
    return ""


INTS = frozenset(
    (
        ARGUMENT.correlation,
        ARGUMENT.device,
        ARGUMENT.stream,
        ARGUMENT.size,
        ARGUMENT.awaited_stream,
        ARGUMENT.awaited_event,
        ARGUMENT.awaited_record,
        ARGUMENT.sync_kind,
        "External id",
        "cbid",
        "cid",
        "context",
        "queued",
        "priority",
        "Record function id",
        "Ev Idx",
        "Sequence number",
        "Fwd thread id",
        "finished",
        "num_warps",
        "num_stages",
        "Python id",
        "Python parent id",
        "Python module id",
        "registers per thread",
        "shared memory",
        "Bytes",
        "Addr",
        "Total Allocated",
        "Total Reserved",
        "Device Type",
        "Device Id",
        "In msg nelems",
        "Out msg nelems",
        "Group size",
        "Global rank stride",
        "Global rank start",
        "Process Group ID",
        "Rank",
        "Seq",
        "seq",
        "Src Rank",
        "Dst Rank",
        "Trace iteration",
        "Profiler Event Index",
        "Device",
        "external ts",
        "Op count",
        "flow id",
        "sort_index",
    )
)
FLOATS = frozenset(
    ("blocks per SM", "warps per SM", "est. achieved occupancy %", "theoretical occupancy %", "memory bandwidth (GB/s)")
)
OTHER_SPELLINGS = {"external id": "External id"} | RENAMED_ARGUMENTS
"""Argument names of torch 1.8–1.10, and of vendors, → those of a `Trace`."""


FLOW_ID = "flow id"
"""Column that holds the ids of arrows, which are not arguments in the JSON."""

UNFIT_NAME = late(r'["\\\x00-\x1f]')
"""Characters that a column's name must not contain."""

ABSENT = msgspec.Raw(b"")
DECODED: dict[type, tuple[Any, Any]] = {
    int: (int | bool | None, MISSING),
    float: (float | None, float("nan")),
    str: (msgspec.Raw, ABSENT),
}
"""Kind of a column → the type of its values in JSON, and the value where an event has none."""


def kind_of(name: str) -> type:
    """The type of a column of this name: int, float or str."""
    name = OTHER_SPELLINGS.get(name, name)
    return int if name in INTS else float if name in FLOATS else str


def respelled(columns: Columns) -> Columns:
    """``columns`` of arguments under their names of today."""
    for old, new in OTHER_SPELLINGS.items():
        if old in columns:
            values = columns.pop(old)
            if new in columns:
                values = np.where(is_present(columns[new]), columns[new], values)
            columns[new] = values
    return columns


def may_be_text(name: str) -> bool:
    """Whether calls may have text in a column of this name."""
    return OTHER_SPELLINGS.get(name, name) in TEXT_ARGUMENTS


class ArgumentDecoder:
    """Decodes the argument objects of one category in batches.

    Attributes:
        names: the columns known so far.
    """

    def __init__(self, category: int) -> None:
        self.category = category
        self.names: list[str] = []
        self._learn([])

    def kind(self, name: str) -> type:
        """The type of a column of this name: int, float or str."""
        return str if self.category in cat.CALLS and may_be_text(name) else kind_of(name)

    def learn(self, names: Iterable[str]) -> None:
        """Know the columns ``names``, as far as there may be more."""
        new = [name for name in names if name not in self.names]
        if new:
            self._learn(new[: bounds.ARGUMENTS - len(self.names)])

    def columns(self, objects: Sequence[Any], notes: Notes) -> dict[str, Sequence[Any]]:
        """Argument name as recorded → its values in ``objects`` (raw JSON objects): numbers with MISSING or NaN, or raw
        JSON with ABSENT.

        Values that do not fit their column's type become absent and are counted in ``notes``.
        """
        text = b"[" + b",".join(objects) + b"]"
        try:
            decoded = self.batch.decode(text)
        except NOT_JSON:
            self._learn_from(objects)
            try:
                decoded = self.batch.decode(text)
            except NOT_JSON:
                decoded = [self._decode_object(o, notes) for o in objects]
        return dict(zip(self.names, zip(*map(msgspec.structs.astuple, decoded), strict=True), strict=False))

    def _learn_from(self, objects: Sequence[Any]) -> None:
        names: dict[str, None] = {}
        for text in objects:
            names.update(dict.fromkeys(_object(text, Notes()) or ()))
        self.learn(name for name in names if not UNFIT_NAME.search(name))

    def _learn(self, new: list[str]) -> None:
        self.names += new
        fields: list[tuple[str, Any, Any]] = []
        for i, name in enumerate(self.names):
            typed, default = DECODED[self.kind(name)]
            fields.append((f"f{i}", typed, msgspec.field(name=name, default=default)))
        self.struct = msgspec.defstruct("Args", fields, gc=False, forbid_unknown_fields=True)
        self._fields = dict(zip(self.names, msgspec.structs.fields(self.struct), strict=True))
        self.batch = msgspec.json.Decoder(list[self.struct], strict=False)  # type: ignore[name-defined]  # a type made at run time

    def _decode_object(self, text: Any, notes: Notes) -> Any:
        try:
            return msgspec.json.decode(text, type=self.struct, strict=False)
        except NOT_JSON:
            pass
        fields = _object(text, notes)
        if fields is None:
            notes.add("odd-arguments", "arguments that are not a JSON object were dropped", bytes(text) != b"null")
            return self.struct()
        fitted = {}
        for name, raw in fields.items():
            field = self._fields.get(name)
            if field is None:
                notes.add(
                    "odd-arguments",
                    f"arguments with unreadable names, or beyond the first {bounds.ARGUMENTS} of a category, were"
                    " dropped",
                )
                continue
            try:
                fitted[field.name] = msgspec.json.decode(raw, type=field.type, strict=False)
            except NOT_JSON:
                notes.add("odd-arguments", f"argument {name} has an unexpected type and was dropped")
        return self.struct(**fitted)


def _object(text: Any, notes: Notes) -> dict[str, msgspec.Raw] | None:
    try:
        return raw_fields(text)
    except NOT_JSON:
        fixed = repaired(bytes(text))
        if fixed is None:
            return None
        notes.add("repaired", "arguments whose names were not valid UTF-8 were repaired")
        return raw_fields(fixed)


def json_text(value: Any) -> str:
    """JSON on one line, in the layout that a `Trace` has for lists."""
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def text_of(raw: bytes, notes: Notes) -> str:
    """The text of a raw JSON value: a string's content; anything else as JSON on one line, so that layouts do not
    matter.
    """
    try:
        return str(msgspec.json.decode(raw)) if raw[:1] == b'"' else msgspec.json.format(raw, indent=0).decode()
    except NOT_JSON:
        notes.add("repaired", "text arguments that were not valid JSON were repaired")
        fixed = repaired(b'{"":' + raw + b"}")
        return str(msgspec.json.decode(fixed)[""]) if fixed and raw[:1] == b'"' else raw.decode(errors="replace")


def int_column(values: Sequence[Any], notes: Notes) -> Int64:
    """int64 of integers, ``None`` and MISSING; integers that need more than 64 bits become MISSING and are counted."""
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, OverflowError):
        fits = [MISSING if v is None or not -(2**63) <= v < 2**63 else v for v in values]
        too_large = sum(v is not None and v != f for v, f in zip(values, fits, strict=True))
        notes.add("odd-arguments", "integer arguments that need more than 64 bits were dropped", too_large)
        return int64_of(fits)
