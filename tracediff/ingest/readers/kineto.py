"""Kineto's JSON, as torch.profiler writes it."""

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np

from tracediff import bounds
from tracediff.arrays import MISSING, distinct, marked, zeros
from tracediff.errors import NotATrace, TracediffError
from tracediff.ingest.files.documents import NOT_JSON, raw_fields
from tracediff.ingest.files.source import TraceFile, Unpacked
from tracediff.ingest.json.arguments import read_inputs, text_of
from tracediff.ingest.json.chunks import BLANK, CHUNK, EventStream
from tracediff.ingest.json.decode import EventDecoder
from tracediff.ingest.json.native import PLAIN_CHUNK, is_used
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.names import bounded, is_of_library, is_of_torch
from tracediff.ingest.model.trace import FLAGS, Arguments, Number, Trace, TraceMeta
from tracediff.ingest.model.unread import note_unread
from tracediff.ingest.readers import Reader
from tracediff.ingest.vendors import translate
from tracediff.patterns import late
from tracediff.runtimes import ARGUMENT, VERSIONS

LARGEST_SUM_NS = 2.0**62
"""Limit of the sum of durations, so that sums fit int64."""
PYTHON_NAME = late(r"^.*[/\\](?P<rest>[^/\\]*\(\d+\): .*)$", re.DOTALL)


def recognises(first: bytes) -> bool:
    """Whether the bytes begin a JSON object or list, or are all blank."""
    return first.lstrip(BLANK)[:1] in (b"{", b"[", b"")


def read(file: TraceFile, unpacked: Unpacked, chunk: int | None, only: frozenset[str] | None) -> Iterator[Trace]:
    """The events of a trace as torch.profiler writes it; see `Reader`."""
    notes = Notes()
    decoder = EventDecoder(notes=notes, only=only)
    with no_garbage_collection():
        size = chunk or (PLAIN_CHUNK if is_used() else CHUNK)
        stream = EventStream(file, unpacked, decoder.events, notes, size, decoder.plain_events)
        for batch in stream.batches():
            while batch:
                decoder.append(*decoder.part(batch.pop(0)))
    if not decoder.length:
        raise _nothing(file, notes)
    trace = _assembled(file, _meta(stream, notes), notes, decoder)
    del stream, decoder  # which hold columns that the trace has no more, and wait here while it is worked on
    yield trace


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Switch the cyclic garbage collector off: decoding creates millions of objects and no cycles."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _nothing(file: TraceFile, notes: Notes) -> NotATrace:
    """The error for a file without a single readable event."""
    if not notes.counts:
        return NotATrace(
            file,
            "contains no events",
            "check that the profiler ran: call p.step() once per step, for more steps than wait + warmup",
        )
    first = notes.list()[0]
    return NotATrace(
        file,
        f"contains no readable event ({first.message}: {first.count})",
        "copy it again, or record it again",
    )


def _meta(stream: EventStream, notes: Notes) -> TraceMeta:
    raw_values = raw_fields(stream.head) | raw_fields(stream.tail)

    def value(key: str, kind: Any) -> Any:
        try:
            return msgspec.json.decode(raw_values[key], type=kind, strict=False) if key in raw_values else None
        except NOT_JSON:
            notes.add("odd-metadata", f"metadata in an unexpected form was dropped: {key}")
            return None

    fields = {
        f.name: value(f.encode_name, f.type)
        for f in msgspec.structs.fields(TraceMeta)
        if f.name not in ("versions", "flags")
    }
    fields["flags"] = tuple(flag for flag in FLAGS if value(flag, Number | bool | None))
    fields["versions"] = {key: number for key in VERSIONS if (number := value(key, Number | None)) is not None}
    return TraceMeta(**{name: value for name, value in fields.items() if value is not None})


