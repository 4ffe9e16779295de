"""Makes a long trace from a short real one: repeats its events with later starts and other ids, in Kineto's layout.

    python benchmarks/tile.py big.json --mb 300
    python benchmarks/tile.py slower.json --mb 300 --slower gemm

Each repetition (tile) is a copy of the text in which only the digits of starts, ids and step numbers change; nothing is
parsed as JSON.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TRACES = Path(os.environ.get("TRACEDIFF_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))
DEFAULT_SOURCE = TRACES / "hta_control" / "control.json.gz"

LINKED = (
    b"correlation",
    b"External id",
    b"external id",
    b"id",
    b"wait_on_cuda_event_record_corr_id",
    b"Record function id",
)
"""Ids for which 0 means none."""
COUNTED = (b"Ev Idx", b"Profiler Event Index", b"Python id", b"Python parent id", b"Sequence number")
NUMBER = re.compile(rb'(?<!\\)"(?:ts|%s)": (?=\d)|ProfilerStep#(?=\d)' % b"|".join(LINKED + COUNTED))
DIGITS = re.compile(rb"\d+")
BETWEEN = re.compile(rb"(?<=\n  \}),(?=\n  \{)")
ONCE = re.compile(rb'"ph": "M"|"cat": "Trace"|"name": "(?:Iteration Start|Record Window End)')
"""Events that occur once per trace: names of processes and threads, the profiler's span and its marks."""


@dataclass
class Source:
    """The text of one trace.

    Attributes:
        head, tail: text before and after the events. events: text of each repeated event. once: of each other event.
    """

    head: bytes
    events: list[bytes]
    once: list[bytes]
    tail: bytes


@dataclass
class Template:
    """The text of all events, split at the numbers that change: ``literals[0] numbers[0] literals[1] …``.

    Attributes:
        strides: increment of each number from tile to tile.
    """

    literals: list[bytes]
    numbers: list[int]
    strides: list[int]

    def tile(self, k: int) -> bytes:
        """The text of tile ``k``."""
        pieces: list[bytes] = [b""] * (2 * len(self.numbers) + 1)
        pieces[::2] = self.literals
        pieces[1::2] = [
            b"%d" % (number + k * stride) for number, stride in zip(self.numbers, self.strides, strict=True)
        ]
        return b"".join(pieces)


def read_source(path: Path) -> Source:
    """The parts of the trace at ``path``.

    Raises:
        SystemExit: it does not exist or is not in Kineto's layout.
    """
    if not path.exists():
        raise SystemExit(f"{path}: no such trace; set TRACEDIFF_TRACES to the folder of shared traces or give --source")
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    start = re.search(rb'"traceEvents": \[', text)
    end = text.rfind(b"\n  }\n  ]")
    if start is None or end < 0:
        raise SystemExit(f"{path}: not in the text layout that Kineto writes; give another --source")
    end += len(b"\n  }")
    events = BETWEEN.split(text[start.end() : end])
    once = [e for e in events if ONCE.search(e)]
    return Source(text[: start.end()], [e for e in events if not ONCE.search(e)], once, text[end:])


def template_of(events: list[bytes]) -> Template:
    """The template of ``events``; consecutive tiles have no gaps in time, ids and steps."""
    text = b",".join(events)
    literals, keys, numbers, position = [], [], [], 0
    for match in NUMBER.finditer(text):
        digits = DIGITS.match(text, match.end())
        assert digits is not None  # NUMBER looks ahead for one
        literals.append(text[position : match.end()])
        keys.append(match[0].strip(b'": '))
        numbers.append(int(digits[0]))
        position = digits.end()
    literals.append(text[position:])
    stride = dict.fromkeys(
        LINKED + COUNTED, 1 + max((n for k, n in zip(keys, numbers, strict=True) if k in LINKED + COUNTED), default=0)
    )
    steps = [n for k, n in zip(keys, numbers, strict=True) if k == b"ProfilerStep#"]
    stride |= {b"ts": _span(events), b"ProfilerStep#": 1 + max(steps, default=0) - min(steps, default=0)}
    return Template(
        literals, numbers, [0 if k in LINKED and n == 0 else stride[k] for k, n in zip(keys, numbers, strict=True)]
    )


def _span(events: list[bytes]) -> int:
    """Microseconds from the first start to the last end, rounded up."""
    start = re.compile(rb'"ts": (\d+(?:\.\d+)?)')
    dur = re.compile(rb'"dur": (\d+(?:\.\d+)?)')
    starts = [_nanoseconds(m[1]) for e in events if (m := start.search(e))]
    lengths = [_nanoseconds(m[1]) if (m := dur.search(e)) else 0 for e in events if start.search(e)]
    return -(-(max(map(int.__add__, starts, lengths)) - min(starts)) // 1000) + 1


def _nanoseconds(us: bytes) -> int:
    whole, _, fraction = us.partition(b".")
    return int(whole) * 1000 + int(fraction[:3].ljust(3, b"0"))


def slowed(events: list[bytes], name: str, factor: float) -> list[bytes]:
    """``events`` with the durations of kernels whose name contains ``name`` times ``factor``."""
    wanted = re.compile(rb'"cat": "[Kk]ernel", "name": "[^"]*' + re.escape(name.encode()))
    dur = re.compile(rb'(?<="dur": )\d+(\.\d+)?')

    def longer(match: re.Match[bytes]) -> bytes:
        return b"%.3f" % (float(match[0]) * factor) if match[1] else b"%d" % round(float(match[0]) * factor)

    slower_events = [dur.sub(longer, e, count=1) if wanted.search(e) else e for e in events]
    if slower_events == events:
        raise SystemExit(f"--slower {name}: no kernel has a name that contains it")
    return slower_events


def pieces(source: Source, tiles: int) -> Iterator[bytes]:
    """The text of a trace of ``tiles`` tiles, in order."""
    template = template_of(source.events)
    yield source.head
    for k in range(tiles):
        yield (b"," if k else b"") + template.tile(k)
    for event in source.once:
        yield b"," + event
    yield source.tail


def write_tiled(source: Source, out: Path, megabytes: float) -> int:
    """Write at least ``megabytes`` of tiles to ``out``; returns the number of tiles."""
    tiles = max(1, -int(-megabytes * 1e6 // sum(len(e) + 1 for e in source.events)))
    out.parent.mkdir(parents=True, exist_ok=True)
    with open(out, "wb") as file:
        file.writelines(pieces(source, tiles))
    return tiles


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Make a long trace from a short real one, in Kineto's text layout.")
    parser.add_argument("out", type=Path, help="write this file, as uncompressed JSON")
    parser.add_argument(
        "--source",
        type=Path,
        default=DEFAULT_SOURCE,
        help="repeat the events of this trace, in Kineto's layout (default: %(default)s)",
    )
    parser.add_argument("--mb", type=float, default=300, help="minimum size in MB (default: %(default)s)")
    parser.add_argument("--slower", metavar="NAME", help="lengthen the kernels whose name contains NAME")
    parser.add_argument(
        "--factor", type=float, default=1.1, help="factor by which to lengthen them (default: %(default)s)"
    )
    args = parser.parse_args()
    source = read_source(args.source)
    if args.slower:
        source.events = slowed(source.events, args.slower, args.factor)
    tiles = write_tiled(source, args.out, args.mb)
    print(
        f"{args.out}: {args.out.stat().st_size / 1e6:.0f} MB, {tiles} tiles of {len(source.events):,} events",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
