"""Where HTA's own load is not right, or its analyses fail: what it says beside what it says over our columns; a test
for each row of docs/hta.md.
"""

from __future__ import annotations

import contextlib
import io
import logging
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import build_trace as b
import numpy as np
import pandas as pd
import pytest
from traces import FOLDER, needs_traces, trace

import tracediff
from tracediff.errors import TracediffError
from tracediff.hta import SECTIONS, analysis, sections

pytestmark = [
    pytest.mark.hta,
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::RuntimeWarning", "ignore:.*inplace"
    ),
]
PANDAS_3 = int(pd.__version__.split(".")[0]) >= 3


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """No figures, though one analysis always shows one, and no words."""
    logging.getLogger("hta").setLevel(logging.CRITICAL)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr("plotly.graph_objects.Figure.show", lambda *_, **__: None)
        yield


def theirs(name: str, last: bool = False) -> Any:
    """TraceAnalysis after HTA's own load."""
    from hta.trace_analysis import TraceAnalysis

    return TraceAnalysis(trace_files={0: str(trace(name))}, include_last_profiler_step=last)


def ours(name: str, last: bool = False) -> Any:
    return analysis(trace(name), last)


@needs_traces
def test_times_are_not_rounded() -> None:
    real, our_frame = (load("bertsmall_h100").t.traces[0] for load in (theirs, ours))
    assert ((real["dur"] < 0).sum(), len(real)) == (693, 2059)
    assert (our_frame["dur"] >= 0).all()
    gpu = [frame.loc[frame["stream"] >= 0, "dur"].sum() for frame in (real, our_frame)]
    assert gpu[0] == 254
    assert gpu[1] == pytest.approx(309, abs=0.5)


@needs_traces
def test_a_trace_whose_frame_pandas_3_refuses() -> None:
    if PANDAS_3:
        with pytest.raises(TypeError, match="int8"):
            theirs("triton_mi300")
    assert ours("triton_mi300").get_temporal_breakdown(visualize=False)["idle_time_pctg"].between(0, 100).all()


@needs_traces
def test_a_list_at_the_root_is_read() -> None:
    with pytest.raises(AttributeError):
        theirs("oldformat_listroot")
    our_set = ours("oldformat_listroot")
    assert our_set.get_profiler_steps()
    assert our_set.get_queue_length_summary()["queue_length"]["count"].sum() > 10000


@needs_traces
def test_stream_0_is_a_stream() -> None:
    real, our_frame = (load("bertsmall_mi300").t.traces[0] for load in (theirs, ours))
    assert real.loc[real["stream"] == 0, "iteration"].isna().all()
    assert our_frame.loc[our_frame["stream"] == 0, "iteration"].eq(6).sum() == 61  # 60 kernels and a copy


@needs_traces
def test_steps_are_the_host_s() -> None:
    real, our_set = theirs("tinylm_compile"), ours("tinylm_compile")
    assert real.get_profiler_steps()[:-1] == our_set.get_profiler_steps() == [2, 3, 4, 5]
    frames = [traces.t.traces[0].query("stream >= 0 and correlation > 0") for traces in (real, our_set)]
    names = [
        [traces.t.symbol_table.sym_table[c] for c in f["cat"]]
        for traces, f in zip((real, our_set), frames, strict=True)
    ]
    counts = [
        f[np.isin(n, ["kernel", "gpu_memset"])]["iteration"].value_counts().to_dict()
        for f, n in zip(frames, names, strict=True)
    ]
    assert len(set(counts[1].values())) == 1  # each step launches the same work
    assert len(set(counts[0].values())) > 1


@needs_traces
def test_an_op_is_of_the_cpu_whatever_stream_it_names() -> None:
    compute = [
        load("hta_triton").get_temporal_breakdown(visualize=False)["compute_time(us)"].item() for load in (theirs, ours)
    ]
    assert compute == [94, pytest.approx(1.76, abs=0.001)]


@needs_traces
def test_old_names_of_categories_are_known() -> None:
    real, our_set = theirs("kineto_gpu_metrics"), ours("kineto_gpu_metrics")
    with pytest.raises(AssertionError, match="Could not find runtime"):
        real.critical_path_analysis(0, "ProfilerStep", 0)
    assert our_set.critical_path_analysis(0, "ProfilerStep", 0)[1]
    assert real.get_gpu_user_annotation_breakdown(False, visualize=False) is None
    assert (
        our_set.get_gpu_user_annotation_breakdown(False, visualize=False)["name"].str.startswith("ProfilerStep").any()
    )


