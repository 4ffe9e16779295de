"""Compares the time and memory of tracediff with HTA and with the parse floor, each measurement in its own process.

    python benchmarks/bench.py                                  # the table
    python benchmarks/bench.py --hta-python .venv-hta/bin/python --write

benchmarks/README.md explains the measurements.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path

import tile
from measuring import Cost, command_line, in_turn, measured, write_section

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
README = HERE / "README.md"
SLOWER = "gemm"
RANKS, RANKS_OF = 64, "dlrm_8ranks"
"""Ranks of each side of the pair of many ranks, and the traces of real ones that they are copies of."""
RANK = re.compile(rb'("rank": )\d+(, "world_size": )\d+')
SAMPLES = tuple(ROOT / "sample_traces" / "ensemble" / side for side in ("loop", "vmap"))
START_RUNS = 11
"""Runs whose median is compared: single ones of a tenth of a second differ by half."""
SMALL = ("transformer_h100_run1/a.pt.trace.json", "transformer_h100_run2/b.pt.trace.json")
PACKAGES = {"ours": ("numpy", "msgspec", "pysimdjson"), "HTA": ("traceinsight", "pandas", "numpy")}


# The jobs, which run in the measured processes: `python bench.py --job NAME ARGUMENTS`.


def parse_floor(path: str) -> None:
    """Read the file and parse it with simdjson, without reading any value."""
    import simdjson

    with open(path, "rb") as file:
        text = file.read()
    simdjson.Parser().parse(text)


def load(path: str) -> None:
    """tracediff: one file → columns."""
    from tracediff.ingest.read import read_trace

    read_trace(path)


def load_and_profile(path: str) -> None:
    """tracediff: one file → columns → tables."""
    from tracediff.engine import profile_ranks
    from tracediff.ingest.files.source import TraceFile

    profile_ranks(TraceFile(path))


def hta_parse(folder: str) -> None:
    """HTA: one folder with one trace → data frames, with the defaults of its TraceDiff."""
    from hta.common.trace import Trace

    Trace(trace_dir=folder).parse_traces()


def hta_compare(control: str, test: str) -> None:
    """HTA: two folders with one trace each → its table of differences."""
    from hta.trace_diff import TraceDiff

    TraceDiff.compare_traces(control, test)


def versions(*packages: str) -> None:
    """Print the versions of this interpreter and of ``packages``; not a measurement."""
    installed = {d.metadata["Name"].lower(): d.version for d in importlib.metadata.distributions()}
    print(
        ", ".join(
            [f"Python {platform.python_version()}", *(f"{name} {installed.get(name, '(absent)')}" for name in packages)]
        )
    )


JOBS: dict[str, Callable[..., None]] = {
    f.__name__: f for f in (parse_floor, load, load_and_profile, hta_parse, hta_compare, versions)
}


def job(name: str, *arguments: object, python: str = sys.executable) -> list[str]:
    """The command that runs one of the JOBS."""
    return [python, str(Path(__file__).resolve()), "--job", name, *map(str, arguments)]


# The table.


@dataclass(frozen=True)
class Row:
    """One row of the table; ``is_met`` is None if there is no requirement."""

    what: str
    requirement: str
    _: KW_ONLY
    ours: str
    against: str
    measured: str
    is_met: bool | None = None

    def __str__(self) -> str:
        mark = "" if self.is_met is None else " ✓" if self.is_met else " ✗"
        return f"| {self.what} | {self.requirement} | {self.ours} | {self.against} | {self.measured}{mark} |"


HEADER = "| | required | tracediff | compared with | measured |\n|---|---|---|---|---|"


def faster(what: str, least: float | None, than: str, ours: Cost, other: Cost) -> Row:
    """A row that compares wall times; ``least`` is the required speed-up."""
    row = Row(
        what,
        f"≥ {least:g} × faster than {than}" if least else f"(compared with {than})",
        ours=str(ours),
        against=str(other),
        measured="–",
    )
    if ours.fault or other.fault:
        return row
    ratio = other.wall / ours.wall
    return replace(row, measured=f"{ratio:.1f} × faster", is_met=None if least is None else ratio >= least)


def at_most(
    what: str, requirement: str, *, ours: Cost, against: str, value: float, limit: float | None, unit: str
) -> Row:
    """A row that compares a value of tracediff with a limit."""
    if ours.fault or value != value:
        return Row(what, requirement, ours=str(ours), against=against, measured="–")
    return Row(
        what,
        requirement,
        ours=str(ours),
        against=against,
        measured=f"{value:.2f} {unit}",
        is_met=None if limit is None else value <= limit,
    )


def rows_of(
    pair: tuple[Path, Path],
    tile_file: Path,
    small: tuple[Path, Path],
    ranks: tuple[Path, Path],
    runs: int,
    hta: Callable[..., Cost],
) -> list[Row]:
    """Run all measurements and return the rows of the table."""
    control, test = pair
    size = control.stat().st_size
    both = size + test.stat().st_size

    def ours(what: str, command: Sequence[str]) -> Cost:
        print(what, file=sys.stderr)
        return measured(command, runs)

    floor = ours("parse floor", job("parse_floor", control))
    hta_one, hta_parsed, hta_compared = (
        hta("hta_parse", tile_file.parent),
        hta("hta_parse", control.parent),
        hta("hta_compare", control.parent, test.parent),
    )
    loaded, loaded_one = ours("load", job("load", control)), ours("load, one tile", job("load", tile_file))
    profiled = ours("load and profile", job("load_and_profile", control))
    compared = ours("compare", command_line("compare", control, test))
    helped = ours("--help", command_line("--help"))
    compared_small = ours("compare, 1 MB", command_line("compare", *small))
    hta_small = hta("hta_compare", *(path.parent for path in small))
    print("compare, the sample pair", file=sys.stderr)
    started, numpy = in_turn([command_line("compare", *SAMPLES), [sys.executable, "-c", "import numpy"]], START_RUNS)
    compared_ranks = ours("compare, many ranks", command_line("compare", *ranks))
    hta_ranks = hta("hta_compare", *ranks)
    return [
        faster("load", 9, "HTA's parse", loaded, hta_parsed),
        faster("compare of the two", 12, "HTA's compare_traces", compared, hta_compared),
        faster(f"compare of {RANKS} ranks a side", None, "HTA's compare_traces", compared_ranks, hta_ranks),
        faster("compare of two 1 MB files", None, "HTA's compare_traces", compared_small, hta_small),
        at_most(
            "load, peak memory",
            "≤ 0.7 × the JSON",
            ours=loaded,
            against=f"{size / 1e6:.0f} MB of JSON",
            value=loaded.peak / size,
            limit=0.7,
            unit="× the JSON",
        ),
        at_most(
            "compare, peak memory",
            "≤ 0.7 × the JSON",
            ours=compared,
            against=f"{both / 1e6:.0f} MB of JSON",
            value=compared.peak / both,
            limit=0.7,
            unit="× the JSON",
        ),
        at_most(
            "load",
            "≤ 4 × the parse floor",
            ours=loaded,
            against=str(floor),
            value=loaded.wall / (floor.wall or float("nan")),
            limit=None if floor.fault else 4,
            unit="× the floor",
        ),
        at_most(
            "`tracediff --help`",
            "< 0.3 s of CPU",
            ours=helped,
            against="",
            value=helped.cpu,
            limit=0.3,
            unit="s of CPU",
        ),
        at_most(
            "compare of two 1 MB files",
            "< 1.2 s of CPU",
            ours=compared_small,
            against="",
            value=compared_small.cpu,
            limit=1.2,
            unit="s of CPU",
        ),
        at_most(
            "compare of the sample pair",
            "≤ 3 × `import numpy`",
            ours=started,
            against=str(numpy),
            value=started.wall / (numpy.wall or float("nan")),
            limit=3,
            unit="× `import numpy`",
        ),
        at_most(
            "load and profile",
            "",
            ours=profiled,
            against=str(loaded),
            value=profiled.wall / (loaded.wall or float("nan")),
            limit=None,
            unit="× load",
        ),
        faster(f"load of one tile, {tile_file.stat().st_size / 1e6:.0f} MB", None, "HTA's parse", loaded_one, hta_one),
    ]


# The traces, the machine, the command line.


def build(out: Path, megabytes: float) -> tuple[tuple[Path, Path], Path, tuple[Path, Path], tuple[Path, Path]]:
    """Write the traces: the large pair, one tile of it, the small pair, and that of many ranks."""
    control, test, tile_file = (out / name / f"{name}.json" for name in ("control", "test", "one"))  # HTA reads folders
    first, second = (out / str(Path(name).parent) / "small.json" for name in SMALL)
    _build(control, "--mb", megabytes)
    _build(test, "--mb", megabytes, "--slower", SLOWER)
    _build(tile_file, "--mb", 1)
    _build(first, "--mb", 1, "--source", tile.TRACES / SMALL[0])
    _build(second, "--mb", 1, "--source", tile.TRACES / SMALL[1])
    return (control, test), tile_file, (first, second), build_ranks(out)


def build_ranks(out: Path) -> tuple[Path, Path]:
    """Write the pair of many ranks: copies of real ranks under other numbers, the same on both sides."""
    texts = [gzip.decompress(path.read_bytes()) for path in sorted((tile.TRACES / RANKS_OF).glob("*.gz"))]
    sides = out / "ranks_control", out / "ranks_test"
    for folder in sides:
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(RANKS):
            numbered = RANK.sub(rb"\g<1>%d\g<2>%d" % (rank, RANKS), texts[rank % len(texts)], count=1)
            (folder / f"rank{rank}.json").write_bytes(numbered)
    return sides


def _build(path: Path, *options: object) -> None:
    """Build in a separate process: this one must stay small, because its children inherit its ``ru_maxrss``."""
    if subprocess.run([sys.executable, str(HERE / "tile.py"), str(path), *map(str, options)], check=False).returncode:
        raise SystemExit(f"{path}: cannot be built; see the message above")


def machine(hta_python: str) -> str:
    """The machine and the versions that the numbers depend on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        model = next(
            (
                line.partition(":")[2].strip()
                for line in cpuinfo.read_text().splitlines()
                if line.startswith("model name")
            ),
            model,
        )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    ours, theirs = _versions(sys.executable, PACKAGES["ours"]), _versions(hta_python, PACKAGES["HTA"])
    return f"{cores} cores of {model}, {platform.system()}; tracediff: {ours}; HTA's: {theirs}."


