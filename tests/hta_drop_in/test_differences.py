"""Where the drop-in differs from HTA on purpose: both results side by side, one test for each row of docs/hta.md's
table.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import build_trace as b
import pandas as pd
import pytest
from traces import FOLDER, needs_traces, trace, truth

from tracediff.hta import OUTSIDE, DeviceType, LabeledTrace, TraceDiff

pytestmark = [needs_traces, pytest.mark.filterwarnings("ignore:The inplace keyword")]
PANDAS_3 = int(pd.__version__.split(".")[0]) >= 3
Load = Callable[..., Any]


def their_totals(labeled: Any, device: str = "ALL", key: str = "name", **chosen: Any) -> pd.DataFrame:
    """HTA's counts and durations by name."""
    devices = import_module("hta.trace_diff").DeviceType
    summary = labeled.get_ops_summary(labeled.extract_ops(device_type=devices[device], **chosen))
    return summary.groupby(key)[["counts", "total_duration"]].sum()


def our_totals(labeled: LabeledTrace, device: str = "ALL", short: bool = False, **chosen: Any) -> pd.DataFrame:
    """Our counts and durations by name, through compare_traces with itself."""
    doubled = {f"{side}_{name}": value for name, value in chosen.items() for side in ("control", "test")}
    frame = TraceDiff.compare_traces(labeled, labeled, device_type=DeviceType[device], use_short_name=short, **doubled)
    return frame.iloc[:, :2].set_axis(["counts", "total_duration"], axis=1)


def steps_of(name: str, column: str) -> list[str]:
    return next(row for file, row in truth().items() if file.startswith(name))[column].split(",")


def test_times_are_not_rounded(theirs: Load, ours: Load) -> None:
    real, our_frame = their_totals(theirs("bertsmall_h100"), "GPU"), our_totals(ours("bertsmall_h100"), "GPU")
    assert real["counts"].to_dict() == our_frame["counts"].to_dict()
    assert f"{our_frame['total_duration'].sum() / 1000:.3f}" == steps_of("bertsmall_h100", "step_gpu_ms")[0] == "0.309"
    assert real["total_duration"].sum() == 254  # of 309 µs
    assert (their_totals(theirs("bertsmall_h100"))["total_duration"] < 0).any()
    assert (our_totals(ours("bertsmall_h100"))["total_duration"] >= 0).all()


def test_kernels_on_stream_0_are_there(theirs: Load, ours: Load) -> None:
    assert their_totals(theirs("bertsmall_mi300"), "GPU").empty
    assert our_totals(ours("bertsmall_mi300"), "GPU")["counts"].sum() == int(
        steps_of("bertsmall_mi300", "step_gpu_n")[0]
    )


def test_steps_are_the_host_s(theirs: Load, ours: Load) -> None:
    real, our_set = theirs("tinylm_compile"), ours("tinylm_compile")
    for number, gpu_ms, n in zip(
        our_set.iterations(),
        steps_of("tinylm_compile", "step_gpu_ms"),
        steps_of("tinylm_compile", "step_gpu_n"),
        strict=True,
    ):
        gpu = our_totals(our_set, "GPU", iteration=number)
        assert f"{gpu['total_duration'].sum() / 1000:.3f}" == gpu_ms
        assert gpu["counts"].sum() == int(n)
    assert their_totals(real, "GPU", iteration=2)["total_duration"].sum() > 1.9 * 22140
    assert their_totals(real, iteration=2).loc["ProfilerStep#2", "counts"] == 2
    assert our_totals(our_set, iteration=2).loc["ProfilerStep#2", "counts"] == 1


def test_gpu_annotations_are_no_second_occurrence(theirs: Load, ours: Load) -> None:
    for device in ("CPU", "ALL"):
        assert their_totals(theirs("hta_nccl"), device).loc["nccl:all_reduce"].tolist() == [10, 12373]
        assert our_totals(ours("hta_nccl"), device).loc["nccl:all_reduce"].round(3).tolist() == [5, 426.118]


def test_an_op_is_of_the_cpu_whatever_stream_it_names(theirs: Load, ours: Load) -> None:
    name = "triton_poi_fused_add_cos_sin_0"
    assert name not in their_totals(theirs("hta_triton"), "CPU").index
    assert their_totals(theirs("hta_triton"), "GPU").loc[name, "counts"] == 2
    assert our_totals(ours("hta_triton"), "CPU").loc[name].round(3).tolist() == [1, 95.812]
    assert our_totals(ours("hta_triton"), "GPU").loc[name].round(3).tolist() == [1, 1.76]