@needs_traces
def test_thread_ids_that_are_text(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="str"):
        theirs("kineto_gpu_metrics").get_frequent_cuda_kernel_sequences("aten::", str(tmp_path))
    assert ours("kineto_gpu_metrics").t.traces[0].query("stream >= 0")["tid"].unique().tolist() == [7]
    ours("kineto_gpu_metrics").get_frequent_cuda_kernel_sequences("aten::", str(tmp_path))


@needs_traces
def test_ends_are_aligned_like_starts() -> None:
    real, our_trace = (load("hta_event_sync").t for load in (theirs, ours))
    assert ((real.traces[0]["end"] - real.traces[0]["ts"] - real.traces[0]["dur"]) == real.min_ts).all()
    assert (our_trace.traces[0]["end"] == our_trace.traces[0]["ts"] + our_trace.traces[0]["dur"]).all()


def two_steps(folder: Path, rank: int = 0, seed: int | None = None, before: float = 0) -> Path:
    """Steps 1 and 2 with an op and a kernel each, then an op behind them; times in µs and a half, events shuffled if
    there is a seed.
    """
    events = [b.op("aten::late", 200.5, 5)]
    for number, start in ((1, 0.5), (2, 100.5)):
        launch = b.call("cudaLaunchKernel", start + 20, 4, correlation=number)
        events += [
            b.step(number, start, 90),
            b.op("aten::mm", start + 10, 30),
            launch,
            b.kernel("gemm", start + 30 + before, 40.5, correlation=number),
        ]
    if seed is not None:
        random.Random(seed).shuffle(events)
    return b.write(
        folder / f"rank{rank}.json", b.document(events, distributedInfo={"rank": rank}, env={"TOKEN": "secret"})
    )


@pytest.mark.parametrize("last", [False, True])
def test_the_last_step_is_left_out_unless_asked_for(tmp_path: Path, last: bool) -> None:
    analysed = analysis(two_steps(tmp_path), last)
    assert analysed.get_profiler_steps() == ([1, 2] if last else [1])
    assert "aten::late" not in [analysed.t.symbol_table.sym_table[c] for c in analysed.t.traces[0]["name"]]
    assert analysed.get_temporal_breakdown(visualize=False)["compute_time(us)"].item() == (81 if last else 40.5)
    assert [(n.code, n.count) for n in analysed.notes] == [("not-in-hta", 1 if last else 5)]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_events_does_not_matter(tmp_path: Path, seed: int) -> None:
    plain, shuffled = (analysis(two_steps(tmp_path, seed=s), True) for s in (None, seed))
    for call in ("get_temporal_breakdown", "get_comm_comp_overlap"):
        pd.testing.assert_frame_equal(getattr(plain, call)(visualize=False), getattr(shuffled, call)(visualize=False))
    launches = [
        analysed.get_cuda_kernel_launch_stats(visualize=False)[0].sort_values("correlation", ignore_index=True)
        for analysed in (plain, shuffled)
    ]
    pd.testing.assert_frame_equal(*launches)
    assert launches[0]["launch_delay"].tolist() == [6, 6]
    assert launches[0]["gpu_duration"].tolist() == [40.5, 40.5]


def test_only_allow_listed_metadata_is_kept(tmp_path: Path) -> None:
    assert "secret" not in str(analysis(two_steps(tmp_path)).t.meta_data)


def test_ranks_are_aligned_and_repeats_left_out(tmp_path: Path) -> None:
    for run in ("run1", "run2"):
        (tmp_path / run).mkdir()
        for rank in (0, 3):
            two_steps(tmp_path / run, rank)
    (tmp_path / "run1" / "notes.json").write_text("{}")
    for where in (tmp_path, tracediff.load(tmp_path)):
        analysed = analysis(where)
        assert analysed.t.get_ranks() == [0, 3]
        assert analysed.get_temporal_breakdown(visualize=False)["rank"].tolist() == [0, 3]
        assert "one-run" in [n.code for n in analysed.notes]
    assert "not-a-trace" in [n.code for n in analysis(tmp_path).notes]
    two = analysis([tmp_path / run / "rank3.json" for run in ("run1",)] + [two_steps(tmp_path, 3)])
    assert two.t.get_ranks() == [3]
    assert len(two.notes) == 2


