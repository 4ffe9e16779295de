"""Inputs made to exhaust or to mislead: an answer or one line, and nothing written."""

import gzip
import io
import os
import zipfile

import pytest
from build_trace import document, op, step, text

from tracediff.engine import LoadOptions, load_sets
from tracediff.errors import TracediffError

TRACE = text(document([step(1, 0, 90), op("aten::mm", 1, 20)]), "compact")


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def test_names_in_an_archive_are_no_paths(tmp_path):
    names = ("../../up.json", "/abs/rank1.json", "a/../../rank2.json", "c\\..\\rank3.json")
    where = archive(tmp_path / "set.zip", **dict.fromkeys(names, TRACE))
    before = sorted(tmp_path.rglob("*"))
    (loaded,) = load_sets([str(where)])
    assert {p.origin.file.member for p in loaded.profiles} == set(names[1::2])  # .. begins like a hidden file
    assert sorted(tmp_path.rglob("*")) == before


def test_an_archive_in_an_archive_is_not_opened(tmp_path):
    inner = io.BytesIO()
    archive(inner, **{"rank0.json": TRACE})
    with pytest.raises(TracediffError, match="no trace in the archive"):
        load_sets([str(archive(tmp_path / "a.zip", **{"inner.zip": inner.getvalue()}))])
    with pytest.raises(TracediffError):
        load_sets([str(archive(tmp_path / "b.zip", **{"inner.json": inner.getvalue()}))])


def test_many_members_that_are_no_traces_cost_nothing(tmp_path):
    members = {f"{k}.txt": b"" for k in range(3000)} | {"rank0.json": TRACE}
    assert len(load_sets([str(archive(tmp_path / "a.zip", **members))])[0].profiles) == 1


def test_devices_and_pipes_are_no_traces(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    for where in ("/dev/zero", str(tmp_path / "pipe.json")):
        with pytest.raises(TracediffError, match=where):
            load_sets([where])


def test_errors_of_files_keep_nothing_of_the_files(tmp_path):
    for k in range(2):
        (tmp_path / f"{k}.json").write_text("{}")
    (tmp_path / "rank0.json").write_bytes(TRACE)
    (loaded,) = load_sets([str(tmp_path)], LoadOptions(jobs=1))
    assert {note.count for note in loaded.notes if note.code == "not-a-trace"} == {1}
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(TRACE)[:-20])
    with pytest.raises(TracediffError) as caught:
        load_sets([str(tmp_path)], LoadOptions(jobs=1))
    assert caught.value.__context__ is None
