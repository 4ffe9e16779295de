"""Sets that lack something: analysed as far as they go, each gap said once."""

import pytest
from build_trace import call, document, kernel, op, step, write
from traces import FOLDER, needs_traces

from tracediff.aggregate.assemble import CODES
from tracediff.aggregate.averages import kernel_average, step_average, table_average
from tracediff.aggregate.snapshot import write_snapshot
from tracediff.engine import LoadOptions, SetOptions, load_sets
from tracediff.errors import TracediffError
from tracediff.explain.compare import compare_sets
from tracediff.ingest.model.health import Note
from tracediff.profile.model.selection import Selection


def file(path, rank=None, numbers=(1, 2, 3, 4), world=None, gpu=True, cut=None):
    events = []
    for n in numbers:
        start = 100 * n
        events += [step(n, start, 100), op("aten::mm", start + 1, 50)]
        events += [call("cudaLaunchKernel", start + 10, 5, n), kernel("gemm", start + 30, 40, n)] if gpu else []
    write(
        path,
        document(
            events or [op("aten::mm", 0, 10)],
            **({"distributedInfo": {"rank": rank, "world_size": world}} if rank is not None else {}),
        ),
    )
    if cut:
        content = path.read_bytes()
        path.write_bytes(content[: content.index(cut)])
    return path


def load(where, ranks=None, **selection):
    used = SetOptions(ranks=ranks, selection=Selection(**selection))
    return load_sets([where], LoadOptions((used,), tables=("launches", "collectives"), jobs=1))[0]


def gaps(traces):
    return {n.code: n.count for n in traces.notes if n.code in {*CODES, "without-steps", "truncated"}}


def analysed(traces):
    """Mean period in ns, and that every account is made and closes."""
    steps = step_average(traces)
    assert sum(steps.states.values()) == steps.period
    assert kernel_average(traces).denominator > 0
    assert table_average(traces, "launches")
    return steps.period / steps.denominator


def test_a_whole_set_lacks_nothing(tmp_path):
    for run in (1, 2):
        for rank in (0, 1):
            file(tmp_path / f"run{run}" / f"rank{rank}.json", rank, world=2)
    assert gaps(load(tmp_path)) == {}


def test_missing_ranks_by_the_world_size(tmp_path):
    for rank in (0, 2):
        file(tmp_path / f"rank{rank}.json", rank, world=8)
    traces = load(tmp_path)
    assert gaps(traces) == {"missing-ranks": 6}
    assert analysed(traces) == 100_000
    assert gaps(load(tmp_path, ranks=frozenset({2}))) == {}


def test_missing_ranks_by_the_other_runs(tmp_path):
    for run, ranks in ((1, (0, 1)), (2, (0,))):
        for rank in ranks:
            file(tmp_path / f"run{run}" / f"rank{rank}.json")
    assert gaps(load(tmp_path)) == {"missing-ranks": 1}
    assert gaps(load(tmp_path, ranks=frozenset({0}))) == {}
    assert gaps(load(tmp_path, ranks=frozenset({1}))) == {}  # run 2 is no run of rank 1


def test_a_world_size_of_any_size_is_only_a_number(tmp_path):
    file(tmp_path / "rank0.json", 0, world=10**15)
    assert gaps(load(tmp_path)) == {"missing-ranks": 10**15 - 1}


def test_unequal_steps(tmp_path):
    file(tmp_path / "rank0.json", 0, (1, 2, 3, 4))
    file(tmp_path / "rank1.json", 1, (1, 2, 3))
    traces = load(tmp_path)
    assert gaps(traces) == {"unequal-steps": 1}
    assert [(s.number, s.rank) for s in step_average(traces).runs["run 1"]] == [(2, 0), (3, 0), (4, 0)]
    assert gaps(load(tmp_path, first=2, last=3)) == {}


def test_runs_that_do_another_amount_of_work(tmp_path):
    for run, kernels in ((1, 20), (2, 52), (3, 52)):
        work = [event for k in range(kernels) for event in launched(k)]
        write(tmp_path / f"run{run}" / "rank0.json", document([step(1, 0, 1000), *work]))
    traces = load(tmp_path)
    assert gaps(traces) == {"unequal-runs": 1}
    comparison = compare_sets(traces, traces)
    reason = next(r for r in comparison.comparability.reasons if r.code == "unequal-runs")
    assert (reason.control, reason.test) == ("1 of 3 runs", "1 of 3 runs")


