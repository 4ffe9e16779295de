"""What is fuzzed: for each kind of input how one is made, and what is done with it."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random

import profile_reference
from accounts import assert_antisymmetric, assert_closes
from build_trace import PROCESS, document, op, step
from consumption import of_children
from odd_values import text
from one_file import profile_file

from fuzz import formats, mutate, seeds
from fuzz.environment_target import make_environment, use_environment
from fuzz.growth import use_pair
from fuzz.invariants import counted, one_line, require, same_reading
from fuzz.log_target import make_log, use_log
from fuzz.memory_target import make_memory, use_memory
from tracediff.aggregate.snapshot import write_snapshot
from tracediff.diff.gate.limits import read_settings
from tracediff.engine import ARGUMENTS, load_sets
from tracediff.errors import TracediffError
from tracediff.explain.compare import compare_sets
from tracediff.ingest.discover import SNAPSHOT_SUFFIX
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.json.native import SWITCH
from tracediff.ingest.manifest import read_manifest
from tracediff.ingest.model.trace import Trace
from tracediff.ingest.read import read_trace
from tracediff.ingest.readers import database_process
from tracediff.profile.kernels.families import read_rules
from tracediff.report.to_json import to_json

PIECES, PROFILED, COMPARED = 0.5, 0.4, 0.15
"""Parts of the traces that are also read in pieces; profiled; compared, with all that follows from it."""
DATABASE_SECONDS, DATABASE_MEMORY = 10, 300_000_000
"""Limits for the process that reads a database."""


@dataclass(frozen=True)
class Target:
    """A kind of input.

    Attributes:
        make: a new input.
        use: does with an input, in an empty folder, what commands do; raises TracediffError for a refusal, and anything
            else for a fault.
        seconds: CPU time that an input may take, a hundred times what most do.
    """

    make: Callable[[Random], bytes]
    use: Callable[[bytes, Path, Random], None]
    seconds: int = 5


def make_trace(random: Random) -> bytes:
    """A trace, spoiled or damaged or both."""
    document = seeds.trace(random)
    way = random.random()
    content = text(mutate.spoil(random, document) if way < 0.8 else document)
    if way > 0.7:
        content = mutate.damage(random, content)
    return mutate.packed(random, content) if random.random() < 0.03 else content


def use_trace(content: bytes, folder: Path, random: Random) -> None:
    """Read it, and some in pieces; profile some, compare some with a trace that is whole."""
    path = folder / ("trace.json.gz" if content.startswith(b"\x1f\x8b") else "trace.json")
    path.write_bytes(content)
    whole = read_trace(str(path))
    counted(whole, content)
    if random.random() < PIECES:
        same_reading(whole, read_trace(str(path), random.choice((50, 200, 1000, 5000))))
    if random.random() < PROFILED:
        load_sets([str(path)])
    elif random.random() < COMPARED:
        compare_with_base(path, folder, random)


def compare_with_base(path: Path, folder: Path, random: Random) -> None:
    """Compare in both directions, and write the answer as JSON."""
    base = folder / "base.json"
    base.write_bytes(_base())
    control, test = load_sets([str(base), str(path)])
    forth, back = compare_sets(control, test, force=True), compare_sets(test, control, force=True)
    for comparison in (forth, back):
        assert_closes(comparison)
    assert_antisymmetric(forth, back)
    document = to_json(forth if random.random() < 0.5 else back)
    json.loads(document)


@cache
def _base() -> bytes:
    return text(seeds.trace(Random(1)))


@cache
def _snapshots(folder: Path) -> list[bytes]:
    """Unpacked snapshots of some traces."""
    found = []
    for seed in range(6):
        path = folder / "seed.json"
        path.write_bytes(text(seeds.trace(Random(seed))))
        (traces,) = load_sets([str(path)])
        write_snapshot(traces, folder / f"seed{SNAPSHOT_SUFFIX}")
        found.append(gzip.decompress((folder / f"seed{SNAPSHOT_SUFFIX}").read_bytes()))
    return found


def use_snapshot(content: bytes, folder: Path, random: Random) -> None:
    """Spoil a snapshot with the seed that ``content`` is; read it, and compare some."""
    chosen = Random(content)
    data = chosen.choice(_snapshots(folder))
    if chosen.random() < 0.7:
        lines = data.splitlines()
        at = chosen.randrange(len(lines))
        lines[at] = text(mutate.spoil(chosen, json.loads(lines[at])))
        data = b"\n".join(lines)
    else:
        data = mutate.damage(chosen, data)
    path = folder / f"spoiled{SNAPSHOT_SUFFIX}"
    packed = gzip.compress(data, 1)
    path.write_bytes(mutate.damage(chosen, packed) if chosen.random() < 0.05 else packed)
    if random.random() < PROFILED:
        compare_with_base(path, folder, random)
    else:
        load_sets([str(path)])


def make_seed(random: Random) -> bytes:
    """What `use_snapshot` begins with."""
    return str(random.getrandbits(64)).encode()


SETTINGS = b"""[check]
max_regression = "3%"
min_delta = "50us"
allow = ["gpu"]

