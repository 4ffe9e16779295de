"""The functions of the library: `load`, `compare`, `analyze`, `check`, `matrix`, `snapshot`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import date
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tracediff import thresholds
from tracediff.aggregate.snapshot import write_snapshot
from tracediff.aggregate.traceset import TraceSet
from tracediff.analysis import analyze_set
from tracediff.api.diff import Diff
from tracediff.api.results import Check, Matrix, SetAnalysis
from tracediff.diff.gate.judge import check as judge_limits
from tracediff.diff.gate.limits import GateSettings, Limit, allowed, merged, parse_absolute, parse_limit, parse_relative
from tracediff.diff.verdict import Judging
from tracediff.engine import LoadOptions, SetOptions, load_sets
from tracediff.errors import ARGUMENTS, Parameters, Result, TracediffError, quoted, speaks_python
from tracediff.explain.compare import against_control, compare_sets, every_pair
from tracediff.ingest.discover import Where
from tracediff.profile.kernels.families import DEFAULT, read_rules
from tracediff.profile.model.selection import Selection
from tracediff.profile.tables import table_names
from tracediff.source.changed_code import with_changed_code
from tracediff.write import StrPath


@speaks_python
def load(
    path: Where,
    *,
    label: str | None = None,
    ranks: int | Sequence[int] | None = None,
    skip_first: int | None = None,
    steps: int | tuple[int, int] | None = None,
    step_marker: str | None = None,
    captures: StrPath | Sequence[StrPath] = (),
    torch_trace: StrPath | None = None,
    families: StrPath | None = None,
    tables: Sequence[str] = (),
    jobs: int | None = None,
    executor: Any = None,
    keep_going: bool = False,
    max_memory: int | None = None,
) -> TraceSet:
    """Read a set of traces.

    Args:
        path: folder (searched below too), file, glob, zip archive, URL, or a list of these.
        label: its name in reports; by default the last part of its path.
        ranks: only these, or this one.
        skip_first: leave out the first N steps of each file; by default the first of three or more.
        steps: use the steps numbered (first, last), inclusive, instead, or this one.
        step_marker: regular expression; annotations that match are the steps instead of ProfilerStep#N.
        captures: traces of the captures of the CUDA or HIP graphs that are replayed (docs/cuda-graphs.md); by default
            those in ``capture_traces/`` beside each trace.
        torch_trace: a log of torch.compile, or the folder that TORCH_TRACE named (docs/torch-compile.md); by
            default ``torch_trace/`` beside each trace.
        families: a TOML file of your own rules that map a name to its kind of work (docs/families.md).
        tables: further tables to make, such as "launches" (docs/analysis.md); "all" for every one.
        jobs: processes to read with; by default the number of cores for large files.
        executor: reads the files instead: a `concurrent.futures.Executor` or a Dask ``Client`` (docs/scale.md).
        keep_going: leave out files that cannot be read, with a health note.
        max_memory: read as many files at a time as fit into this many bytes, by estimate, but at least one.

    Raises:
        TracediffError: nothing there, not a trace, no step left, a capture without graphs, an unknown table, or
            ``steps`` that are no numbers or come with ``skip_first``.
    """
    selection = Selection(skip_first, *_first_and_last(steps)) if steps is not None else Selection(skip_first)
    selected_ranks = frozenset([ranks] if isinstance(ranks, int) else ranks) if ranks is not None else None
    log = os.fspath(torch_trace) if torch_trace is not None else None
    of_set = SetOptions(label, selected_ranks, selection, _each(captures), log)
    rules = read_rules(os.fspath(families)) if families is not None else DEFAULT
    options = LoadOptions(
        (of_set,), step_marker, rules, _each(tables), jobs, executor, keep_going=keep_going, max_memory=max_memory
    )
    return load_sets([path], options)[0]


def _each(values: StrPath | Sequence[StrPath]) -> tuple[str, ...]:
    """Names or paths, or the one that was given without a list."""
    return tuple(os.fspath(value) for value in ([values] if isinstance(values, str | os.PathLike) else values))


def _first_and_last(steps: Any) -> tuple[int, int]:
    """Of ``steps``, a number or two."""
    both = (steps, steps) if isinstance(steps, int) else steps
    if isinstance(both, str) or len(both) != 2 or not all(isinstance(number, int) for number in both):
        raise TracediffError("steps", f"{quoted(str(steps))} are not the first and the last step", "give steps=(6, 9)")
    return both[0], both[1]


def takes_loaded_sets(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A function of sets, whose error of an argument that only `load` takes says so."""
    only_of_load = signature(load).parameters.keys() - signature(function).parameters.keys()

    @wraps(function)
    def called(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        for name in sorted(only_of_load & {ARGUMENTS.get(name, name) for name in kwargs}):
            remedy = f"{function.__name__}(load(path, {name}=…), …)"
            raise TypeError(f"{function.__name__}() takes no {name}=: it is chosen where a set is loaded, {remedy}")
        return function(*args, **kwargs)

    return called


@speaks_python
@takes_loaded_sets
def snapshot(traces: TraceSet | Where, path: StrPath, *, tables: Sequence[str] = ()) -> int:
    """Write a compact baseline of a set to ``path``; returns its size in bytes.

    Args:
        traces: what `load` returned (with its tables), or whatever it takes.
        tables: as for `load`; of a set that is loaded already, tables that it was loaded with.

    Raises:
        TracediffError: as for `load`; the set was loaded without one of ``tables``; or the file cannot be written.
    """
    return write_snapshot(_loaded([traces], tables)[0], path)


@speaks_python
@takes_loaded_sets
def analyze(
    traces: TraceSet | Where,
    *,
    tables: Sequence[str] = (),
    jobs: int | None = None,
    executor: Any = None,
    keep_going: bool = False,
    max_memory: int | None = None,
) -> SetAnalysis:
    """Analyse one set in depth.

    Args:
        traces: what `load` returned (with its tables), or whatever it takes.
        tables: as for `load`; of a set that is loaded already, tables that it was loaded with.
        jobs, executor, keep_going, max_memory: as for `load`.

    Raises:
        TracediffError: as for `load`; or the set was loaded without one of ``tables``.
    """
    return SetAnalysis(analyze_set(*_loaded([traces], tables, jobs, executor, keep_going, max_memory)))


@speaks_python
@takes_loaded_sets
def compare(
    control: TraceSet | Where,
    test: TraceSet | Where,
    *,
    paired: bool = False,
    assume_run_cv: float | None = None,
    equivalence_band: float = thresholds.EQUIVALENCE_BAND,
    noise_floor: float = thresholds.NOISE_FLOOR,
    force: bool = False,
    tables: Sequence[str] = (),
    jobs: int | None = None,
    executor: Any = None,
    keep_going: bool = False,
    max_memory: int | None = None,
    source: StrPath | None = None,
    commits: tuple[str, str] | None = None,
) -> Diff:
    """Compare two sets of traces.

    Steps, ranks and labels are chosen where a set is loaded: ``compare(load("a", ranks=0), load("b", ranks=0))``.

    Args:
        control, test: what `load` returned, or whatever it takes.
        paired: run k of both sides was recorded together: test the pairs (five or more).
        assume_run_cv: judge single runs, assuming that runs vary by this part (0.02 for 2 %).
        equivalence_band: relative change within which the sides count as the same.
        noise_floor: relative change of an operator below which it is never flagged.
        force: compute even what the preflight refuses.
        tables: as for `load`; of a set that is loaded already, tables that it was loaded with.
        jobs, executor, keep_going, max_memory: as for `load`.
        source: a folder in a git repository: say which lines that changed between the ``commits`` of control and test,
            or those that the sets were recorded from, the changed work runs for (`Diff.changed_code`).

    Raises:
        TracediffError: as for `load`; or a set was loaded without one of ``tables``; or the commits are not known.

    Example:
        >>> diff = tracediff.compare("traces/before", "traces/after")
        >>> print(diff.verdict.sentence)
        >>> diff.step_time  # a DataFrame, µs per step
    """
    a, b = _loaded([control, test], tables, jobs, executor, keep_going, max_memory)
    comparison = compare_sets(a, b, force, Judging(paired, assume_run_cv, equivalence_band, noise_floor))
    return Diff(with_changed_code(comparison, Path(source), commits) if source is not None else comparison)


@speaks_python
@takes_loaded_sets
def check(
    control: TraceSet | Where,
    test: TraceSet | Where,
    *,
    max_regression: str | float = "5%",
    min_delta: str = "0us",
    limits: Sequence[str] = (),
    allow: Sequence[str] = (),
    paired: bool = False,
    assume_run_cv: float | None = None,
    equivalence_band: float = thresholds.EQUIVALENCE_BAND,
    noise_floor: float = thresholds.NOISE_FLOOR,
) -> Check:
    """Judge a comparison against limits, as ``tracediff check`` does (docs/ci.md). No file of limits is read.

    A comparison that the preflight refuses is never judged, so there is nothing to force.

    Args:
        control, test: what `load` returned, or whatever it takes.
        max_regression, min_delta: relative and absolute growth of the step time that is allowed, such as "3%" or 0.03,
            and "50us".
        limits: further limits, such as "memory=2%,16MB" or "op:aten::copy_*=0%,20us".
        allow: cautions under which to judge all the same, such as "gpu" or "single-run".
        paired, assume_run_cv, equivalence_band, noise_floor: as for `compare`.

    Raises:
        TracediffError: as for `load`; or a limit or caution that does not exist.
    """
    relative = parse_relative(str(max_regression), "max_regression")
    step = Limit("step", relative, parse_absolute(min_delta, "us", "min_delta"))
    settings = GateSettings(merged([step, *map(parse_limit, _each(limits))]), allowed(_each(allow), "allow"))
    judging = Judging(paired, assume_run_cv, equivalence_band, noise_floor)
    a, b = _loaded([control, test])
    return Check(judge_limits(compare_sets(a, b, False, judging), settings, date.today()))


@speaks_python
@takes_loaded_sets
def matrix(
    control: TraceSet | Where,
    *others: TraceSet | Where,
    pairwise: bool = False,
    paired: bool = False,
    assume_run_cv: float | None = None,
    equivalence_band: float = thresholds.EQUIVALENCE_BAND,
    noise_floor: float = thresholds.NOISE_FLOOR,
    force: bool = False,
    tables: Sequence[str] = (),
    jobs: int | None = None,
    executor: Any = None,
    keep_going: bool = False,
    max_memory: int | None = None,
) -> Matrix:
    """Compare many sets with one control; p-values are corrected for the number of comparisons (Holm).

    Args:
        control, others: what `load` returned, or whatever it takes.
        pairwise: compare every set with every other instead.
        paired, assume_run_cv, equivalence_band, noise_floor, force, tables: as for `compare`.
        jobs, executor, keep_going, max_memory: as for `load`.

    Raises:
        TracediffError: as for `load`; no others; or a set was loaded without one of ``tables``.
    """
    if not others:
        raise TracediffError("matrix", "control is the only set", "give each set by itself: matrix(control, a, b)")
    sets = _loaded([control, *others], tables, jobs, executor, keep_going, max_memory)
    judging = Judging(paired, assume_run_cv, equivalence_band, noise_floor)
    return Matrix(every_pair(sets, judging, force) if pairwise else against_control(sets[0], sets[1:], judging, force))


def _loaded(
    wheres: Sequence[TraceSet | Where],
    tables: Sequence[str] = (),
    jobs: int | None = None,
    executor: Any = None,
    keep_going: bool = False,
    max_memory: int | None = None,
) -> list[TraceSet]:
    """The sets, all files that are still to be read side by side."""
    options = LoadOptions(
        tables=_each(tables), jobs=jobs, executor=executor, keep_going=keep_going, max_memory=max_memory
    )
    unread = [where for where in wheres if not isinstance(where, TraceSet)]
    loaded = {k: _with_tables(where, options.tables) for k, where in enumerate(wheres) if isinstance(where, TraceSet)}
    read = iter(load_sets(unread, options) if unread else [])
    return [loaded[k] if k in loaded else next(read) for k in range(len(wheres))]


def _with_tables(traces: TraceSet, tables: Sequence[str]) -> TraceSet:
    """``traces``, also asked for ``tables``: those that a snapshot lacks become health notes.

    Raises:
        TracediffError: it was loaded without one of them, or there is no such table.
    """
    loaded = table_names(traces.tables)
    missing = [name for name in table_names(tables) if name not in loaded]
    if missing:
        reason = f"the set {traces.label} was loaded without {', '.join(missing)}"
        raise TracediffError("tables", reason, f"load it with load(…, tables={list(tables)})")
    return replace(traces, tables=tuple(dict.fromkeys((*traces.tables, *tables))))