def test_runs_that_are_copies_of_one_recording(tmp_path):
    for run, kernels in ((1, 20), (2, 20), (3, 21)):
        work = [event for k in range(kernels) for event in launched(k)]
        write(tmp_path / f"run{run}" / "rank0.json", document([step(1, 0, 1000), *work]))
    traces = load(tmp_path)
    comparison = compare_sets(traces, load(tmp_path / "run1"))
    reason = next(r for r in comparison.comparability.reasons if r.code == "copied-runs")
    assert (reason.control, reason.test) == ("run 2 = run 1", "none")


def launched(k):
    at = 10 * k
    return [
        op("aten::mm", at, 4),
        call("cudaLaunchKernel", at + 1, 2, correlation=k + 1),
        kernel("gemm", at + 5, 4, correlation=k + 1),
    ]


def test_a_rank_without_gpu(tmp_path):
    file(tmp_path / "rank0.json", 0)
    file(tmp_path / "rank1.json", 1, gpu=False)
    traces = load(tmp_path)
    assert gaps(traces) == {"rank-without-gpu": 1}
    assert analysed(traces) == 100_000
    assert kernel_average(traces).busy / kernel_average(traces).denominator == 20_000  # the mean rank's


def test_sets_that_have_no_gpu_at_all_lack_none(tmp_path):
    for rank in (0, 1):
        file(tmp_path / f"rank{rank}.json", rank, gpu=False)
    assert gaps(load(tmp_path)) == {}


def test_a_truncated_rank(tmp_path):
    file(tmp_path / "rank0.json", 0)
    file(tmp_path / "rank1.json", 1, cut=b"ProfilerStep#4")
    traces = load(tmp_path)
    assert gaps(traces) == {"truncated": 1, "unequal-steps": 1}
    assert analysed(traces) == 100_000


def test_a_rank_of_which_no_step_is_left_is_left_out(tmp_path):
    file(tmp_path / "rank0.json", 0, world=2)
    file(tmp_path / "rank1.json", 1, numbers=(), world=2)  # no ProfilerStep: its whole span is no step of the others'
    traces = load(tmp_path)
    assert gaps(traces) == {"without-steps": 1}
    assert traces.ranks == [0]
    assert analysed(traces) == 100_000
    assert "no-steps" in {n.code for n in traces.notes}  # the notes of the file are kept


def test_a_rank_without_the_steps_asked_for_is_left_out(tmp_path):
    file(tmp_path / "rank0.json", 0, (1, 2, 3, 4))
    file(tmp_path / "rank1.json", 1, (1, 2))
    traces = load(tmp_path, first=3, last=4)
    assert gaps(traces) == {"without-steps": 1}
    assert traces.ranks == [0]
    with pytest.raises(TracediffError, match="no step is left"):
        load(tmp_path, first=9, last=9)


@pytest.mark.parametrize("ranks", [None, frozenset({0})])
@pytest.mark.parametrize("selection", [{}, {"first": 2, "last": 3}, {"first": 4, "last": 4}])
def test_a_snapshot_says_the_same(tmp_path, ranks, selection):
    file(tmp_path / "set" / "rank0.json", 0, world=4)
    file(tmp_path / "set" / "rank1.json", 1, (1, 2, 3), world=4, gpu=False)
    write_snapshot(load(tmp_path / "set"), tmp_path / "s.tdprof.gz")
    expected, found = load(tmp_path / "set", ranks, **selection), load(tmp_path / "s.tdprof.gz", ranks, **selection)
    assert (gaps(found), found.ranks) == (gaps(expected), expected.ranks)
    assert gaps(expected) or ranks


@needs_traces
def test_of_real_sets():
    assert load(FOLDER / "dlrm_8ranks").notes == (
        Note(
            "spilled-kernels",
            "GPU events have no launch in the file (launched before the recording, or the launch is missing)",
            128,
        ),
    )
    assert gaps(load(FOLDER / "hta_sampled")) == {"missing-ranks": 126}
