"""A worker that is killed loses nothing, and whoever reads the files, the answer is the same."""

import json
import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import pytest
from build_trace import document, op, step, write
from click.testing import CliRunner
from tracediff_cli.group import cli

import tracediff
from tracediff import bounds, engine
from tracediff.engine import LoadOptions, load_sets
from tracediff.errors import TracediffError
from tracediff.explain.compare import compare_sets
from tracediff.ingest.files.source import TraceFile
from tracediff.process.workers import executor_of, in_executor
from tracediff.profile.model.selection import Selection
from tracediff.report.to_json import to_json

linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
RANKS = 6


@pytest.fixture
def pair(tmp_path):
    """Two folders of RANKS files."""
    for side, longer in (("before", 0), ("after", 5)):
        for rank in range(RANKS):
            events = [step(n, 100 * n, 90 + rank) for n in range(4)] + [op("a", 100 * n, 50 + longer) for n in range(4)]
            about = {"rank": rank, "world_size": RANKS}
            (tmp_path / side).mkdir(exist_ok=True)
            write(tmp_path / side / f"rank{rank}.json", document(events, distributedInfo=about))
    return [tmp_path / "before", tmp_path / "after"]


def answer(pair, **options):
    return to_json(compare_sets(*load_sets(pair, LoadOptions(**options))))


def killing(read, parent, folder, times, name):
    """`profile_ranks`, in processes that are killed ``times`` times while they read the file ``name``."""

    def profile_ranks(file, *arguments, **options):
        mark = folder / f"killed{len(list(folder.glob('killed*')))}"
        if file.name == name and "after" in file.path and len(list(folder.glob("killed*"))) < times:
            assert os.getpid() != parent
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return read(file, *arguments, **options)

    return profile_ranks


@linux
@pytest.mark.parametrize("times", [1, bounds.TRIES - 1])
def test_what_a_killed_process_read_is_read_again(pair, tmp_path, monkeypatch, times):
    expected = answer(pair, jobs=1)
    read = killing(engine.profile_ranks, os.getpid(), tmp_path, times, "rank3.json")
    monkeypatch.setattr(engine, "profile_ranks", read)
    assert answer(pair, jobs=2) == expected
    assert len(list(tmp_path.glob("killed*"))) == times


@linux
def test_a_file_that_kills_every_process_is_named_or_left_out(pair, tmp_path, monkeypatch):
    read = killing(engine.profile_ranks, os.getpid(), tmp_path, 99, "rank3.json")
    monkeypatch.setattr(engine, "profile_ranks", read)
    with pytest.raises(TracediffError, match=r"after/rank3\.json: each process that read it was killed"):
        load_sets(pair, LoadOptions(jobs=2))
    assert len(list(tmp_path.glob("killed*"))) == bounds.TRIES
    _, after = load_sets(pair, LoadOptions(jobs=2, keep_going=True))
    assert len(after.profiles) == RANKS - 1
    assert [(n.code, n.count) for n in after.notes if n.code == "not-read"] == [("not-read", 1)]


def test_files_that_cannot_be_read_are_left_out_on_request(pair):
    (pair[1] / "rank2.json").rename(pair[1] / "rank2.json.gz")
    (pair[1] / "rank2.json.gz").write_bytes(b"\x1f\x8b\x08\x00 is not gzip")
    result = CliRunner().invoke(cli, ["compare", *map(str, pair), "-v"], catch_exceptions=True)
    assert isinstance(result.exception, TracediffError)
    result = CliRunner().invoke(cli, ["compare", *map(str, pair), "-v", "--keep-going"])
    assert result.exit_code == 0
    assert "skipped: rank2.json" in result.output
    with pytest.raises(TracediffError, match=r"rank2\.json"):  # a set of nothing else
        load_sets([pair[1] / "rank2.json.gz"], LoadOptions(keep_going=True))


def test_a_file_that_is_named_as_a_trace_and_is_none_is_an_error(pair):
    (pair[1] / "notes.json").write_text('{"a": 1}')
    (pair[1] / "worker6.1.pt.trace.json.gz").write_bytes(b"\x01junk" * 99)
    with pytest.raises(TracediffError, match=r"worker6\.1\.pt\.trace\.json\.gz"):
        load_sets(pair)
    _, after = load_sets(pair, LoadOptions(keep_going=True))
    assert {n.code: n.count for n in after.notes if n.code in ("not-read", "not-a-trace")} == {
        "not-read": 1,
        "not-a-trace": 1,
    }


