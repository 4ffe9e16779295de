"""A matrix of comparisons → terminal table, Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from tracediff.errors import printable
from tracediff.explain.matrix import Cell
from tracediff.formatting import PERCENT, time_unit
from tracediff.present.shorten import shortened
from tracediff.report.escape import escaped
from tracediff.report.table_markdown import table_lines

HEAD = ("control", "test", "runs", "control", "test", "change", "95 % interval", "p", "result", "cautions")
BESIDE_NAMES = 66
"""Columns of text beside the names."""
UNPROFILED = "times without the profiler"
"""Remark where the verdict believes these."""
LONGEST = 100
"""Characters of a name."""
LEAST_P = 0.001
"""Below which p is not told apart."""


def rows(cells: Sequence[Cell]) -> tuple[str, list[list[str]]]:
    """(unit of the times, one row of texts per comparison)."""
    unit = time_unit([us for cell in cells for us in _times(cell)[:2]])
    return unit.name, [_row(cell, unit.plain) for cell in cells]


def _row(cell: Cell, plain: Any) -> list[str]:
    c, v = cell.comparison, cell.comparison.verdict
    control, test, change, base, ci95 = _times(cell)
    interval = f"{_percent(ci95[0] / base)} … {_percent(ci95[1] / base)}" if ci95 and base else "–"
    remarks = [*(r.code for r in c.comparability.reasons), *([UNPROFILED] if c.believed_unprofiled else [])]
    return [
        c.control.label,
        c.test.label,
        f"{v.n_control} : {v.n_test}",
        plain(control),
        plain(test),
        _percent(change) if change is not None else "–",
        interval,
        "–" if cell.p_adjusted is None else f"{cell.p_adjusted:.3f}" if cell.p_adjusted >= LEAST_P else f"< {LEAST_P}",
        "not comparable" if c.was_refused else cell.result,
        ", ".join(dict.fromkeys(remarks)),
    ]


def _times(cell: Cell) -> tuple[float, float, float | None, float, tuple[float, float] | None]:
    """(control's and test's step in µs, change, the base of the interval in µs, the interval) of the test that the
    result is from.
    """
    v, u = cell.comparison.verdict, cell.comparison.believed_unprofiled
    if u:
        return u.control_us, u.test_us, u.change, u.control_us, u.ci95_us
    return v.control_us, v.test_us, None if v.ratio is None else v.ratio - 1, v.median_control_us, v.ci95_us


def _percent(part: float) -> str:
    return f"{PERCENT.signed(part)} %"


def table(cells: Sequence[Cell]) -> Group:
    """A table for the terminal that keeps its numbers at 80 columns, and the cautions below."""
    unit, body = rows(cells)
    out = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold", expand=True)
    controls = {row[0] for row in body}
    one = next(iter(controls)) if len(controls) == 1 else None
    head = "control → test" if one is None else "test"
    above = [] if one is None else [Text(printable(f"control: {one}, {body[0][3]} {unit}"), style="bold"), Text()]
    names = shortened([row[1] if one is not None else f"{row[0]} → {row[1]}" for row in body], LONGEST)
    out.add_column(head, ratio=1, no_wrap=True, overflow="ellipsis")
    for name in ("runs", unit, "change", "95 % interval"):
        out.add_column(name, justify="right", no_wrap=True)
    out.add_column("result", no_wrap=True)
    remarks = []
    for name, (_, _, runs, _, us, change, interval, p, result, cautions) in zip(names, body, strict=True):
        outcome = result if p == "–" else f"{result}, p {p}"
        out.add_row(*(Text(printable(cell)) for cell in (name, runs, us, change, interval, outcome)))
        if cautions:
            remarks.append(Text(printable(f"  {name}: {cautions}"), style="dim"))
    wide = max(len(head), *map(len, names)) + BESIDE_NAMES
    return Group(
        *above,
        Constrain(out, wide),
        *([Text(), Text("Compared with caution", style="bold"), *remarks] if remarks else []),
    )


def to_markdown(cells: Sequence[Cell]) -> str:
    """A GitHub-flavoured table."""
    unit, body = rows(cells)
    head = [f"{name} ({unit})" if k in (3, 4) else name for k, name in enumerate(HEAD)]
    lines = table_lines(head, "llrrrrrrll", [[escaped(cell) for cell in row] for row in body])
    return "\n".join(lines) + "\n"
