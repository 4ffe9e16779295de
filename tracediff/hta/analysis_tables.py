"""`sections`: HTA's analyses by name, as titled tables."""

from __future__ import annotations

import copy
import io
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tracediff.aggregate.traceset import TraceSet
from tracediff.engine import Where
from tracediff.errors import TracediffError, did_you_mean, printable
from tracediff.hta.from_columns import analysis
from tracediff.hta.trace_diff import LabeledTrace
from tracediff.process.temporary import temporary_folder

if TYPE_CHECKING:
    import pandas as pd

PATTERN_ROOTS = ("aten::", "autograd::engine::evaluate_function", "Optimizer.")
"""Parts of operator names whose kernel sequences are searched; HTA takes the outermost operators."""

Tables = Mapping[str, "pd.DataFrame | None"]
"""Caption → table, None where HTA finds nothing."""


@dataclass
class Section:
    """One of HTA's analyses.

    Attributes:
        name: its key in SECTIONS.
        title: the heading.
        tables: caption → table, times in µs; empty if HTA found nothing.
        unavailable: why HTA has no answer for this set, None where it has.
    """

    name: str
    title: str
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    unavailable: str | None = None


def sections(where: Where | TraceSet | LabeledTrace, names: Sequence[str]) -> list[Section]:
    """HTA's analyses of a set, in the given order. An analysis that fails is a section with the reason.

    Args:
        where: as in `analysis`.
        names: keys of SECTIONS.

    Raises:
        TracediffError: an unknown name; HTA is not installed; a set that cannot be read.
    """
    for name in names:
        if name not in SECTIONS:
            choices = f"choose from {', '.join(SECTIONS)}"
            raise TracediffError(name, "unknown HTA analysis", did_you_mean(name, SECTIONS, choices))
    hta_analysis = analysis(where)
    return [_section(name, hta_analysis) for name in dict.fromkeys(names)]


def _section(name: str, hta_analysis: Any) -> Section:
    title, tables = SECTIONS[name]
    log = logging.getLogger("hta")
    level = log.level
    try:
        log.setLevel(logging.CRITICAL)
        with (
            redirect_stdout(io.StringIO()),
            warnings.catch_warnings(),
        ):  # HTA prints, and warns of its own use of pandas
            warnings.simplefilter("ignore")
            found = {
                caption: table for caption, table in tables(hta_analysis).items() if table is not None and len(table)
            }
            return Section(name, title, found, None if found else "HTA found nothing in this set")
    except TracediffError as missing:
        return Section(name, title, unavailable=missing.reason)
    except Exception as fault:  # HTA raises anything on traces that it does not support
        return Section(name, title, unavailable=printable(f"HTA failed: {type(fault).__name__}: {fault}"))
    finally:
        log.setLevel(level)


def _needs_gpu(hta_analysis: Any) -> list[int]:
    """The ranks that have GPU events."""
    ranks = [rank for rank, frame in sorted(hta_analysis.t.traces.items()) if (frame["stream"] >= 0).any()]
    if not ranks:
        raise TracediffError("HTA", "no rank has GPU events", "record with CUDA activities")
    return ranks


def _breakdowns(hta_analysis: Any) -> Tables:
    _needs_gpu(hta_analysis)
    kinds, kernels = hta_analysis.get_gpu_kernel_breakdown(visualize=False)
    annotations = hta_analysis.get_gpu_user_annotation_breakdown(visualize=False)
    return {
        "GPU time by rank": hta_analysis.get_temporal_breakdown(visualize=False),
        "Kinds of kernels": kinds,
        "Kernels": kernels,
        "Annotations": annotations,
    }


def _idle(hta_analysis: Any) -> Tables:
    idle, intervals = hta_analysis.get_idle_time_breakdown(
        ranks=_needs_gpu(hta_analysis), visualize=False, show_idle_interval_stats=True
    )
    return {"Idle time by stream": idle, "Idle intervals": intervals.reset_index()}


def _overlap(hta_analysis: Any) -> Tables:
    _needs_gpu(hta_analysis)
    return {"Communication that overlaps computation": hta_analysis.get_comm_comp_overlap(visualize=False)}


def _launch(hta_analysis: Any) -> Tables:
    launches = hta_analysis.get_cuda_kernel_launch_stats(ranks=_needs_gpu(hta_analysis), visualize=False)
    columns = ["cpu_duration", "gpu_duration", "launch_delay"]
    return {f"Launches of rank {rank}": frame[columns].describe() for rank, frame in launches.items() if len(frame)}


