"""One file → `Trace`."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np

from tracediff.errors import NotATrace
from tracediff.ingest import categories as cat
from tracediff.ingest.chunks import CHUNK, EventStream
from tracediff.ingest.decode import EventDecoder, Part, decoded_texts
from tracediff.ingest.health import Notes
from tracediff.ingest.source import TraceFile, open_trace
from tracediff.ingest.times import MISSING, Int64
from tracediff.ingest.trace import Arguments, Trace, TraceMeta

PYTHON_NAME = re.compile(r"^(?P<path>.*[/\\])(?P<rest>[^/\\]*\(\d+\): .*)$")


def read_trace(file: TraceFile | str, chunk: int = CHUNK) -> Trace:
    """The events of ``file`` as columns; times are int64 nanoseconds.

    Args:
        file: a path or URL, or a `TraceFile` for a member of an archive.
        chunk: bytes decoded at a time; the result does not depend on it.

    Raises:
        NotATrace: the file is readable but no profiler trace.
        TracediffError: the file is missing, unreadable, cut off in its compression, or damaged beyond reading.
    """
    file = TraceFile(file) if isinstance(file, str) else file
    notes = Notes()
    decoder = EventDecoder(notes)
    parts: list[Part] = []
    with open_trace(file) as unpacked, no_garbage_collection():
        stream = EventStream(file, unpacked, decoder.events, notes, chunk)
        for batch in stream.batches():
            parts.append(decoder.part(batch))
            del batch
    if not any(len(p.base["ts"]) for p in parts):
        raise NotATrace(str(file), "holds no events", "check that the profiler ran: p.step() once a step, and more steps than wait + warmup")
    return _assembled(file, _meta(stream, notes), notes, decoder, parts)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """The cyclic collector off: decoding makes millions of objects and no cycles."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _meta(stream: EventStream, notes: Notes) -> TraceMeta:
    found: dict[str, Any] = {}
    for text in (stream.head, stream.tail):
        for key, raw in msgspec.json.decode(text, type=dict[str, msgspec.Raw]).items():
            found[key] = raw
    fields: dict[str, Any] = {}
    for field in msgspec.structs.fields(TraceMeta):
        if field.encode_name in found:
            try:
                fields[field.name] = msgspec.json.decode(found[field.encode_name], type=field.type, strict=False)
            except msgspec.ValidationError:
                notes.add("odd-metadata", f"metadata of an unexpected form was left out: {field.encode_name}")
    return TraceMeta(**fields)


def _assembled(file: TraceFile, meta: TraceMeta, notes: Notes, decoder: EventDecoder, parts: list[Part]) -> Trace:
    starts = np.cumsum([0] + [len(p.base["ts"]) for p in parts])
    columns = {key: _joined([p.base.pop(key) for p in parts]) for key in ("ts", "dur", "name", "category", "pid", "tid", "phase")}
    arguments = {}
    for code in sorted({c for p in parts for c in p.arguments}):
        arguments[code] = _joined_arguments(code, decoder, [(int(s), p.arguments.pop(code)) for s, p in zip(starts, parts, strict=False) if code in p.arguments])
    names, columns["name"] = _reduced_python_names(list(decoder.names), columns["name"], columns["category"])
    categories = list(decoder.categories)
    _note_unread(notes, columns, categories, list(decoder.phases))
    return Trace(
        file, meta, notes.list(), **columns, names=names, categories=categories, ids=list(decoder.ids), phases=list(decoder.phases),
        arguments=arguments, texts=decoded_texts(decoder.texts),
    )  # fmt: skip


def _joined(parts: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    joined = np.concatenate(parts)
    parts.clear()
    return joined


def _joined_arguments(code: int, decoder: EventDecoder, parts: list[tuple[int, tuple[Int64, dict[str, np.ndarray[Any, Any]]]]]) -> Arguments:
    out = Arguments(np.concatenate([start + rows for start, (rows, _) in parts]))
    for name in sorted({name for _, (_, columns) in parts for name in columns}):
        kind = decoder.argument_decoders[code].kind(name) if code in decoder.argument_decoders else int
        is_float, is_int = kind is float, kind is int
        missing: Any = float("nan") if is_float else MISSING if is_int else -1
        dtype: Any = np.float64 if is_float else np.int64 if is_int else np.int32
        column = np.concatenate([columns.pop(name) if name in columns else np.full(len(rows), missing, dtype) for _, (rows, columns) in parts])
        (out.floats if is_float else out.ints if is_int else out.texts)[name] = column
    return out


def _reduced_python_names(names: list[str], name: Any, category: Any) -> tuple[list[str], Any]:
    """Python functions lose the folders of their file: ``module.py(line): func``."""
    python = np.zeros(len(names), bool)
    python[name[category == cat.PYTHON]] = True
    codes: dict[tuple[str, bool], int] = {}
    moved = np.empty(len(names), np.int32)
    for i, (text, is_python) in enumerate(zip(names, python.tolist(), strict=True)):
        match = PYTHON_NAME.match(text) if is_python else None
        moved[i] = codes.setdefault((match["rest"] if match else text, False), len(codes))
    return [text for text, _ in codes], moved[name]


def _note_unread(notes: Notes, columns: dict[str, Any], categories: list[str], phases: list[str]) -> None:
    for code, name in enumerate(categories[len(cat.KNOWN) :], len(cat.KNOWN)):
        if name and name.startswith(cat.UNREAD_DEVICES):
            notes.add("unread-device", f"events of {name} have no device account yet", int((columns["category"] == code).sum()))
    for phase in ("B", "E"):
        if phase in phases:
            notes.add("unread-phase", "begin/end events (ph B and E) are not paired here and have no duration", int((columns["phase"] == phases.index(phase)).sum()))