def _versions(python: str, packages: Sequence[str]) -> str:
    done = subprocess.run(job("versions", *packages, python=python), capture_output=True, text=True, check=False)
    return done.stdout.strip() or "an interpreter that does not start"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description="Compare the time and memory of tracediff with HTA and with the parse floor."
    )
    parser.add_argument("--mb", type=float, default=300, help="size of the large traces in MB (default: %(default)s)")
    parser.add_argument(
        "--runs", type=int, default=3, help="run each measurement N times and report the best (default: %(default)s)"
    )
    parser.add_argument(
        "--hta-runs", type=int, default=1, help="run HTA's measurements N times; 0 skips them (default: %(default)s)"
    )
    parser.add_argument(
        "--hta-python",
        default=sys.executable,
        metavar="PATH",
        help="Python interpreter with traceinsight (default: this one)",
    )
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/README.md")
    args = parser.parse_args()

    def hta(name: str, *folders: Path) -> Cost:
        if not args.hta_runs:
            return Cost(fault="skipped")
        if subprocess.run([args.hta_python, "-c", "import hta"], capture_output=True, check=False).returncode:
            return Cost(fault="not installed here: pip install traceinsight, or --hta-python")
        print(f"HTA: {name}", file=sys.stderr)
        return measured(job(name, *folders, python=args.hta_python), args.hta_runs)

    rows = rows_of(*build(HERE / "out", args.mb), args.runs, hta)
    text = "\n".join([HEADER, *map(str, rows), "", machine(args.hta_python)])
    print(text)
    if args.write:
        write_section(README, "measured", "bench.py --write", [text])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        JOBS[sys.argv[2]](*sys.argv[3:])
    else:
        main()
