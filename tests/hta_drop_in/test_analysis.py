"""HTA's analyses over our columns: the same as after HTA's own load where that is right; docs/hta.md lists where it is
not, one test each.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from traces import FOLDER, NAMES, needs_traces, trace

from tracediff.hta import analysis

pytestmark = [
    pytest.mark.hta,
    needs_traces,
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::RuntimeWarning", "ignore:.*inplace"
    ),
]

WHOLE = ["hta_tiny/base.json.gz", "hta_event_sync", "hta_backward_thread", "hta_sampled", "dlrm_8ranks"]
"""Small sets of whole microseconds, where HTA's own load is right."""
EXACT = ["bertsmall_h100", "transformer_h100_run1", "hta_amd_mi250"]
"""Small sets in nanoseconds, where it is right if rounding is off."""

Load = Callable[..., Any]


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """No figures, though one analysis always shows one, and no words."""
    logging.getLogger("hta").setLevel(logging.CRITICAL)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr("plotly.graph_objects.Figure.show", lambda *_, **__: None)
        yield


def files_of(name: str) -> list[Path]:
    return sorted((FOLDER / name).glob("*.json*")) if name == "dlrm_8ranks" or name == "hta_sampled" else [trace(name)]


@cache
def theirs(name: str, exact: bool = False) -> Any:
    """TraceAnalysis after HTA's own load; ``exact``: without rounding of times."""
    from hta.common.trace_file import create_rank_to_trace_dict
    from hta.configs.env_options import HTAEnvOptions
    from hta.trace_analysis import TraceAnalysis

    HTAEnvOptions.instance().set_disable_ns_rounding(exact)
    try:
        return TraceAnalysis(trace_files=create_rank_to_trace_dict(list(map(str, files_of(name))))[1])
    finally:
        HTAEnvOptions.instance().set_disable_ns_rounding(False)


@cache
def ours(name: str) -> Any:
    return analysis(files_of(name))


def critical(analysis: Any, rank: int) -> Any:
    graph, found = analysis.critical_path_analysis(
        rank, "ProfilerStep", 1 if len(analysis.get_profiler_steps()) > 1 else 0
    )
    edges = graph.get_critical_path_breakdown().drop(columns="cat")
    return found, edges.sort_values(["event_idx", "type", "duration"], ignore_index=True), graph.summary()


class Asked(NamedTuple):
    """A TraceAnalysis, its ranks, and a folder to write to."""

    analysis: Any
    ranks: list[int]
    folder: str


CALLS: dict[str, Callable[[Asked], Any]] = {
    "get_profiler_steps": lambda x: x.analysis.get_profiler_steps(),
    "get_temporal_breakdown": lambda x: x.analysis.get_temporal_breakdown(visualize=False),
    "get_gpu_kernel_breakdown": lambda x: x.analysis.get_gpu_kernel_breakdown(visualize=False),
    "get_idle_time_breakdown": lambda x: x.analysis.get_idle_time_breakdown(
        x.ranks, visualize=False, show_idle_interval_stats=True
    ),
    "get_comm_comp_overlap": lambda x: x.analysis.get_comm_comp_overlap(visualize=False),
    "get_memory_bw_time_series": lambda x: x.analysis.get_memory_bw_time_series(x.ranks),
    "get_memory_bw_summary": lambda x: x.analysis.get_memory_bw_summary(x.ranks),
    "get_queue_length_time_series": lambda x: x.analysis.get_queue_length_time_series(x.ranks),
    "get_queue_length_summary": lambda x: x.analysis.get_queue_length_summary(x.ranks),
    "get_queue_length_summary_from_time_series": lambda x: x.analysis.get_queue_length_summary_from_time_series(
        x.analysis.get_queue_length_time_series(x.ranks)
    ),
    "get_time_spent_blocked_on_full_queue": lambda x: x.analysis.get_time_spent_blocked_on_full_queue(
        x.analysis.get_queue_length_time_series(x.ranks), 8
    ),
    "get_cuda_kernel_launch_stats": lambda x: x.analysis.get_cuda_kernel_launch_stats(x.ranks, visualize=False),
    "get_gpu_kernels_with_user_annotations": lambda x: x.analysis.get_gpu_kernels_with_user_annotations(x.ranks[0]),
    "get_gpu_user_annotation_breakdown": lambda x: [
        x.analysis.get_gpu_user_annotation_breakdown(gpu, visualize=False) for gpu in (True, False)
    ],
    "get_potential_stragglers": lambda x: x.analysis.get_potential_stragglers(),
    "get_cupti_counter_data_with_operators": lambda x: x.analysis.get_cupti_counter_data_with_operators(x.ranks),
    "get_frequent_cuda_kernel_sequences": lambda x: x.analysis.get_frequent_cuda_kernel_sequences(
        "aten::", x.folder, rank=x.ranks[0]
    ),
    "get_aten_op_kernels_and_delay": lambda x: x.analysis.get_aten_op_kernels_and_delay(x.ranks[:1]),
    "critical_path_analysis": lambda x: critical(x.analysis, x.ranks[0]),
}
"""All analyses of HTA's by name."""

