"""Reads files into profiles and profiles into sets, as `LoadOptions` say. Later stages see no events."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from msgspec import Struct

from tracediff.aggregate.assemble import arrange, check_one_program
from tracediff.aggregate.snapshot_columns import SharedColumns
from tracediff.aggregate.traceset import TraceSet
from tracediff.arrays import group_by, return_freed
from tracediff.errors import NotATrace, TracediffError
from tracediff.formatting import ranges
from tracediff.ingest.discover import (
    SNAPSHOT_SUFFIX,
    Where,
    captures_beside,
    find_logs,
    find_traces,
    is_capture,
    is_snapshot,
    labels_for,
    logs_beside,
)
from tracediff.ingest.execution_trace import EXECUTION_TRACE, LINK, OPENING, with_inputs
from tracediff.ingest.files.source import OnRead, TraceFile, opens_with, stored_size
from tracediff.ingest.manifest import Manifest, read_manifest
from tracediff.ingest.model.health import Notes
from tracediff.ingest.read import read_trace, read_traces
from tracediff.profile.build import ARGUMENTS, CAPTURE_ARGUMENTS, build_profile
from tracediff.profile.events.context import Context, build_context
from tracediff.profile.kernels.families import DEFAULT, Families
from tracediff.profile.model.profile import Profile
from tracediff.profile.model.selection import Selection
from tracediff.profile.placement.captures import Capture, captures_of
from tracediff.profile.tables import ALL, arguments_of, file_tables, table_names
from tracediff.progress import Meter, OnProgress
from tracediff.structs import FrozenStruct


class SetOptions(FrozenStruct):
    """The label, ranks and steps used of one set.

    Attributes:
        label: name of the set in reports; None for the last part of its path.
        ranks: the ranks used; None for all.
        selection: the steps used.
        captures: paths of the traces of graph captures; empty for those in ``capture_traces/`` beside each trace.
        torch_trace: folder or file of logs of torch.compile; None for those in ``torch_trace/`` beside each trace.
    """

    label: str | None = None
    ranks: frozenset[int] | None = None
    selection: Selection = Selection()
    captures: tuple[str, ...] = ()
    torch_trace: str | None = None


class LoadOptions(FrozenStruct):
    """How sets are read.

    Attributes:
        sets: options of each set; empty for the defaults.
        step_marker: regular expression; annotations that match are the steps. None for ProfilerStep#N.
        families: rules that map names to families of work.
        tables: names of tables to build (`tracediff.profile.tables.NAMES`), ``all`` for every table; snapshots have the
            tables that they were written with.
        jobs: processes that read files; None for one per core, or a single one for small files.
        executor: reads the files instead: a `concurrent.futures.Executor` or a Dask ``Client``.
        keep_going: whether files that cannot be read are left out with a health note.
        max_memory: bytes that reading may take, by estimate: fewer files are read at a time, but at least one.
    """

    sets: tuple[SetOptions, ...] = ()
    step_marker: str | None = None
    families: Families = DEFAULT
    tables: tuple[str, ...] = ()
    jobs: int | None = None
    executor: Any = None
    keep_going: bool = False
    max_memory: int | None = None


Files = tuple[TraceFile, ...]
ReadTask = tuple[TraceFile, Selection | None, Files, Files]
"""A file, the steps that its timeline may show, the execution traces beside it, and the captures of its graphs."""
Outcome = list[Profile] | TracediffError
"""The profiles of the ranks in a file, or why there are none."""
Attempt = Callable[[ReadTask, OnRead | None], Outcome]

TRACE_NAME = ".pt.trace.json"
"""In the names that torch.profiler gives its files: such a file that is not a trace is damaged."""
PROCESS_BYTES, PART_OF_JSON, UNPACKED = 60_000_000, 0.7, 35
"""Memory of a process that reads: at the start, and as a part of the JSON, which has so many times the bytes of .gz."""
WORTH_A_PROCESS = 4 << 20
"""Total bytes on disk from which files are read in several processes."""


def profile_ranks(
    file: TraceFile,
    step_marker: str | None = None,
    *,
    families: Families = DEFAULT,
    selection: Selection | None = None,
    tables: Sequence[str] = (),
    execution_traces: Sequence[TraceFile] = (),
    captures: Sequence[TraceFile] = (),
    on_read: OnRead | None = None,
) -> list[Profile]:
    """The profile of each rank in a file, with operator inputs from ``execution_traces`` if it has none,
    and the operators of graph replays from ``captures``; see `build_profile`, `with_inputs`, and `read_traces` for
    ``on_read``.

    Raises:
        TracediffError: the file cannot be read, or is not a trace.
    """
    needed = file_tables(tables)
    read = ARGUMENTS | arguments_of(needed) | ({LINK} if execution_traces else set())
    graphs = [graph for capture in captures for graph in read_captures(capture)]
    return [
        build_profile(with_inputs(trace, execution_traces), step_marker, families, selection, needed, graphs)
        for trace in read_traces(file, only=read, on_read=on_read)
    ]


def read_captures(file: TraceFile) -> tuple[Capture, ...]:
    """The captured graphs in a capture trace, which is read once per process as long as it stays as it is.

    Raises:
        TracediffError: the file cannot be read, or captures no graph.
    """
    try:
        status = os.stat(file.path)
    except OSError:  # a URL, or none: reading says which
        return _captures(file, ())
    return _captures(file, (status.st_ino, status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=8)
def _captures(file: TraceFile, _state: tuple[int, ...]) -> tuple[Capture, ...]:
    graphs = [graph for trace in read_traces(file, only=CAPTURE_ARGUMENTS) for graph in captures_of(trace)]
    if not graphs:
        reason = "contains no launch that a graph captured"
        raise TracediffError(file, reason, "give the trace that the engine wrote while it captured its graphs")
    return tuple(graphs)


def read_context(file: TraceFile, step_marker: str | None = None, families: Families = DEFAULT) -> Context:
    """The events of one file, joined and nested, for `build_timeline` of any window and `follow` of an event.

    Raises:
        TracediffError: the file cannot be read, or is not a trace.
    """
    return build_context(read_trace(file, only=ARGUMENTS), step_marker, families, Notes())


def load_sets(
    wheres: Sequence[Where],
    options: LoadOptions | None = None,
    *,
    timelines: bool = True,
    progress: OnProgress | None = None,
) -> list[TraceSet]:
    """The sets at ``wheres``, with all files read in parallel.

    Args:
        wheres: folder, file, glob, archive, URL, list of these, or snapshot, one for each set.
        options: how to read them; None for the defaults.
        timelines: whether a step of each file is kept to be drawn.
        progress: called while files are read.

    Raises:
        TracediffError: a set without traces or of several programs, a file that cannot be read, or an unknown table.
        ValueError: ``options`` are for another number of sets.
    """
    options = options or LoadOptions()
    tables = table_names(options.tables)
    if options.sets and len(options.sets) != len(wheres):
        raise ValueError(f"options of {len(options.sets)} sets for {len(wheres)}")
    set_options = options.sets or (SetOptions(),) * len(wheres)
    sources = list(map(_source, wheres, labels_for(wheres), set_options))
    logs = [_logs(source) for source in sources]
    restored = [_restored(source, options) if source.snapshots else None for source in sources]
    tasks = [[] if source.snapshots else _to_read(source, timelines) for source in sources]
    every = list(dict.fromkeys(chain.from_iterable(tasks)))
    attempt = partial(_attempt, step_marker=options.step_marker, families=options.families, tables=tables)
    shared = SharedColumns()
    outcomes = {
        every[k]: result if isinstance(result, TracediffError) else [shared.of(profile) for profile in result]
        for k, result in _as_they_come(every, attempt, options, progress)
    }
    sets = [
        _arranged(source, [outcomes[task] for task in to_read], options) if traces is None else traces
        for source, traces, to_read in zip(sources, restored, tasks, strict=True)
    ]
    if any(logs):
        from tracediff.aggregate.compiled import add_torch_logs

        for traces_of_set, logs_of_set in zip(sets, logs, strict=True):
            add_torch_logs(traces_of_set, logs_of_set)
    _make_labels_distinct(sources, sets)
    return sets


class SetSource(Struct):
    """What a set is read from.

    Attributes:
        where: as given. label: the set's, unless its options have one. notes: what is noted while it is read.
        files: all that lie there. snapshots: these, if they are snapshots.
    """

    where: Where
    label: str
    options: SetOptions
    notes: Notes
    files: list[TraceFile]
    snapshots: list[TraceFile]


def _source(where: Where, label: str, options: SetOptions) -> SetSource:
    notes = Notes()
    files = find_traces(where, notes)
    return SetSource(where, label, options, notes, files, _snapshots(files))


def _logs(source: SetSource) -> list[TraceFile]:
    """The logs of torch.compile: those given, else those beside the traces."""
    if source.options.torch_trace is not None:
        return find_logs(source.options.torch_trace)
    return logs_beside([] if source.snapshots else source.files)


def _to_read(source: SetSource, timelines: bool) -> list[ReadTask]:
    """The traces of a set, each with the execution traces of its folder, and the captures of its graphs: those given,
    else those beside it.
    """
    files = [f for f in source.files if not is_capture(f)] or source.files
    captures = tuple(file for where in source.options.captures for file in find_traces(where))
    others = {f for f in files if opens_with(f, OPENING.match)}
    by_folder = group_by(sorted(others), lambda other: other.folders)
    traces = [f for f in files if f not in others] or files
    text = "execution traces were found beside the traces: they give the shapes that a trace lacks"
    source.notes.add(EXECUTION_TRACE, text, len(files) - len(traces))
    drawn_steps = source.options.selection if timelines else None
    return [(f, drawn_steps, tuple(by_folder.get(f.folders, ())), captures or captures_beside(f)) for f in traces]


def _snapshots(files: list[TraceFile]) -> list[TraceFile]:
    """``files`` if they are snapshots; none for traces.

    Raises:
        TracediffError: snapshots among other files.
    """
    if len(files) == 1:
        return files if is_snapshot(files[0]) else []
    snapshots = [file for file in files if file.name.endswith(SNAPSHOT_SUFFIX)]
    if snapshots and len(snapshots) < len(files):
        raise TracediffError(snapshots[0], "a snapshot cannot be combined with traces", "give it as a set of its own")
    return snapshots


def _restored(source: SetSource, options: LoadOptions) -> TraceSet:
    from tracediff.aggregate.snapshot import read_snapshot  # and the types of its columns, for snapshots only

    of_set, is_single = source.options, len(source.snapshots) == 1
    traces = read_snapshot(source.snapshots, of_set.selection, of_set.ranks, options.families)
    traces.label = of_set.label or (traces.label if is_single else source.label)
    traces.tables = (ALL, *options.tables)
    if not is_single:
        check_one_program(traces, source.where)
    return traces


def _arranged(source: SetSource, outcomes: list[Outcome], options: LoadOptions) -> TraceSet:
    """The set of the profiles among ``outcomes`` of reading its traces."""
    of_set, profiles = source.options, _usable(source, outcomes, options.keep_going)
    traces = arrange(of_set.label or source.label, profiles, of_set.selection, of_set.ranks, source.notes.list())
    check_one_program(traces, source.where)
    traces.manifest, traces.families, traces.tables = _manifest(source.where), options.families, options.tables
    return traces


def _make_labels_distinct(sources: list[SetSource], sets: list[TraceSet]) -> None:
    """Label a snapshot by its file name if another set has the label stored in it, and sets of one name by their ranks
    or steps, where these differ, else by a number.
    """
    labels = [traces.label for traces in sets]
    for source, traces in zip(sources, sets, strict=True):
        if source.snapshots and not source.options.label and labels.count(traces.label) > 1:
            traces.label = source.label.removesuffix(SNAPSHOT_SUFFIX)
    for label, number in Counter(traces.label for traces in sets).items():
        namesakes = [traces for traces in sets if traces.label == label]
        if number > 1:
            for traces, ending in zip(namesakes, _endings(namesakes, len(sets)), strict=True):
                traces.label = f"{label}{ending}"


def _endings(namesakes: list[TraceSet], sets: int) -> list[str]:
    """What distinguishes the labels of sets of one name among ``sets``: nothing where there are two, which are told
    apart as control and test.
    """
    selections = {"rank": [ranges(s.ranks) for s in namesakes], "step": [ranges(s.steps_used) for s in namesakes]}
    for what, texts in selections.items():
        if len(set(texts)) == len(namesakes):
            return [f" {what} {text}" for text in texts]
    return ["", *(f" ({k})" if sets > 2 else "" for k in range(2, len(namesakes) + 1))]


def _manifest(where: Where) -> Manifest | None:
    """The collector's manifest if the set is a folder that has one."""
    if isinstance(where, str | os.PathLike) and os.path.isfile(os.path.join(where, "manifest.json")):
        return read_manifest(Path(where))
    return None


