"""`analysis`: HTA's own TraceAnalysis over our columns, so that the files are read once, by us.

What HTA gets is what its parser would have made, but for the faults that docs/hta.md lists: steps are the host's,
stream 0 is a stream, times are not
rounded, and integers are wide, because HTA writes into columns that pandas 3 refuses where they are narrow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tracediff.aggregate.traceset import TraceSet
from tracediff.engine import Where
from tracediff.errors import NotATrace, TracediffError
from tracediff.hta.events import Argument, Events, events_of, kept
from tracediff.hta.trace_diff import LabeledTrace
from tracediff.ingest.discover import find_traces, rank_in_name, run_in_path
from tracediff.ingest.health import Notes
from tracediff.ingest.read import read_traces
from tracediff.ingest.source import TraceFile
from tracediff.ingest.times import Int64
from tracediff.ingest.trace import Trace, TraceMeta

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
            profiles hold no events. HTA takes
            one run and one file per rank: the first run, and its first file of each rank, are used.
        include_last_profiler_step: as in HTA: also what starts in the last step, which is left out of files with
            several.

    Returns:
        ``hta.trace_analysis.TraceAnalysis``. Times are microseconds: integers where all of the set's are whole, else
        floats whose differences are
        exact (multiples of 1/1024 µs, half a nanosecond off at most). Its ``notes`` are the health notes: what was
        repaired, or left out here.

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
    ranks: dict[int, tuple[TraceFile, TraceMeta, Events]] = {}
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
    found: list[tuple[TraceFile, int | None]]
    if isinstance(traces, TraceSet):
        runs = len(traces.runs)
        found = [(profile.origin.file, rank) for rank, files in traces.runs[0].ranks.items() for profile in files]
    else:
        numbered = [(file, run_in_path(file)) for file in find_traces(traces)]
        runs = len({run for _, run in numbered})
        found = [(file, None) for file, run in numbered if run == numbered[0][1]]
    notes.add("one-run", "HTA takes one run: the others were omitted", runs - 1)
    return found


def _read(files: list[tuple[TraceFile, int | None]], notes: Notes) -> Iterable[tuple[int, Trace]]:
    """(rank, trace) of each file; among several, those that are not traces are skipped with a note."""
    for file, rank in files:
        try:
            for trace in read_traces(file):
                for note in trace.notes:
                    notes.add(note.code, note.message, note.count)
                yield rank if rank is not None else _rank_of(trace), trace
        except NotATrace as fault:
            if len(files) == 1:
                raise
            notes.add("not-a-trace", f"skipped: {file.name} ({fault.reason})")


def _rank_of(trace: Trace) -> int:
    recorded = trace.meta.distributed_info.rank if trace.meta.distributed_info else None
    return recorded if recorded is not None else rank_in_name(trace.file) or 0


def _container(ranks: dict[int, tuple[TraceFile, TraceMeta, Events]], last_step: bool, notes: Notes) -> Any:
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
        rows = kept(events, last_step)
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


def _frame(events: Events, rows: Int64, start: int, whole: bool, symbols: Any) -> pd.DataFrame:
    """The frame of one rank, its rows in the order given."""
    import pandas as pd

    ts, end = (_microseconds(ns[rows] - start, whole) for ns in (events.ts, events.ts + events.dur))
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


def _microseconds(ns: Int64, whole: bool) -> Any:
    """Microseconds as HTA adds and compares them: in floats only multiples of a power of two keep what nests nested."""
    return ns // 1000 if whole else np.rint(ns * 1.024) / 1024


def _symbols(codes: Any, texts: list[str], table: Any) -> Any:
    """int64[n]: ``codes`` as ids of HTA's symbol table, which gets the texts that occur."""
    used, inverse = np.unique(codes, return_inverse=True)
    table.add_symbols([texts[code] for code in used.tolist()])
    return np.array([table.sym_index[texts[code]] for code in used.tolist()], np.int64)[inverse]


def _metadata(meta: TraceMeta) -> dict[str, Any]:
    """The allow-listed metadata as the file spells it; HTA would keep all, a dump of the environment included."""
    found = msgspec.to_builtins(meta)
    versions = found.pop("versions")
    return {name: value for name, value in (found | versions).items() if value is not None}
