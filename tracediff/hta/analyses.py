"""`analysis`: HTA's own TraceAnalysis over our columns, so that the files are read once, by us.

What HTA gets is what its parser would have made, but for the faults that docs/hta.md lists: steps are the host's,
stream 0 is a stream, times are not rounded, and integers are wide, because HTA writes into columns that pandas 3
refuses where they are narrow.
"""

from __future__ import annotations

import copy
import io
import logging
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct

from tracediff.aggregate.traceset import TraceSet
from tracediff.arrays import Int64, distinct, mapped, stable_order
from tracediff.errors import NotATrace, TracediffError, check_choice, printable
from tracediff.hta.events import Argument, HtaEvents, events_of, rows_for_hta
from tracediff.hta.trace_diff import LabeledTrace
from tracediff.ingest.discover import Where, check_events, find_traces, rank_in_name, run_in_path
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import Trace, TraceMeta
from tracediff.ingest.read import read_traces
from tracediff.process.temporary import temporary_folder

if TYPE_CHECKING:
    import pandas as pd


KINDS = {"Int": int, "Float": float}
"""HTA's value types that are numbers; the others are objects."""

STACK_TIMES = ("first_kernel_start", "last_kernel_end", "kernel_dur_sum", "kernel_span")
"""Columns that HTA creates as integers and then fills with times."""


def analysis(where: Where | TraceSet | LabeledTrace, include_last_profiler_step: bool = False) -> Any:
    """HTA's TraceAnalysis of a set: ``analysis("traces/").get_temporal_breakdown(visualize=False)``.

    Args:
        where: folder, file, glob, archive, URL or list of these; or a loaded set, whose files are read again, since
            profiles hold no events. HTA takes one run and one file per rank: the first run, and its first file of each
            rank, are used.
        include_last_profiler_step: as in HTA: also what starts in the last step, which is left out of files with
            several.

    Returns:
        ``hta.trace_analysis.TraceAnalysis``. Times are microseconds: integers where all of the set's are whole, else
        floats whose differences are exact (multiples of 1/1024 µs, half a nanosecond off at most). Its ``notes`` are
        the health notes: what was repaired, or left out here.

    Raises:
        TracediffError: HTA is not installed; nothing to read; a file that cannot be read.
    """
    try:
        from hta.configs.parser_config import ParserConfig
        from hta.trace_analysis import TraceAnalysis
    except ImportError as error:
        raise TracediffError("HTA", f"not installed ({error})", "pip install 'torch-tracediff[hta]'") from None
    notes = Notes()
    arguments = [
        Argument(a.name, a.raw_name, KINDS.get(a.value_type.name, object), a.default_value)
        for a in ParserConfig.get_default_cfg().get_args()
    ]
    ranks: dict[int, tuple[TraceFile, TraceMeta, HtaEvents]] = {}
    for rank, trace in _read(_files(where, notes), notes):
        if rank in ranks:
            notes.add("one-file-a-rank", f"HTA takes one file per rank: {trace.file.name} was omitted")
            continue
        ranks[rank] = trace.file, trace.meta, events_of(trace, arguments)
    hta_analysis = TraceAnalysis.__new__(TraceAnalysis)  # its __init__ would parse the files
    hta_analysis.t = _container(dict(sorted(ranks.items())), include_last_profiler_step, notes)
    hta_analysis.notes = tuple(notes.list())
    return hta_analysis


def _files(where: Where | TraceSet | LabeledTrace, notes: Notes) -> list[tuple[TraceFile, int | None]]:
    """The files of the first run, with their ranks if the set knows them."""
    traces = where.t if isinstance(where, LabeledTrace) else where
    rank_files: list[tuple[TraceFile, int | None]]
    if isinstance(traces, TraceSet):
        runs = len(traces.runs)
        rank_files = [(profile.origin.file, rank) for rank, files in traces.runs[0].ranks.items() for profile in files]
    else:
        numbered = [(file, run_in_path(file)) for file in find_traces(traces)]
        runs = len({run for _, run in numbered})
        rank_files = [(file, None) for file, run in numbered if run == numbered[0][1]]
    check_events(file for file, _ in rank_files)
    notes.add("one-run", "HTA takes one run: the others were omitted", runs - 1)
    return rank_files


def _read(files: list[tuple[TraceFile, int | None]], notes: Notes) -> Iterable[tuple[int, Trace]]:
    """(rank, trace) of each file; among several, those that are not traces are skipped with a note."""
    for file, rank in files:
        try:
            for trace in read_traces(file):
                notes.update(trace.notes)
                yield rank if rank is not None else _rank_of(trace), trace
        except NotATrace as fault:
            if len(files) == 1:
                raise
            notes.add("not-a-trace", f"skipped: {file.name} ({fault.reason})")


def _rank_of(trace: Trace) -> int:
    recorded = trace.meta.distributed_info.rank if trace.meta.distributed_info else None
    return recorded if recorded is not None else rank_in_name(trace.file) or 0


