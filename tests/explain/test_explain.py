"""The explanation of traces whose answer is known by hand (µs in the events and in the explanation)."""

import re
from pathlib import Path

import numpy as np
import pytest
from accounts import assert_closes
from build_trace import annotation, call, document, kernel, op, python, step, write
from hypothesis import given, strategies as st
from properties import examples

from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.explain.explanation import whole_label
from tracediff.explain.exposure import account
from tracediff.explain.leaves import GPU, OPERATORS
from tracediff.explain.lines import Line, label_of, lines_of
from tracediff.explain.tree import Node, logarithmic_mean, split


def explained(folder, control, test, runs=1):
    """The explanation of two lists of events; each is a run, or a list of runs."""
    paths = []
    for name, events in (("control", control), ("test", test)):
        for run in range(runs):
            mine = events(run) if callable(events) else events
            (folder / name / f"run{run + 1}").mkdir(parents=True)
            write(folder / name / f"run{run + 1}" / "trace.json", document(mine))
        paths.append(str(folder / name))
    comparison = compare_sets(*load_sets(paths), force=True)
    assert_closes(comparison)
    return comparison.explanation


def products(count, took, *, size=64, begin=40, number=0, name="sgemm_nn", op_name="aten::mm", grid=8):
    """``count`` products on the GPU, which is always busy, launched by a host that runs ahead."""
    out = []
    for i in range(count):
        at = number + i
        out += [
            op(op_name, 3 * at, 3, **{"Input Dims": [[size, size], [size, size]], "Input type": ["float", "float"]}),
            call("cudaLaunchKernel", 3 * at + 1, 1, at + 1),
            kernel(name, begin + took * i, took, at + 1, grid=[grid, 1, 1], block=[128, 1, 1]),
        ]
    return out


def effects(cause):
    """The effects of a cause that are not 0, in µs."""
    return {name: round(ns / 1000) for name, ns in cause.node.effects.items() if abs(ns) >= 500}


def test_as_much_work_in_more_time_is_speed(tmp_path):
    found = explained(tmp_path, [step(1, 0, 30), *products(10, 100)], [step(1, 0, 30), *products(10, 150)])
    (cause,) = found.causes
    assert cause.delta_us == pytest.approx(500)
    assert effects(cause) == {"speed": 500}
    assert cause.amount.ratio == pytest.approx(1)
    assert cause.what == "as many FLOPs in 1.5 × the time"
    assert cause.significance.time_change == "untested"
    assert [fact.code for fact in found.facts] == ["same-calls"]


def test_more_work_at_the_same_rate_is_amount_and_the_work_differs(tmp_path):
    found = explained(
        tmp_path,
        [step(1, 0, 30), *products(10, 100, size=64)],
        [step(1, 0, 30), *products(10, 800, size=128)],
    )
    (cause,) = found.causes
    assert effects(cause) == {"amount": 7000}
    assert (cause.amount.ratio, cause.amount.unit) == (pytest.approx(8), "FLOPs")
    (fact,) = found.facts
    assert fact.code == "work-differs"
    assert fact.is_other_work
    assert "8 × the FLOPs" in fact.text


def test_time_of_work_whose_amount_is_unknown_is_not_called_speed(tmp_path):
    def bare(took, grid):
        return [
            event_
            for i in range(10)
            for event_ in (
                call("cudaLaunchKernel", 3 * i, 1, i + 1),
                kernel("unknown_kernel", 40 + took * i, took, i + 1, grid=[grid, 1, 1], block=[128, 1, 1]),
            )
        ]

    found = explained(tmp_path, [step(1, 0, 30), *bare(100, 8)], [step(1, 0, 30), *bare(150, 24)])
    (cause,) = found.causes
    assert cause.node.effects["speed"] == 0