def test_waiting_for_a_stream_is_of_the_cpu(theirs: Load, ours: Load) -> None:
    assert "Stream Sync" in their_totals(theirs("hta_event_sync"), "GPU").index
    assert "Stream Sync" not in our_totals(ours("hta_event_sync"), "GPU").index
    assert our_totals(ours("hta_event_sync"), "CPU").loc["Stream Sync"].tolist() == [1, 5]
    assert (
        our_totals(ours("hta_event_sync"))["counts"].to_dict()
        == their_totals(theirs("hta_event_sync"))["counts"].to_dict()
    )


def test_traces_that_hta_cannot_read(hta: ModuleType, folder: Load, ours: Load) -> None:
    if PANDAS_3:
        with pytest.raises(TypeError, match="int8"):
            hta.LabeledTrace("one", trace_dir=folder("triton_mi300"))
    assert our_totals(ours("triton_mi300"), "GPU")["counts"].sum() == 12
    with pytest.raises(AttributeError):
        hta.LabeledTrace("one", trace_dir=folder("oldformat_listroot"))
    assert our_totals(ours("oldformat_listroot"), "GPU")["counts"].sum() == 1527


def test_some_of_the_ranks(theirs: Load) -> None:
    folder = FOLDER / "dlrm_8ranks"
    real, our_set = (
        theirs(*(f"dlrm_8ranks/{p.name}" for p in sorted(folder.iterdir()))),
        LabeledTrace("one", trace_dir=folder),
    )
    if PANDAS_3:
        with pytest.raises(ValueError, match="length of the keys"):
            real.extract_ops([1, 3])
    each = [our_totals(our_set, rank=r)["counts"] for r in (1, 3)]
    assert our_totals(our_set, rank=[1, 3])["counts"].to_dict() == each[0].add(each[1], fill_value=0).to_dict()
    assert each[0].to_dict() == their_totals(real, rank=1)["counts"].to_dict()


def test_a_trace_without_steps_is_one_step(theirs: Load, ours: Load) -> None:
    with pytest.raises(ValueError, match="iteration"):
        their_totals(theirs("mi210_gpu_only"))
    assert ours("mi210_gpu_only").iterations() == [0]
    assert our_totals(ours("mi210_gpu_only"), "GPU")["counts"].sum() == 562


def test_steps_of_other_numbers_are_one_row(theirs: Load, ours: Load, hta: ModuleType) -> None:
    real = [theirs(name) for name in ("transformer_h100_run1", "transformer_h100_run2")]
    real_diff = hta.TraceDiff.ops_diff(*real, None, None, 2, 3)
    assert "ProfilerStep#3" in real_diff["added"]
    assert "ProfilerStep#2" in real_diff["deleted"]
    our_sets = [ours(name) for name in ("transformer_h100_run1", "transformer_h100_run2")]
    own_diff = TraceDiff.ops_diff(*our_sets, None, None, 2, 3)
    assert "ProfilerStep" in own_diff["unchanged"]
    assert not any(name.startswith("ProfilerStep#") for names in own_diff.values() for name in names)


def test_python_functions_are_the_same_in_every_process(theirs: Load, ours: Load, hta: ModuleType) -> None:
    runs = ("transformer_h100_run1", "transformer_h100_run2")
    real = hta.TraceDiff.ops_diff(*[theirs(name) for name in runs])
    assert any(" at 0x7" in name for name in real["added"])
    assert any(" at 0x7" in name for name in real["deleted"])
    our_diff = TraceDiff.ops_diff(*[ours(name) for name in runs])
    assert our_diff["added"] == our_diff["deleted"] == []
    folders = [name for name in their_totals(theirs(runs[0])).index if name.startswith("/") and ".py(" in name]
    assert all(name.rpartition("/")[2] in our_totals(ours(runs[0])).index for name in folders)


def test_short_names_are_never_empty_and_keep_python_functions_apart(theirs: Load, ours: Load) -> None:
    real = their_totals(theirs("transformer_h100_run1"), key="short_name")
    our_frame = our_totals(ours("transformer_h100_run1"), short=True)
    assert real.loc["", "counts"] == 71
    assert "" not in our_frame.index
    assert "forward" in real.index
    assert "forward" not in our_frame.index
    assert any(name.endswith("): forward") for name in our_frame.index)
    assert our_frame["counts"].sum() == real["counts"].sum()