def _container(ranks: dict[int, tuple[TraceFile, TraceMeta, HtaEvents]], last_step: bool, notes: Notes) -> Any:
    """HTA's Trace of the ranks, aligned and filtered as its ``load_traces`` leaves it."""
    from hta.common.trace import Trace as HtaTrace
    from hta.common.trace_parser import infer_gpu_type

    hta_trace = HtaTrace(trace_files={}, trace_dir="")
    starts = [int(events.ts.min()) for _, _, events in ranks.values() if len(events.ts)]
    if not starts:
        raise TracediffError("HTA", "no event with a duration in any file", "check that the profiler ran")
    start = min(starts)
    whole = all(not ((events.ts % 1000).any() or (events.dur % 1000).any()) for _, _, events in ranks.values())
    hta_trace.min_ts = start // 1000 if whole else start / 1000
    for rank, (file, meta, events) in ranks.items():
        rows = rows_for_hta(events, last_step)
        notes.add(
            "not-in-hta",
            "events of the last step, or launched outside the capture, are not in HTA's frames",
            len(events.index) - len(rows),
        )
        hta_trace.trace_files[rank] = str(file)
        hta_trace.traces[rank] = _frame(events, rows, start, whole, hta_trace.symbol_table)
        metadata = hta_trace.meta_data[rank] = _metadata(meta)
        metadata["device_type"] = infer_gpu_type(metadata, dict.fromkeys(events.names, 0))
    hta_trace.is_parsed = True
    return hta_trace


def _frame(events: HtaEvents, rows: Int64, start: int, whole: bool, symbols: Any) -> pd.DataFrame:
    """The frame of one rank, its rows in the order given."""
    import pandas as pd

    times = (ns[rows] - start for ns in (events.ts, events.ts + events.dur))
    # HTA adds and compares microseconds: in floats only multiples of a power of two keep what nests nested
    ts, end = (ns // 1000 if whole else np.rint(ns * 1.024) / 1024 for ns in times)
    columns: dict[str, Any] = {
        "index": events.index[rows],
        "cat": _symbols(events.category, events.categories, symbols)[rows],
        "name": _symbols(events.name, events.names, symbols)[rows],
        "pid": events.pid[rows],
        "tid": events.tid[rows],
        "ts": ts,
        "dur": end - ts,
    }
    columns |= {name: pd.Series(values[rows], dtype=values.dtype) for name, values in events.columns.items()}
    columns |= {"iteration": events.iteration[rows], "end": end}
    if not whole:
        columns |= {name: np.zeros(len(rows)) for name in STACK_TIMES}
    frame = pd.DataFrame(columns)
    return frame.set_index(pd.Index(columns["index"]), drop=False)


def _symbols(codes: Any, texts: list[str], table: Any) -> Any:
    """int64[n]: ``codes`` as ids of HTA's symbol table, which gets the texts that occur."""
    table.add_symbols([texts[code] for code in distinct(codes).tolist()])
    return mapped(codes, lambda code: table.sym_index[texts[code]])


def _metadata(meta: TraceMeta) -> dict[str, Any]:
    """The allow-listed metadata as the file spells it; HTA would keep all, a dump of the environment included."""
    metadata = msgspec.to_builtins(meta)
    versions = metadata.pop("versions")
    return {name: value for name, value in (metadata | versions).items() if value is not None}


PATTERN_ROOTS = ("aten::", "autograd::engine::evaluate_function", "Optimizer.")
"""Parts of operator names whose kernel sequences are searched; HTA takes the outermost operators."""

Tables = Mapping[str, "pd.DataFrame | None"]
"""Caption → table, None where HTA finds nothing."""


class Section(Struct):
    """One of HTA's analyses.

    Attributes:
        name: its key in SECTIONS.
        tables: caption → table, times in µs; empty if HTA found nothing.
        unavailable: why HTA has no answer for this set, None where it has.
    """

    name: str
    tables: dict[str, pd.DataFrame] = {}
    unavailable: str | None = None

    @property
    def title(self) -> str:
        """The heading."""
        return SECTIONS[self.name][0]


def sections(where: Where | TraceSet | LabeledTrace, names: Sequence[str]) -> list[Section]:
    """HTA's analyses of a set, in the given order. An analysis that fails is a section with the reason.

    Args:
        where: as in `analysis`.
        names: keys of SECTIONS.

    Raises:
        TracediffError: an unknown name; HTA is not installed; a set that cannot be read.
    """
    for name in names:
        check_choice(name, SECTIONS, name, "unknown HTA analysis", f"choose from {', '.join(SECTIONS)}")
    hta_analysis = analysis(where)
    return [_section(name, hta_analysis) for name in dict.fromkeys(names)]


def _section(name: str, hta_analysis: Any) -> Section:
    _, tables = SECTIONS[name]
    log = logging.getLogger("hta")
    level = log.level
    try:
        log.setLevel(logging.CRITICAL)
        with (
            redirect_stdout(io.StringIO()),
            warnings.catch_warnings(),
        ):  # HTA prints, and warns of its own use of pandas
            warnings.simplefilter("ignore")
            tables_of_ranks = {
                caption: table for caption, table in tables(hta_analysis).items() if table is not None and len(table)
            }
            return Section(name, tables_of_ranks, None if tables_of_ranks else "HTA found nothing in this set")
    except TracediffError as missing:
        return Section(name, unavailable=missing.reason)
    except Exception as fault:  # HTA raises anything on traces that it does not support
        return Section(name, unavailable=printable(f"HTA failed: {type(fault).__name__}: {fault}"))
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
    sequences = {}
    with temporary_folder() as folder:
        for root in PATTERN_ROOTS:
            caption = f"Kernels that the outermost {root}… of rank {rank} launch"
            sequences[caption] = quiet.get_frequent_cuda_kernel_sequences(
                root, str(folder), min_pattern_len=2, rank=rank, compress_other_kernels=False
            )
    return sequences


def _critical_path(hta_analysis: Any) -> Tables:
    rank = _needs_gpu(hta_analysis)[0]
    step, instance = _step(hta_analysis.t, rank)
    graph, is_available = hta_analysis.critical_path_analysis(rank, "ProfilerStep" if step else "", instance)
    if not is_available:
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
    by_start = host[stable_order(steps["ts"].to_numpy()[host])]
    row = int(by_start[min(1, len(by_start) - 1)])
    return symbols[steps["name"].iloc[row]], row


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
