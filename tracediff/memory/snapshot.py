"""One file of ``torch.cuda.memory._dump_snapshot`` → the events, blocks and segments of each device, with the call site
of each block.
"""

import re
from operator import itemgetter
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field

from tracediff import bounds
from tracediff.errors import TracediffError
from tracediff.ingest.files.source import TraceFile, open_trace
from tracediff.ingest.model.names import bounded
from tracediff.ingest.readers.kineto import no_garbage_collection
from tracediff.memory.plain_pickle import MOST_BYTES, load_plain

OF_TORCH = re.compile(r"[/\\](?:torch|triton|torchgen)[/\\]|^torch[/\\]|^<")
"""Files of torch, or made by it (``<eval_with_key>``, ``<frozen runpy>``)."""
COMPILED = (".cpp", ".cc", ".c", ".h", ".hpp", ".cu", ".cuh", ".so")
"""Endings of files that are not Python."""
SEPARATOR = re.compile(r"[/\\]")


class CallSite(NamedTuple):
    """A line of Python: the name of its file without folders, the line, the function; all empty if unknown."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function}" if self.file else UNKNOWN

    @property
    def module(self) -> str:
        """The file without its ending."""
        return self.file.removesuffix(".py") if self.file else UNKNOWN


UNKNOWN = "unknown: no stack recorded"
NO_SITE = CallSite("", 0, "")


def _ranked(frame: Any) -> tuple[int, CallSite]:
    """(0 of a user, 1 of torch, 2 not Python; call site) of a frame, a dictionary of filename, line and name."""
    if not isinstance(frame, dict):
        return 2, NO_SITE
    path, line, name = frame.get("filename"), frame.get("line"), frame.get("name")
    if not isinstance(path, str) or not isinstance(name, str) or not path or path == "??":
        return 2, NO_SITE
    file = SEPARATOR.split(path)[-1] or path
    if path.endswith(COMPILED) or ".so." in file:
        return 2, NO_SITE
    site = CallSite(bounded(file), line if isinstance(line, int) else 0, bounded(name))
    return (1 if OF_TORCH.search(path) else 0), site


CHUNK = 1 << 20
ALLOC, FREE = "alloc", "free_requested"
SEGMENT_ALLOC, SEGMENT_FREE = "segment_alloc", "segment_free"
SEGMENT_MAP, SEGMENT_UNMAP = "segment_map", "segment_unmap"
"""Events of expandable segments, which grow and shrink in parts."""
EXPANDABLE = "expandable"
OUT_OF_MEMORY = "oom"
ALLOCATED = "active_allocated"
REMEDY = "give a file of torch.cuda.memory._dump_snapshot"


Amount = Annotated[int, msgspec.Meta(ge=0)]
"""Bytes."""


class MemoryEvent(Struct):
    """One event of the allocator: its action, the bytes and address of its block or segment, its time in µs (None if
    not recorded), its call site. Those of no block, such as oom, may lack an address.
    """

    action: str
    size: Amount
    address: int = field(name="addr", default=0)
    time: int | None = field(name="time_us", default=None)
    site: Any = field(name="frames", default=None)


class MemoryBlock(Struct):
    """A block allocated when the snapshot was dumped: its bytes, its address, the bytes that the program requested, and
    the call site that allocated it. Old snapshots have no addresses (−1), which follow from the sizes.
    """

    size: Amount
    address: int = -1
    requested_size: Amount | None = None
    state: Any = None
    site: Any = field(name="frames", default=None)

    @property
    def requested(self) -> int:
        """Bytes that the program requested."""
        return self.size if self.requested_size is None else min(self.requested_size, self.size)


class Segment(Struct):
    """Memory that the allocator holds: its bytes, address, device, stream and pool, and the blocks in it."""

    size: Amount = field(name="total_size")
    address: int = 0
    device: int = 0
    stream: int = 0
    pool: tuple[int, int] = field(name="segment_pool_id", default=(0, 0))
    segment_type: Any = None
    is_expandable: Any = None
    blocks: Any = ()

    @property
    def kind(self) -> str:
        """Its type: small, large, expandable or unknown."""
        if self.is_expandable is True:
            return EXPANDABLE
        return str(self.segment_type) if self.segment_type in ("small", "large", EXPANDABLE) else "unknown"


class Recording(Struct):
    """One device: events in order of time; segments and allocated blocks at the dump."""

    device: int
    events: list[MemoryEvent] = []
    segments: list[Segment] = []
    blocks: list[MemoryBlock] = []


def read_snapshot(file: TraceFile) -> tuple[Recording, ...]:
    """The recording of each device that has any, by number, in a memory snapshot: plain or compressed (gzip, zstd), or
    at a URL.

    Raises:
        TracediffError: it cannot be read, is not a memory snapshot, or is larger than the limits.
    """
    subject = str(file)
    parts, size = [], 0
    with open_trace(file) as unpacked:
        while part := unpacked.read(CHUNK):
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                reason = f"is larger than {MOST_BYTES >> 20} MiB"
                raise TracediffError(subject, reason, "record fewer events: _record_memory_history(max_entries=100000)")
    with no_garbage_collection():  # every object lives until the recordings are made, so collecting finds nothing
        return _Reader(subject).recordings(load_plain(b"".join(parts), subject))


Item = TypeVar("Item")


class _Reader:
    """Checks and converts the plain containers of one file; every list is read once, and a stack or frame that occurs
    often is looked at once.
    """

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self._read_lists: set[int] = set()
        self._site_of_stack: dict[int, CallSite] = {}
        self._ranked_frames: dict[int, tuple[int, CallSite]] = {}

    def recordings(self, document: Any) -> tuple[Recording, ...]:
        """The devices of a document that have an event or a segment."""
        if not isinstance(document, dict) or not {"segments", "device_traces"} <= document.keys():
            raise TracediffError(self.subject, "is a pickle, but not a memory snapshot", REMEDY)
        recordings: dict[int, Recording] = {}
        for device, trace in enumerate(self._items(document["device_traces"], object)):
            if events := self._items(trace, MemoryEvent):
                recordings[device] = Recording(device, events)
        for segment in self._items(document["segments"], Segment):
            recording = recordings.setdefault(segment.device, Recording(segment.device))
            recording.segments.append(segment)
            address, blocks = segment.address, self._items(segment.blocks, MemoryBlock)
            for block in blocks:
                block.address = address if block.address == -1 else block.address
                address = block.address + block.size
            recording.blocks += [block for block in blocks if block.state == ALLOCATED]
            segment.blocks = ()  # what it has of them, stacks too, is no longer needed
        for recording in recordings.values():
            located: list[Any] = [*recording.events, *recording.blocks]
            for item in located:
                item.site = self._site(item.site)
        if not recordings:
            remedy = "call torch.cuda.memory._record_memory_history() before the steps, and record it again"
            raise TracediffError(self.subject, "contains no allocation", remedy)
        if len(recordings) > bounds.MEMORY_DEVICES:
            raise TracediffError(self.subject, f"has more than {bounds.MEMORY_DEVICES:,} devices", REMEDY)
        return tuple(recordings[device] for device in sorted(recordings))

    def _items(self, value: Any, kind: type[Item]) -> list[Item]:
        """``value``, a list of ``kind`` that was not read before."""
        if value and id(value) in self._read_lists:
            raise self._odd("it has a list that occurs more than once")
        self._read_lists.add(id(value))
        try:
            return msgspec.convert(value, list[kind])  # type: ignore[valid-type]  # a variable
        except msgspec.ValidationError as error:
            raise self._odd(str(error)) from None

    def _site(self, frames: Any) -> CallSite:
        """The innermost frame of ``frames`` (innermost first) outside torch; if there is none, the innermost of torch's
        Python; without any Python `NO_SITE`.
        """
        if not isinstance(frames, list):
            return NO_SITE
        if id(frames) not in self._site_of_stack:
            for frame in frames:
                if id(frame) not in self._ranked_frames:
                    self._ranked_frames[id(frame)] = _ranked(frame)
            ranked = (self._ranked_frames[id(frame)] for frame in frames)
            self._site_of_stack[id(frames)] = min(ranked, key=itemgetter(0), default=(2, NO_SITE))[1]
        return self._site_of_stack[id(frames)]

    def _odd(self, oddity: str) -> TracediffError:
        """The error of a document that is not as torch writes it."""
        return TracediffError(self.subject, f"is not a memory snapshot: {oddity}", REMEDY)
