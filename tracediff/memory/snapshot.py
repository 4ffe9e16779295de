"""One file of ``torch.cuda.memory._dump_snapshot`` → the events, blocks and segments of each device, with the call site
of each block.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import Struct, field

from tracediff import bounds
from tracediff.errors import TracediffError
from tracediff.ingest.files.source import TraceFile, open_trace
from tracediff.ingest.model.names import bounded
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


class CallSites:
    """The call site of each stack. A stack or frame that occurs often is looked at once, while its document lives."""

    def __init__(self) -> None:
        self._of_stack: dict[int, CallSite] = {}
        self._of_frame: dict[int, tuple[int, CallSite]] = {}

    def of(self, frames: Any) -> CallSite:
        """The innermost frame of ``frames`` (innermost first) outside torch; if there is none, the innermost of torch's
        Python; without any Python `NO_SITE`.
        """
        if not isinstance(frames, list) or not frames:
            return NO_SITE
        site = self._of_stack.get(id(frames))
        if site is None:
            site = self._of_stack[id(frames)] = self._find(frames)
        return site

    def _find(self, frames: list[Any]) -> CallSite:
        best_rank, best = len(RANKS), NO_SITE
        for frame in frames:
            ranked = self._of_frame.get(id(frame))
            if ranked is None:
                ranked = self._of_frame[id(frame)] = _ranked(frame)
            if ranked[0] == 0:
                return ranked[1]
            if ranked[0] < best_rank:
                best_rank, best = ranked
        return best


RANKS = ("of a user", "of torch", "not Python")


def _ranked(frame: Any) -> tuple[int, CallSite]:
    """(position in `RANKS`, call site) of a frame, a dictionary of filename, line and name."""
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


class MemoryEvent(NamedTuple):
    """One event of the allocator: its action, the address and bytes of its block or segment, its time in µs (None if
    not recorded), its call site.
    """

    action: str
    address: int
    size: int
    time: int | None
    site: CallSite


class MemoryBlock(NamedTuple):
    """A block allocated when the snapshot was dumped: its address, its bytes, those that the program requested, and
    the call site that allocated it.
    """

    address: int
    size: int
    requested: int
    site: CallSite


class Segment(NamedTuple):
    """Memory that the allocator holds: its address, bytes, type (small, large or expandable), stream and pool."""

    address: int
    size: int
    kind: str
    stream: int
    pool: tuple[int, int]


class Recording(Struct):
    """One device: events in order of time; segments and allocated blocks at the dump."""

    device: int
    events: list[MemoryEvent] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    blocks: list[MemoryBlock] = field(default_factory=list)


class MemorySnapshot(Struct, frozen=True):
    """One file: its name and the recording of each device that has any, by number."""

    name: str
    recordings: tuple[Recording, ...]


def read_snapshot(path: str) -> MemorySnapshot:
    """The memory snapshot at ``path``, plain or compressed (gzip, zstd), or at a URL.

    Raises:
        TracediffError: it cannot be read, is not a memory snapshot, or is larger than the limits.
    """
    file = TraceFile(path)
    subject = str(file)
    parts, size = [], 0
    with open_trace(file) as unpacked:
        while part := unpacked.read(CHUNK):
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                reason = f"is larger than {MOST_BYTES >> 20} MiB"
                raise TracediffError(subject, reason, "record fewer events: _record_memory_history(max_entries=100000)")
    was_enabled = gc.isenabled()
    gc.disable()  # every object lives until the recordings are made, so collecting finds nothing
    try:
        return MemorySnapshot(file.name, _Reader(subject).recordings(load_plain(b"".join(parts), subject)))
    finally:
        if was_enabled:
            gc.enable()


class _Reader:
    """Checks and converts the plain containers of one file; every list is read once."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.sites = CallSites()
        self.walked: set[int] = set()

    def recordings(self, document: Any) -> tuple[Recording, ...]:
        """The devices of a document that have an event or a segment."""
        if not isinstance(document, dict) or not {"segments", "device_traces"} <= document.keys():
            raise TracediffError(self.subject, "is a pickle, but not a memory snapshot", REMEDY)
        recordings: dict[int, Recording] = {}
        for device, trace in enumerate(self.items(document["device_traces"], "device_traces")):
            if events := [self.event(entry) for entry in self.items(trace, "device_traces")]:
                recordings[device] = Recording(device, events)
        for segment in self.items(document["segments"], "segments"):
            device = self.number(segment, "device", 0)
            recording = recordings.setdefault(device, Recording(device))
            recording.segments.append(self.segment(segment))
            recording.blocks += self.blocks(segment)
        if not recordings:
            remedy = "call torch.cuda.memory._record_memory_history() before the steps, and record it again"
            raise TracediffError(self.subject, "contains no allocation", remedy)
        if len(recordings) > bounds.MEMORY_DEVICES:
            raise TracediffError(self.subject, f"has more than {bounds.MEMORY_DEVICES:,} devices", REMEDY)
        return tuple(recordings[device] for device in sorted(recordings))

    def event(self, entry: Any) -> MemoryEvent:
        """One entry of a device's trace. Events of no block, such as oom, may lack an address."""
        action = entry.get("action") if isinstance(entry, dict) else None
        if not isinstance(action, str):
            raise self.odd("an event without an action")
        time = entry.get("time_us")
        return MemoryEvent(
            action,
            self.number(entry, "addr", 0),
            self.amount(entry, "size", None if action in (ALLOC, FREE) else 0),
            time if isinstance(time, int) else None,
            self.sites.of(entry.get("frames")),
        )

    def segment(self, entry: Any) -> Segment:
        """One segment."""
        kind, pool = entry.get("segment_type"), entry.get("segment_pool_id")
        kind = EXPANDABLE if entry.get("is_expandable") is True else kind
        return Segment(
            self.number(entry, "address", 0),
            self.amount(entry, "total_size", None),
            kind if kind in ("small", "large", EXPANDABLE) else "unknown",
            self.number(entry, "stream", 0),
            pool if isinstance(pool, tuple) else (0, 0),
        )

    def blocks(self, segment: Any) -> Iterator[MemoryBlock]:
        """The allocated blocks of a segment; old snapshots have no addresses, which follow from the sizes."""
        address = self.number(segment, "address", 0)
        for entry in self.items(segment.get("blocks", []), "blocks"):
            size = self.amount(entry, "size", None)
            address = self.number(entry, "address", address)
            if entry.get("state") == ALLOCATED:
                requested = min(self.amount(entry, "requested_size", size), size)
                yield MemoryBlock(address, size, requested, self.sites.of(entry.get("frames")))
            address += size

    def items(self, value: Any, name: str) -> list[Any]:
        """``value``, a list that was not read before."""
        if not isinstance(value, list):
            raise self.odd(f"{name} that is not a list")
        if value and id(value) in self.walked:
            raise self.odd(f"{name} that occurs more than once")
        self.walked.add(id(value))
        return value

    def number(self, entry: Any, key: str, default: int | None) -> int:
        """A whole number of a dictionary; ``default`` where it is missing, an error if that is None."""
        if not isinstance(entry, dict):
            raise self.odd("an entry that is not a dictionary")
        value = entry.get(key, default)
        if type(value) is not int:
            raise self.odd(f"an entry without {key}")
        return value

    def amount(self, entry: Any, key: str, default: int | None) -> int:
        """A number of bytes."""
        value = self.number(entry, key, default)
        if value < 0:
            raise self.odd(f"a negative {key}")
        return value

    def odd(self, oddity: str) -> TracediffError:
        """The error of a document that is not as torch writes it."""
        return TracediffError(self.subject, f"is not a memory snapshot: it has {oddity}", REMEDY)
