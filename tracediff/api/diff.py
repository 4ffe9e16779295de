"""`Diff`: a comparison, its tables as DataFrames."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from math import nan
from typing import TYPE_CHECKING, Any

from tracediff.api.charted import Charted
from tracediff.api.frames import frame_of, known_view, table_frame, written
from tracediff.api.why import Why
from tracediff.charts.accessor import Charts
from tracediff.diff.comparison import Comparison
from tracediff.diff.preflight import Comparability
from tracediff.diff.verdict import Verdict
from tracediff.diff.views import VIEWS, Modules, Sum, summed, summed_by
from tracediff.diff.work_changes import WorkChange
from tracediff.present.answer import answer_of
from tracediff.profile.kernels.display_names import display_name
from tracediff.report.explain import explain
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

if TYPE_CHECKING:
    import pandas as pd

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
CHANGE_COLUMNS = ("operator", "shapes", "module", "control_kernels", "test_kernels", *VIEW_COLUMNS[1:])
PARTNER_COLUMNS = ("operator", "shapes", "control_kernels", "test_kernels")


def with_numbers(verdict: Verdict) -> Verdict:
    """``verdict`` with NaN for what was not tested."""
    v, neither = verdict, (nan, nan)
    return replace(
        v,
        ratio=nan if v.ratio is None else v.ratio,
        p_value=nan if v.p_value is None else v.p_value,
        min_detectable_us=nan if v.min_detectable_us is None else v.min_detectable_us,
        ci95_us=v.ci95_us or neither,
        within_runs_us=v.within_runs_us or neither,
    )


class Diff(Charted):
    """The result of `tracediff.compare`: tables are DataFrames in µs and counts per step.

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
        """How the step time differs, in µs, and what can be said of it; what was not tested is NaN."""
        return with_numbers(self.comparison.verdict)

    @cached_property
    def because(self) -> str:
        """Why the step changed, in a sentence to paste; empty where nothing did."""
        return answer_of(self.comparison).why

    @property
    def comparability(self) -> Comparability:
        """Whether like was compared with like."""
        return self.comparison.comparability

    @cached_property
    def step_time(self) -> pd.DataFrame:
        """One row per state (index ``name``): control_us, test_us, delta_us. Columns add up to the step."""
        return frame_of(self._document["step_time"]["states"]).set_index("name")

    @cached_property
    def gpu_time(self) -> pd.Series:
        """The kernel account in µs per step: control_us, test_us, delta_us, busy, overlap, matched, added, removed,
        residual.
        """
        import pandas as pd

        return pd.Series({k: v for k, v in self._document["gpu_time"].items() if isinstance(v, float)}, name="gpu_time")

    @cached_property
    def groups(self) -> pd.DataFrame:
        """One row per group of matched work: level, name, operator and shapes (None where the work shares none), the
        kernels of both sides, family, module, phase, counts and µs per step on both sides, and
        delta_us = count_part_us + mean_part_us.

        The work is GPU events; if neither side has a GPU, the self time of operators.
        """
        rows = []
        for group, row in zip(self.comparison.work.groups, group_rows(self._document), strict=True):
            operator, _, shapes = (group.call or "").partition("(")
            names = {"operator": operator or None, "shapes": f"({shapes}" if shapes else None}
            kernels = ([display_name(member.name) for member in side] for side in group.sides)
            rows.append({**row, **names, **dict(zip(("control_kernels", "test_kernels"), kernels, strict=True))})
        return frame_of(rows, (*GROUP_COLUMNS[:2], *PARTNER_COLUMNS, *GROUP_COLUMNS[2:]))

    def top(self, n: int = 10, *, slower: bool = False) -> pd.DataFrame:
        """The ``n`` largest changes of matched work, its instances merged, one row each: operator, shapes, module,
        kernels of both sides, counts and µs per step; with ``slower`` those that added most time.
        """
        changes = self.comparison.work_changes
        if slower:
            changes = tuple(sorted(changes, key=lambda change: -change.delta))
        return frame_of([_change_row(self.comparison, change) for change in changes[:n]], CHANGE_COLUMNS)

    def by(self, view: str, *, depth: int | None = None, instances: bool = False) -> pd.DataFrame:
        """The same work summed by ``family``, ``phase``, ``module``, ``op``, ``kernel``, ``line`` (of code outside of
        torch) or ``cause`` (index): counts and µs per step, largest change first.

        Args:
            depth: of modules only those ``depth`` outermost; what is inside of them counts for them.
            instances: one row for each instance of a module instead of ``Layer[*]``.

        Raises:
            TracediffError: another view.
        """
        known_view(view, (*VIEWS, "line", "cause"))
        work = self.comparison.work
        lines = summed_by(work, Modules(depth, instances)) if view == "module" else summed(work, view)
        rows = [_sum_row(self.comparison, line) for line in lines]
        return frame_of(rows, VIEW_COLUMNS).set_index("name")

    def explain(self, name: str, most: int = 10) -> str:
        """How and why the work of kernels or operators called ``name``, or a part of it, was matched, as text: the
        ``most`` largest groups.

        Raises:
            TracediffError: no work of that name.
        """
        return explain(self.comparison, name, most)

    @cached_property
    def fusions(self) -> pd.DataFrame:
        """One row per fusion: ops (what was computed one by one), kernels (fused), module, phase, counts and µs per
        step
        on both sides, delta_us.
        """
        return frame_of(fusion_rows(self.comparison), FUSION_COLUMNS)

    @cached_property
    def tree(self) -> pd.DataFrame:
        """The merged call tree, one row per call, parents before children (index ``node``).

        parent (−1 for a phase), depth, kind (phase, annotation, module, op), name, shapes, side (both, control, test),
        counts per step, host µs with
        everything below, work µs below (GPU time; without a GPU self time of operators), delta_us of the work.
        """
        return frame_of(tree_rows(self.comparison), TREE_COLUMNS).rename_axis("node")

    def table(self, name: str) -> pd.DataFrame:
        """A further table that both sets were loaded with, one row per key: its columns of both sides, largest change
        first.

        Raises:
            TracediffError: there is none of that name, or it was not loaded: ``load(…, tables=[name])``.
        """
        return table_frame(self._document, name, PREFIXES)

    @cached_property
    def ops(self) -> pd.DataFrame:
        """One row an operation by category and name, largest change of self time first."""
        return frame_of(self._document["ops"], OP_COLUMNS)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row per used step: side, run, step, rank, period_us."""
        return frame_of(list(step_rows(self.comparison)), STEP_COLUMNS)

    @cached_property
    def health(self) -> pd.DataFrame:
        """One row per health note: side, code, message, count."""
        return frame_of(health_rows(self._document), HEALTH_COLUMNS)

    @cached_property
    def explanation(self) -> Why | None:
        """Why the step changed: print it, or take facts and causes, ``to_frame()`` or ``to_dict()``. None if the
        comparison was refused.
        """
        found = self.comparison.explanation
        return Why(found, self._document["explanation"]) if found is not None else None

    @property
    def charts(self) -> Charts:
        """The plotly figures of `tracediff.charts`: ``diff.charts.step_waterfall().show()``; ``dir(diff.charts)`` lists
        them.
        """
        return Charts(self.comparison)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The JSON document (schema tracediff.diff/1); also written to ``path`` where given."""
        return written(to_json(self.comparison), path)

    def to_folded(self, path: str | os.PathLike[str] | None = None) -> str:
        """Stacks with the work of both sides in ns, as flame-graph tools read them; also written to ``path`` where
        given.
        """
        return written(to_folded(self.comparison), path)

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
        return written(to_markdown(self.comparison), path)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The report: one page that works from disk, without a network; also written to ``path`` where given."""
        from tracediff.report.page.html import to_html

        return written(to_html(self.comparison), path)

    def summary_html(self) -> str:
        """The verdict, the explanation and the step's table as HTML without a script, for an e-mail or another page."""
        from tracediff.report.page.notebook import to_summary

        return to_summary(self.comparison)

    def _repr_html_(self) -> str:
        from tracediff.report.page.notebook import to_notebook

        return to_notebook(self.comparison)

    def __repr__(self) -> str:
        return f"<Diff {self.comparison.control.label} → {self.comparison.test.label}: {self.verdict.sentence}>"


def _change_row(comparison: Comparison, change: WorkChange) -> dict[str, Any]:
    us, number = comparison.us, comparison.number
    return {
        "operator": change.operator or None,
        "shapes": change.shapes or None,
        "module": change.module or None,
        "control_kernels": list(change.control_kernels),
        "test_kernels": list(change.test_kernels),
        "control_count": number(change.control_count),
        "test_count": number(change.test_count),
        "control_us": us(change.control_ns),
        "test_us": us(change.test_ns),
        "delta_us": us(change.delta),
    }


def _sum_row(comparison: Comparison, line: Sum) -> dict[str, Any]:
    us, number = comparison.us, comparison.number
    return {
        "name": line.name,
        "control_count": number(line.control_count),
        "test_count": number(line.test_count),
        "control_us": us(line.control),
        "test_us": us(line.test),
        "delta_us": us(line.delta),
    }