def _queue(hta_analysis: Any) -> Tables:
    series = hta_analysis.get_queue_length_time_series(ranks=_needs_gpu(hta_analysis))
    summary = hta_analysis.get_queue_length_summary_from_time_series(series)
    return {
        "Queue length: launched, not yet started": _flat(summary),
        "Time blocked on a full queue": hta_analysis.get_time_spent_blocked_on_full_queue(series),
    }


def _bandwidth(hta_analysis: Any) -> Tables:
    return {
        "Bandwidth of copies and memsets, GB/s": _flat(
            hta_analysis.get_memory_bw_summary(ranks=_needs_gpu(hta_analysis))
        )
    }


def _patterns(hta_analysis: Any) -> Tables:
    quiet = copy.copy(hta_analysis)
    quiet.t = copy.copy(hta_analysis.t)  # HTA draws what it finds into a copy of the file, which is not wanted here
    quiet.t.get_raw_trace_for_one_rank = lambda **_: {"traceEvents": [{"ph": "M", "name": "", "pid": 0, "args": {}}]}
    quiet.t.write_raw_trace = lambda *_: None
    rank = _needs_gpu(hta_analysis)[0]
    found = {}
    with temporary_folder() as folder:
        for root in PATTERN_ROOTS:
            caption = f"Kernels that the outermost {root}… of rank {rank} launch"
            found[caption] = quiet.get_frequent_cuda_kernel_sequences(
                root, str(folder), min_pattern_len=2, rank=rank, compress_other_kernels=False
            )
    return found


def _critical_path(hta_analysis: Any) -> Tables:
    rank = _needs_gpu(hta_analysis)[0]
    step, instance = _step(hta_analysis.t, rank)
    graph, found = hta_analysis.critical_path_analysis(rank, "ProfilerStep" if step else "", instance)
    if not found:
        raise TracediffError("HTA", "found no critical path", "")
    path = graph.get_critical_path_breakdown()
    events = (
        path.groupby(["bound_by", "s_name"])["duration"]
        .agg(["count", "sum"])
        .sort_values("sum", ascending=False)
        .reset_index()
    )
    where = f"{step or 'the whole file'} of rank {rank}"
    return {
        f"What {where} waits for, %": graph.summary().rename("percent").reset_index(),
        f"On the critical path of {where}": events,
    }


def _step(trace: Any, rank: int) -> tuple[str, int | None]:
    """The second of the rank's steps, since the first lacks events, else the first: (name, instance as HTA counts
    them); none: ("", None).
    """
    frame, symbols = trace.get_trace(rank), trace.symbol_table.sym_table
    ids = [i for i, name in enumerate(symbols) if "ProfilerStep" in name]
    steps = frame[frame["name"].isin(ids)]
    host = np.flatnonzero([symbols[code] != "gpu_user_annotation" for code in steps["cat"]])
    if not len(host):
        return "", None
    by_start = host[np.argsort(steps["ts"].to_numpy()[host], kind="stable")]
    chosen = int(by_start[min(1, len(by_start) - 1)])
    return symbols[steps["name"].iloc[chosen]], chosen


def _stragglers(hta_analysis: Any) -> Tables:
    import pandas as pd

    if len(hta_analysis.t.traces) < 2:
        raise TracediffError("HTA", "stragglers need several ranks, and the set has one", "give all ranks")
    return {"Ranks that start communicating last": pd.DataFrame({"rank": hta_analysis.get_potential_stragglers()})}


def _flat(frame: pd.DataFrame | None) -> pd.DataFrame | None:
    """``frame`` with one level of column names and its index as columns."""
    return None if frame is None else frame.droplevel(0, axis=1).reset_index()


SECTIONS: dict[str, tuple[str, Callable[[Any], Tables]]] = {
    "breakdowns": ("Where GPU time goes", _breakdowns),
    "idle": ("Why streams are idle", _idle),
    "overlap": ("Overlap of communication and computation", _overlap),
    "launch": ("Launches", _launch),
    "queue": ("Queue length", _queue),
    "bandwidth": ("Memory bandwidth", _bandwidth),
    "patterns": ("Frequent sequences of kernels", _patterns),
    "critical-path": ("Critical path", _critical_path),
    "stragglers": ("Stragglers", _stragglers),
}
"""Name → (title, what makes its tables of HTA's TraceAnalysis)."""
