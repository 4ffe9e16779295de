"""What the step waits for moves between host and GPU: work that did not change is nowhere named as work (µs)."""

import gzip
import json

import pytest
from build_trace import annotation, call, document, kernel, op, step, write
from traces import FOLDER, needs_traces

from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.explain.explanation import _slack
from tracediff.explain.leaves import QUEUE, SHARED_CALLS
from tracediff.present.answer import answer_of
from tracediff.present.path import exposures, read_path
from tracediff.present.sections import changed_work

LATENCY = 5


def steps_of(folder, name, host, gpu, *, steps=4, count=20, late=0, first=0):
    """A set whose operators take ``host``; its kernels take ``gpu``, and begin LATENCY after their launch or 1 after
    the one before. The kernel in the middle of each step begins ``late`` later; a scope of ``first`` begins each step.
    """
    out, free, now = [], 0, 0
    for s in range(steps):
        begin = now
        if first:
            out.append(annotation("enumerate(DataLoader)#_Iter.__next__", now, first))
            now += first
        for i in range(count):
            number = s * count + i + 1
            out += [op("aten::mm", now, host), call("cudaLaunchKernel", now + host - 2, 2, number)]
            start = max(now + host + LATENCY, free + 1) + late * (i == count // 2)
            out.append(kernel("gemm", start, gpu, number, grid=[8, 1, 1], block=[128, 1, 1]))
            free, now = start + gpu, now + host
        out.append(step(s + 1, begin, now - begin))
        now += 1
    path = folder / name
    write(path / "trace.json", document(out))
    return str(path)


def compared(*paths):
    return compare_sets(*load_sets(paths), force=True)


def queued(comparison):
    return [cause for cause in comparison.explanation.causes if QUEUE in cause.trail or cause.label.startswith(QUEUE)]


@pytest.mark.parametrize("turned", [False, True])
def test_launches_that_the_step_comes_to_wait_for_are_exposure(tmp_path, turned):
    paths = [steps_of(tmp_path, "gpu", 10, 30), steps_of(tmp_path, "host", 60, 30)]
    comparison = compared(*(paths[::-1] if turned else paths))
    assert queued(comparison) == []
    assert "the same operator calls on the host" in {cause.label for cause in comparison.explanation.causes} or any(
        "aten::mm" in cause.label for cause in comparison.explanation.causes
    )


@pytest.mark.parametrize(("host", "longer"), [(10, 50), (60, 0)])
def test_launches_that_begin_later_are_a_line_and_account_for_how_long_the_gpu_is_idle(tmp_path, host, longer):
    """Kernels of 30 µs that the host launches every 10 µs end that much later; those of every 60 µs in time."""
    comparison = compared(
        steps_of(tmp_path, "a", host, 30, late=0, count=4), steps_of(tmp_path, "b", host, 30, late=50, count=4)
    )
    assert sum(cause.delta_us for cause in queued(comparison)) == pytest.approx(longer, abs=1)


def test_a_wait_that_is_longer_than_the_other_step_is_no_exposure(tmp_path):
    comparison = compared(
        steps_of(tmp_path, "a", 60, 30, late=20_000, count=4), steps_of(tmp_path, "b", 10, 30, count=4)
    )
    assert sum(cause.delta_us for cause in queued(comparison)) < -19_000


def test_the_work_of_a_step_does_not_depend_on_how_far_the_host_runs_ahead(tmp_path):
    """The GPU lags further behind with each step, so in its periods the host does more than a step's work."""
    comparison = compared(
        steps_of(tmp_path, "a", 10, 12, first=100, steps=6), steps_of(tmp_path, "b", 10, 40, first=100, steps=6)
    )
    host = comparison.explanation.root.children["host"]
    for label in (SHARED_CALLS, "loading data"):
        control, test = host.children[label].total
        assert control == test, label
    assert comparison.explanation.root.children["GPU work"].count.tolist() == [20, 20]


def test_a_step_that_takes_as_long_has_as_many_lines_in_either_direction(tmp_path):
    """Four operators grow by as much as one shrinks."""
    paths = []
    for name, lengths in (("a", (10, 10, 10, 10, 90)), ("b", (30, 30, 30, 30, 10))):
        out, now = [step(1, 0, 130)], 0
        for k, length in enumerate(lengths):
            out.append(op(f"aten::op{k}", now, length))
            now += length
        write(tmp_path / name / "trace.json", document(out))
        paths.append(str(tmp_path / name))
    forward, backward = (compared(*order).explanation for order in (paths, paths[::-1]))
    assert forward.change_us == 0
    assert len(forward.causes) == len(backward.causes) == 5


@needs_traces
@pytest.mark.slow
def test_loading_takes_what_its_events_in_the_steps_take():
    folders = [FOLDER / name for name in ("resnet50_workers0", "resnet50_workers4")]
    (loading,) = (cause for cause in compared(*map(str, folders)).explanation.causes if cause.label == "loading data")
    expected = []
    for folder in folders:
        (file,) = folder.glob("*.json.gz")
        events = [e for e in json.loads(gzip.decompress(file.read_bytes()))["traceEvents"] if e.get("ph") == "X"]
        used = sorted(
            (e["ts"], e["ts"] + e["dur"])
            for e in events
            if e["name"].startswith("ProfilerStep#") and int(e["name"].split("#")[1]) > 5
        )
        loads = [e for e in events if "DataLoader" in e["name"] and e["cat"] == "user_annotation"] or [
            e for e in events if "DataLoader" in e["name"]
        ]
        inside = [e["dur"] for e in loads if any(start <= e["ts"] < end for start, end in used)]
        expected.append(sum(inside) / len(used))
    assert (loading.control_us, loading.test_us) == pytest.approx(expected, rel=0.01)


def test_launches_into_a_full_queue_are_no_host_work(tmp_path):
    """A thousand are outstanding after 1,300 launches; each later one takes as long as the kernel that it waits for."""
    out, now, count, free = [], 0, 1800, 1300
    for i in range(count):
        took = 18 if i >= free else 2
        out += [op("aten::mm", now, took + 2), call("cudaLaunchKernel", now + 1, took, i + 1)]
        out.append(kernel("gemm", 10 + 20 * i, 19, i + 1))
        now += took + 2
    write(tmp_path / "a" / "trace.json", document([step(1, 0, now), *out]))
    explanation = compared(str(tmp_path / "a"), str(tmp_path / "a")).explanation
    total = explanation.root.children["host"].children[SHARED_CALLS].total[0] / 1000
    assert total == pytest.approx(2 * count + 2 * free, rel=0.05)


def test_the_table_of_work_sums_what_each_operator_launched(tmp_path):
    """Both operators launch each other's kernel on the test side: matched by kernel, but summed by operator."""
    for name, kernels in (("a", ("k_one", "k_two")), ("b", ("k_two", "k_one"))):
        out = [step(1, 0, 200)]
        for i in range(6):
            for j, (operator, work) in enumerate(zip(("aten::mm", "aten::copy_"), kernels, strict=True)):
                at, number = 20 * i + 10 * j, 2 * i + j + 1
                out += [op(operator, at, 8), call("cudaLaunchKernel", at + 1, 2, number)]
                out.append(kernel(work, at + 4, 3 + j + (name == "b"), number))
        write(tmp_path / name / "trace.json", document(out))
    work = changed_work(compared(str(tmp_path / "a"), str(tmp_path / "b")), 10)
    assert {row.name: (*row.us, *row.count) for row in work.rows} == {
        "aten::mm": (18, 24, 6, 6),
        "aten::copy_": (24, 30, 6, 6),
    }
    assert work.whole.us == (42, 54)


def test_what_is_exposed_in_place_of_what_is_one_part_of_the_change(tmp_path):
    """The host takes the path from the GPU, whose work takes as long: the step changes by the difference."""
    comparison = compared(steps_of(tmp_path, "gpu", 20, 30), steps_of(tmp_path, "host", 36, 30))
    path = read_path(comparison.explanation)
    exposed = exposures(path)
    in_causes = sum(row.times.exposure for row in path.rows)
    total = sum(part.rest.exposure for part in path.parts.values()) + in_causes
    assert sum(part.delta_us for part in exposed) == pytest.approx(total)
    assert len(exposed) <= 1


@pytest.mark.parametrize(("gpu", "host"), [((10, 30), 36), ((10, 60), 36), ((60, 60), (10, 50)), ((30, 30), (36, 70))])
def test_no_part_accounts_for_more_than_the_other_leaves_to_it(tmp_path, gpu, host):
    """Kernels of 10 → 30 µs between calls of 36 change nothing, and of 60 only what is more than the calls."""
    hosts = host if isinstance(host, tuple) else (host, host)
    paths = [steps_of(tmp_path, f"side{k}", hosts[k], gpu[k]) for k in (0, 1)]
    changes = []
    for sides in (paths, paths[::-1]):
        comparison = compared(*sides)
        explanation = comparison.explanation
        path, slack = read_path(explanation), _slack(comparison, explanation.leaves)
        for part in path.parts.values():
            own = [row.times.own for row in part.rows] + [part.rest.own]
            for sign, most in zip((-1, 1), slack[part.label], strict=True):
                assert sum(us for us in own if sign * us > 0) * sign <= most / 1000 + path.unit.digit
        changes.append({label: part.times.own for label, part in path.parts.items()})
        step = explanation.change_us
        assert sum(changes[-1].values()) == pytest.approx(step, abs=0.1 * abs(step) + 2 * LATENCY)
    assert changes[0] == pytest.approx({label: -us for label, us in changes[1].items()}, abs=path.unit.digit)


@pytest.mark.parametrize("turned", [False, True])
def test_what_grows_on_both_parts_of_the_path_is_no_exposure(tmp_path, turned):
    """Kernels of 30 → 60 µs beside calls of 28 → 58: either alone would make the step nearly as long."""
    paths = [steps_of(tmp_path, "before", 28, 30), steps_of(tmp_path, "after", 58, 60)]
    answer = answer_of(compared(*(paths[::-1] if turned else paths)))
    assert f" and host work, both {'shorter' if turned else 'longer'} (" in answer.because
    assert not any("off the critical path" in text for text in answer.below)


def test_calls_that_take_longer_are_a_line_though_more_of_them_is_also_waited_for(tmp_path):
    """Calls of 28 µs behind kernels of 30 take 36 each, of which the step sees what is more than the kernels."""
    gpu_bound, host_bound = steps_of(tmp_path, "gpu", 28, 30), steps_of(tmp_path, "host", 36, 30)
    for sides in ((gpu_bound, host_bound), (host_bound, gpu_bound)):
        explanation = compared(*sides).explanation
        (row,) = read_path(explanation).rows
        assert row.cause.label == "aten::mm on the host"
        assert abs(row.cause.delta_us) < abs(row.times.delta) / 2  # the rest of which is exposure
        assert abs(row.times.own) == pytest.approx(abs(explanation.change_us))


def streams_of(folder, name, *, overlap, optimizer, second=8):
    """Sets of steps whose GPU runs two products, at the same time on a ``second`` stream if they ``overlap``, and then
    an optimizer, for ``optimizer``; the host launches each at once.
    """
    out, begin = [], 0
    for s in range(4):
        for i, operator in enumerate(("aten::mm", "aten::bmm", "aten::_fused_adamw_")):
            number, now = 3 * s + i + 1, begin + 10 * i
            out += [op(operator, now, 8), call("cudaLaunchKernel", now + 2, 2, number)]
            start = begin + 40 + (0, 0 if overlap else 200, 200 if overlap else 400)[i]
            took = optimizer if i == 2 else 200
            stream = second if i == 1 and (overlap or second != 8) else 7
            out.append(kernel(operator[6:], start, took, number, stream=stream, grid=[8, 1, 1], block=[128, 1, 1]))
        period = 48 + (200 if overlap else 400) + optimizer  # a call returns some µs after what it waited for
        out += [op("aten::item", begin + 30, period - 30), call("cudaStreamSynchronize", begin + 31, period - 32)]
        out.append(step(s + 1, begin, period))
        begin += period
    path = folder / name
    write(path / "trace.json", document(out))
    return str(path)


def test_another_stream_is_named_only_if_work_overlaps_there(tmp_path):
    before = streams_of(tmp_path, "before", overlap=False, optimizer=100)
    for name, overlap, expected in (("beside", True, ["other-stream"]), ("after", False, [])):
        comparison = compared(before, streams_of(tmp_path, name, overlap=overlap, optimizer=100, second=9))
        assert [fact.code for fact in comparison.explanation.facts if fact.code == "other-stream"] == expected


def reducing(folder, name, compute):
    """Sets of steps whose GPU computes for ``compute`` µs and reduces for 160 beside it; the host waits for both."""
    out, begin = [], 0
    for s in range(4):
        took = max(compute, 160)
        for i, (operator, kernel_name, us) in enumerate(
            (("aten::mm", "sgemm", compute), ("record_param_comms", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 160))
        ):
            number, now = 2 * s + i + 1, begin + 10 * i
            out += [op(operator, now, 8), call("cudaLaunchKernel", now + 2, 2, number)]
            out.append(kernel(kernel_name, begin + 40, us, number, stream=7 + 13 * i, grid=[8, 1, 1], block=[64, 1, 1]))
        out += [op("aten::item", begin + 30, 12 + took), call("cudaStreamSynchronize", begin + 31, 10 + took)]
        out.append(step(s + 1, begin, took + 45))
        begin += took + 45
    write(folder / name / "trace.json", document(out))
    return str(folder / name)


def test_work_that_comes_to_hide_communication_accounts_for_what_is_left(tmp_path):
    """Of 100 µs more the step waited 60 already, for communication that takes as long."""
    sides = reducing(tmp_path, "before", 100), reducing(tmp_path, "after", 200)
    for change, (control, test) in ((40, sides), (-40, sides[::-1])):
        (row,) = read_path(compared(control, test).explanation).rows
        assert (row.cause.label, row.times.own) == ("aten::mm (gemm)", pytest.approx(change, abs=2))


def test_what_streams_gain_is_not_taken_off_another_kernel(tmp_path):
    """A product runs beside the other one, which saves 200 µs, and the optimizer takes 300 longer: both are said."""
    before = streams_of(tmp_path, "before", overlap=False, optimizer=100)
    comparison = compared(before, streams_of(tmp_path, "after", overlap=True, optimizer=400))
    path = read_path(comparison.explanation)
    (fact,) = [fact.text for fact in comparison.explanation.facts if fact.code == "other-stream"]
    assert fact.startswith("only after runs gemm kernels beside the main stream")
    assert "with gemm kernels beside the main stream" in comparison.verdict.settings
    assert path.parts["GPU work"].times.own == pytest.approx(300, abs=5)
    assert path.parts["GPU work"].times.exposure == pytest.approx(-200, abs=5)
