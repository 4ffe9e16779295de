"""What findings state agrees with their evidence, and with one another."""

import pytest
import traces
from build_trace import annotation, call, document, kernel, memcpy, op, step, write
from tracediff.report.findings_terminal import findings as terminal

from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.report.next_command import next_command


def compared(folder, control, test):
    paths = [write(folder / f"{name}.json", document(events)) for name, events in (("a", control), ("b", test))]
    return compare_sets(*load_sets([str(path) for path in paths]))


def real(control, test):
    return compare_sets(*load_sets([str(traces.FOLDER / control), str(traces.FOLDER / test)]))


def only(comparison, code):
    (found,) = [f for f in comparison.findings if f.code == code]
    return found


def in_a_row(*operators):
    """A step of operators (name, µs) one after the other."""
    events, at = [], 0
    for name, us in operators:
        events.append(op(name, at, us))
        at += us
    return [step(1, 0, at + 10), *events]


def test_operators_that_replace_several_count_with_those_that_stay(tmp_path):
    """The three products became 60 small ones: what was saved and what it cost are one change."""
    control = in_a_row(*[("aten::bmm", 90), ("aten::mm", 2), ("aten::addmm", 2)] * 3)
    test = in_a_row(*[("aten::addmm", 5)] * 60)
    found = only(compared(tmp_path, control, test), "count-change")
    assert found.delta_us == 60 * 5 - 3 * 94
    assert "aten::bmm" not in {e.name for e in found.evidence if e.test_count == 0 and e.control_count != 3}


@traces.needs_traces
def test_copies_are_no_work_that_is_done_more_often():
    comparison = real("hta_control", "hta_test")
    counted, copied = only(comparison, "count-change"), only(comparison, "new-copies")
    copies = sum(m.count for g in comparison.work.groups for m in g.test if m.name.startswith("Memcpy DtoD"))
    assert copied.evidence[0].test_count == comparison.number(copies)
    rows = [e for e in counted.evidence if "copy" in e.name]
    assert sum(e.test_count for e in rows) < comparison.number(copies)


def test_evidence_changed_as_its_finding_did(tmp_path):
    def products(small, large):
        calls = [("aten::mm", [[8, 8]], small), ("aten::mm", [[64, 64]], large)]
        events, at = [], 0
        for name, dims, us in calls:
            events.append(op(name, at, us, **{"Input Dims": dims}))
            at += us
        return [step(1, 0, at), *events]

    found = only(compared(tmp_path, products(100, 400), products(40, 600)), "slower-kernel")
    assert [e.name for e in found.evidence] == ["aten::mm([64,64])"]


def loading(loader, us, inside=()):
    """A step in which the process waits ``us`` µs for the loader, with operators in that time, then computes."""
    work = [op(name, 10 + 10 * k, 5) for k, name in enumerate(inside)]
    return [
        step(1, 0, us + 300),
        annotation(f"enumerate(DataLoader)#{loader}.__next__", 5, us),
        *work,
        op("aten::mm", us + 20, 250),
    ]


@pytest.mark.parametrize(
    ("loaders", "says"),
    [
        (("_SingleProcessDataLoaderIter",) * 2, "On both sides the process itself loads"),
        (("_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"), "In b the process itself loads"),
        (("_MultiProcessingDataLoaderIter",) * 2, "The trace shows no other work in that time. Tune workers"),
    ],
)
def test_a_loader_without_workers_is_known_by_its_name(tmp_path, loaders, says):
    control, test = (loading(loader, us) for loader, us in zip(loaders, (100, 900), strict=True))
    assert says in only(compared(tmp_path, control, test), "data-loading").detail


def test_what_is_larger_than_the_change_is_more_than_offset_in_it(tmp_path):
    control = [step(1, 0, 1000), annotation("enumerate(DataLoader)#X.__next__", 5, 100), op("aten::mm", 120, 860)]
    test = [step(1, 0, 950), annotation("enumerate(DataLoader)#X.__next__", 5, 500), op("aten::mm", 520, 400)]
    found = only(compared(tmp_path, control, test), "data-loading")
    assert "This is more than offset in the change of the step (−50.0 µs)." in found.detail


def test_no_finding_is_said(tmp_path):
    same = in_a_row(("aten::mm", 100))
    comparison = compared(tmp_path, same, same)
    assert comparison.findings == ()
    assert str(terminal(comparison, None, verbose=False)[0]) == "Findings: none"


def test_the_next_command_looks_at_what_changed_as_the_first_finding(tmp_path):
    """The product in double takes longer; the sum, which also has other inputs, became shorter by more."""

    def typed(dtype, mm, total):
        args = {"Input Dims": [[64, 64]], "Input type": [dtype]}
        return [step(1, 0, mm + total), op("aten::mm", 0, mm, **args), op("aten::sum", mm, total, **args)]

    comparison = compared(tmp_path, typed("float", 1000, 900), typed("double", 2500, 100))
    assert comparison.findings[0].code == "dtype-change"
    assert next_command(comparison, "tracediff compare a b") == "tracediff compare a b --explain aten::mm"


def test_kernels_beside_those_that_both_sides_run_count_alone(tmp_path):
    def reduced(extra):
        events = [step(1, 0, 200), op("aten::sum", 1, 20)]
        events += [call("cudaLaunchKernel", 2, 3, correlation=1), kernel("reduce", 30, 60, correlation=1)]
        if extra:
            events += [call("cudaLaunchKernel", 8, 3, correlation=2), kernel("fill", 100, 50, correlation=2)]
            events += [call("cudaMemcpyAsync", 14, 3, correlation=3)]
            events.append(memcpy("Memcpy DtoD (Device -> Device)", 160, 30, correlation=3))
        return events

    found = only(compared(tmp_path, reduced(extra=False), reduced(extra=True)), "count-change")
    assert [(e.test_count, e.test_us) for e in found.evidence] == [(1, 50)]