def _assembled(file: TraceFile, meta: TraceMeta, notes: Notes, decoder: EventDecoder) -> Trace:
    trace = decoder.trace_of(file, meta)
    if trace.dur.clip(0).sum(dtype=np.float64) > LARGEST_SUM_NS:
        raise TracediffError(
            file, "the event durations add up to more than a century", "the file is damaged; record it again"
        )
    trace.texts = _merged_texts(trace.arguments, list(decoder.texts), notes)
    _bound_names(trace, notes)
    _reduce_python_names(trace)
    if len(trace.categories) < bounds.NARROW_CODES:  # columns as long as the file
        trace.category = trace.category.astype(np.int16)
    if len(trace.phases) < bounds.NARROW_CODES:
        trace.phase = trace.phase.astype(np.int16)
    trace.ids = [i if not isinstance(i, int) or MISSING < i < -MISSING else str(i) for i in trace.ids]
    _refile_annotations(trace)
    translate(trace, notes)
    _merge_places(trace.arguments, notes)
    note_unread(notes, trace)
    trace.notes = notes.list()
    return trace


def _refile_annotations(trace: Trace) -> None:
    """Give the annotations that old profilers wrote as operators their category."""
    operators = np.flatnonzero(trace.category == cat.CPU_OP)
    annotations = trace.rows_named(lambda name: name.startswith(cat.OLD_ANNOTATIONS), operators)
    if len(annotations):
        category = trace.category.copy()
        category[annotations] = cat.ANNOTATION
        trace.refile(category)


def _merged_texts(arguments: dict[int, Arguments], raw: list[bytes], notes: Notes) -> list[str]:
    """The strings behind the codes of raw JSON values, in order of text, whichever reader met them first; equal strings
    get one code.
    """
    decoded = [text_of(value, notes) for value in raw[1:]]  # code 0 is that of an absent value
    texts = sorted(set(decoded))
    place = {text: code for code, text in enumerate(texts)}
    moved = np.array([*(place[text] for text in decoded), -1], np.int32)
    for category in arguments.values():
        for name, column in category.of_type(np.int32).items():
            column[:] = moved[column]
            read_inputs(name, column, texts, notes)
    return texts


def _bound_names(trace: Trace, notes: Notes) -> None:
    """Cut names to bounded length, with a note on the events of those that were longer."""
    long = [code for code, text in enumerate(trace.names) if len(text) > bounds.KEPT_NAME]
    for code in long:
        trace.names[code] = bounded(trace.names[code])
    message = f"names longer than {bounds.KEPT_NAME:,} characters were cut, and end in a digest of the whole name"
    notes.add("long-name", message, np.isin(trace.name, long).sum() if long else 0)


def _merge_places(arguments: dict[int, Arguments], notes: Notes) -> None:
    """Take the device and the stream from GPU events that name too many of them: what is computed for each would take
    too long.
    """
    for name in (ARGUMENT.device, ARGUMENT.stream):
        on_gpu = [arguments[code].of_type(np.int64) for code in cat.GPU if code in arguments]
        columns = [by_name[name] for by_name in on_gpu if name in by_name]
        places = distinct(np.concatenate(columns)) if columns else zeros(0)
        for column in columns if len(places) > bounds.PLACES else []:
            is_dropped = column > places[bounds.PLACES - 1]
            column[is_dropped] = MISSING
            notes.add(
                "many-places",
                f"the {name} of GPU events beyond the first {bounds.PLACES} was dropped",
                is_dropped.sum(),
            )


def _reduce_python_names(trace: Trace) -> None:
    """Take the folders from the names of Python functions: ``module.py(line): func``; and note those of torch and of
    other libraries.
    """
    is_python_name = marked(trace.name[trace.category == cat.PYTHON], len(trace.names))
    if not is_python_name.any():
        return
    codes: dict[str, int] = {}
    torch_functions, library_functions = set(), set()
    moved = np.empty(len(trace.names), np.int32)
    for i, (text, is_python) in enumerate(zip(trace.names, is_python_name.tolist(), strict=True)):
        match = PYTHON_NAME.match(text) if is_python else None
        short = match["rest"] if match else text
        moved[i] = codes.setdefault(short, len(codes))
        if match and is_of_torch(text):
            torch_functions.add(short)
        elif is_python and is_of_library(text):
            library_functions.add(short)
    trace.names, trace.name = list(codes), moved[trace.name]
    trace.torch_functions, trace.library_functions = frozenset(torch_functions), frozenset(library_functions)


KINETO = Reader(
    "Kineto JSON",
    "the .json or .json.gz that torch.profiler writes",
    (".json", ".json.gz", ".json.zst"),
    recognises,
    read,
)
