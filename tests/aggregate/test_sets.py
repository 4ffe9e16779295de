"""Runs, ranks, cycles and the steps that are used."""

import pytest
from build_trace import annotation, call, document, kernel, op, step, write

from tracediff.aggregate.averages import op_average, own_time, step_average
from tracediff.analysis import analyze_set
from tracediff.engine import LoadOptions, SetOptions, load_sets
from tracediff.errors import TracediffError
from tracediff.explain.compare import compare_sets
from tracediff.present.answer import answer_of
from tracediff.present.next_command import next_command
from tracediff.profile.model.selection import Selection


def file(path, numbers=(1, 2, 3, 4), length=100, rank=None, extra=()):
    events = [
        e for i, n in enumerate(numbers) for e in (step(n, i * length, length), op("aten::mm", i * length + 1, 10))
    ]
    meta = {"distributedInfo": {"rank": rank, "world_size": 2}} if rank is not None else {}
    return write(path, document([*events, *extra], **meta))


def load(where, **selection):
    return load_sets([str(where)], LoadOptions((SetOptions(selection=Selection(**selection)),)))[0]


def runs(traces):
    return {
        run.name: {rank: [p.origin.file.name for p in files] for rank, files in run.ranks.items()}
        for run in traces.runs
    }


def test_two_files_of_one_rank_are_two_runs(tmp_path):
    file(tmp_path / "a.json")
    file(tmp_path / "b.json")
    assert runs(load(tmp_path)) == {"run 1": {0: ["a.json"]}, "run 2": {0: ["b.json"]}}


def test_the_rank_comes_from_the_trace_before_the_name(tmp_path):
    file(tmp_path / "rank5.json", rank=1)
    file(tmp_path / "rank7.json")
    assert load(tmp_path).ranks == [1, 7]


def test_run_folders_name_the_runs(tmp_path):
    for run in (2, 10):
        for rank in (0, 1):
            file(tmp_path / f"run{run}" / f"rank{rank}.pt.trace.json.gz")
    found = runs(load(tmp_path))
    assert set(found) == {"run 2", "run 10"}
    assert all(set(ranks) == {0, 1} for ranks in found.values())


def test_cycles_of_one_worker_are_one_run_and_repeats_are_two(tmp_path):
    file(tmp_path / "cycles" / "host_1.1700000000001.pt.trace.json", numbers=(1, 2, 3))
    file(tmp_path / "cycles" / "host_1.1700000000002.pt.trace.json", numbers=(7, 8, 9))
    assert len(load(tmp_path / "cycles").runs) == 1
    assert load(tmp_path / "cycles").steps_used == [2, 3, 8, 9]
    file(tmp_path / "repeats" / "host_1.1700000000001.pt.trace.json", numbers=(1, 2, 3))
    file(tmp_path / "repeats" / "host_1.1700000000002.pt.trace.json", numbers=(1, 2, 3))
    assert len(load(tmp_path / "repeats").runs) == 2
    file(tmp_path / "processes" / "host_1.1700000000001.pt.trace.json", numbers=(1, 2, 3))
    file(tmp_path / "processes" / "host_2.1700000000001.pt.trace.json", numbers=(7, 8, 9))
    assert len(load(tmp_path / "processes").runs) == 2


@pytest.mark.parametrize(
    ("numbers", "selection", "used"),
    [
        ((1, 2), {}, [1, 2]),
        ((1, 2, 3), {}, [2, 3]),
        ((1, 2, 3, 4), {"skip_first": 0}, [1, 2, 3, 4]),
        ((1, 2, 3, 4), {"skip_first": 3}, [4]),
        ((1, 2, 3, 4), {"first": 2, "last": 3}, [2, 3]),
    ],
)
def test_used_steps(tmp_path, numbers, selection, used):
    file(tmp_path / "a.json", numbers=numbers)
    assert load(tmp_path, **selection).steps_used == used


def test_no_step_left_is_an_error_that_names_the_steps(tmp_path):
    file(tmp_path / "a.json", numbers=(5, 6))
    with pytest.raises(TracediffError, match=r"steps in this file: 5–6"):
        load(tmp_path, first=9, last=9)


def test_means_are_over_steps_then_ranks_then_runs_and_exact(tmp_path):
    file(tmp_path / "run1" / "rank0.json", numbers=(1, 2), length=100)
    file(tmp_path / "run2" / "rank0.json", numbers=(1, 2, 3, 4), length=40)
    average = step_average(load(tmp_path))
    assert average.period / average.denominator == (100_000 + 40_000) / 2
    assert sum(average.states.values()) == average.period
    ops = op_average(load(tmp_path))
    assert ops.rows["cpu_op", "aten::mm"][0] / ops.denominator == 1


