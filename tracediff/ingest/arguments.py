"""The arguments of events, as columns.

A category's columns are the arguments its events carry in this file: a batch is decoded against the columns known so far, and a new name adds
a column. Whole numbers and decimals have typed columns; every other argument keeps its JSON, dictionary-coded, so that none is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.health import Notes
from tracediff.ingest.times import MISSING

INTS = frozenset(
    (
        "External id", "correlation", "cbid", "cid", "device", "context", "stream", "queued", "priority",
        "Record function id", "Ev Idx", "Sequence number", "Fwd thread id", "finished", "num_warps", "num_stages",
        "Python id", "Python parent id", "Python module id", "registers per thread", "shared memory", "bytes",
        "Bytes", "Addr", "Total Allocated", "Total Reserved", "Device Type", "Device Id",
        "In msg nelems", "Out msg nelems", "Group size", "Global rank stride", "Global rank start", "Process Group ID",
        "Rank", "Seq", "seq", "Src Rank", "Dst Rank", "Trace iteration", "Profiler Event Index", "Device", "external ts",
        "Op count", "cuda_sync_kind_id", "wait_on_stream", "wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_id", "sort_index",
    )
)  # fmt: skip
FLOATS = frozenset(("blocks per SM", "warps per SM", "est. achieved occupancy %", "theoretical occupancy %", "memory bandwidth (GB/s)"))
HIP_TEXT = frozenset(("stream", "bytes"))
"""Arguments of runtime calls that ROCm writes as pointers or text."""

OTHER_SPELLINGS = {"external id": "External id"}
"""Argument names of torch 1.8–1.10 → today's."""

MOST_COLUMNS = 256
"""Columns a category may have; further argument names are counted in a health note."""

ABSENT = msgspec.Raw(b"")


class ArgumentDecoder:
    """Decodes the argument objects of one category in batches.

    Attributes:
        names: the columns known so far.
    """

    def __init__(self, category: int) -> None:
        self.category = category
        self.names: list[str] = []
        self.struct: Any = None
        self.batch: Any = None
        self._learn([])

    def kind(self, name: str) -> type:
        """int, float or str: what a column of this name holds."""
        if self.category in cat.CALLS and name in HIP_TEXT:
            return str
        return int if name in INTS or name in OTHER_SPELLINGS else float if name in FLOATS else str

    def columns(self, objects: Sequence[Any], notes: Notes) -> dict[str, Sequence[Any]]:
        """Argument name → its values in ``objects`` (raw JSON objects): numbers with MISSING or NaN, or raw JSON with ABSENT.

        Values that do not fit their column's type become absent and are counted in ``notes``.
        """
        text = b"[" + b",".join(objects) + b"]"
        try:
            decoded = self.batch.decode(text)
        except (msgspec.DecodeError, RecursionError):
            self._learn_from(objects, notes)
            try:
                decoded = self.batch.decode(text)
            except (msgspec.DecodeError, RecursionError):
                decoded = [self._one(o, notes) for o in objects]
        columns = dict(zip(self.names, zip(*map(msgspec.structs.astuple, decoded), strict=True), strict=False))
        for old, new in OTHER_SPELLINGS.items():
            if old in columns:
                columns[new] = columns.pop(old)
        return columns

    def _learn_from(self, objects: Sequence[Any], notes: Notes) -> None:
        known = set(self.names)
        new: dict[str, None] = {}
        for one in objects:
            found = _object(one)
            new.update((name, None) for name in found or () if name not in known)
        room = MOST_COLUMNS - len(known)
        notes.add("odd-arguments", f"argument names of one category beyond the first {MOST_COLUMNS} were left out", len(new) - room if len(new) > room else 0)
        self._learn(list(new)[:room])

    def _learn(self, new: list[str]) -> None:
        self.names += new
        full = len(self.names) >= MOST_COLUMNS
        fields: list[tuple[str, Any, Any]] = []
        for i, name in enumerate(self.names):
            kind = self.kind(name)
            typed, default = (int | bool | None, MISSING) if kind is int else (float, float("nan")) if kind is float else (msgspec.Raw, ABSENT)
            fields.append((f"f{i}", typed, msgspec.field(name=name, default=default)))
        self.struct = msgspec.defstruct("Args", fields, gc=False, forbid_unknown_fields=not full)
        self.batch = msgspec.json.Decoder(list[self.struct], strict=False)  # type: ignore[name-defined]  # a type made at run time

    def _one(self, text: Any, notes: Notes) -> Any:
        try:
            return msgspec.json.decode(text, type=self.struct, strict=False)
        except (msgspec.DecodeError, RecursionError):
            pass
        found = _object(text)
        if found is None:
            notes.add("odd-arguments", "arguments that are no JSON object were left out")
            return self.struct()
        fitted = {}
        for name, field in zip(self.names, msgspec.structs.fields(self.struct), strict=True):
            if name in found:
                try:
                    fitted[field.name] = found[name] if field.type is msgspec.Raw else msgspec.json.decode(found[name], type=field.type, strict=False)
                except (msgspec.DecodeError, RecursionError):
                    notes.add("odd-arguments", f"an argument is of another type than expected and was left out: {name}")
        return self.struct(**fitted)


def _object(text: Any) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return None


def text_of(raw: bytes) -> str:
    """The text of a raw JSON value: a string's content, anything else as its JSON."""
    try:
        if raw[:1] == b'"':
            return str(msgspec.json.decode(raw))
        return raw.decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return raw.decode(errors="replace")


def int_column(values: Sequence[Any], notes: Notes) -> np.ndarray[Any, np.dtype[np.int64]]:
    """int64 of integers, ``None`` and MISSING; integers that need more than 64 bits become MISSING and are counted."""
    try:
        return np.array(values, np.int64)
    except (TypeError, OverflowError):
        fits = [MISSING if v is None or not -(2**63) <= v < 2**63 else v for v in values]
        lost = sum(v is not None and v != f for v, f in zip(values, fits, strict=True))
        notes.add("odd-arguments", "an integer argument needs more than 64 bits and was left out", lost)
        return np.array(fits, np.int64)