def test_work_that_only_one_side_has_is_presence(tmp_path):
    relu = [op("aten::relu", 30, 3), call("cudaLaunchKernel", 31, 1, 99), kernel("relu_kernel", 1040, 300, 99)]
    found = explained(tmp_path, [step(1, 0, 40), *products(10, 100)], [step(1, 0, 40), *products(10, 100), *relu])
    (cause,) = found.causes
    assert "relu" in cause.label
    assert effects(cause) == {"presence": 300}
    assert cause.what == "added"


def test_the_same_work_that_the_step_now_waits_for_is_exposure(tmp_path):
    """The host gets slower until it bounds the step: the GPU's work is hidden behind it, and did not change."""

    def host_bound(gap):
        return [
            event_
            for i in range(10)
            for event_ in (
                op("aten::mm", gap * i, gap, **{"Input Dims": [[64, 64], [64, 64]]}),
                call("cudaLaunchKernel", gap * i + gap - 1, 1, i + 1),
                kernel("sgemm_nn", max(40 + 100 * i, gap * (i + 1) + 5), 100, i + 1),
            )
        ]

    found = explained(tmp_path, [step(1, 0, 30), *host_bound(3)], [step(1, 0, 3000), *host_bound(300)])
    assert found.remainders["GPU work"].exposure_us < -800
    gpu = found.root.children["GPU work"]
    assert gpu.work == pytest.approx(0, abs=1)
    assert found.causes[0].trail[0] == "host"


def test_one_long_call_is_a_line_of_its_own(tmp_path):
    def calls(longest):
        return [
            event_
            for i in range(20)
            for event_ in (
                op("aten::mm", 10 * i + (longest if i > 5 else 0), 9 + (longest if i == 5 else 0)),
                call("cudaLaunchKernel", 10 * i + 1 + (longest if i > 5 else 0), 5 + (longest if i == 5 else 0), i + 1),
                kernel("k", 10 * i + 8 + (longest if i >= 5 else 0), 1, i + 1),
            )
        ]

    found = explained(tmp_path, [step(1, 0, 300), *calls(0)], [step(1, 0, 5300), *calls(5000)])
    first = found.causes[0]
    assert first.label == "cudaLaunchKernel in aten::mm"
    assert first.delta_us == pytest.approx(5000, rel=0.01)
    assert first.reasons[-1].text == "one of 20 in test takes 5,005 µs"
    assert first.first[0] == 1


@pytest.mark.parametrize("names", [("<method next at 0x7f01>", "<method next at 0x7f02>"), ("", "")])
def test_what_names_of_one_leaf_took_is_added_up(tmp_path, names):
    """Names that match alike, and no name, are one leaf: the path has the time of all."""
    events = [step(1, 0, 1000), op("aten::add", 0, 100), python(names[0], 100, 300, 1), python(names[1], 500, 400, 2)]
    assert explained(tmp_path, events, events).root.path.tolist() == [1_000_000, 1_000_000]


def test_waiting_for_the_loader_is_named(tmp_path):
    def loading(us):
        return [
            step(1, 0, us + 100),
            annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, us),
            op("aten::stack", 5, 10),
            op("aten::mm", us, 100),
        ]

    found = explained(tmp_path, loading(50), loading(2050))
    assert [cause.label for cause in found.causes] == ["loading data"]
    assert found.causes[0].delta_us == pytest.approx(2000)


def test_compilation_in_the_step_is_a_fact_and_a_line(tmp_path):
    def compiling(us):
        scope = [annotation("entire_frame_compile (dynamo_timed)", 10, us)] if us else []
        return [step(1, 0, us + 200), *scope, op("aten::mm", us + 20, 100)]

    found = explained(tmp_path, compiling(0), compiling(3000))
    assert [fact.code for fact in found.facts] == ["not-steady", "unknown-sizes"]
    assert found.causes[0].label == "compiling: entire_frame_compile"