[[check.limit]]
subject = "family:gemm"
relative = "5%"
absolute = "20us"

[[check.waiver]]
pattern = "op:aten::copy_*"
reason = "copies until the loader is rewritten"
expires = 2026-12-31
"""
RULES = b"""[[family]]
name = "gemm"
patterns = ["my_gemm", "^corp_.*_mm$"]
"""
WORDS = (
    b"[[check.limit]]",
    b"[a.b.c]",
    b"x = 1",
    b'"%s"' % (b"9" * 5000),
    b"nan",
    b"-1e999",
    b"0x1_0",
    b"(a+)+b",
    b"{}",
    b"a" * 999,
)


def make_lines(random: Random, whole: bytes) -> bytes:
    """TOML with values of other lines, odd words, lines lost and doubled, or damaged."""
    lines = whole.split(b"\n")
    for _ in range(random.choice((0, 1, 2, 4))):
        at, other = random.randrange(len(lines)), random.randrange(len(lines))
        key, _, value = lines[at].partition(b" = ")
        word = random.choice((lines[other].partition(b" = ")[2], value, random.choice(WORDS)))
        lines[at : at + 1] = random.choice(
            ([key + b" = " + word], [], [lines[at]] * 2, [lines[at], random.choice(WORDS)])
        )
    spoilt = b"\n".join(lines)
    return mutate.damage(random, spoilt) if random.random() < 0.3 else spoilt


def use_settings(content: bytes, folder: Path, _random: Random) -> None:
    """Read the settings of a check."""
    path = folder / "tracediff.toml"
    path.write_bytes(content)
    read_settings(path)


def use_rules(content: bytes, folder: Path, _random: Random) -> None:
    """Read families of one's own."""
    path = folder / "families.toml"
    path.write_bytes(content)
    read_rules(path)


MANIFEST = Path(__file__).parents[2] / "sample_traces" / "vit" / "eager" / "manifest.json"


def make_manifest(random: Random) -> bytes:
    """A manifest as `collect` writes it, spoiled."""
    content = text(mutate.spoil(random, json.loads(MANIFEST.read_bytes())))
    return mutate.damage(random, content) if random.random() < 0.2 else content


def use_manifest(content: bytes, folder: Path, random: Random) -> None:
    """Read it, and compare some sets with it."""
    inner = folder / "set"
    inner.mkdir(exist_ok=True)
    (inner / "manifest.json").write_bytes(content)
    (inner / "trace.json").write_bytes(_base())
    read_manifest(inner)
    if random.random() < COMPARED:
        compare_with_base(inner, folder, random)


def make_layout(random: Random) -> bytes:
    """A trace in one of the layouts that tools write, spoiled or damaged or neither."""
    document = seeds.trace(random)
    if random.random() < 0.6:
        document = mutate.spoil(random, document)
    content = text(document)
    if random.random() < 0.5:
        content = content.replace(b", ", random.choice((b",", b",\n    ", b" ,\t"))).replace(
            b": ", random.choice((b":", b" : "))
        )
    return mutate.damage(random, content) if random.random() < 0.4 else content


def use_readers(content: bytes, folder: Path, random: Random) -> None:
    """Read it with the native reader and without."""
    path = folder / "trace.json"
    path.write_bytes(content)
    only = random.choice((None, None, ARGUMENTS))
    same_answer(
        *(read_or_refused(path, random.choice((None, 200, 1000, 5000)), only, switch) for switch in ("0", "1")),
    )


def read_or_refused(path: Path, chunk: int | None, only: frozenset[str] | None, switch: str) -> Trace | str:
    """The trace, or the line that refuses it; ``switch`` of the native reader."""
    os.environ[SWITCH] = switch
    try:
        return read_trace(str(path), chunk, only)
    except TracediffError as error:
        return str(error)
    finally:
        del os.environ[SWITCH]


def same_answer(python: Trace | str, native: Trace | str) -> None:
    """The two readers agree."""
    if isinstance(python, Trace) and isinstance(native, Trace):
        same_reading(python, native)
    else:
        require(python == native, f"readers: {python if isinstance(python, str) else native}")


