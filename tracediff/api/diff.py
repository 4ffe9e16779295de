"""`Diff`: a comparison, its tables as DataFrames."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, partial
from math import nan
from typing import TYPE_CHECKING, Any

from tracediff.api.outputs import Charted, Charts, frame_of, loaded_table, printed, written
from tracediff.diff.comparison import Comparison
from tracediff.diff.preflight import Comparability
from tracediff.diff.verdict import Verdict
from tracediff.diff.views import VIEWS, Modules, summed
from tracediff.errors import check_choice, speaks_python
from tracediff.explain.explanation import Cause, Explanation
from tracediff.explain.facts import Fact
from tracediff.formatting import plural
from tracediff.present.answer import answer_of
from tracediff.present.columns import CHANGES, FRAME, FUSIONS, GROUPS, OPS, STATES, SUMS, RowSchema
from tracediff.present.explanation_lines import explanation_table
from tracediff.present.setting import side_names
from tracediff.report import rows
from tracediff.report.explain import explain
from tracediff.report.json_types import DiffDocument
from tracediff.report.to_json import document, plain, to_json
from tracediff.report.to_markdown import to_markdown
from tracediff.report.to_perfetto import to_perfetto
from tracediff.structs import Pair
from tracediff.write import StrPath

if TYPE_CHECKING:
    import pandas as pd

    from tracediff.source.changed_code import ChangedCode


NOT_TESTED: dict[str, Any] = {
    **dict.fromkeys(("ratio", "p_value", "min_detectable_us"), nan),
    **dict.fromkeys(("ci95_us", "within_runs_us"), (nan, nan)),
}
"""Field of a `Verdict` that may be None → its value then."""


class Diff(Charted):
    """The result of `tracediff.compare`: ``print(diff)`` shows it; tables are DataFrames in µs and counts per step.

    Attributes:
        comparison: the exact integers behind every number.
        charts: the plotly figures of `tracediff.charts`: ``diff.charts.step_waterfall().show()``; ``dir(diff.charts)``
            lists them.
    """

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.charts = Charts(comparison)

    @cached_property
    def _document(self) -> DiffDocument:
        return document(self.comparison)

    def _frame(self, schema: RowSchema, items: Iterable[Any]) -> pd.DataFrame:
        return frame_of(rows.output_table(schema, FRAME, self.comparison, items))

    @property
    def verdict(self) -> Verdict:
        """How the step time differs, in µs, and its significance; what was not tested is NaN."""
        verdict = self.comparison.verdict
        return verdict.replace(**{name: value for name, value in NOT_TESTED.items() if getattr(verdict, name) is None})

    @cached_property
    def because(self) -> str:
        """Why the step changed, in a sentence to paste; empty where nothing did."""
        return answer_of(self.comparison).why

    @property
    def changed_code(self) -> ChangedCode | None:
        """The changed lines that changed work runs for; None if the sets were compared without a ``source``."""
        return self.comparison.changed_code

    @property
    def comparability(self) -> Comparability:
        """Whether like was compared with like."""
        return self.comparison.comparability

    @cached_property
    def step_time(self) -> pd.DataFrame:
        """One row per state (index ``name``): control_us, test_us, delta_us. Columns add up to the step."""
        return self._frame(STATES, self.comparison.step_time.states).set_index("name")

    @cached_property
    def gpu_time(self) -> pd.Series:
        """The kernel account in µs per step: control_us, test_us, delta_us, busy, overlap, matched, added, removed,
        residual.
        """
        import pandas as pd

        columns = plain(self._document.gpu_time)
        return pd.Series({name: value for name, value in columns.items() if isinstance(value, float)}, name="gpu_time")

    @cached_property
    def groups(self) -> pd.DataFrame:
        """One row per group of matched work: level, name, operator and shapes (None where the work shares none), the
        kernels of both sides, family, module, phase, counts and µs per step on both sides, and
        delta_us = count_part_us + mean_part_us.

        The work is GPU events; if neither side has a GPU, the self time of operators.
        """
        return self._frame(GROUPS, self.comparison.work.groups)

    def top(self, n: int = 10, *, slower: bool = False) -> pd.DataFrame:
        """The ``n`` largest changes of matched work, its instances merged, one row each: operator, shapes, module,
        kernels of both sides, counts and µs per step; with ``slower`` those that added most time.
        """
        changes = self.comparison.work_changes
        if slower:
            changes = tuple(sorted(changes, key=lambda change: -change.delta))
        return self._frame(CHANGES, changes[: max(n, 0)])

    def by(self, view: str, *, depth: int | None = None, instances: bool = False) -> pd.DataFrame:
        """The same work summed by ``family``, ``phase``, ``module``, ``op``, ``kernel``, ``line`` (of code outside of
        torch) or ``cause`` (index): counts and µs per step, largest change first.

        Args:
            depth: of modules only those ``depth`` outermost; what is inside of them counts for them.
            instances: one row for each instance of a module instead of ``Layer[*]``.

        Raises:
            TracediffError: another view.
        """
        views = (*VIEWS, "line", "cause")
        check_choice(view, views, f"view {view}", "is unknown", f"choose one of {', '.join(views)}")
        lines = summed(self.comparison.work, view, Modules(depth, instances))
        return self._frame(SUMS, lines).set_index("name")

    @speaks_python
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
        step on both sides, delta_us.
        """
        return self._frame(FUSIONS, [g for g in self.comparison.work.groups if g.level == "fusion"])

    @cached_property
    def tree(self) -> pd.DataFrame:
        """The merged call tree, one row per call, parents before children (index ``node``).

        parent (−1 for a phase), depth, kind (phase, annotation, module, op), name, shapes, side (both, control, test),
        counts per step, host µs with everything below, work µs below (GPU time; without a GPU self time of operators),
        delta_us of the work.
        """
        return frame_of(rows.tree(self.comparison)).rename_axis("node")

    @speaks_python
    def table(self, name: str) -> pd.DataFrame:
        """A further table that both sets were loaded with, one row per key: its columns of both sides, largest change
        first.

        Raises:
            TracediffError: there is none of that name, or it was not loaded: ``compare(…, tables=[name])``.
        """
        return frame_of(rows.table(loaded_table(name, self._document.tables), self._document.tables[name]))

    @cached_property
    def ops(self) -> pd.DataFrame:
        """One row an operation by category and name, largest change of self time first."""
        return self._frame(OPS, self.comparison.ops)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row per used step: side, run, step, rank, period_us."""
        return frame_of(rows.steps(self.comparison))

    @cached_property
    def health(self) -> pd.DataFrame:
        """One row per health note: side, code, message, count."""
        return frame_of(rows.health(self.comparison))

    @cached_property
    def explanation(self) -> Why | None:
        """Why the step changed: print it, or take facts and causes, ``to_frame()`` or ``to_dict()``. None if the
        comparison was refused.
        """
        explanation, written = self.comparison.explanation, self._document.explanation
        names = side_names(self.comparison)
        return Why(explanation, plain(written), names) if explanation is not None and written is not None else None

    def to_json(self, path: StrPath | None = None) -> str:
        """The JSON document (schema tracediff.diff/1); also written to ``path`` where given."""
        return written(to_json(self.comparison), path)

    def to_folded(self, path: StrPath | None = None) -> str:
        """Stacks with the work of both sides in ns, as flame-graph tools read them; also written to ``path`` where
        given.
        """
        return written(rows.to_folded(self.comparison), path)

    @speaks_python
    def to_perfetto(self, path: StrPath | None = None) -> str:
        """One trace of both sides' typical steps for Perfetto, each beginning at 0; also written to ``path`` where
        given, compressed for ``.gz``.

        Raises:
            TracediffError: a side is a snapshot, its file cannot be read any more, or a step has too many events.
        """
        merged = to_perfetto(self.comparison)
        if path is not None:
            merged.write(path)
        return merged.text

    def to_markdown(self, path: StrPath | None = None) -> str:
        """The answer as GitHub-flavoured Markdown; also written to ``path`` where given."""
        return written(to_markdown(self.comparison), path)

    def to_html(self, path: StrPath | None = None) -> str:
        """The report: one page that works from disk, without a network; also written to ``path`` where given."""
        from tracediff.report.page.html import to_html

        return written(to_html(self.comparison), path)

    def summary_html(self) -> str:
        """The verdict, the explanation and the step's table as HTML without a script, for an e-mail or another page."""
        from tracediff.report.page.html import to_summary

        return to_summary(self.comparison)

    def _repr_html_(self) -> str:
        from tracediff.report.page.html import to_notebook

        return to_notebook(self.comparison)

    def __str__(self) -> str:
        from tracediff.report.to_terminal import show

        return printed(partial(show, self.comparison))

    def __repr__(self) -> str:
        return f"<Diff {self.comparison.control.label} → {self.comparison.test.label}: {self.verdict.sentence}>"


