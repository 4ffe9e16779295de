"""What lies in a folder beside traces, and files that change while they are read: a note or one line, and no hang."""

from __future__ import annotations

import itertools
import os
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from build_trace import document, op, write

import tracediff
from tracediff.errors import TracediffError
from tracediff.ingest.discover import find_traces, labels_for
from tracediff.ingest.files import archive, source
from tracediff.ingest.files.source import open_trace
from tracediff.ingest.model.health import Notes
from tracediff.ingest.read import read_trace

TRACE = document([op(f"aten::op{i}", i, 1) for i in range(2000)])
linux = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")


@linux
def test_what_is_not_read_of_a_folder_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "set"
    write(folder / "run1" / "rank0.json", TRACE)
    write(tmp_path / "elsewhere" / "rank0.json", TRACE)
    (folder / "run2").symlink_to(tmp_path / "elsewhere")
    (folder / "run3").symlink_to(tmp_path / "elsewhere")
    (folder / "run4").symlink_to(tmp_path / "gone")
    (folder / "loop.json").symlink_to("loop.json")
    (folder / "again").symlink_to(folder)
    os.mkfifo(folder / "pipe.json")
    monkeypatch.chdir(folder)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as end:
        end.bind("socket")
    notes = Notes()
    assert [file.path for file in find_traces(folder, notes)] == [str(folder / "run1" / "rank0.json")]
    assert {note.message.partition(",")[0]: note.count for note in notes.list()} == {
        "not read: a symlink to a folder": 3,
        "not read: a symlink to nothing": 2,
        "not read: a FIFO": 1,
        "not read: a socket": 1,
    }
    assert [note.code for note in tracediff.load(folder).notes].count("not-read") == 4


@linux
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: os.mkfifo(path), "a FIFO"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
        (lambda path: path.symlink_to("no such"), "a symlink to nothing"),
        (lambda path: path.symlink_to(path.name), "a symlink to nothing"),
    ],
)
def test_what_is_no_file_is_refused_in_one_line(tmp_path: Path, make: Callable[[Path], None], reason: str) -> None:
    path = tmp_path / "rank0.json"
    make(path)
    with pytest.raises(TracediffError, match=reason):
        find_traces(path)
    with pytest.raises(TracediffError, match=r"cannot be read|no such file"):  # it was a file when it was found
        read_trace(str(path))


@pytest.mark.slow
def test_a_folder_name_that_is_not_utf8_is_shown_with_marks(tmp_path: Path) -> None:
    path = write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.json")), TRACE)
    assert find_traces(path)[0].name == "caf�.json"
    assert labels_for([path]) == ["caf�"]
    assert "caf" in tracediff.compare(path, path).to_json()
    with pytest.raises(TracediffError, match="no such file") as caught:
        find_traces(f"{path}.gone")
    assert str(caught.value).encode()


def test_an_archive_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as packed:
        for i in range(50):
            packed.writestr(f"rank{i}.json", "[]")
    opened = []
    monkeypatch.setattr(archive, "open_file", lambda path: opened.append(path) or source.open_file(path))
    for file in find_traces(tmp_path / "set.zip"):
        with open_trace(file) as stream:
            assert stream.read(10) == b"[]"
        assert source.stored_size(file) == 2
    assert len(opened) == 1
    with zipfile.ZipFile(tmp_path / "set.zip", "a") as packed:
        packed.writestr("rank50.json", "[1]")
    assert len(find_traces(tmp_path / "set.zip")) == 51


GONE = [
    lambda path: path.unlink(),
    lambda path: (path.unlink(), path.mkdir()),
    lambda path: os.truncate(path, 0),
    lambda path: os.truncate(path, 5000),
    lambda path: path.write_bytes(b"\0" * 100_000),
    lambda path: path.write_bytes(path.read_bytes() * 3),
    lambda path: (path.unlink(), os.mkfifo(path)),
]


@linux
@pytest.mark.parametrize("name", ["rank0.json", "rank0.json.gz", "set.zip"])
@pytest.mark.parametrize("change", range(len(GONE)))
@pytest.mark.parametrize("reading", [False, True])
def test_a_file_that_changes_gives_an_answer_or_one_line(
    tmp_path: Path, name: str, change: int, reading: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it was found, and while it is read."""
    path = tmp_path / name
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(write(tmp_path / "a.json", TRACE), "rank0.json")
    else:
        write(path, TRACE)
    (found,) = find_traces(path)
    if reading:
        original, calls = source.RegularFile.readinto, itertools.count()

        def readinto(self: source.RegularFile, buffer: memoryview) -> int | None:
            read = original(self, memoryview(buffer)[:3000])
            if next(calls) == 1:
                GONE[change](path)
            return read

        monkeypatch.setattr(source.RegularFile, "readinto", readinto)
    else:
        GONE[change](path)
    try:
        trace = read_trace(found)
    except TracediffError as error:
        line = str(error)
    else:
        line = ""
        assert len(trace) == len(TRACE["traceEvents"]) or trace.notes
    assert "\n" not in line


def test_a_file_that_grows_is_read_as_long_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "rank0.json", TRACE, "list")
    original = source.RegularFile.readinto

    def readinto(self: source.RegularFile, buffer: memoryview) -> int | None:
        with path.open("ab") as file:
            file.write(b" " * 5000)
        return original(self, memoryview(buffer)[:4000])

    monkeypatch.setattr(source.RegularFile, "readinto", readinto)
    assert len(read_trace(str(path))) == len(TRACE["traceEvents"])


def test_a_glob_of_all_files_is_called_after_their_folder():
    assert labels_for(["runs/before/*.json.gz", "runs/after/**"]) == ["before", "after"]
    assert labels_for(["a/eager", "b/eager", "b/eager"]) == ["a/eager", "b/eager", "b/eager"]
    assert labels_for(["runs/*_eager.json", "runs/eager*"]) == ["*_eager", "eager*"]