def _usable(source: SetSource, outcomes: list[Outcome], keep_going: bool) -> list[Profile]:
    """The profiles. Of several files those that are not traces, nor named as traces, are skipped with a note; any other
    error is raised, or with ``keep_going`` noted.
    """
    profiles = [profile for outcome in outcomes if not isinstance(outcome, TracediffError) for profile in outcome]
    faults = [outcome for outcome in outcomes if isinstance(outcome, TracediffError)]
    for fault in faults:
        is_other = isinstance(fault, NotATrace) and TRACE_NAME not in fault.subject
        if len(outcomes) == 1 or not (keep_going or is_other):
            raise fault
        code = "not-a-trace" if is_other else "not-read"
        source.notes.add(code, f"skipped: {os.path.basename(fault.subject)} ({fault.reason})")
    if not profiles:
        alike = len({fault.reason for fault in faults}) == 1
        raise TracediffError(
            source.where,
            f"none of its {len(outcomes)} files is a trace" + (f" ({faults[0].reason})" if alike else ""),
            faults[0].remedy if alike else "give the .json or .json.gz files that torch.profiler writes",
        )
    return profiles


def _as_they_come(
    files: list[ReadTask], attempt: Attempt, options: LoadOptions, progress: OnProgress | None
) -> Iterator[tuple[int, Outcome]]:
    """(position, result) of each file."""
    sizes = [stored_size(task[0]) for task in files]
    if options.executor is not None:
        from tracediff.process.workers import in_executor

        yield from in_executor(files, sizes, attempt, options.executor, progress)
    elif (jobs := _jobs(files, sizes, options)) > 1:
        from tracediff.process.workers import Processes

        yield from Processes(files, sizes, attempt, progress).run(jobs)
    else:
        meter = Meter(sizes, [0] * len(files), progress)
        for k, task in enumerate(files):
            yield k, attempt(task, partial(meter.read, k))
            meter.finish(k)


