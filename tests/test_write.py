"""Writing files: whole or not at all, through what is no regular file, and nothing of killed processes stays."""

import errno
import json
import os
import resource
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from build_trace import document, op, step, write

from tracediff.engine import load_sets
from tracediff.errors import TracediffError
from tracediff.explain.compare import compare_sets
from tracediff.process.temporary import make_temporary_folder, temporary_file, temporary_folder
from tracediff.report.page.html import to_html
from tracediff.report.rows import to_csv
from tracediff.report.to_json import to_json
from tracediff.report.to_markdown import to_markdown
from tracediff.write import make_folder, write_bytes, write_text

ROOT = Path(__file__).resolve().parents[1]


def read_in_background(path):
    """A thread that reads ``path`` to its end, and the list it puts the bytes into."""
    read = []
    reader = threading.Thread(target=lambda: read.append(Path(path).read_bytes()), daemon=True)
    reader.start()
    return reader, read


def owned_by_an_ended_process(path):
    """``path`` under the name that a process which has ended would have given it."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return path.with_name(path.name.replace(f"-{os.getpid()}-", f"-{ended.pid}-"))


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        reader, read = read_in_background(pipe)
        write_text(path, "text")
        reader.join(10)
        assert read == [b"text"]
    assert pipe.is_fifo()
    assert link.is_symlink()


def test_the_pipe_of_a_process_substitution_is_written_to():
    reader, writer = os.pipe()
    write_text(f"/dev/fd/{writer}", "text")
    os.close(writer)
    assert os.read(reader, 100) == b"text"
    os.close(reader)


def test_a_device_is_written_to_and_stays_a_device(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    write_text(link, "text")
    assert link.is_symlink()
    assert link.is_char_device()
    node = tmp_path / "node"
    try:
        os.mknod(node, 0o20666, os.makedev(1, 3))
        write_text(node, "text")
    except (PermissionError, TracediffError):  # a container that forbids devices
        return
    assert node.is_char_device()


def test_a_file_that_is_open_for_writing_is_added_to_as_the_shell_does(tmp_path):
    log, link = tmp_path / "log", tmp_path / "link"
    log.write_text("kept ")
    with open(log, "a") as opened:
        link.symlink_to(f"/proc/self/fd/{opened.fileno()}")
        write_text(link, "text")
        write_text(f"/dev/fd/{opened.fileno()}", " again")
    assert log.read_text() == "kept text again"


def test_a_link_to_a_file_stays_a_link_and_the_file_keeps_its_permissions(tmp_path):
    target, link, dangling = tmp_path / "elsewhere" / "target", tmp_path / "link", tmp_path / "dangling"
    target.parent.mkdir()
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    dangling.symlink_to("elsewhere/new")
    write_text(link, "new")
    write_text(dangling, "new")
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert target.read_text() == (tmp_path / "elsewhere" / "new").read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in target.parent.iterdir()) == ["new", "target"]


@contextmanager
def largest_file(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "target"
    target.write_text("old")
    with largest_file(1000), pytest.raises(TracediffError, match=f"(?i){os.strerror(errno.EFBIG)}"):
        write_bytes(target, bytes(5000))
    for path, reason in (
        ("/dev/full", errno.ENOSPC),
        (tmp_path, errno.EISDIR),
        (f"{tmp_path}/new/", errno.EISDIR),
        ("", errno.EISDIR),
        (target / "below", errno.ENOTDIR),
        (tmp_path / "no" / "folder", errno.ENOENT),
    ):
        with pytest.raises(TracediffError, match=f"(?i){os.strerror(reason)}"):
            write_text(path, "text")
    with pytest.raises(TracediffError, match="cannot be created"):
        make_folder(target / "below")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_text_that_utf_8_cannot_hold_is_written_with_a_replacement(tmp_path):
    write_text(tmp_path / "caf\udce9.json", "caf\udce9 µ 😀")
    assert (tmp_path / "caf\udce9.json").read_text("utf-8") == "caf� µ 😀"


def test_a_trace_whose_name_is_not_utf_8_is_written_to_every_output(tmp_path):
    named = write(tmp_path / "caf\udce9.json", document([step(1, 0, 10), op("a", 1, 2)]))
    sets = load_sets([write(tmp_path / "base.json", document([step(1, 0, 10), op("a", 1, 2)])), named])
    comparison = compare_sets(*sets)
    write_text(tmp_path / "out.json", to_json(comparison))
    assert json.loads((tmp_path / "out.json").read_text("utf-8"))["test"]["label"] == "caf�"
    for text in (to_markdown(comparison), to_html(comparison, "tracediff"), *to_csv(comparison).values()):
        write_text(tmp_path / "out", text)
        assert (tmp_path / "out").read_text("utf-8")


def test_a_run_removes_what_killed_ones_left_and_only_that(tmp_path):
    target = tmp_path / "target"
    left, folder = (owned_by_an_ended_process(temporary_file(tmp_path)) for _ in range(2))
    left.write_text("left")
    (folder / "below").mkdir(parents=True)
    of_living = tmp_path / left.name.replace(left.name.split("-")[2], str(os.getppid()))
    elsewhere = tmp_path / f".tracediff-00000000-{left.name.split('-', 2)[2]}"  # of another machine or container
    hostile = tmp_path / f".{left.name.split('-')[1]}-{'9' * 5000}"[:250]
    for path in (of_living, elsewhere, hostile):
        path.write_text("kept")
    code = "import sys; from tracediff.write import write_text; write_text(sys.argv[1], 'new')"
    subprocess.run([sys.executable, "-c", code, target], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert sorted(tmp_path.iterdir()) == sorted([target, of_living, elsewhere, hostile])


def test_temporary_folders_of_killed_processes_are_removed(tmp_path, monkeypatch):
    with temporary_folder() as folder:
        (folder / "file").write_text("text")
    assert not folder.exists()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = owned_by_an_ended_process(tmp_path / folder.name)
    left.mkdir()
    assert [make_temporary_folder()] == list(tmp_path.iterdir())
