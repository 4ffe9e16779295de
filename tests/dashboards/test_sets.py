"""Which sets may be read: those of the folder and no other, by whatever name; and dropped files."""

import io
import json
import os
import sys

import pytest
from build_trace import document, write
from dashboard_runs import events, make_runs
from tracediff_dashboards.reading import sets as reading_sets
from tracediff_dashboards.reading.sets import Sets, Uploads
from werkzeug.exceptions import ClientDisconnected

from tracediff import bounds
from tracediff.errors import TracediffError
from tracediff.ingest.discover import find_traces


@pytest.fixture
def folder(tmp_path):
    """Sets below ``inside``, and a trace beside it that no name may reach."""
    write(tmp_path / "outside" / "secret.json", document(events()))
    write(tmp_path / "inside-too" / "secret.json", document(events()))
    return make_runs(tmp_path / "inside")


def test_sets_are_folders_runs_files_and_snapshots(tmp_path):
    for k in (1, 2):
        write(tmp_path / "eager" / f"run{k}" / "rank0.json", document(events()))
    for name in ("a", "b"):
        write(tmp_path / "flat" / f"{name}.json.gz", document(events()))
    write(tmp_path / ".hidden" / "t.json", document(events()))
    (tmp_path / "base.tdprof.gz").write_bytes(b"")
    (tmp_path / "eager" / "manifest.json").write_text("{}")
    assert Sets(root=tmp_path).names() == ["base.tdprof.gz", "eager", "flat", "flat/a.json.gz", "flat/b.json.gz"]
    assert Sets({"x": "/x"}).names() == ["x"]
    assert Sets({"x": "/x"}).where("x") == "/x"


def test_links_that_lead_out_of_the_folder_are_told_apart(folder):
    (folder / "linked").symlink_to(folder.parent / "outside")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "again").symlink_to(folder / "base")
    assert Sets(root=folder).folder.links_outside() == ["linked"]


def test_every_listed_set_may_be_read(folder):
    sets = Sets(root=folder)
    assert [sets.where(name) for name in sets.names()] == [str((folder / name).resolve()) for name in sets.names()]


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "base/../../outside",
        "/etc",
        "../inside-too",
        "..",
        "",
        "base\0",
        "%2e%2e/outside",
        "out",
        "base/out.json",
        "linked",
        "a" * 5000,
        "~",
        ".git",
        "base/../faster",
        "base//",
        "./base",
        "link-to-hidden",
        "fifo.zip",
    ],
)
def test_nothing_outside_is_read(folder, name):
    (folder / "out").symlink_to(folder.parent / "outside")
    write(folder / ".git" / "s.json", document(events()))
    (folder / "link-to-hidden").mkdir()
    (folder / "link-to-hidden" / "s.json").symlink_to(folder / ".git" / "s.json")
    os.mkfifo(folder / "fifo.zip")
    (folder / "base" / "out.json").symlink_to(folder.parent / "outside" / "secret.json")
    (folder / "linked").mkdir()
    (folder / "linked" / "manifest.json").symlink_to("/etc/passwd")
    write(folder / "linked" / "t.json", document(events()))
    sets = Sets(root=folder)
    if name == "":  # the folder itself contains the link
        name = "base"
    with pytest.raises(TracediffError) as caught:
        sets.where(name)
    assert len(str(caught.value)) < 300


def test_a_link_among_the_captures_beside_a_trace_is_not_read(folder):
    captures = folder / "base" / "capture_traces"
    captures.mkdir()
    sets = Sets(root=folder)
    assert sets.where("base/trace.json")
    (captures / "graph.json").symlink_to(folder.parent / "outside" / "secret.json")
    with pytest.raises(TracediffError, match="a link to a file outside"):
        sets.where("base/trace.json")


def test_a_link_among_the_logs_beside_a_trace_is_not_read(folder):
    logs = folder / "base" / "torch_trace"
    logs.mkdir()
    sets = Sets(root=folder)
    assert sets.where("base/trace.json")
    (logs / "dedicated_log.log").symlink_to(folder.parent / "outside" / "secret.json")
    with pytest.raises(TracediffError, match="a link to a file outside"):
        sets.where("base/trace.json")