def test_a_step_that_does_everything_twice_is_the_same_program_twice_as_often(tmp_path):
    def ops(count):
        return [
            step(1, 0, 100 * count),
            *(
                op(name, 100 * i + 10 * k, 8)
                for i in range(count)
                for k, name in enumerate(("aten::mm", "aten::add", "aten::relu"))
            ),
        ]

    found = explained(tmp_path, ops(3), ops(6))
    assert [fact.code for fact in found.facts] == ["as-often", "unknown-sizes"]
    assert "2 × as often" in found.facts[0].text


def test_other_operators_are_another_program(tmp_path):
    def program(names):
        return [step(1, 0, 1000), *(op(name, 10 * i, 8) for i, name in enumerate(names * 10))]

    found = explained(tmp_path, program(["aten::mm", "aten::add"]), program(["aten::conv2d", "aten::add", "aten::pad"]))
    assert [fact.code for fact in found.facts] == ["other-program"]


def test_equal_recordings_have_no_causes(tmp_path):
    events = [step(1, 0, 30), *products(10, 100)]
    found = explained(tmp_path, events, events)
    assert found.causes == ()
    assert [fact.code for fact in found.facts] == ["same-calls"]
    assert found.rest_us == 0


def test_lines_are_tested_from_three_runs_on(tmp_path):
    def slower(by):
        return lambda run: [step(1, 0, 30), *products(10, 100 + by + run % 2)]

    found = explained(tmp_path, slower(0), slower(60), runs=3)
    (cause,) = found.causes
    assert cause.significance.time_change == "slower"
    assert cause.significance.interval[0] > 0.3


def bare(names, took=100):
    """Kernels of these names, which no operator launches."""
    return [
        step(1, 0, 3 * len(names)),
        *(
            event_
            for i, name in enumerate(names)
            for event_ in (call("cudaLaunchKernel", 3 * i, 1, i + 1), kernel(name, 40 + took * i, took, i + 1))
        ),
    ]


def test_work_that_neither_operators_nor_amounts_tell_is_said_to_be_unknown(tmp_path):
    found = explained(tmp_path, bare(["norm_a", "gelu_b"] * 8), bare(["sort_c", "scan_d"] * 8))
    assert [fact.code for fact in found.facts] == ["unknown-work"]
    assert not found.facts[0].is_other_work
    assert not explained(tmp_path / "same", bare(["norm_a"] * 8), bare(["norm_a"] * 8, took=130)).facts


def test_one_event_that_takes_a_hundredth_of_the_time_is_not_done_less_often(tmp_path):
    """A collective without a recorded size, which waits on one side."""
    found = explained(
        tmp_path, bare(["ncclDevKernel_AllReduce"], took=5000), bare(["ncclDevKernel_AllReduce"], took=10)
    )
    (cause,) = found.causes
    assert cause.what == "includes waiting for other ranks"
    assert effects(cause) == {"time": -4990}


def test_other_work_of_one_family_is_not_called_replaced_by_its_largest(tmp_path):
    def functions(*names):
        return [step(1, 0, 1000), *(op(name, 300 * i, 200 + i) for i, name in enumerate(names))]

    found = explained(tmp_path, functions("own::a", "own::b", "own::c"), functions("own::d"))
    (cause,) = [cause for cause in found.causes if " → " in cause.label]
    assert cause.label == "own::c + 2 more → own::d"
    assert cause.what == "replaced"


