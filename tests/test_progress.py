"""Progress of reading: by bytes on disk, the same from one process and from several; on a terminal only."""

import gzip
import json
import os
import pty
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from build_trace import document, op, step

from tracediff.engine import LoadOptions, load_sets
from tracediff.formatting import byte_unit
from tracediff.ingest.files.source import TraceFile, stored_size
from tracediff.progress import READING, Meter

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A set of two files, plain and compressed; the same in an archive."""
    events = [step(1, 0, 240_000), *(op(f"op{k % 40}", 2 * k, 1) for k in range(50_000))]
    text = json.dumps(document(events)).encode()
    folder = tmp_path_factory.mktemp("set")
    (folder / "a").mkdir()
    (folder / "a" / "rank0.json").write_bytes(text)
    (folder / "a" / "rank1.json.gz").write_bytes(gzip.compress(text))
    with zipfile.ZipFile(folder / "b.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in (folder / "a").iterdir():
            archive.write(path, path.name)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", ["a", "b.zip"])
def test_bytes_are_those_on_disk_and_only_grow(folder, name, jobs, monkeypatch):
    monkeypatch.setattr("tracediff.progress.INTERVAL_S", 0.0)
    monkeypatch.setattr("tracediff.process.workers.INTERVAL_S", 0.001)
    seen = []
    load_sets([folder / name], LoadOptions(jobs=jobs), progress=seen.append)
    total = sum(path.stat().st_size for path in (folder / "a").iterdir())
    assert {(p.bytes_total, p.files) for p in seen} == {(total, 2)}
    assert (seen[0].bytes_read, seen[0].fraction, seen[0].files_done) == (0, 0, 0)
    assert (seen[-1].bytes_read, seen[-1].files_done) == (total, 2)
    assert seen[-1].fraction == pytest.approx(1)
    for values in ([p.bytes_read for p in seen], [p.fraction for p in seen], [p.elapsed_s for p in seen]):
        assert values == sorted(values)
    if jobs == 1:
        assert len({p.bytes_read for p in seen}) > 4  # also within a file; processes are looked at now and then


def test_sizes_are_those_of_files_and_members_and_unknown_for_urls(folder):
    (a, b) = sorted((folder / "a").iterdir())
    files = [str(a), str(b), "https://example.org/t.json", str(folder / "nosuch")]
    assert [stored_size(TraceFile(f)) for f in files] == [a.stat().st_size, b.stat().st_size, 0, 0]
    archive = str(folder / "b.zip")
    members = [TraceFile(archive, a.name), TraceFile(archive, b.name), TraceFile(archive, "x")]
    assert list(map(stored_size, members)) == [a.stat().st_size, b.stat().st_size, 0]


def test_the_time_left_follows_the_bytes_and_counts_down_between_them(monkeypatch):
    now, seen = [100.0], []
    monkeypatch.setattr("tracediff.progress.time.monotonic", lambda: now[0])
    meter = Meter([6_000_000, 2_000_000], [0, 0], seen.append)
    assert seen[-1].left_s is None
    assert str(seen[-1]) == "0.00 of 8.00 MB"
    now[0] += 10
    meter.read(0, 6_000_000)
    assert seen[-1].fraction == pytest.approx(READING * 6 / 8)
    left = 10 / (READING * 6 / 8) - 10
    assert seen[-1].left_s == pytest.approx(left)
    assert str(seen[-1]) == f"6.00 of 8.00 MB · 600 kB/s · 0:{left:.0f} left".replace("600 kB", "600.0 kB")
    now[0] += 4
    meter.report()
    assert seen[-1].left_s == pytest.approx(left - 4)
    meter.finish(0)
    meter.finish(1)
    assert (seen[-1].bytes_read, seen[-1].left_s) == (8_000_000, 0)
    assert seen[-1].stage == "Building profiles"


def test_files_of_unknown_size_count_as_files():
    seen = []
    meter = Meter([0, 500], [0, 0], seen.append)
    meter.bytes_read[0] = 3000
    meter.finish(1)
    assert (seen[-1].bytes_total, seen[-1].bytes_read, seen[-1].fraction) == (None, 3500, 0.5)
    assert str(seen[-1]).startswith("3.50 kB · 1 of 2 files · ")
    assert seen[-1].stage == "Reading traces"


def on_terminal(quiet_s, *arguments):
    """(standard output, what a terminal as standard error received) of a command."""
    code = (
        f"from tracediff_cli import progress; progress.QUIET_S = {quiet_s}; from tracediff_cli.main import main; main()"
    )
    control, terminal = pty.openpty()
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}", "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=terminal,
        env=env,
        check=True,
    )
    os.close(terminal)
    received = b""
    try:
        while part := os.read(control, 1 << 16):
            received += part
    except OSError:  # how Linux ends a terminal without writers
        pass
    os.close(control)
    return process.stdout.decode(), received.decode()


@pytest.mark.slow
def test_a_terminal_shows_bytes_and_nothing_of_a_short_read(folder):
    out, err = on_terminal(0, "analyze", folder / "a")
    total = sum(path.stat().st_size for path in (folder / "a").iterdir())
    assert f"of {byte_unit([total]).text(total)}" in err
    assert "left" in err
    assert "\x1b" not in out
    assert on_terminal(3600, "analyze", folder / "a") == (out, "")


@pytest.mark.slow
def test_a_pipe_receives_no_progress(folder):
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}", "FORCE_COLOR": "1", "TERM": "xterm"}
    code = "from tracediff_cli import progress; progress.QUIET_S = 0; from tracediff_cli.main import main; main()"
    command = [sys.executable, "-c", code, "analyze", str(folder / "a")]
    assert subprocess.run(command, capture_output=True, env=env, check=True).stderr == b""