FAILS = {
    "get_potential_stragglers": {*WHOLE, *EXACT} - {"hta_sampled", "dlrm_8ranks"},  # one rank
    "get_aten_op_kernels_and_delay": {
        "hta_tiny/base.json.gz",
        "hta_amd_mi250",
    },  # no op around any launch that it knows
}
"""Analysis → sets that HTA has no answer for, whoever loads them."""


def assert_same(real: Any, our_value: Any, near: float) -> None:
    """The same values, floats within ``near``; our frames may have further columns."""
    assert type(real) is type(our_value)
    if isinstance(real, pd.DataFrame):
        assert set(real.columns) <= set(our_value.columns)
        our_value = our_value[real.columns]
        events = near and "ts" in real.columns  # codes of names differ, and what test_frames looks at
        python = [
            c
            for c in ("name", "cat", "user_annotation", "python_parent_id", "iteration")
            if events and c in real.columns
        ]
        pd.testing.assert_frame_equal(
            real.drop(columns=python),
            our_value.drop(columns=python),
            check_dtype=False,
            check_index_type=False,
            rtol=1e-6,
            atol=near,
        )
    elif isinstance(real, pd.Series):
        pd.testing.assert_series_equal(real, our_value, check_dtype=False, rtol=1e-6, atol=near)
    elif isinstance(real, dict):
        assert list(real) == list(our_value)
        for key in real:
            assert_same(real[key], our_value[key], near)
    elif isinstance(real, list | tuple):
        assert len(real) == len(our_value)
        for real_item, our_item in zip(real, our_value, strict=True):
            assert_same(real_item, our_item, near)
    else:
        assert real == our_value


def test_every_analysis_is_tried() -> None:
    from hta.trace_analysis import TraceAnalysis

    files = {"generate_trace_with_counters", "overlay_critical_path_analysis"}
    assert {name for name in vars(TraceAnalysis) if not name.startswith("_")} == set(CALLS) | files


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", WHOLE + EXACT)
def test_analyses_are_those_of_hta(name: str, call: str, tmp_path: Path) -> None:
    exact = name in EXACT
    real, our_set = theirs(name, exact), ours(name)
    ranks = sorted(real.t.traces)
    asked = [Asked(analysis, ranks, str(tmp_path)) for analysis in (real, our_set)]
    if name in FAILS.get(call, ()):
        for request in asked:
            with pytest.raises((ValueError, KeyError)):
                CALLS[call](request)
        return
    assert_same(*map(CALLS[call], asked), 0.02 if exact else 0)


@pytest.mark.parametrize(
    "call",
    ["get_temporal_breakdown", "get_idle_time_breakdown", "get_queue_length_summary", "get_cuda_kernel_launch_stats"],
)
@pytest.mark.parametrize("name", ["hta_control", "resnet50_workers4"])
def test_large_traces(name: str, call: str) -> None:
    real, our_set = theirs(name), ours(name)
    ranks = sorted(real.t.traces)
    assert_same(*(CALLS[call](Asked(analysis, ranks, "")) for analysis in (real, our_set)), 0)


@pytest.mark.parametrize("name", ["hta_control", *WHOLE, *EXACT])
def test_frames_are_those_of_hta(name: str) -> None:
    from hta.configs.parser_config import ParserConfig

    real, our_trace = theirs(name, name in EXACT).t, ours(name).t
    loaded = [
        "index",
        "pid",
        "tid",
        "ts",
        "dur",
        "iteration",
        "index_correlation",
        *(a.name for a in ParserConfig.get_default_cfg().get_args()),
    ]
    assert our_trace.get_ranks() == real.get_ranks()
    assert our_trace.min_ts == pytest.approx(real.min_ts)
    for rank in real.get_ranks():
        x, y = real.traces[rank].sort_index(), our_trace.traces[rank].sort_index()
        assert y.index.tolist() == x.index.tolist()
        if name not in EXACT:
            order = real.traces[rank].index.tolist()
            assert our_trace.traces[rank].index.tolist() == order or order == sorted(
                order
            )  # one step only: HTA leaves the file's order
            assert decoded(our_trace, y["name"]) == decoded(real, x["name"])
        assert decoded(our_trace, y["cat"]) == decoded(real, x["cat"])
        x.loc[x["stream"] == 0, "iteration"] = y["iteration"]
        for column in loaded:
            if x[column].dtype.kind == "f" or y[column].dtype.kind == "f":
                assert np.allclose(y[column].fillna(-1), x[column].fillna(-1), rtol=0, atol=0.002), column
            else:
                assert y[column].astype(str).tolist() == x[column].astype(str).tolist(), column


def decoded(trace: Any, codes: Any) -> list[str]:
    return [trace.symbol_table.sym_table[code] for code in codes]


@pytest.mark.parametrize("name", NAMES)
def test_every_trace_loads_with_wide_integers_and_no_negative_duration(name: str) -> None:
    (frame,) = analysis(FOLDER / name).t.traces.values()
    assert (
        frame.dtypes[["index", "index_correlation", "stream", "iteration", "name", "cat", "pid", "tid"]]
        .eq(np.int64)
        .all()
    )
    assert (frame["dur"] >= 0).all()
    assert ((frame["ts"] + frame["dur"]) == frame["end"]).all()
    assert frame["ts"].min() >= 0
    assert frame.index.is_unique
