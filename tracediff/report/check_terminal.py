"""`Gate` → a terminal screen."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tracediff.diff.gate.judge import Gate
from tracediff.errors import printable
from tracediff.present import sections
from tracediff.present.check import (
    bound,
    change,
    explanation,
    figures,
    interval,
    not_passed,
    row_subject,
    sentence,
    subject,
)
from tracediff.present.sentences import facts, headline
from tracediff.report.table_terminal import print_screen

STYLES = {
    "pass": "green",
    "regression": "bold red",
    "inconclusive": "yellow",
    "waived": "cyan",
    "not-comparable": "yellow",
}


def show(gate: Gate, console: Console) -> None:
    """Print the check."""
    comparison = gate.comparison
    parts: list[RenderableType] = [
        Text(printable(f"{comparison.control.label} → {comparison.test.label}"), style="bold"),
        Text(printable(facts(comparison)), style="dim"),
        "",
        Padding(Text(printable(sentence(gate)), style=STYLES[gate.result]), (0, 2)),
        Padding(Text(printable(comparison.verdict.reason_of_other_work + headline(comparison))), (0, 2)),
        "",
        _table(gate),
    ]
    for judged in not_passed(gate):
        what = printable(f"  {subject(judged)}: {judged.result}")
        parts += ["", Text(what, style="bold", no_wrap=True, overflow="ellipsis")]
        parts += [Padding(Text(printable(explanation(judged))), (0, 4))]
    for line in sections.caution_lines(comparison):
        parts.append(Padding(Text(printable(f"caution: {line}"), style="dim"), (0, 2)))
    print_screen(console, Group(*parts))


def _table(gate: Gate) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold", show_edge=False)
    table.add_column("  subject", no_wrap=True, overflow="ellipsis")
    for name in ("control", "test", "change"):
        table.add_column(name, justify="right", no_wrap=name != "change")
    table.add_column("limit")
    table.add_column("result", no_wrap=True)
    for judged in gate.judged:
        changed = "\n".join(part for part in (change(judged), interval(judged)) if part)
        result = Text(judged.result, style=STYLES[judged.result])
        table.add_row(Text(printable(f"  {row_subject(judged)}")), *figures(judged), changed, bound(judged), result)
    return table