def test_an_absolute_name_of_a_set_is_none(folder):
    with pytest.raises(TracediffError, match="no such set"):
        Sets(root=folder).where(str((folder / "base").resolve()))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems write names as text")
def test_names_that_no_address_or_list_can_hold_are_not_listed(tmp_path):
    for name in (b"a", b"b\xff\xfe", b"__proto__", b"x__proto__y"):
        path = os.fsencode(tmp_path) + b"/" + name
        os.mkdir(path)
        with open(path + b"/t.json", "w") as file:
            json.dump(document(events()), file)
    assert Sets(root=tmp_path).names() == ["a"]


def test_pipes_are_passed_over(folder):
    os.mkfifo(folder / "base" / "x.zip")
    os.mkfifo(folder / "base" / "y.json")
    assert "base/x.zip" not in Sets(root=folder).names()
    assert [f.name for f in find_traces(Sets(root=folder).where("base"))] == ["trace.json"]


def test_a_loop_of_links_is_no_set(folder):
    (folder / "loop").symlink_to(folder / "loop")
    with pytest.raises(TracediffError):
        Sets(root=folder).where("loop")
    assert "base" in Sets(root=folder).names()


def test_a_folder_behind_a_link_is_a_root(folder, tmp_path):
    os.symlink(folder, tmp_path / "link")
    assert Sets(root=tmp_path / "link").where("base") == str(folder / "base")


def add(uploads, name="t.json", content=b"{}", length=None):
    return uploads.add(name, io.BytesIO(content), len(content) if length is None else length)


def test_dropped_files_are_private_and_removed():
    kept = Uploads()
    names = [add(kept, content=b"one"), add(kept, content=b"two")]
    assert names[0] != names[1]
    paths = [kept.path(name) for name in names]
    assert [path.read_bytes() for path in paths] == [b"one", b"two"]
    assert paths[0].parent.parent.stat().st_mode & 0o77 == 0
    kept.close()
    assert not paths[0].parent.parent.exists()
    assert kept.path(names[0]) is None


@pytest.mark.parametrize(
    "name",
    ["../../../x.json", "/etc/x.json", "..\\..\\x.json", "<img src=x onerror=alert(1)>.json", "\0x.json", ".x.json"],
)
def test_a_dropped_files_name_leads_nowhere(name):
    kept = Uploads()
    path = kept.path(add(kept, name))
    assert path.parent.parent == kept._folder
    assert not set(path.name) & set('<>/\\\0" ')
    kept.close()


def test_dropped_files_are_bounded(monkeypatch):
    kept = Uploads()
    with pytest.raises(TracediffError, match="not a trace or snapshot, by its name"):
        add(kept, "t.exe")
    with pytest.raises(TracediffError, match="larger than 64 MB"):
        add(kept, length=reading_sets.MOST_BYTES + 1)
    monkeypatch.setattr(bounds, "UPLOADS", 2)
    first, *rest = [add(kept) for _ in range(3)]
    assert kept.path(first) is None
    assert all(kept.path(name).exists() for name in rest)
    kept.close()


def test_a_dropped_file_is_received_in_parts_and_nothing_is_left_of_a_part(monkeypatch):
    monkeypatch.setattr(bounds, "UPLOADS_AT_ONCE", 1)
    kept = Uploads()

    class BrokenOff(io.BytesIO):
        """While it is received, others are refused."""

        def read(self, size=-1):
            assert 0 < size <= 1 << 16
            with pytest.raises(TracediffError, match="1 other files are being received"):
                add(kept)
            raise ClientDisconnected

    with pytest.raises(ClientDisconnected):
        kept.add("t.json", BrokenOff(), 1)
    assert list(kept._folder.iterdir()) == []
    assert kept.path(add(kept)).exists()
    kept.close()
