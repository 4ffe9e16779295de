"""Matched work with its instances merged."""

import traces
from build_trace import call, document, kernel, op, step, write
from hypothesis import given
from properties import examples
from random_traces import trace_events

from tracediff.diff.views import Modules, every_instance, outermost, summed_by, work_changes
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets


def compare_events(folder, control, test):
    paths = [write(folder / f"{side}.json", document(e)) for side, e in (("a", control), ("b", test))]
    return compare_sets(*load_sets([str(p) for p in paths]), force=True)


def layers(*kernels):
    events = [step(1, 0, 100 * len(kernels))]
    for k, name in enumerate(kernels):
        events.append(op("aten::mm", 100 * k, 10, **{"Input Dims": [[4, 8], [8, 2]]}))
        events.append(call("cudaLaunchKernel", 100 * k + 2, 4, correlation=k + 1))
        events.append(kernel(name, 100 * k + 20, 30, correlation=k + 1))
    return events


def test_equal_work_is_one_row_with_the_kernels_of_both_sides(tmp_path):
    comparison = compare_events(tmp_path, layers("old", "old", "old"), layers("new", "new", "old"))
    replaced, same = work_changes(comparison.gpu_time)
    assert (replaced.operator, replaced.kernels, replaced.shapes) == ("aten::mm", "old → new", "([4,8], [8,2])")
    assert (replaced.count.control, replaced.count.test, len(replaced.groups)) == (2, 2, 2)
    assert (same.kernels, same.count.control) == ("old", 1)


@examples(60)
@given(trace_events(), trace_events())
def test_the_rows_add_up_to_the_work(tmp_path, control, test):
    work = compare_events(tmp_path, control, test).work
    rows = work_changes(work)
    positions = {id(group): p for p, group in enumerate(work.groups)}
    assert sorted(positions[id(g)] for row in rows for g in row.groups) == list(range(len(work.groups)))
    assert sum(row.time.control for row in rows) == sum(g.time.control for g in work.groups)
    assert sum(row.time.test for row in rows) == sum(g.time.test for g in work.groups)
    assert sum(row.count.test for row in rows) == sum(g.count.test for g in work.groups)


@traces.needs_traces
def test_modules_add_up_at_every_level():
    sets = load_sets([str(traces.FOLDER / "bertsmall_h100"), str(traces.FOLDER / "bertsmall_mi300")])
    work = compare_sets(*sets).gpu_time
    levels = [summed_by(work, Modules(depth)) for depth in (1, 2, 4, None)]
    assert {sum(line.delta for line in level) for level in levels} == {work.delta}
    assert [len(level) for level in levels] == sorted(len(level) for level in levels)
    assert len(summed_by(work, Modules(instances=True))) > len(levels[-1])


def test_instances_of_all_spellings():
    assert every_instance("Model/Layer[3]/Linear") == "Model/Layer[*]/Linear"
    assert every_instance("nn.Module: Layer_3/Linear_0") == "nn.Module: Layer_*/Linear_*"
    assert every_instance("encoder.layers.3.attn") == "encoder.layers.*.attn"
    assert every_instance("Conv2d/BatchNorm2d") == "Conv2d/BatchNorm2d"
    assert outermost("A/B/C", 2) == "A/B"
