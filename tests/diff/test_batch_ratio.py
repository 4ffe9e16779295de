"""Another batch size: shapes that differ by one ratio, operator by operator."""

import gzip
import json

import pytest
from build_trace import call, document, kernel, op, step, write
from traces import needs_traces, trace

import tracediff
from tracediff.aggregate.averages import call_tree, weighted_files
from tracediff.diff.matching.call_pairs import compared_shapes


def doubled(dims, least):
    """``dims`` with every tensor's leading dimension doubled that is at least ``least``."""
    if not isinstance(dims, list):
        return dims
    if dims and all(isinstance(n, int) for n in dims):
        return [dims[0] * (2 if dims[0] >= least else 1), *dims[1:]]
    return [doubled(d, least) for d in dims]


@needs_traces
@pytest.mark.parametrize("least", [1, 2], ids=["all", "those above 1"])
@pytest.mark.parametrize("name", ["bertsmall_h100", "falconsai_h100"])
def test_a_copy_with_leading_dimensions_doubled_matches_by_operator(tmp_path, name, least):
    content = json.loads(gzip.decompress(trace(name).read_bytes()))
    for event in content["traceEvents"]:
        if "Input Dims" in event.get("args", {}):
            event["args"]["Input Dims"] = doubled(event["args"]["Input Dims"], least)
    copy = tmp_path / "doubled.json"
    copy.write_text(json.dumps(content))
    groups = tracediff.compare(trace(name), copy, force=True).groups
    time = (groups["control_us"] + groups["test_us"]).groupby(groups["level"]).sum()
    assert time.get("op", 0) + time.get("exact", 0) >= 0.995 * time.sum()


def shapes_of(folder, name, calls):
    events = [step(1, 0, 1000)]
    for k, (operator, dims) in enumerate(calls):
        events += [op(operator, 20 * k, 4, **{"Input Dims": dims}), call("cudaLaunchKernel", 20 * k + 1, 2, k)]
        events.append(kernel("kernel", 20 * k + 10, 5, k))
    path = write(folder / name, document(events))
    traces = tracediff.load(path)
    return call_tree(traces, True, weighted_files(traces)[0])


def test_an_operator_with_equal_shapes_does_not_keep_the_others_apart(tmp_path):
    fill = ("aten::fill_", [[1]])
    control = shapes_of(tmp_path, "a.json", [fill, ("aten::mm", [[4, 3], [3, 5]]), ("aten::mm", [[4, 5], [5, 2]])])
    test = shapes_of(tmp_path, "b.json", [fill, ("aten::mm", [[32, 3], [3, 5]]), ("aten::mm", [[32, 5], [5, 2]])])
    of_control, of_test = compared_shapes(control, test)
    assert of_control == {}
    assert of_test == {"aten::mm": {("[32,3]", "[3,5]"): ("[4,3]", "[3,5]"), ("[32,5]", "[5,2]"): ("[4,5]", "[5,2]")}}


def test_another_inner_size_is_no_other_batch(tmp_path):
    control, test = (shapes_of(tmp_path, f"{n}.json", [("aten::mm", [[2, n]])]) for n in (2, 9))
    assert compared_shapes(control, test) == ({}, {})


def test_a_shape_that_no_ratio_explains_keeps_its_operator_apart(tmp_path):
    control = shapes_of(tmp_path, "a.json", [("aten::mm", [[4, 3], [3, 5]]), ("aten::add", [[4, 8]])])
    test = shapes_of(tmp_path, "b.json", [("aten::mm", [[8, 3], [3, 5]]), ("aten::add", [[8, 9]])])
    assert list(compared_shapes(control, test)[1]) == ["aten::mm"]
