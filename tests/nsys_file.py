"""Databases as ``nsys export --type sqlite`` writes them, made from the events of a Kineto trace."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from build_trace import Event

PUSH_POP = 59
DIRECTIONS = ("", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
MEMORIES = ("Pageable", "Pinned", "Device", "Array", "Managed")
COPY = re.compile(r"Memcpy (\w+) \((\w+) -> (\w+)\)")
TABLES = {
    "StringIds": "id INTEGER PRIMARY KEY, value TEXT",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start, end, deviceId, streamId, correlationId, globalPid, demangledName, "
    "shortName, gridX, gridY, gridZ, blockX, blockY, blockZ, graphNodeId, registersPerThread",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start, end, deviceId, streamId, correlationId, globalPid, bytes, copyKind, srcKind, "
    "dstKind",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start, end, deviceId, streamId, correlationId, globalPid, bytes, memKind",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, globalTid, correlationId, nameId",
    "NVTX_EVENTS": "start, end, eventType, text, globalTid, textId",
    "TARGET_INFO_GPU": "id, name",
}


class NsysFile:
    """A database under construction."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.connection = sqlite3.connect(path)
        self.strings: dict[str, int] = {}
        for name, columns in TABLES.items():
            self.connection.execute(f"CREATE TABLE {name} ({columns})")

    def add(self, table: str, *values: Any) -> None:
        self.connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)

    def string(self, text: str) -> int:
        if text not in self.strings:
            self.strings[text] = len(self.strings) + 1
            self.add("StringIds", self.strings[text], text)
        return self.strings[text]

    def add_process(self, pid: int, events: Iterable[Event]) -> None:
        """The operators, annotations, calls, kernels and copies among ``events``."""
        for e in events:
            start = round(e["ts"] * 1000)
            self._add(pid, e, start, start + round(e["dur"] * 1000), e["args"])

    def _add(self, pid: int, e: Event, start: int, end: int, args: dict[str, Any]) -> None:
        place = [start, end, args.get("device"), args.get("stream"), args.get("correlation"), pid << 24]
        thread = pid << 24 | e["tid"] if isinstance(e["tid"], int) else None
        match e["cat"]:
            case "kernel":
                name = self.string(e["name"])
                sides = [*args.get("grid", [None] * 3), *args.get("block", [None] * 3)]
                self.add(
                    "CUPTI_ACTIVITY_KIND_KERNEL", *place, name, name, *sides, None, args.get("registers per thread")
                )
            case "gpu_memcpy":
                direction, source, target = COPY.fullmatch(e["name"]).groups()
                kinds = DIRECTIONS.index(direction), MEMORIES.index(source), MEMORIES.index(target)
                self.add("CUPTI_ACTIVITY_KIND_MEMCPY", *place, args.get("bytes"), *kinds)
            case "gpu_memset":
                self.add("CUPTI_ACTIVITY_KIND_MEMSET", *place, args.get("bytes"), 2)
            case "cuda_runtime" | "cuda_driver":
                name = self.string(f"{e['name']}_v7000")
                self.add("CUPTI_ACTIVITY_KIND_RUNTIME", start, end, thread, args.get("correlation"), name)
            case "cpu_op" | "user_annotation":
                self.add("NVTX_EVENTS", start, end, PUSH_POP, emitted(e), thread, None)

    def close(self) -> Path:
        self.connection.commit()
        self.connection.close()
        return self.path


def emitted(e: Event) -> str:
    """The text of an event as PyTorch's emit_nvtx writes it, of an annotation as a user does."""
    if e["cat"] == "user_annotation":
        return str(e["name"])
    seq, sizes = e["args"].get("Sequence number"), e["args"].get("Input Dims")
    return "".join(
        (
            e["name"],
            f", seq = {seq}" if seq is not None else "",
            f", op_id = {e['args'].get('External id', 1)}",
            f", sizes = {json.dumps(sizes)}" if sizes else "",
        )
    )


def write_nsys(path: Path, *processes: Sequence[Event]) -> Path:
    """A database with the events of one process after another, numbered from 100."""
    file = NsysFile(path)
    for number, events in enumerate(processes):
        file.add_process(100 + number, events)
    file.add("TARGET_INFO_GPU", 0, "NVIDIA H100 80GB HBM3")
    return file.close()