@pytest.mark.slow
def test_any_executor_gives_the_same_answer(pair):
    expected = answer(pair, jobs=1)
    seen = []
    with ThreadPoolExecutor(2) as threads:
        assert answer(pair, executor=threads) == expected
        assert to_json(tracediff.compare(*pair, executor=threads).comparison) == expected
        load_sets(pair, LoadOptions(executor=threads), progress=seen.append)
    assert seen[-1].files_done == 2 * RANKS
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        assert answer(pair, executor=processes) == expected


def fails(item, _):
    raise ZeroDivisionError(item)


@pytest.mark.parametrize(
    ("memory", "jobs"), [(10**7, 1), (850_000_000, 1), (1_700_000_000, 2), (2_500_000_000, 3), (10**12, 4), (None, 4)]
)
def test_no_more_files_are_read_at_a_time_than_fit(memory, jobs):
    files = [(TraceFile("a.json"), Selection(), ())] * 3 + [(TraceFile("b.json.gz"), Selection(), ())]
    sizes = [1_000_000_000] * 3 + [30_000_000]
    assert engine._jobs(files, sizes, LoadOptions(jobs=4, max_memory=memory)) == jobs


def test_a_limit_on_memory_is_a_size(pair):
    arguments = ["compare", *map(str, pair), "--max-memory"]
    assert CliRunner().invoke(cli, [*arguments, "1.5 gb"]).exit_code == 0
    result = CliRunner().invoke(cli, [*arguments, "8 apples"])
    assert (result.exit_code, "'8 apples' is not a size; write 8GB or 500MB" in result.stderr) == (2, True)


@pytest.mark.parametrize("executor", ["dask", ThreadPoolExecutor, 5])
def test_what_is_no_executor_is_one_line(pair, executor):
    with pytest.raises(TracediffError, match="has no submit; pass an executor"):
        load_sets(pair, LoadOptions(executor=executor))


def test_an_error_of_ours_is_not_hidden():
    with ThreadPoolExecutor(1) as threads, pytest.raises(ZeroDivisionError):
        list(in_executor(["a", "b"], [1, 1], fails, threads))


@linux
def test_a_broken_pool_is_an_error_that_names_a_file():
    with ProcessPoolExecutor(1) as pool:
        ((_, found),) = in_executor([("trace.json",)], [1], partial(_killed, os.getpid()), pool)
    assert str(found).startswith("trace.json: each process that read it was killed")


def _killed(parent, *_):
    assert os.getpid() != parent
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.dask
def test_a_real_cluster_gives_the_same_answer_and_survives_a_killed_worker(pair, tmp_path):
    import dask
    from distributed import LocalCluster

    expected = answer(pair, jobs=1)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        result = CliRunner().invoke(
            cli, ["compare", *map(str, pair), "--executor", f"dask://{address}", "--json", str(tmp_path / "d.json")]
        )
        assert result.exit_code == 0
        assert (tmp_path / "d.json").read_text() == expected
        assert f"Reading with Dask at tcp://{address}, 2 workers" in result.stderr
        scheduler = tmp_path / "scheduler.json"
        with dask.config.set({"scheduler-file": str(scheduler)}):
            with pytest.raises(TracediffError, match="no scheduler file"), executor_of("dask"):
                pass
            scheduler.write_text(json.dumps({"address": cluster.scheduler_address}))
            with executor_of("dask") as client:
                assert client.scheduler.address == cluster.scheduler_address
        with executor_of(f"dask://{address}") as client:
            victim = next(iter(client.run(os.getpid).values()))
            found = dict(in_executor(list(range(40)), [1] * 40, partial(_squared, victim), client))
            assert found == {k: k * k for k in range(40)}


def _squared(victim, number, _):
    if os.getpid() == victim and number > 3:
        os.kill(victim, signal.SIGKILL)
    return number * number


@pytest.mark.dask
@pytest.mark.parametrize(
    "name",
    [
        "slurm",
        "",
        "dask://",
        "dask://127.0.0.1",
        "dask://tcp://127.0.0.1:1",
        "dask://127.0.0.1:1",
        "dask://127.0.0.1:99999",
    ],
)
def test_an_executor_that_is_not_there_is_one_line(name, monkeypatch):
    monkeypatch.setattr(bounds, "SCHEDULER_S", 1)
    with pytest.raises(TracediffError, match=r"^--executor: "), executor_of(name):
        pass
