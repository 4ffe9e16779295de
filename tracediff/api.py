"""The library as users call it: `load`, `compare` and `Diff`, a comparison with its tables as DataFrames."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tracediff.aggregate.traceset import TraceSet
from tracediff.analysis.analysis import Analysis
from tracediff.analysis.analyze import analyze_set
from tracediff.charts.accessor import Charts
from tracediff.diff.compare import compare_sets
from tracediff.diff.comparison import Comparison
from tracediff.diff.preflight import Comparability
from tracediff.diff.verdict import Verdict
from tracediff.diff.views import Sum, summed
from tracediff.engine import Where, load_sets
from tracediff.errors import TracediffError
from tracediff.formatting import time
from tracediff.load_options import LoadOptions, SetOptions
from tracediff.profile.kernels.families import DEFAULT, read_rules
from tracediff.profile.selection import Selection
from tracediff.profile.tables import table_schema
from tracediff.report.analysis.to_json import document as analysis_document
from tracediff.report.analysis.to_json import to_json as analysis_json
from tracediff.report.analysis.to_markdown import to_markdown as analysis_markdown
from tracediff.report.table import table_columns
from tracediff.report.to_csv import (
    GROUP_COLUMNS,
    HEALTH_COLUMNS,
    OP_COLUMNS,
    PREFIXES,
    STEP_COLUMNS,
    TREE_COLUMNS,
    fusion_rows,
    group_rows,
    health_rows,
    step_rows,
    tree_rows,
)
from tracediff.report.to_folded import to_folded
from tracediff.report.to_json import document, plain, to_json
from tracediff.report.to_markdown import to_markdown
from tracediff.report.to_perfetto import to_perfetto
from tracediff.write import write_text

FUSION_COLUMNS = (
    "ops",
    "kernels",
    "module",
    "phase",
    "control_count",
    "test_count",
    "control_us",
    "test_us",
    "delta_us",
)
VIEW_COLUMNS = ("name", "control_count", "test_count", "control_us", "test_us", "delta_us")

if TYPE_CHECKING:
    import pandas as pd


def load(
    path: Where,
    *,
    label: str | None = None,
    ranks: Sequence[int] | None = None,
    skip_first: int | None = None,
    steps: tuple[int, int] | None = None,
    step_marker: str | None = None,
    families: str | os.PathLike[str] | None = None,
    tables: Sequence[str] = (),
    jobs: int | None = None,
) -> TraceSet:
    """Read a set of traces.

    Args:
        path: folder (searched below too), file, glob, zip archive, URL, or a list of these.
        label: its name in reports; by default the last part of its path.
        ranks: only these.
        skip_first: leave out the first N steps of each file; by default the first of three or more.
        steps: use the steps numbered first..last (inclusive) instead.
        step_marker: regular expression; annotations that match are the steps instead of ProfilerStep#N.
        families: a TOML file of rules of your own that tell what kind of work a name is (docs/families.md).
        tables: further tables to make, such as "launches" (docs/analysis.md); "all" for every one.
        jobs: processes to read with; by default the number of cores for large files.

    Raises:
        TracediffError: nothing there, not a trace, no step left, or an unknown table.
    """
    selection = Selection(skip_first, *steps) if steps is not None else Selection(skip_first)
    wanted = frozenset(ranks) if ranks is not None else None
    rules = read_rules(os.fspath(families)) if families is not None else DEFAULT
    options = LoadOptions((SetOptions(label, wanted, selection),), step_marker, rules, tuple(tables), jobs)
    return load_sets([path], options)[0]


def analyze(traces: TraceSet | Where, *, tables: Sequence[str] = (), jobs: int | None = None) -> SetAnalysis:
    """Look at one set in depth.

    Args:
        traces: what `load` returned (with its tables), or whatever it takes.
        tables, jobs: as for `load`.

    Raises:
        TracediffError: as for `load`.
    """
    return SetAnalysis(analyze_set(traces if isinstance(traces, TraceSet) else load(traces, tables=tables, jobs=jobs)))


def compare(
    control: TraceSet | Where,
    test: TraceSet | Where,
    *,
    force: bool = False,
    tables: Sequence[str] = (),
    jobs: int | None = None,
) -> Diff:
    """Compare two sets of traces.

    Args:
        control, test: what `load` returned, or whatever it takes.
        force: compute even what the preflight refuses.
        tables, jobs: as for `load`.

    Raises:
        TracediffError: as for `load`.

    Example:
        >>> diff = tracediff.compare("traces/before", "traces/after")
        >>> print(diff.verdict.sentence)
        >>> diff.step_time  # a DataFrame, µs per step
    """
    if isinstance(control, TraceSet) or isinstance(test, TraceSet):
        a, b = (one if isinstance(one, TraceSet) else load(one, tables=tables, jobs=jobs) for one in (control, test))
    else:
        a, b = load_sets([control, test], LoadOptions(tables=tuple(tables), jobs=jobs))
    return Diff(compare_sets(a, b, force))


class Diff:
    """A comparison as users hold it: tables are DataFrames in µs and counts per step.

    Attributes:
        comparison: the exact integers behind every number.
    """

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison

    @cached_property
    def _document(self) -> dict[str, Any]:
        return plain(document(self.comparison))

    @property
    def verdict(self) -> Verdict:
        """How the step time differs, in µs, and what can be said of it."""
        return self.comparison.verdict

    @property
    def comparability(self) -> Comparability:
        """Whether like was compared with like."""
        return self.comparison.comparability

    @cached_property
    def step_time(self) -> pd.DataFrame:
        """One row a state (index ``name``): control_us, test_us, delta_us. Columns add up to the step."""
        return _frame(self._document["step_time"]["states"]).set_index("name")

    @cached_property
    def gpu_time(self) -> pd.Series:
        """The kernel account in µs per step: control_us, test_us, delta_us, busy, overlap, matched, added, removed,
        residual.
        """
        import pandas as pd

        return pd.Series({k: v for k, v in self._document["gpu_time"].items() if isinstance(v, float)}, name="gpu_time")

    @cached_property
    def groups(self) -> pd.DataFrame:
        """One row a group of work that is the same: level, name, family, module, phase, counts, µs on both sides,
        delta_us = count_part_us + mean_part_us.

        Of GPU events; where neither side has a GPU of the self time of operators.
        """
        return _frame(group_rows(self._document), GROUP_COLUMNS)

    def by(self, view: str) -> pd.DataFrame:
        """The same work summed by ``family``, ``phase``, ``module``, ``op``, ``kernel`` or ``cause`` (index): counts
        and µs per step, largest change first.

        Raises:
            KeyError: another view.
        """
        return _frame([_line(self.comparison, s) for s in summed(self.comparison.work, view)], VIEW_COLUMNS).set_index(
            "name"
        )

    @cached_property
    def fusions(self) -> pd.DataFrame:
        """One row a fusion: ops (what was computed one by one), kernels (fused), module, phase, counts and µs per step
        on both sides, delta_us.
        """
        return _frame(fusion_rows(self.comparison), FUSION_COLUMNS)

    @cached_property
    def tree(self) -> pd.DataFrame:
        """The merged call tree, one row a call, parents before children (index ``node``).

        parent (−1 for a phase), depth, kind (phase, annotation, module, op), name, shapes, side (both, control, test),
        counts per step, host µs with
        everything below, work µs below (GPU time; without a GPU self time of operators), delta_us of the work.
        """
        return _frame(tree_rows(self.comparison), TREE_COLUMNS).rename_axis("node")

    def table(self, name: str) -> pd.DataFrame:
        """A further table that both sets were loaded with, one row a key: its columns of both sides, largest change
        first.

        Raises:
            TracediffError: there is none of that name, or it was not loaded: ``compare(…, tables=[name])``.
        """
        return _table(self._document, name, PREFIXES, "compare")

    @cached_property
    def ops(self) -> pd.DataFrame:
        """One row an operation by category and name, largest change of self time first."""
        return _frame(self._document["ops"], OP_COLUMNS)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row a used step: side, run, step, rank, period_us."""
        return _frame(list(step_rows(self.comparison)), STEP_COLUMNS)

    @cached_property
    def health(self) -> pd.DataFrame:
        """One row a health note: side, code, message, count."""
        return _frame(health_rows(self._document), HEALTH_COLUMNS)

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What explains the change, with evidence."""
        return list(self._document["findings"])

    @property
    def charts(self) -> Charts:
        """The plotly figures of `tracediff.charts`: ``diff.charts.step_waterfall().show()``; ``dir(diff.charts)`` lists
        them.
        """
        return Charts(self.comparison)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The JSON document (schema tracediff.diff/1); also written to ``path`` where given."""
        return _written(to_json(self.comparison), path)

    def to_folded(self, path: str | os.PathLike[str] | None = None) -> str:
        """Stacks with the work of both sides in ns, as flame-graph tools read them; also written to ``path`` where
        given.
        """
        return _written(to_folded(self.comparison), path)

    def to_perfetto(self, path: str | os.PathLike[str] | None = None) -> str:
        """One trace of both sides' typical steps for Perfetto, each beginning at 0; also written to ``path`` where
        given, compressed for ``.gz``.

        Raises:
            TracediffError: a side is a snapshot, its file cannot be read any more, or a step has too many events.
        """
        merged = to_perfetto(self.comparison)
        if path is not None:
            merged.write(path)
        return merged.text

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """The answer as GitHub-flavoured Markdown; also written to ``path`` where given."""
        return _written(to_markdown(self.comparison), path)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The report: one page that works from disk, without a network; also written to ``path`` where given."""
        from tracediff.report.page.html import to_html

        return _written(to_html(self.comparison), path)

    def _repr_html_(self) -> str:
        from tracediff.report.page.html import to_notebook

        return to_notebook(self.comparison)

    def __repr__(self) -> str:
        return f"<Diff {self.comparison.control.label} → {self.comparison.test.label}: {self.verdict.sentence}>"


class SetAnalysis:
    """An analysis as users hold it: tables are DataFrames in µs, counts and bytes per step.

    Attributes:
        analysis: the exact integers behind every number.
    """

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis

    @cached_property
    def _document(self) -> dict[str, Any]:
        return plain(analysis_document(self.analysis))

    @cached_property
    def states(self) -> pd.Series:
        """State → µs; they add up to the step."""
        return _frame(self._document["step_time"]["states"], ("name", "us")).set_index("name")["us"]

    @cached_property
    def operations(self) -> pd.DataFrame:
        """One row an operator, call or kernel, largest self time first."""
        return _frame([*self._document["ops"], *self._document["kernels"]]).sort_values(
            "self_us", ascending=False, ignore_index=True
        )

    def by(self, view: str) -> pd.DataFrame:
        """The work summed by ``family``, ``phase``, ``module``, ``op`` or ``kernel`` (index): count and µs, largest
        first.

        Raises:
            KeyError: another view.
        """
        of = self.analysis
        lines = [{"name": s.name, "count": of.number(s.count), "us": of.us(s.ns)} for s in of.views[view]]
        return _frame(lines, ("name", "count", "us")).set_index("name")

    def table(self, name: str) -> pd.DataFrame:
        """A further table that the set was loaded with.

        Raises:
            TracediffError: there is none of that name, or it was not loaded: ``analyze(…, tables=[name])``.
        """
        return _table(self._document, name, ("",), "analyze")

    @property
    def charts(self) -> Charts:
        """Plotly figures: ``analysis.charts.step_parts().show()``; ``dir(analysis.charts)`` lists them."""
        return Charts(self.analysis)

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What stands out."""
        return list(self._document["findings"])

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The JSON document (schema tracediff.profile/1); also written to ``path`` where given."""
        return _written(analysis_json(self.analysis), path)

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """The tables as GitHub-flavoured Markdown; also written to ``path`` where given."""
        return _written(analysis_markdown(self.analysis), path)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """One page that works from disk, without a network; also written to ``path`` where given."""
        from tracediff.report.page.analysis import to_html

        return _written(to_html(self.analysis), path)

    def __repr__(self) -> str:
        return f"<SetAnalysis {self.analysis.side.label}: {time(self.analysis.us(self.analysis.period))} a step>"


def _line(comparison: Comparison, line: Sum) -> dict[str, Any]:
    us, number = comparison.us, comparison.number
    return {
        "name": line.name,
        "control_count": number(line.control_count),
        "test_count": number(line.test_count),
        "control_us": us(line.control),
        "test_us": us(line.test),
        "delta_us": us(line.delta),
    }


def _table(document: dict[str, Any], name: str, prefixes: tuple[str, ...], function: str) -> pd.DataFrame:
    """A further table of ``document``; without rows it has its columns, too."""
    schema, tables = table_schema(name), document["tables"]
    if name not in tables:
        reason = "is not there: it was not loaded, or its traces do not allow it (see health)"
        raise TracediffError(f"table {name}", reason, f"load it with {function}(…, tables=[{name!r}])")
    return _frame(tables[name], table_columns(schema, prefixes))


def _frame(rows: list[dict[str, Any]], columns: Sequence[str] | None = None) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=list(columns) if columns is not None else None)


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        write_text(path, text)
    return text
