"""`Gate` → Markdown that fits a comment on a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracediff.diff.gate.judge import PASS, Gate, Judged
from tracediff.present import sections
from tracediff.present.answer import answer_of
from tracediff.present.check import (
    bound,
    change,
    cut,
    explanation,
    figures,
    interval,
    not_passed,
    row_subject,
    sentence,
    subject,
)
from tracediff.present.sentences import facts, headline
from tracediff.report.escape import escaped
from tracediff.report.step_markdown import step_lines
from tracediff.report.table_markdown import rows_table, table_lines

SIGNS = {"pass": "✅", "regression": "❌", "inconclusive": "❔", "waived": "⏸️", "not-comparable": "❔"}
MOST_LIMITS = 40
"""Rows of the table, those that did not pass first: a comment has at most 65,536 characters."""
TOP = 5


def to_markdown(gate: Gate) -> str:
    """The result, the table of limits, the limits that did not pass; folded, the step and the largest changes."""
    comparison = gate.comparison
    answer = answer_of(comparison)
    title = escaped(f"{comparison.control.label} → {comparison.test.label}")
    lines = [f"## {SIGNS[gate.result]} {title}", "", f"**{escaped(sentence(gate))}**", ""]
    lines += [
        escaped(comparison.verdict.reason_of_other_work + headline(comparison)),
        "",
        *(line for text in (answer.why, answer.code) if text for line in (escaped(text), "")),
        escaped(facts(comparison)),
        "",
        *_limits(gate),
        "",
    ]
    failing = not_passed(gate)[:MOST_LIMITS]
    lines += [*(f"- **{escaped(subject(j))}**: {escaped(explanation(j))}" for j in failing), ""] if failing else []
    cautions = sections.caution_lines(comparison)
    lines += ["Compared with caution:", "", *(f"- {escaped(c)}" for c in cautions), ""] if cautions else []
    if not comparison.was_refused:
        lines += [*_folded("Where the step went", step_lines(comparison)), *_changes(gate)]
    return "\n".join(lines).rstrip() + "\n"


def _limits(gate: Gate) -> list[str]:
    shown = [*not_passed(gate), *gate.with_result(PASS)]
    heads = ["subject", "control", "test", "change", "95 % interval", "limit", "result"]
    lines = table_lines(heads, "lrrrrll", map(_cells, shown[:MOST_LIMITS]))
    more = len(shown) - MOST_LIMITS
    return [*lines, "", f"{more:,} more limits are in the JSON document (--json)."] if more > 0 else lines


def _cells(judged: Judged) -> list[str]:
    cells = [*figures(judged), change(judged), interval(judged), bound(judged)]
    return [escaped(row_subject(judged)), *cells, f"{SIGNS[judged.result]} {judged.result}"]


def _changes(gate: Gate) -> list[str]:
    """The five largest changes of matched work."""
    comparison = gate.comparison
    (table,) = sections.changes(comparison, "gpu", "change", TOP)
    rows = [replace(row, name=cut(row.name)) for row in table.rows]
    return _folded(table.title, rows_table("name", rows)) if rows else []


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>", ""]
