"""Loading in the background: shared, with progress, cancellable, and safe from errors of files."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from build_trace import document, write
from dashboard_runs import events
from tracediff_dashboards.reading.comparisons import Comparisons
from tracediff_dashboards.reading.loading import CANCELLED, Load, Loader
from tracediff_dashboards.reading.sets import Sets
from tracediff_dashboards.state.view import Filters, View

from tracediff import bounds
from tracediff.aggregate.snapshot import write_snapshot
from tracediff.engine import load_sets
from tracediff.errors import TracediffError
from tracediff.explain.compare import compare_sets
from tracediff.profile.model.selection import Selection


@pytest.fixture
def loader(runs):
    made = Loader(Sets(root=runs))
    yield made
    made.close()


def loaded(loader, *names):
    load = loader.pair(*names)
    if isinstance(load, Load):
        assert load.finished.wait(60)
        assert load.error is None
        assert load.progress.files_done == load.progress.files <= len({*names})  # snapshots are not waited for
        assert load.progress.bytes_read == load.progress.bytes_total
        assert load.progress.fraction == pytest.approx(1)
    return loader.pair(*names)


@pytest.mark.slow
def test_what_is_read_is_what_compare_reads(loader, runs):
    sets = loaded(loader, "base", "faster")
    expected = compare_sets(*load_sets([runs / "base", runs / "faster"]))
    comparisons = Comparisons(loader)
    view = View("base", "faster")
    comparison, _ = comparisons.whole(view)
    assert comparison.ops == expected.ops
    assert comparison.verdict == expected.verdict
    assert comparison.work == expected.work
    assert comparisons.context(view, None).comparison is comparison
    assert comparisons.whole(view)[0] is comparison
    assert loader.pair("base", "faster") == sets
    part = comparisons.context(View("base", "faster", Filters(family=("gemm",))), None).comparison
    assert {g.family for g in part.work.groups} == {"gemm"}


@pytest.mark.slow
def test_the_same_set_twice_is_read_once_and_compared(loader):
    assert loaded(loader, "base", "base")[0] is loader.pair("base", "base")[1]
    comparison, _ = Comparisons(loader).whole(View("base", "base"))
    assert comparison.step_time.delta == 0


@pytest.mark.slow
def test_a_fault_is_kept_until_it_is_tried_again(tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "t.json").write_text("{")
    write(tmp_path / "good" / "t.json", document(events()))
    loader = Loader(Sets(root=tmp_path))
    load = loader.pair("bad", "good")
    assert load.finished.wait(60)
    assert "bad/t.json" in load.error
    assert "\n" not in load.error
    assert loader.pair("bad", "good") is load
    write(tmp_path / "bad" / "t.json", document(events()))
    loader.forget("bad", "good")
    assert len(loaded(loader, "bad", "good")) == 2
    with pytest.raises(TracediffError):
        loader.pair("good", "nosuch")


def test_loads_are_bounded(loader, monkeypatch):
    monkeypatch.setattr("tracediff_dashboards.reading.loading.AT_ONCE", held := threading.Semaphore(0))
    monkeypatch.setattr(bounds, "LOADS", 2)
    waiting = [loader.pair("base", other) for other in ("faster", "slower")]
    with pytest.raises(TracediffError, match="2 other pairs are being read"):
        loader.pair("base", "ranks")
    for load in waiting:
        load.cancel()
        held.release()
    assert all(load.finished.wait(60) for load in waiting)
    held.release()
    last = loader.pair("base", "ranks")
    assert loader.find("base", "ranks") is last
    assert len(loader._loads) == 2  # the older error is forgotten
    last.cancel()
    assert last.finished.wait(60)


def test_a_load_is_cancelled(loader, monkeypatch):
    monkeypatch.setattr("tracediff_dashboards.reading.loading.AT_ONCE", held := threading.Semaphore(0))
    load = loader.pair("slower", "faster")
    load.cancel()
    held.release()
    assert load.finished.wait(60)
    assert CANCELLED in load.error
    loader.forget("slower", "faster")
    held.release()
    again = loader.pair("slower", "faster")
    again_started = threading.Event()
    while not again.finished.is_set() and not again_started.wait(0.01):
        if again._process is not None and again._process.pid is not None:
            again_started.set()
    again.cancel()
    assert again.finished.wait(60)


@pytest.mark.slow
def test_requests_at_the_same_time_make_a_comparison_once(loader, monkeypatch):
    loaded(loader, "base", "faster")
    comparisons, made, got = Comparisons(loader), [], []
    start = threading.Barrier(4)

    def compare(*sets):
        made.append(sets)
        time.sleep(0.1)  # so that the others ask while it is made
        return compare_sets(*sets)

    def ask():
        start.wait()
        got.append(comparisons.whole(View("base", "faster"))[0])

    monkeypatch.setattr("tracediff_dashboards.reading.comparisons.compare_sets", compare)
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(got) == 4
    assert all(comparison is got[0] for comparison in got)


@pytest.mark.slow
def test_a_comparison_that_fails_is_tried_again(loader, monkeypatch):
    loaded(loader, "base", "faster")
    comparisons = Comparisons(loader)
    with monkeypatch.context() as broken:
        broken.setattr("tracediff_dashboards.reading.comparisons.compare_sets", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            comparisons.whole(View("base", "faster"))
    assert comparisons.whole(View("base", "faster"))[0].step_time.residual == 0


@pytest.mark.slow
def test_a_snapshot_is_a_set_whose_steps_and_ranks_can_be_chosen(tmp_path, runs):
    (ranks,) = load_sets([runs / "ranks"])
    write_snapshot(ranks, tmp_path / "base.tdprof.gz")
    write(tmp_path / "new" / "t.json", document(events(3)))
    loader = Loader(Sets(root=tmp_path))
    loaded(loader, "base.tdprof.gz", "new")
    comparisons = Comparisons(loader)
    view = View("base.tdprof.gz", "new", Filters(steps="2..3", rank=(0,)))
    comparison, sets = comparisons.whole(view)
    assert comparison.control.ranks == (0,)
    assert comparison.control.steps_used == comparison.test.steps_used == (2, 3)
    assert comparison.control.typical is None
    assert sets[0].selection == Selection(first=2, last=3)


@pytest.fixture
def large(tmp_path):
    """Two sets whose files are read by processes of their own, and take a while."""
    many_events = events(steps=4000)
    for name in ("a", "b"):
        for rank in (0, 1):
            write(tmp_path / name / f"rank{rank}.json", document(many_events, distributedInfo={"rank": rank}))
    return tmp_path


def children(pid):
    """Process ids of the live children of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(") ")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def started(load):
    """Wait until it has processes of its own; these."""
    for _ in range(600):
        if load.progress and load._process.pid and (workers := children(load._process.pid)):
            return workers
        assert not load.finished.wait(0.05), load.error
    raise AssertionError("it starts no processes")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", ["cancelled", "killed"])
def test_nothing_is_left_of_a_load_that_ends_early(large, how):
    loader = Loader(Sets(root=large))
    load = loader.pair("a", "b")
    workers = started(load)
    if how == "cancelled":
        load.cancel()
    else:
        os.kill(load._process.pid, signal.SIGKILL)
    assert load.finished.wait(10)
    assert (CANCELLED if how == "cancelled" else "exited") in load.error
    for _ in range(100):
        left = [
            pid
            for pid in workers
            if Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
        ]
        if not left:
            break
        time.sleep(0.05)
    assert not left
    loader.close()