def node(number: int, name: str) -> dict[str, object]:
    """An operator of an execution trace."""
    inputs = {"shapes": [[8, 16], [16, 4]], "types": ["Tensor(float)", "Int"], "strides": [[16, 1], [4, 1]]}
    return {"id": number, "name": name, "inputs": inputs, "attrs": [{"name": "rf_id", "type": "u", "value": number}]}


def make_execution(random: Random) -> bytes:
    """An execution trace of the operators of `use_execution`, spoiled or damaged or both."""
    nodes = [node(k, f"aten::op{k % 3}") for k in range(1, random.randint(2, 12))]
    whole = {"schema": "1.1.1-chakra.0.0.4", "pid": PROCESS, "nodes": nodes, "finish_ts": 9}
    way = random.random()
    content = text(mutate.spoil(random, whole) if way < 0.8 else whole)
    return mutate.damage(random, content) if way > 0.7 else content


def use_execution(content: bytes, folder: Path, _random: Random) -> None:
    """Load a folder with it and a trace without shapes."""
    inner = folder / "both"
    inner.mkdir(exist_ok=True)
    ops = [op(f"aten::op{k % 3}", 10 * k, 5, **{"Record function id": k}) for k in range(1, 12)]
    (inner / "trace.json").write_bytes(text(document([step(1, 0, 200), *ops])))
    (inner / "et.json").write_bytes(content)
    load_sets([str(inner)])


def use_account(content: bytes, folder: Path, _random: Random) -> None:
    """Shift and shuffle the events of a valid trace; its step account is that of the slow reference. Python where
    scopes of a thread overlap, which no profiler records, is the one state that the two divide differently.
    """
    chosen = Random(content)
    path = folder / "trace.json"
    path.write_bytes(text(mutate.shifted(chosen, seeds.trace(chosen))))
    profile = profile_file(TraceFile(str(path)))
    numbers, periods, states = profile_reference.account(path)
    require((profile.step_numbers.tolist(), profile.periods.tolist()) == (numbers, periods), "other steps")
    if not any(note.code == "overlapping-scopes" for note in profile.notes):
        mine = [dict(zip(profile.state_names, row, strict=True)) for row in profile.state_ns.tolist()]
        require(
            [_lasting(s) for s in mine] == [_lasting(s) for s in states], f"states {mine}, by the reference {states}"
        )


def _lasting(states: dict[str, int]) -> dict[str, int]:
    return {name: ns for name, ns in states.items() if ns}


def use_database(content: bytes, folder: Path, _random: Random) -> None:
    """Load an export of Nsight Systems with all its ranks; the process that reads it takes bounded time and memory."""
    path = folder / "export.sqlite"
    path.write_bytes(content)
    before, *_ = of_children(database_process.__name__)
    try:
        load_sets([str(path)])
    finally:
        after, peak, _ = of_children(database_process.__name__)
        require(after - before < DATABASE_SECONDS, f"{after - before:.1f} s for {len(content):,} bytes")
        require(peak < DATABASE_MEMORY, f"{peak:,} bytes of memory for {len(content):,}")


def use_capture(content: bytes, folder: Path, _random: Random) -> None:
    """Load the replay with the capture beside it."""
    inner = folder / "graphs"
    (inner / "capture_traces").mkdir(parents=True, exist_ok=True)
    replay, _, capture = content.partition(formats.BETWEEN)
    (inner / "trace.json").write_bytes(replay)
    (inner / "capture_traces" / "capture.json").write_bytes(capture)
    load_sets([str(inner)])


TARGETS = {
    "trace": Target(make_trace, use_trace),
    "database": Target(formats.database, use_database),
    "device": Target(formats.device, use_trace),
    "capture": Target(formats.capture, use_capture),
    "execution": Target(make_execution, use_execution),
    "layout": Target(make_layout, use_readers),
    "account": Target(make_seed, use_account),
    "snapshot": Target(make_seed, use_snapshot),
    "manifest": Target(make_manifest, use_manifest),
    "memory": Target(make_memory, use_memory),
    "log": Target(make_log, use_log),
    "pair": Target(make_seed, use_pair, seconds=60),  # memory is traced, which takes ten times as long
    "environment": Target(make_environment, use_environment),
    "settings": Target(partial(make_lines, whole=SETTINGS), use_settings),
    "rules": Target(partial(make_lines, whole=RULES), use_rules),
}
"""By name."""


def try_input(target: Target, content: bytes, folder: Path, random: Random) -> bool:
    """Whether ``content`` was answered; otherwise it was refused in one line.

    Raises:
        Exception: a fault.
    """
    try:
        target.use(content, folder, random)
    except TracediffError as error:
        one_line(error)
        return False
    return True
