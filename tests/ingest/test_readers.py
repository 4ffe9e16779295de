"""Formats: which reader a file gets, and that one more reader is all that one more format needs."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest
from build_trace import call, document, kernel, op, rows, step, text, write

import tracediff
from tracediff.errors import NotATrace
from tracediff.ingest import read
from tracediff.ingest.discover import find_traces, labels_for, worker_of
from tracediff.ingest.files.source import TraceFile, Unpacked
from tracediff.ingest.model.trace import Trace
from tracediff.ingest.read import FIRST_BYTES, READERS, read_trace, reader_of, trace_suffixes
from tracediff.ingest.readers import Reader
from tracediff.ingest.readers.kineto import KINETO

MARK = b"reversed trace\n"


def read_reversed(file: TraceFile, unpacked: Unpacked, chunk: int, only: frozenset[str] | None) -> Trace:
    """A made-up format: a mark, then Kineto's JSON backwards."""
    content = unpacked.read(1 << 20).removeprefix(MARK)[::-1]
    (Path(file.path).parent / ".content").write_bytes(content)
    with open(Path(file.path).parent / ".content", "rb") as stream:
        yield from KINETO.read(file, Unpacked(file, stream, 0), chunk, only)


REVERSED = Reader(
    "reversed JSON", "a .rtrace file", (".rtrace", ".rtrace.gz"), lambda first: first.startswith(MARK), read_reversed
)


def events(kernel_us: int) -> list[dict[str, object]]:
    return [
        step(1, 0, 100),
        op("aten::mm", 5, 20),
        call("cudaLaunchKernel", 6, 2, correlation=1),
        kernel("gemm", 20, kernel_us, correlation=1),
    ]


def write_reversed(path: Path, kernel_us: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = MARK + text(document(events(kernel_us)))[::-1]
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.fixture
def with_reversed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "READERS", (*READERS, REVERSED))


@pytest.mark.usefixtures("with_reversed")
def test_a_registered_format_is_discovered_read_and_compared(tmp_path: Path) -> None:
    write_reversed(tmp_path / "old/rank0.1234567890.rtrace", 30)
    write_reversed(tmp_path / "new/rank0.1234567890.rtrace.gz", 40)
    assert [file.name for file in find_traces(tmp_path / "new")] == ["rank0.1234567890.rtrace.gz"]
    assert worker_of(find_traces(tmp_path / "old")[0]).endswith("/old/rank0")
    diff = tracediff.compare(tmp_path / "old", tmp_path / "new")
    assert diff.gpu_time.delta_us == pytest.approx(10)


@pytest.mark.usefixtures("with_reversed")
def test_both_formats_of_one_trace_hold_the_same_events(tmp_path: Path) -> None:
    theirs = read_trace(str(write_reversed(tmp_path / "a.rtrace", 30)))
    ours = read_trace(str(write(tmp_path / "b.json", document(events(30)))))
    assert rows(theirs) == rows(ours)


@pytest.mark.usefixtures("with_reversed")
def test_archives_labels_and_messages_know_the_registered_format(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.write(write_reversed(tmp_path / "x/rank1.rtrace", 30), "rank1.rtrace")
        archive.writestr("notes.txt", "no trace")
    assert [file.member for file in find_traces(tmp_path / "set.zip")] == ["rank1.rtrace"]
    assert labels_for([tmp_path / "job.rtrace", tmp_path / "job2.trace.json.gz"]) == ["job", "job2"]
    assert ".rtrace" in trace_suffixes()
    with pytest.raises(NotATrace, match=r"text, not Kineto JSON, .* or reversed JSON; give the .* or a \.rtrace file"):
        reader_of(TraceFile("x"), b"hello")


def test_without_it_such_a_file_is_refused_by_name_of_what_is_read(tmp_path: Path) -> None:
    with pytest.raises(NotATrace, match="text, not Kineto JSON"):
        read_trace(str(write_reversed(tmp_path / "a.rtrace", 30)))


@pytest.mark.parametrize("first", [b"{", b"\xef\xbb\xbf\r\n[", b" " * FIRST_BYTES, b""])
def test_json_and_blanks_before_it_are_kineto_s(first: bytes) -> None:
    assert reader_of(TraceFile("x"), first) is KINETO


def test_more_blanks_than_a_format_is_recognised_by_are_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "blanks.json"
    path.write_bytes(b" " * (FIRST_BYTES + 5) + text(document(events(30))))
    assert len(read_trace(str(path))) == 4
