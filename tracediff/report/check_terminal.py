"""`Gate` → a terminal screen."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tracediff.diff.gate.judge import Gate
from tracediff.errors import printable
from tracediff.report import sections
from tracediff.report.check_text import (
    amount,
    bound,
    change,
    explanation,
    interval,
    not_passed,
    row_subject,
    sentence,
    subject,
)
from tracediff.report.text import facts, headline

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
    with console.capture() as screen:
        console.print(Text(printable(f"{comparison.control.label} → {comparison.test.label}"), style="bold"))
        console.print(Text(printable(facts(comparison)), style="dim"))
        console.print()
        console.print(Padding(Text(printable(sentence(gate)), style=STYLES[gate.result]), (0, 2)), highlight=False)
        console.print(Padding(Text(printable(headline(comparison))), (0, 2)), highlight=False)
        console.print()
        console.print(_table(gate), highlight=False)
        for judged in not_passed(gate):
            console.print()
            console.print(
                Text(
                    printable(f"  {subject(judged)}: {judged.result}"), style="bold", no_wrap=True, overflow="ellipsis"
                )
            )
            console.print(Padding(Text(printable(explanation(judged))), (0, 4)), highlight=False)
        for line in sections.caution_lines(comparison):
            console.print(Padding(Text(printable(f"caution: {line}"), style="dim"), (0, 2)), highlight=False)
    console.file.write("\n".join(_without_commands(line.rstrip()) for line in screen.get().split("\n")))
    console.file.flush()


def _without_commands(line: str) -> str:
    """``line`` without workflow commands: GitHub runs ``::error::`` at the start of a line and ``##[error]``
    anywhere, and names are untrusted.
    """
    line = line.replace("##[", "# #[")
    return line.replace("::", ": :", 1) if line.lstrip().startswith("::") else line


def _table(gate: Gate) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold", show_edge=False)
    table.add_column("  subject", no_wrap=True, overflow="ellipsis")
    for name in ("control", "test", "change"):
        table.add_column(name, justify="right", no_wrap=name != "change")
    table.add_column("limit")
    table.add_column("result", no_wrap=True)
    for judged in gate.judged:
        unit = judged.limit.unit
        figures = amount(judged.figure.control, unit), amount(judged.figure.test, unit)
        changed = "\n".join(part for part in (change(judged), interval(judged)) if part)
        result = Text(judged.result, style=STYLES[judged.result])
        table.add_row(Text(printable(f"  {row_subject(judged)}")), *figures, changed, bound(judged), result)
    return table
