"""`LoadOptions`: how sets are read, shared by the engine, the Python API, the command line and the dashboards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tracediff.profile.kernels.families import DEFAULT, Families
from tracediff.profile.selection import Selection


@dataclass(frozen=True)
class SetOptions:
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
    selection: Selection = field(default_factory=Selection)
    captures: tuple[str, ...] = ()
    torch_trace: str | None = None


@dataclass(frozen=True)
class LoadOptions:
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