def test_the_slowest_rank_makes_a_step(tmp_path):
    file(tmp_path / "rank0.json", numbers=(1, 2, 3), length=100, rank=0)
    file(tmp_path / "rank1.json", numbers=(1, 2, 3), length=130, rank=1)
    average = step_average(load(tmp_path))
    assert [(s.number, s.rank, s.period_ns) for s in average.runs["run 1"]] == [(2, 1, 130_000), (3, 1, 130_000)]


def test_a_step_marker_makes_steps_of_annotations(tmp_path):
    from build_trace import annotation

    events = [e for i in range(3) for e in (annotation("execute_model", 50 * i, 40), op("aten::mm", 50 * i + 1, 5))]
    path = write(tmp_path / "serving.json", document(events))
    (traces,) = load_sets([str(path)], LoadOptions(step_marker="execute_.*"))
    assert traces.steps_recorded == [0, 1, 2]
    with pytest.raises(TracediffError, match=r"no annotation matches .* the annotations are execute_model"):
        load_sets([str(path)], LoadOptions(step_marker="nothing"))
    with pytest.raises(TracediffError, match="not a regular expression"):
        load_sets([str(path)], LoadOptions(step_marker="("))


def test_steps_are_chosen_by_a_number_or_a_range():
    assert Selection.parse("5") == Selection(first=5, last=5)
    assert Selection.parse(" 5 .. 10 ") == Selection(first=5, last=10)
    with pytest.raises(TracediffError, match=r"ends before it begins.*write 6\.\.9"):
        Selection.parse("9..6")
    for text in ("", "x", "1,2", "-1", "1..", "1..2..3", "9" * 5000):
        with pytest.raises(TracediffError, match="not a step or a range of steps"):
            Selection.parse(text)


def gpu_rank(path, rank, compute_us, period_us=(1000, 1000, 1000)):
    """A rank that computes, and then waits in a collective to the end of each step."""
    events, start = [], 0
    for n, period in enumerate(period_us):
        events += [step(n, start, period), call("cudaLaunchKernel", start, 5, 2 * n)]
        events += [call("cudaLaunchKernel", start + 5, 5, 2 * n + 1), kernel("sgemm", start + 10, compute_us, 2 * n)]
        events.append(call("cudaDeviceSynchronize", start + 11, period - 12))
        ready = start + 10 + compute_us
        events.append(kernel("ncclDevKernel_AllReduce", ready, start + period - ready, 2 * n + 1))
        start += period
    write(path / f"rank{rank}.json", document(events, distributedInfo={"rank": rank, "world_size": 2}))


def test_of_ranks_that_keep_pace_the_one_that_the_others_wait_for_makes_the_steps(tmp_path):
    """The periods of single steps differ by chance."""
    gpu_rank(tmp_path, 0, compute_us=300, period_us=(1001, 1002, 1000))
    gpu_rank(tmp_path, 1, compute_us=900, period_us=(1001, 1000, 1002))
    steps = step_average(load(tmp_path)).runs["run 1"]
    assert [(step.rank, own_time(step.states)) for step in steps] == [(1, 910_000)] * 2


def test_a_slower_rank_makes_the_steps_although_it_waits(tmp_path):
    gpu_rank(tmp_path, 0, compute_us=300, period_us=(1100, 1100, 1100))
    gpu_rank(tmp_path, 1, compute_us=900)
    assert {step.rank for step in step_average(load(tmp_path)).runs["run 1"]} == {0}


def test_a_late_rank_is_explained_by_what_it_does(tmp_path):
    for name, late_us in (("even", 300), ("late", 900)):
        for rank, compute_us in ((0, 300), (1, late_us)):
            gpu_rank(tmp_path / name, rank, compute_us, period_us=[late_us + 100] * 3)
    comparison = compare_sets(load(tmp_path / "even"), load(tmp_path / "late"))
    assert answer_of(comparison).because.startswith("Because of gemm: sgemm (+600 µs)")
    assert [fact.text for fact in comparison.explanation.facts if fact.code == "late-rank"] == [
        "in late rank 0 waits for rank 1, which works 910.0 µs per step, rank 0 310.0 µs, without communication"
    ]
    assert "ranks 0–1 (step and why: rank 1; tables: mean of ranks)" in answer_of(comparison).setting
    assert (
        next_command(comparison, "tracediff compare a b")
        == "tracediff explain a b --rank 1 'gemm kernels without operator'"
    )


