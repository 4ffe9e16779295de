"""Measures comparing thousands of ranks: what remains for the driver when the workers have read the files.

    python benchmarks/replicas.py FOLDER            # FOLDER has a trace of each of a few ranks
    python benchmarks/replicas.py FOLDER --write    # and the table in docs/scale.md

The ranks are replicas of those of FOLDER. Every time of an operator, call or GPU event is longer by up to 1 µs, at
random and in each replica anew. Their profiles arrive as the workers of an executor send them.
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
import tempfile
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
from measuring import measured, write_section
from msgspec.structs import replace

import tracediff
from tracediff.engine import profile_ranks
from tracediff.ingest.discover import find_traces
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.model.health import Notes
from tracediff.process.workers import compressed
from tracediff.profile.model.profile import Profile

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "scale.md"
SIZES = (64, 256, 1_024, 4_096)
SIDES = ("before", "after")
LONGER_NS = 1000


def with_noise(profile: Profile, random: np.random.Generator) -> Profile:
    """``profile`` with longer times."""

    def longer(table: Any, *names: str) -> Any:
        columns = {name: getattr(table, name) for name in names}
        return replace(table, **{n: c + random.integers(0, LONGER_NS, c.shape) for n, c in columns.items()})

    return replace(
        profile,
        ops=longer(profile.ops, "total_ns", "self_ns"),
        calls=longer(profile.calls, "total_ns", "self_ns"),
        kernels=longer(profile.kernels, "total_ns", "first_ns"),
        host_work=longer(profile.host_work, "total_ns", "first_ns"),
        idle=longer(profile.idle, "values"),
    )


def write_replicas(folder: Path, to: Path, ranks: int) -> list[list[int]]:
    """Write what workers send of both sides' ``ranks`` ranks; (offset, size) of each, by side."""
    random = np.random.default_rng(0)
    real = [profile for file in find_traces(folder, Notes()) for profile in profile_ranks(file)]
    places: list[list[int]] = []
    with open(to, "wb") as file:
        for side in SIDES:
            for rank in range(ranks):
                profile = with_noise(real[rank % len(real)], random)
                origin = replace(profile.origin, file=TraceFile(f"{side}/rank{rank}"), rank=rank, world_size=ranks)
                sent = compressed(lambda made, _: made, replace(profile, origin=origin))
                places.append([file.tell(), len(sent)])
                file.write(sent)
    return places


class Workers:
    """An executor whose work is done before it is asked for."""

    def __init__(self, sent: Path, places: list[list[int]]) -> None:
        self.sent = os.open(sent, os.O_RDONLY)
        self.places = iter(places)

    def submit(self, *work: object) -> Future[bytes]:
        """A future that has the next profile."""
        del work
        return Sent(self.sent, *next(self.places))


class Sent(Future[bytes]):
    """A result that is fetched when it is asked for."""

    def __init__(self, sent: int, offset: int, size: int) -> None:
        super().__init__()
        self.place = sent, size, offset
        self.set_result(b"")

    def result(self, timeout: float | None = None) -> bytes:
        """What the worker sent."""
        del timeout
        return os.pread(*self.place)


def compare_replicas(folder: Path) -> None:
    """The driver: compare the sides whose replicas are in ``folder``."""
    places = pickle.loads((folder / "places").read_bytes())
    diff = tracediff.compare(*(folder / side for side in SIDES), executor=Workers(folder / "sent", places))
    diff.to_json()


def measure(folder: Path, ranks: int) -> str:
    """A row of the table."""
    with tempfile.TemporaryDirectory() as work:
        for side in SIDES:
            Path(work, side).mkdir()
            for rank in range(ranks):
                Path(work, side, f"rank{rank:05}.json").touch()
        places = write_replicas(folder, Path(work, "sent"), ranks)
        Path(work, "places").write_bytes(pickle.dumps(places))
        cost = measured([sys.executable, __file__, "--driver", work], 1)
    if cost.fault:
        raise SystemExit(f"{ranks:,} ranks: {cost.fault}")
    sent = sum(size for _, size in places)
    return f"| {ranks:,} | {sent / 1e6:,.0f} MB | {cost.cpu:.1f} s | {cost.peak / 1e6:,.0f} MB |"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Measure the driver's share of comparing many ranks.")
    parser.add_argument("folder", type=Path, help="traces of a few ranks of one program")
    parser.add_argument("--ranks", type=int, nargs="*", default=SIZES, help="ranks per side (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help=f"write the table to {DOCUMENT.name}")
    parser.add_argument("--driver", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.driver:
        compare_replicas(args.folder)
        return
    lines = ["| ranks per side | sent by the workers | CPU | peak memory |", "|--:|--:|--:|--:|"]
    for ranks in args.ranks:
        lines.append(measure(args.folder, ranks))
        print(lines[-1], flush=True)
    if args.write:
        write_section(DOCUMENT, "replicas", "replicas.py --write", lines)


if __name__ == "__main__":
    main()
