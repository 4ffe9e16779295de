"""On traces with whole microseconds, one file a rank and host-side steps, the frames are HTA's own."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from traces import needs_traces

from tracediff.hta import DeviceType, TraceDiff

pytestmark = [needs_traces, pytest.mark.filterwarnings("ignore:The inplace keyword")]

PAIRS = [("hta_control", "hta_test"), ("hta_tiny/base.json.gz", "hta_tiny/test.json.gz")]
ITERATIONS = [None, 1010, [1009, 1010]]

Load = Callable[..., Any]


def relabelled(labeled: Any, label: str) -> Any:
    """A LabeledTrace, HTA's or ours, under another label."""
    labeled = copy.copy(labeled)
    labeled.label = label
    return labeled


def pair_of(load: Load, names: tuple[str, str]) -> list[Any]:
    """Both sides of a pair, under labels of their own."""
    return [relabelled(load(name), label) for label, name in zip(("before", "after"), names, strict=True)]


@pytest.fixture(scope="module", params=PAIRS, ids=lambda p: p[0].split("/")[0])
def sides(request: pytest.FixtureRequest, theirs: Load, ours: Load) -> tuple[list[Any], list[Any]]:
    return pair_of(theirs, request.param), pair_of(ours, request.param)


def assert_same_frame(real: Any, our_frame: Any) -> None:
    """Same rows, columns and counts; durations within the microsecond that HTA rounds each event by."""
    assert our_frame.index.name == real.index.name
    assert our_frame.columns.tolist() == real.columns.tolist()
    assert our_frame.index.tolist() == real.index.tolist()
    for counts, duration in zip(real.columns[[0, 2]], real.columns[[1, 3]], strict=True):
        assert our_frame[counts].tolist() == real[counts].tolist()
        assert ((our_frame[duration] - real[duration]).abs() <= real[counts]).all()
    assert our_frame["diff_counts"].tolist() == real["diff_counts"].tolist()
    assert ((our_frame["diff_duration"] - real["diff_duration"]).abs() <= real.iloc[:, 0] + real.iloc[:, 2]).all()
    assert our_frame["counts_change_categories"].tolist() == real["counts_change_categories"].tolist()


@pytest.mark.parametrize("short", [False, True], ids=["name", "short_name"])
@pytest.mark.parametrize("iteration", ITERATIONS, ids=str)
@pytest.mark.parametrize("device", ["ALL", "CPU", "GPU"])
def test_frames_are_those_of_hta(sides: Any, hta: ModuleType, device: str, iteration: Any, short: bool) -> None:
    (c, t), (control, test) = sides
    chosen = {"control_iteration": iteration, "test_iteration": iteration, "use_short_name": short}
    real = hta.TraceDiff.compare_traces(c, t, device_type=hta.DeviceType[device], **chosen)
    our_frame = TraceDiff.compare_traces(control, test, device_type=DeviceType[device], **chosen)
    assert_same_frame(real, our_frame)


@pytest.mark.parametrize("iteration", ITERATIONS, ids=str)
@pytest.mark.parametrize("device", ["ALL", "CPU", "GPU"])
def test_ops_diff_is_that_of_hta(sides: Any, hta: ModuleType, device: str, iteration: Any) -> None:
    (c, t), (control, test) = sides
    real = hta.TraceDiff.ops_diff(c, t, None, None, iteration, iteration, hta.DeviceType[device])
    assert TraceDiff.ops_diff(control, test, None, None, iteration, iteration, DeviceType[device]) == real


def test_different_iterations_are_those_of_hta_but_for_the_step_itself(sides: Any, hta: ModuleType) -> None:
    (c, t), (control, test) = sides
    real = hta.TraceDiff.compare_traces(c, t, control_iteration=1009, test_iteration=1010)
    our_frame = TraceDiff.compare_traces(control, test, control_iteration=1009, test_iteration=1010)
    assert our_frame.loc["ProfilerStep"].iloc[[0, 2]].tolist() == [1, 1]
    assert_same_frame(real.drop(index=["ProfilerStep#1009", "ProfilerStep#1010"]), our_frame.drop(index="ProfilerStep"))


def test_several_ranks_are_summed_as_hta_does(theirs: Load, ours: Load, hta: ModuleType) -> None:
    names = ("hta_sampled/rank-0.json.gz", "hta_sampled/rank-1.json.gz")
    real_set, own_set = theirs(*names), ours(*names)
    assert own_set.ranks() == real_set.ranks() == [0, 1]
    assert own_set.iterations() == real_set.iterations() == [551, 552]
    (c, t), (control, test) = ([relabelled(labeled, label) for label in ("a", "b")] for labeled in (real_set, own_set))
    arguments = {"control_rank": [0, 1], "test_rank": 1, "control_iteration": [551, 552]}
    real, our_frame = (
        hta.TraceDiff.compare_traces(c, t, **arguments),
        TraceDiff.compare_traces(control, test, **arguments),
    )
    assert_same_frame(real.filter(regex="^(?!ProfilerStep)", axis=0), our_frame.drop(index="ProfilerStep"))


@pytest.mark.parametrize("name", ["resnet50_workers4", "kineto_gpu_metrics", "hta_no_gpu_ops", "hta_backward_thread"])
@pytest.mark.parametrize("device", ["ALL", "CPU", "GPU"])
def test_other_traces_of_whole_microseconds(theirs: Load, ours: Load, hta: ModuleType, name: str, device: str) -> None:
    summary = theirs(name).get_ops_summary(theirs(name).extract_ops(device_type=hta.DeviceType[device]))
    our_frame = ours(name).extract_ops(device_type=DeviceType[device])
    columns = ["counts", "total_duration"]
    assert our_frame.groupby("name")[columns].sum().to_dict() == summary.groupby("name")[columns].sum().to_dict()


def test_the_calls_take_hta_s_arguments_in_hta_s_order(hta: ModuleType) -> None:
    for method in ("compare_traces", "ops_diff", "visualize_counts_diff", "visualize_duration_diff"):
        real = inspect.signature(getattr(hta.TraceDiff, method)).parameters
        our_parameters = inspect.signature(getattr(TraceDiff, method)).parameters
        assert list(our_parameters)[: len(real)] == list(real)
        for name, parameter in real.items():
            default = parameter.default.name if name == "device_type" else parameter.default
            assert (
                our_parameters[name].default.name if name == "device_type" else our_parameters[name].default
            ) == default


def test_hta_s_own_objects_are_taken(theirs: Load, ours: Load, hta: ModuleType) -> None:
    real = theirs("hta_tiny/base.json.gz")
    our_frame = TraceDiff.compare_traces(real.t, real, device_type=hta.DeviceType.CPU)
    assert our_frame.columns[[0, 2]].tolist() == ["Control_counts", "one_counts"]
    expected = ours("hta_tiny/base.json.gz").extract_ops(device_type=DeviceType.CPU)
    assert our_frame["one_counts"].to_dict() == expected.groupby("name")["counts"].sum().to_dict()