def test_waiting_for_a_late_rank_says_what_that_rank_does(tmp_path):
    """The only step of each file begins where its recording does, and rank 0's lasts longest."""
    for name, late_us in (("even", 300), ("late", 900)):
        for rank, compute_us, more in ((0, 300, 400), (1, late_us, 0)):
            gpu_rank(tmp_path / name, rank, compute_us, period_us=[late_us + 100 + more])
    sides = load(tmp_path / "even"), load(tmp_path / "late")
    for (control, test), change in ((sides, "+600"), (sides[::-1], "−600")):
        because = answer_of(compare_sets(control, test)).because
        assert because.startswith(f"Because of communication: ncclDevKernel_AllReduce ({change} µs")
        assert f"includes waiting for rank 1: gemm: sgemm {change} µs" in because


def gloo_rank(path, rank, prepared_us, period_us, launched_us=None):
    """A rank that prepares a batch in Python, and then waits for a collective that a thread of its own carries out to
    the end of each step; within it, that thread waits for a kernel of ``launched_us``.
    """
    events = []
    for n in range(3):
        start = period_us * n
        events += [step(n, start, period_us), op("aten::mm", start + prepared_us, 20)]
        ready = start + prepared_us + 20
        events.append(annotation("gloo:all_reduce", ready, start + period_us - 20 - ready, tid=9))
        if launched_us:
            events += [call("cudaLaunchKernel", start + prepared_us + 1, 5, n + 1)]
            events += [kernel("attention", start + prepared_us + 10, launched_us, n + 1)]
            events += [call("cudaStreamSynchronize", ready + 1, launched_us - 10, tid=9)]
    write(path / f"rank{rank}.json", document(events, distributedInfo={"rank": rank, "world_size": 2}))


def test_waiting_for_a_collective_of_the_host_is_no_work_of_the_rank(tmp_path):
    for name, late_us in (("even", 100), ("late", 600)):
        for rank, prepared_us in ((0, 100), (1, late_us)):
            gloo_rank(tmp_path / name, rank, prepared_us, period_us=late_us + 300)
    comparison = compare_sets(load(tmp_path / "even"), load(tmp_path / "late"))
    labels = {cause.label: round(cause.delta_us) for cause in comparison.explanation.causes}
    assert labels == {"host time outside operators": 500}
    (finding,) = [f for f in analyze_set(load(tmp_path / "even")).findings if f.code == "exposed-communication"]
    assert finding.title == "waiting for collectives of the host: 260.0 µs per step"
    assert [fact.text for fact in comparison.explanation.facts if fact.code == "late-rank"] == [
        "in late rank 0 waits for rank 1, which works 640.0 µs per step, rank 0 140.0 µs, without communication"
    ]


def test_what_a_collective_waits_for_on_the_gpu_is_not_its_own(tmp_path):
    for name, launched_us in (("short", 100), ("long", 600)):
        gloo_rank(tmp_path / name, 0, 100, launched_us + 300, launched_us)
    comparison = compare_sets(load(tmp_path / "short"), load(tmp_path / "long"))
    assert {cause.label: round(cause.delta_us) for cause in comparison.explanation.causes} == {
        "aten::mm (attention)": 500
    }


def test_host_code_that_goes_on_while_a_collective_runs_is_no_waiting(tmp_path):
    events = [step(1, 0, 1000), op("aten::mm", 10, 20), op("aten::mm", 900, 20)]
    write(tmp_path / "trace.json", document([*events, annotation("gloo:all_reduce", 40, 920, tid=9)]))
    (profile,) = load(tmp_path).profiles
    states = dict(zip(profile.state_names, profile.state_ns[0].tolist(), strict=True))
    assert (states["synchronising"], states["python"]) == (40_000, 920_000)


def test_gpu_work_beside_how_busy_a_gpu_is_is_of_the_same_rank(tmp_path):
    for name, late_us in (("even", 100), ("late", 600)):
        for rank, launched_us in ((0, 100), (1, late_us)):
            gloo_rank(tmp_path / name, rank, 100, late_us + 300, launched_us)
    comparison = compare_sets(load(tmp_path / "even"), load(tmp_path / "late"))
    assert answer_of(comparison).limits == "Limited by the host in even, by the GPU in late; GPU busy 25 → 67 %"