class Why:
    """Why the step changed: ``print(why)`` shows facts and lines, which add up to the step's change.

    Attributes:
        explanation: the exact numbers behind it.
    """

    def __init__(self, explanation: Explanation, document: dict[str, Any], names: Pair[str]) -> None:
        self.explanation = explanation
        self._document = document
        self._names = names

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What differs between the recordings: code, text."""
        return self.explanation.facts

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The lines, the largest in the direction of the change first: label, what, control_us, test_us (all of its
        time), delta_us (its part of the step's change), reasons.
        """
        return self.explanation.causes

    @property
    def change_us(self) -> float:
        """The step's change in µs: the sum of delta_us of the causes, exposure_us and rest_us."""
        return self.explanation.change_us

    @property
    def exposure_us(self) -> float:
        """The same work, now on the critical path or off it, in µs per step."""
        return self.explanation.exposure_us

    @property
    def rest_us(self) -> float:
        """What is in no line, in µs per step."""
        return self.explanation.rest_us

    def to_dict(self) -> dict[str, Any]:
        """The part ``explanation`` of the JSON document, times in µs per step; ``tree`` has nodes with ``children``."""
        return self._document

    def to_frame(self) -> pd.DataFrame:
        """The rows that ``print(why)`` shows, with its precision: level (rows of level 1 are parts of the last one of
        level 0), label, what (happened), control_us and test_us (in all; NaN of what is only exposed), effect_us; the
        last one is the step. In µs per step; exact numbers, and all parts, are in ``causes`` and ``to_dict()["tree"]``.
        """
        import pandas as pd

        table = explanation_table(self.explanation)
        rows = [*table.rows, (0, table.total.replace(because=""))]
        names = "level", "label", "what", "control_us", "test_us", "effect_us"
        cells = ((level, line.label, line.because, *(line.every or (nan, nan)), line.delta_us) for level, line in rows)
        return pd.DataFrame(cells, columns=names)

    def __str__(self) -> str:
        from tracediff.report.to_terminal import show_explanation

        return printed(partial(show_explanation, self.explanation, self._names))

    def __repr__(self) -> str:
        return f"<Why {self.change_us:+,.1f} µs per step: {plural(len(self.causes), 'cause')}>"