def test_what_a_read_number_waited_for_is_the_gpu_where_no_call_is_recorded(tmp_path):
    """As Ascend's level 0: the launches are recorded, but not the call in which ``item()`` waits."""

    def reading(took, name="aten::_local_scalar_dense"):
        return [step(1, 0, took + 200), *products(10, took // 10), op(name, 40, took + 10)]

    found = explained(tmp_path, reading(1000), reading(2000))
    assert [cause.trail[0] if cause.trail else cause.label for cause in found.causes] == ["GPU work"]
    assert found.causes[0].delta_us == pytest.approx(1000, rel=0.05)
    others = explained(tmp_path / "add", reading(1000, "aten::add"), reading(2000, "aten::add"))
    assert others.causes[0].trail[0] == "host"


@pytest.mark.parametrize("is_recorded", [True, False])
def test_what_a_copying_operator_waited_for_is_its_copy_where_no_call_is_recorded(tmp_path, is_recorded):
    """As Ascend's levels 1 and 0: the copy begins late on one side, and its operator waits for it on both."""

    def copying(late, calls):
        events = [op("aten::copy_", 5, late + 996), call("Enqueue", 10, 5, 1), kernel("Memcpy HtoD", late, 1000, 1)]
        events[-1]["cat"] = "gpu_memcpy"
        return [step(1, 0, late + 1200), *events, *([call("cudaStreamSynchronize", 16, late + 984.5)] if calls else [])]

    found = explained(tmp_path, copying(100, calls=True), copying(3100, calls=is_recorded))
    assert [(cause.label, round(cause.delta_us)) for cause in found.causes] == [
        ("launched, not started: Enqueue", 3000)
    ]
    other = explained(tmp_path / "level", copying(3100, calls=True), copying(3100, calls=is_recorded))
    assert all(abs(cause.delta_us) < 1 for cause in other.causes)  # of 4 ms


def test_an_operator_that_copies_without_waiting_holds_its_own_time(tmp_path):
    def copying(took):
        events = [op("aten::copy_", 5, took), call("Enqueue", 10, 5, 1), kernel("Memcpy HtoD", took + 50, 1000, 1)]
        events[-1]["cat"] = "gpu_memcpy"
        return [step(1, 0, took + 1200), *events]

    found = explained(tmp_path, copying(100), copying(1100))
    assert "aten::copy_ on the host" in [cause.label for cause in found.causes]


def lookups(count, took, *inputs, op_name="aten::embedding"):
    """``count`` lookups on the GPU, of inputs of these shapes."""
    out = products(count, took, name="indexSelectLargeIndex", op_name=op_name)
    for event in out:
        if event["name"] == op_name:
            event["args"] = {"Input Dims": list(inputs), "Input type": ["float", "long int"]}
    return [step(1, 0, 30), *out]


@pytest.mark.parametrize("op_name", ["aten::embedding", "aten::index_select"])
def test_a_larger_table_is_no_more_work(tmp_path, op_name):
    sides = (lookups(10, 100, [rows, 64], [512], op_name=op_name) for rows in (1000, 32_000))
    found = explained(tmp_path, *sides)
    assert [fact.code for fact in found.facts] == ["other-sizes"]  # and as much work
    assert not found.causes


def test_more_lookups_in_a_table_are_more_work_if_the_inputs_tell(tmp_path):
    def sides(**name):
        return [
            lookups(10, took, [1000, width], [rows], **name) for took, width, rows in ((100, 64, 512), (400, 128, 1024))
        ]

    (cause,) = explained(tmp_path, *sides()).causes
    assert (cause.amount.ratio, cause.amount.unit) == (pytest.approx(4), "elements")
    (other,) = explained(tmp_path / "index", *sides(op_name="aten::index_select")).causes
    assert other.what == "amount of work unknown"


def test_the_work_does_not_differ_where_most_of_it_is_as_much(tmp_path):
    def side(size, took):
        copies = products(2, took, size=size, number=10, begin=1100, name="copy_kernel", op_name="aten::copy_")
        return [step(1, 0, 40), *products(10, 100), *copies]

    found = explained(tmp_path, side(64, 5), side(128, 20))
    assert [cause.what.split(" ")[1:] for cause in found.causes] == [["×", "the", "elements"]]
    assert [fact.code for fact in found.facts] == ["same-program"]


def on_ranks(folder, sides, numbers=(0, 1)):
    """The comparison of two files of these ranks."""
    paths = [
        write(folder / name / f"rank{number}.json", document(events))
        for name, number, events in zip(("control", "test"), numbers, sides, strict=True)
    ]
    return compare_sets(*load_sets(list(map(str, paths))))


@pytest.mark.parametrize("turned", [False, True])
def test_a_rank_that_waits_for_another_is_not_called_slower(tmp_path, turned):
    """One rank works for 500 µs before an all-reduce, the other for 200, and waits in it."""

    def rank(works, waits):
        reduction = [op("nccl:all_reduce", 10, 5), call("cudaLaunchKernel", 11, 2, 99)]
        reduction.append(kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 40 + works, waits, 99))
        return [step(1, 0, 60), *products(1, works, number=10), *reduction]

    sides = [rank(500, 20), rank(200, 920)]
    found = on_ranks(tmp_path, sides[::-1] if turned else sides)
    facts = {fact.code: fact.text for fact in found.explanation.facts}
    assert ("920.0 → 20.0 µs" if turned else "20.0 → 920.0 µs") in facts["other-ranks"]
    assert not {"faster", "slower"} & set(found.verdict.sentence.split())
    assert found.verdict.settings == "on another rank"
    of_one = on_ranks(tmp_path / "one", sides, numbers=(1, 1))
    assert "other-ranks" not in {fact.code for fact in of_one.explanation.facts}


def test_another_rank_that_computes_longer_is_slower(tmp_path):
    sides = [[step(1, 0, 30), *products(10, took)] for took in (100, 150)]
    found = on_ranks(tmp_path, sides)
    assert [fact.code for fact in found.explanation.facts] == ["same-calls"]
    assert "48 % longer" in found.verdict.sentence


def test_which_side_alone_replays_graphs_is_said(tmp_path):
    def replay(call_name):
        work = [kernel(name, 20 + 100 * k, 100, 1) for k, name in enumerate(("sgemm_nn", "softmax_warp"))]
        return [step(1, 0, 30), op("CompiledFunction", 0, 10), call(call_name, 1, 2, 1), *work]

    (fact,) = explained(tmp_path, replay("cudaLaunchKernel"), replay("cudaGraphLaunch")).facts
    assert (fact.code, fact.text.split(",")[0]) == ("graph-replays", "only test replays graphs")
    assert not explained(tmp_path / "both", replay("cudaGraphLaunch"), replay("cudaGraphLaunch")).facts


def test_a_line_has_the_direction_of_its_own_time():
    """Its exposed part got shorter, its hidden part longer by more: each is a line, of what the step waits for."""

    def node(label, depth, total, path, children=()):
        out = Node(label, depth, {child.label: child for child in children})
        out.total, out.path = np.array(total), np.array(path)
        out.parts = np.array([0.0, 0.0, total[1] - total[0], 0.0])
        return out

    parts = [node("exposed", 3, (90e3, 60e3), (90e3, 60e3)), node("hidden", 3, (10e3, 60e3), (10e3, 13e3))]
    family = node("gemm", 2, (100e3, 120e3), (100e3, 73e3), parts)
    gpu = node("GPU work", 1, (100e3, 120e3), (100e3, 73e3), [family])
    root = node("step", 0, (100e3, 73e3), (100e3, 73e3), [gpu])
    lines = lines_of(root)
    assert [line.node.label for line in lines.shown] == ["exposed", "hidden"]
    for line in lines.shown:
        assert line.node.work * (line.node.total[1] - line.node.total[0]) > 0
    of_lines, remainders = account(lines, root, {}, [])
    assert [(line.node.label, us) for line, us in of_lines] == [("exposed", -30), ("hidden", 3)]
    (remainder,) = remainders.values()
    assert (remainder.exposure_us, remainder.longer_us, remainder.shorter_us) == (0, 0, 0)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_node_whose_time_is_the_same_but_for_rounding_is_no_line_in_either_direction(sign):
    node = Node("host", 1, total=np.array([900e3, 900e3 + sign * 1e-10]), path=np.array([300e3, 240e3]))
    node.parts = np.array([0.0, 0.0, 0.0, -60e3])
    assert not node.agrees


@pytest.mark.parametrize("turned", [False, True])
def test_fused_are_fewer_operators_and_no_longer_fused_more(turned):
    samples = Path(__file__).parents[2] / "sample_traces" / "graph-breaks"
    sides = [str(samples / name) for name in ("eager", "compile")]
    found = compare_sets(*load_sets(sides[::-1] if turned else sides)).explanation
    texts = [reason.text for cause in found.causes for reason in cause.reasons if reason.code == "fusion"]
    assert texts
    for text in texts:
        word, control, test, noun = re.fullmatch(r"(.*): ([\d.]+) → ([\d.]+) (.*)", text).groups()
        assert noun == "operators"  # of a CPU, which has no kernels
        assert (float(test) < float(control)) == (word == "fused")


positive = st.integers(0, 10**9).map(float)


@examples(200)
@given(
    st.tuples(positive, positive),
    st.tuples(positive, positive),
    st.floats(0.01, 100),
    st.sampled_from(["FLOPs", "threads", "events", "calls"]),
    st.sampled_from([np.nan, -np.inf, -0.5, 0.0, 2.0, np.inf]),
)
def test_effects_add_up_and_change_sign_with_the_sides(path, beyond, ratio, unit, reached):
    """Whatever the times and amounts: no effect is lost, and none depends on which side is the control."""
    on_path = np.array(path)[:, None]
    total = on_path + np.array(beyond)[:, None]
    period = np.array(path) * 2
    forward = split(on_path, total, np.array([ratio]), np.array([unit], object), np.array([reached]), period)
    backward = split(
        on_path[::-1], total[::-1], np.array([1 / ratio]), np.array([unit], object), np.array([-reached]), period[::-1]
    )
    scale = max(total.max(), 1.0)
    if np.isnan(reached):
        assert forward.sum() == pytest.approx(total[1, 0] - total[0, 0], abs=1e-6 * scale)
    assert forward == pytest.approx(-backward, abs=1e-5 * scale)


def test_the_logarithmic_mean_lies_between():
    assert logarithmic_mean(np.array([1.0, 2.0, 0.0]), np.array([1.0, 8.0, 5.0])).tolist() == pytest.approx(
        [1.0, 6 / np.log(4), 0.0]
    )


def test_graph_breaks_of_one_side_are_a_fact():
    samples = Path(__file__).parents[2] / "sample_traces" / "graph-breaks"
    comparison = compare_sets(*load_sets([str(samples / "eager"), str(samples / "compile")]))
    (fact,) = [fact for fact in comparison.explanation.facts if fact.code == "graph-breaks"]
    assert fact.text.startswith("compile has 4 graph breaks: graph_breaks.py:46: ")
    again = compare_sets(*load_sets([str(samples / "compile")] * 2), force=True)
    assert "graph-breaks" not in {fact.code for fact in again.explanation.facts}


def test_a_line_that_lacks_an_event_of_its_own_is_of_the_others():
    line = Line((OPERATORS, "copy"), Node("aten::copy_", 3))
    assert label_of(line) == "aten::copy_ (copy)"
    assert whole_label(line, {}, lacks_event=True) == "other aten::copy_ (copy)"
    assert whole_label(line, {}, lacks_event=False) == "aten::copy_ (copy)"


def test_of_an_operator_that_launches_several_kinds_of_work_a_line_says_which():
    for label, named in (
        ("aten::copy_", "copy kernels of aten::copy_"),
        ("Memcpy DtoH in aten::copy_", "Memcpy DtoH in aten::copy_"),
    ):
        line = Line((GPU, "copy"), Node(label, 3))
        assert whole_label(line, {"aten::copy_": {"copy", "gpu_memcpy"}}, lacks_event=False) == named