def test_an_empty_last_step_is_left_out(theirs: Load, ours: Load) -> None:
    assert theirs("hta_amd_mi250").iterations() == [1, 2]
    assert "ProfilerStep#2" in their_totals(theirs("hta_amd_mi250"), iteration=2).index
    assert ours("hta_amd_mi250").iterations() == [1]
    with pytest.raises(ValueError, match="no such iteration: 2"):
        ours("hta_amd_mi250").extract_ops(iteration=2)


def test_what_was_launched_outside_every_step_is_said_and_to_be_had(theirs: Load, ours: Load) -> None:
    real, our_set = theirs("tinylm_compile"), ours("tinylm_compile")
    with pytest.raises(ValueError, match="iteration"):
        their_totals(real, "GPU", iteration=-1)
    assert (
        our_totals(our_set, "GPU", iteration=OUTSIDE)["counts"].sum()
        == int(steps_of("tinylm_compile", "spill_n")[0])
        == 164
    )
    everything = our_totals(our_set, "GPU", iteration=[*our_set.iterations(), OUTSIDE])
    assert everything["counts"].sum() == int(steps_of("tinylm_compile", "gpu_events")[0])
    notes = TraceDiff.compare_traces(our_set, our_set).attrs["notes"]["one"]
    assert any("launched before the recording" in note and "(164)" in note for note in notes)


def small(name: str, rank: int, number: int) -> b.Document:
    """A step with one op."""
    return b.document([b.step(number, 0, 100), b.op(name, 10, 20)], distributedInfo={"rank": rank})


def test_the_rank_is_read_from_compact_json(hta: ModuleType, tmp_path: Path) -> None:
    for rank in (0, 1):
        b.write(tmp_path / f"{'ab'[rank]}.json", small(f"aten::op{rank}", rank, 1), "compact")
    assert hta.LabeledTrace("one", trace_dir=str(tmp_path)).ranks() == [0]
    our_set = LabeledTrace("one", trace_dir=tmp_path)
    assert our_set.ranks() == [0, 1]
    assert "aten::op1" in our_totals(our_set, rank=1).index


def test_repeats_of_a_rank_are_averaged(hta: ModuleType, folder: Load) -> None:
    runs = ("transformer_h100_run1", "transformer_h100_run2")
    both = folder(*runs)
    assert len(hta.LabeledTrace("one", trace_dir=both).t.trace_files) == 1  # which of the two, the file system decides
    single = [our_totals(LabeledTrace("one", trace_dir=trace(name)), "GPU") for name in runs]
    our_frame = our_totals(LabeledTrace("one", trace_dir=both), "GPU")
    assert our_frame["counts"].to_dict() == single[0]["counts"].to_dict()
    assert our_frame["total_duration"].tolist() == pytest.approx(
        ((single[0] + single[1]) / 2)["total_duration"].tolist()
    )


def test_the_default_step_is_one_that_the_rank_has(hta: ModuleType, tmp_path: Path) -> None:
    b.write(tmp_path / "a.json", small("aten::a", 0, 5))
    b.write(tmp_path / "b.json", small("aten::b", 1, 3))
    assert their_totals(hta.LabeledTrace("one", trace_dir=str(tmp_path))).empty
    assert our_totals(LabeledTrace("one", trace_dir=tmp_path)).index.tolist() == ["ProfilerStep#5", "aten::a"]


def test_one_trace_on_both_sides(theirs: Load, ours: Load, hta: ModuleType) -> None:
    our_frame = TraceDiff.compare_traces(ours("hta_triton"), ours("hta_triton"))
    assert our_frame.columns[[0, 2]].tolist() == ["one_counts", "one_test_counts"]
    assert ours("hta_triton").label == "one"
    real = theirs("hta_triton")
    with pytest.raises(ValueError, match="diff_counts"):
        hta.TraceDiff.compare_traces(real, real)


def test_columns_have_one_dtype(theirs: Load, ours: Load, hta: ModuleType) -> None:
    names = ("hta_backward_thread", "hta_event_sync")
    real = hta.TraceDiff.compare_traces(theirs(names[0]), theirs(names[1]))
    our_frame = TraceDiff.compare_traces(ours(names[0]), ours(names[1]))
    assert real["one_counts"].dtype == "float64"
    assert our_frame.dtypes.iloc[:6].astype(str).tolist() == [
        "int64",
        "float64",
        "int64",
        "float64",
        "int64",
        "float64",
    ]