def test_hardware_counters_become_columns_and_ops(tmp_path: Path) -> None:
    counter = "smsp__inst_executed.sum"
    events = [b.step(1, 0, 100), b.op("aten::mm", 10, 30), b.call("cudaLaunchKernel", 20, 4, correlation=1)]
    events.append(b.event("cuda_profiler_range", "gemm", 30, 20, pid=0, tid=7, **{counter: 1234}))
    (found,) = analysis(b.write(tmp_path / "a.json", b.document(events))).get_cupti_counter_data_with_operators()
    assert found[counter].tolist() == [1234]
    assert found["bottom_level_op"].tolist() == ["aten::mm"]


def test_a_graph_launch_has_many_kernels(tmp_path: Path) -> None:
    events = [b.step(1, 0, 100), b.call("cudaGraphLaunch", 20, 4, correlation=9)]
    events += [b.kernel(f"k{i}", 30 + i, 1, correlation=9) for i in range(3)]
    frame = analysis(b.write(tmp_path / "a.json", b.document(events))).t.traces[0].sort_index()
    assert frame["index_correlation"].tolist() == [-1, 4, 1, 1, 1]
    assert frame["iteration"].tolist() == [1] * 5


@needs_traces
@pytest.mark.parametrize(
    "name", ["dlrm_8ranks", "tinylm_compile", "timesformer_mi300", "hta_no_gpu_ops", "sglang_decode_mi300"]
)
def test_sections_have_tables_or_say_why_not(name: str) -> None:
    found = sections(FOLDER / name, list(SECTIONS))
    assert [s.name for s in found] == list(SECTIONS)
    for section in found:
        assert bool(section.tables) == (section.unavailable is None)
        assert section.unavailable is None or "\n" not in section.unavailable
        assert all(len(table) and isinstance(table, pd.DataFrame) for table in section.tables.values())
    missing = {s.name for s in found if s.unavailable}
    if name == "dlrm_8ranks":
        assert not missing
    elif name == "tinylm_compile":
        assert missing == {"stragglers"}
    elif name == "hta_no_gpu_ops":
        assert missing == set(SECTIONS)


@needs_traces
def test_the_critical_path_is_that_of_the_second_step() -> None:
    (section,) = sections(trace("tinylm_compile"), ["critical-path"])
    bound, events = section.tables.values()
    assert "ProfilerStep#3" in next(iter(section.tables))
    assert bound["percent"].sum() == pytest.approx(100)
    assert events["sum"].is_monotonic_decreasing


def test_an_unknown_section_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TracediffError, match="roofline: unknown HTA analysis; choose from breakdowns, idle"):
        sections(two_steps(tmp_path), ["idle", "roofline"])


def test_without_hta_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "hta.trace_analysis", None)
    with pytest.raises(TracediffError, match=r"pip install 'torch-tracediff\[hta\]'"):
        sections(two_steps(tmp_path), ["idle"])


@needs_traces
def test_what_hta_fails_at_whoever_loads(tmp_path: Path) -> None:
    waits = ours("hta_event_sync").t
    on_gpu = waits.traces[0].query("stream >= 0")
    assert "cuda_sync" in {waits.symbol_table.sym_table[c] for c in on_gpu["cat"]}  # counted as busy
    kinds, kernels = ours("hta_triton").get_gpu_kernel_breakdown(visualize=False)
    assert kinds["sum"].tolist() == [1]  # of 1.76 µs
    assert kernels["sum (us)"].tolist() == [pytest.approx(1.76, abs=0.001)]
    assert ours("bertsmall_mi300").get_cuda_kernel_launch_stats(visualize=False)[0].empty  # knows CUDA's launches only
    assert ours("bertsmall_mi300").get_frequent_cuda_kernel_sequences("aten::", str(tmp_path)).empty  # and no stream 0
    with pytest.raises(ValueError, match=r".*"):
        ours("hta_cpu_only").get_idle_time_breakdown(visualize=False)
    with pytest.raises(IndexError):
        ours("hta_no_gpu_ops").get_temporal_breakdown(visualize=False)
