"""Entries of a history: what they state, where they lie, and that none is lost."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from history_repository import MACHINE, TESTS, RepositoryOfModels, write_set

import tracediff
from tracediff.aggregate.traceset import Recorded
from tracediff.errors import TracediffError
from tracediff.git import Repository
from tracediff.history.store import add, read, recorded_of

SAMPLES = TESTS.parent / "sample_traces"
RECORDED = Recorded("a" * 40, 1_700_000_000, "machine", "configuration")
ADD = """
import sys
import tracediff
from tracediff.aggregate.traceset import Recorded
from tracediff.history.store import add
for k in range(int(sys.argv[3])):
    traces = tracediff.load(sys.argv[1])
    add(traces, Recorded(sys.argv[4], 1_700_000_000 + k, "machine", "configuration"), sys.argv[2])
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write_set(tmp_path_factory.mktemp("small") / "set", 100, runs=2)


def loaded(path):
    return tracediff.load(path)


def test_an_entry_is_a_snapshot_with_its_commit(small, tmp_path):
    path, size = add(loaded(small), RECORDED, str(tmp_path / "history"))
    assert size == Path(path).stat().st_size < 4096
    assert Path(path).name.startswith("aaaaaaaaaaaa-")
    (entry,) = read(str(tmp_path / "history"))[0]
    assert entry.recorded == RECORDED
    assert tracediff.compare(path, small).verdict.delta_us == 0


def test_adding_the_same_set_again_changes_nothing(small, tmp_path):
    paths = {add(loaded(small), RECORDED, str(tmp_path))[0] for _ in range(2)}
    assert {str(path) for path in tmp_path.iterdir()} == paths
    assert len(paths) == 1


@pytest.mark.slow
def test_writers_at_once_lose_nothing(small, tmp_path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (TESTS.parent, TESTS.parent / "cli")))}
    arguments = [str(small), str(tmp_path / "history"), "6"]
    writers = [
        subprocess.Popen([sys.executable, "-P", "-c", ADD, *arguments, commit * 40], env=env) for commit in "abc"
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    entries, unread = read(str(tmp_path / "history"))
    assert not unread
    stated = {(entry.recorded.commit[0], entry.recorded.committed) for entry in entries}
    assert stated == {(commit, 1_700_000_000 + k) for commit in "abc" for k in range(6)}
    assert all(path.name.endswith(".tdprof.gz") for path in (tmp_path / "history").iterdir())


def test_a_history_may_be_in_any_place_of_fsspec(small):
    pytest.importorskip("fsspec")
    where = "memory://team/history"
    path, _ = add(loaded(small), RECORDED, where)
    add(loaded(small), Recorded("b" * 40, 1, "machine", "configuration"), where)
    assert path.startswith(f"{where}/aaaaaaaaaaaa-")
    assert sorted(entry.recorded.commit[0] for entry in read(where)[0]) == ["a", "b"]
    with pytest.raises(TracediffError, match="no such file there"):
        read("memory://team/nothing")


HOSTILE = ["../../../tmp/x", "/etc/passwd", "a/../b", "..", "-rf", "con", "x" * 200, "n\u00e4me \U0001f600", "${HOME}"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_no_path(name, small, tmp_path):
    where = tmp_path / "history"
    recorded = recorded_of(loaded(small), Repository(tmp_path), name, 5, name, name)
    assert recorded == Recorded(name, 5, name, name)
    path, _ = add(loaded(small), recorded, str(where))
    assert Path(path).parent == where
    assert list(tmp_path.iterdir()) == [where]
    assert read(str(where))[0][0].recorded == recorded


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "\u202eb", "", "x" * 201, "\ud800"])
def test_a_name_that_no_output_could_show_is_an_error(name, small, tmp_path):
    for stated in ((name, 5, "m", "c"), ("a", 5, "m", name), ("a", 5, name, "c")):
        with pytest.raises(TracediffError) as caught:
            recorded_of(loaded(small), Repository(tmp_path), *stated)
        assert str(caught.value).isprintable()


def test_damaged_entries_are_named_and_left_out(small, tmp_path):
    path = Path(add(loaded(small), RECORDED, str(tmp_path))[0])
    document = json.loads(gzip.decompress(path.read_bytes()))
    damaged = {
        "cut.tdprof.gz": path.read_bytes()[:200],
        "empty.tdprof.gz": b"",
        "long.tdprof.gz": gzip.compress(
            json.dumps(document | {"recorded": {**document["recorded"], "commit": "x" * 999}}).encode()
        ),
        "plain.tdprof.gz": gzip.compress(json.dumps({k: v for k, v in document.items() if k != "recorded"}).encode()),
    }
    for name, content in damaged.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "notes.txt").write_text("not an entry")
    (tmp_path / ".tracediff-0-1.tdprof.gz").write_bytes(b"of a writer that was killed")
    entries, unread = read(str(tmp_path))
    assert [entry.recorded for entry in entries] == [RECORDED]
    assert [Path(line.partition(":")[0]).name for line in unread] == sorted(damaged)
    path.unlink()
    with pytest.raises(TracediffError, match="no entry can be read"):
        read(str(tmp_path))


def test_a_history_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(TracediffError, match="no such file or folder; check the path"):
        read(str(tmp_path / "missing"))
    with pytest.raises(TracediffError, match="has no entries; add sets with"):
        read(str(tmp_path))


def test_the_commit_comes_from_the_repository(small, tmp_path):
    models = RepositoryOfModels(tmp_path / "repository")
    commit = models.commit(100, "First")
    models.git("tag", "v1")
    second = models.commit(101, "Second")
    repository = Repository(models.folder)

    def stated(name=None, committed=None):
        return recorded_of(loaded(small), repository, name, committed, "m", "c")

    assert stated().commit == stated("main").commit == second
    assert stated("v1") == stated(commit[:10]) == Recorded(commit, 1_767_225_600, "m", "c")
    with pytest.raises(
        TracediffError, match=r"'v2' is not a commit .*; run this in the repository, or give --commit NAME,TIME"
    ):
        stated("v2")
    with pytest.raises(TracediffError, match="is not a commit"):
        stated("--all")
    (models.folder / "model.txt").write_text("3-0")
    with pytest.raises(TracediffError, match="files of the repository here are modified; commit them"):
        stated()
    assert stated("v1", 7).committed == 7


def test_machine_and_configuration_come_from_the_manifest(small, tmp_path):
    recorded = recorded_of(loaded(SAMPLES / "vit/eager"), Repository(tmp_path), "a", 1)
    assert recorded.configuration == "vit tiny eager cpu, 1 thread"
    assert recorded.machine.endswith("CPUs")
    with pytest.raises(TracediffError, match=r"its machine is unknown .*; give --machine NAME"):
        recorded_of(loaded(SAMPLES / "vit/eager/run1"), Repository(tmp_path), "a", 1)
    with pytest.raises(TracediffError, match=r"its configuration is unknown .*; give --configuration NAME"):
        recorded_of(loaded(small), Repository(tmp_path), "a", 1, "m")
    assert MACHINE[0] == "--machine"
