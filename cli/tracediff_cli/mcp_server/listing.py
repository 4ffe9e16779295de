"""The table of the sets below a folder, from the names of their files and the heads of their traces."""

import json
import re
from itertools import islice
from pathlib import Path

from rich.console import Console, Group
from rich.text import Text

from tracediff import bounds
from tracediff.errors import TracediffError, printable
from tracediff.formatting import ranges, size
from tracediff.ingest.discover import find_traces, is_snapshot, rank_in_name, worker_of
from tracediff.ingest.files.source import TraceFile, open_trace, stored_size
from tracediff.present.plain_text import Table
from tracediff.report.table_terminal import print_screen, to_rich
from tracediff.set_folder import SetFolder

HEAD = 1 << 16
"""Bytes of a trace in which its devices are sought."""
DEVICES = re.compile(rb'"deviceProperties"\s{0,8}:\s{0,8}(?=\[)')
UNKNOWN = "unknown"


def show_sets(folder: SetFolder, console: Console) -> None:
    """Print a row for each set below ``folder``, and a line for each that cannot be read."""
    rows, refused = [], []
    for name in sorted(islice(folder.names(), bounds.SETS_LISTED)):
        try:
            rows.append(_row(name, folder.path(name)))
        except TracediffError as error:
            refused.append(f"{name}: {error.reason}; {error.remedy}")
    table = Table(
        title=f"Sets below {folder.root.name}; runs and ranks as their files are named",
        heads=("set", "GPU", "runs", "ranks", "files", "size"),
        texts=2,
        rows=tuple(rows),
        together=4,
    )
    print_screen(console, Group(to_rich(table), *(Text(printable(line)) for line in refused)))


def _row(name: str, path: Path) -> tuple[str, ...]:
    files = find_traces(path)
    amount = size(float(sum(map(stored_size, files))))
    if is_snapshot(files[0]):
        return name, "in the snapshot", "–", "–", str(len(files)), amount
    workers: dict[int | None, set[str]] = {}
    for file in files:
        workers.setdefault(rank_in_name(file), set()).add(worker_of(file))
    runs = max(map(len, workers.values()))
    ranks = sorted(rank for rank in workers if rank is not None)
    return name, _gpu(files[0]), str(runs), ranges(ranks) or UNKNOWN, str(len(files)), amount


def _gpu(file: TraceFile) -> str:
    """The devices that the head of a trace names; ``none`` if it says so."""
    try:
        with open_trace(file) as unpacked:
            head = unpacked.peek(HEAD)
        begin = DEVICES.search(head)
        if begin is None:
            return UNKNOWN
        devices, _ = json.JSONDecoder().raw_decode(head[begin.end() :].decode(errors="replace"))
    except (TracediffError, ValueError, RecursionError):
        return UNKNOWN
    names = [device.get("name") for device in devices if isinstance(device, dict)]
    return ", ".join(dict.fromkeys(name for name in names if isinstance(name, str))) or "none"