def _attempt(task: ReadTask, on_read: OnRead | None, **settings: Any) -> Outcome:
    """The profiles of a file, read with ``settings`` of `profile_ranks`."""
    file, selection, execution_traces, captures = task
    try:
        profiles = profile_ranks(
            file,
            selection=selection,
            execution_traces=execution_traces,
            captures=captures,
            on_read=on_read,
            **settings,
        )
    except TracediffError as error:
        error.__context__ = None  # its frames hold what was read of the file
        return error.with_traceback(None)
    return_freed(sum(sum(profile.events.values()) for profile in profiles))
    return profiles


def _jobs(files: Sequence[ReadTask], sizes: Sequence[int], options: LoadOptions) -> int:
    """The number of processes that read."""
    jobs = options.jobs
    if jobs is None:
        is_worth_it = sys.platform == "linux" and sum(sizes) >= WORTH_A_PROCESS
        jobs = len(os.sched_getaffinity(0)) if is_worth_it else 1
    if options.max_memory is not None:
        largest = sorted(map(_memory_of, files, sizes), reverse=True)
        jobs = min(jobs, max(sum(total <= options.max_memory for total in accumulate(largest)), 1))
    return min(jobs, len(files))


def _memory_of(task: ReadTask, size: int) -> int:
    """Bytes that reading a file takes at most, by its size on disk."""
    is_packed = task[0].name.endswith((".gz", ".zst"))
    return PROCESS_BYTES + int(PART_OF_JSON * size * (UNPACKED if is_packed else 1))
