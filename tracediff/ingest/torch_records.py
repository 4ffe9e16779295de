"""Records of a structured log of torch (``TORCH_TRACE``): a line with a prefix and JSON, and lines of payload after a
tab.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any

import msgspec

from tracediff import bounds
from tracediff.ingest.files.documents import NOT_JSON
from tracediff.ingest.files.source import Unpacked

CHUNK, MOST_LINE, MOST_PAYLOAD, MOST_LOG = 1 << 16, 16 << 20, 64 << 20, 1 << 30
"""Bytes that are read at once, and at most of a line, a payload and a log; one rank of a real job writes 2 MB."""
RECORD = re.compile(rb"\A(?:\[rank\d+\]:)?V\d{4} [^\]]*\] (?=\{)")
GRAPH, CODE = "dynamo_output_graph", "inductor_output_code"
"""What payloads are called that are not artifacts: the graph that Dynamo captured, the code that inductor generated."""
Microseconds = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
Frame = tuple[int | None, int | None]
"""Number of a frame, and which compilation of it."""


class Metrics(msgspec.Struct):
    """What one compilation took, and where its code begins."""

    co_filename: str | None = None
    co_firstlineno: int | None = None
    dynamo_us: Microseconds | None = msgspec.field(name="dynamo_cumulative_compile_time_us", default=None)
    autograd_us: Microseconds | None = msgspec.field(name="aot_autograd_cumulative_compile_time_us", default=None)
    inductor_us: Microseconds | None = msgspec.field(name="inductor_cumulative_compile_time_us", default=None)
    code_us: Microseconds | None = msgspec.field(name="inductor_code_gen_cumulative_compile_time_us", default=None)

    @property
    def phases_us(self) -> tuple[float, ...]:
        """Of Dynamo, AOTAutograd, Inductor and its code generation; each at least what it contains, since a backward
        graph records only the inner ones.
        """
        inductor = self.inductor_us or self.code_us or 0.0
        autograd = self.autograd_us or inductor
        return self.dynamo_us or autograd, autograd, inductor, self.code_us or 0.0


class Record(msgspec.Struct):
    """One record; times and places of a compilation in ``compilation_metrics``."""

    frame_id: int | None = None
    frame_compile_id: int | None = None
    rank: int | None = None
    artifact: dict[str, Any] = {}
    dynamo_output_graph: dict[str, Any] | None = None
    inductor_output_code: dict[str, Any] | None = None
    compilation_metrics: Metrics | None = None
    bwd_compilation_metrics: Metrics | None = None

    @property
    def frame(self) -> Frame:
        """What it is about."""
        return self.frame_id, self.frame_compile_id

    @property
    def name(self) -> str:
        """What its payload is; empty for records of other kinds."""
        if self.dynamo_output_graph is not None:
            return GRAPH
        return CODE if self.inductor_output_code is not None else str(self.artifact.get("name", ""))


def records(stream: Unpacked) -> Iterator[tuple[Record | None, str]]:
    """Each record and its payload; None for a line that is not a record.

    Raises:
        TracediffError: the file is damaged, or cut off.
    """
    head, payload, size = b"", list[bytes](), 0
    for line in chain(_lines(stream), (b"end",)):  # the end of the last record, too
        if line.startswith(b"\t"):
            size += len(line)
            if size <= MOST_PAYLOAD:
                payload.append(line[1:])
        elif line:
            if head:
                yield _record(head), b"\n".join(payload).decode(errors="replace")
            head, payload, size = line, [], 0


def _record(line: bytes) -> Record | None:
    start = RECORD.match(line[: bounds.LOG_RECORD])
    try:
        return msgspec.json.decode(line[start.end() :], type=Record) if start else None
    except (*NOT_JSON, ValueError):  # ValueError: a number of thousands of digits
        return None


def _lines(stream: Unpacked) -> Iterator[bytes]:
    """The lines of a log; of an endless one, and of an endless line, the beginning."""
    parts, size = list[bytes](), 0
    while stream.bytes_read < MOST_LOG and (chunk := stream.read(CHUNK)):
        first, *others = chunk.split(b"\n")
        if size < MOST_LINE:
            parts.append(first)
        size += len(first)
        for other in others:
            yield b"".join(parts)
            parts, size = [other], len(other)
    yield b"".join(parts)
