"""`Comparison` → a terminal screen."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tracediff.diff.comparison import Comparison
from tracediff.errors import printable
from tracediff.formatting import Unit, change, counts, time_unit
from tracediff.report import sections
from tracediff.report.sections import Row
from tracediff.report.table import comparison_tables, no_rows_shown
from tracediff.report.table_terminal import print_screen, to_rich
from tracediff.report.text import asides, evidence_line, facts, headline, is_of_different_work

FASTER, SLOWER = "cyan", "yellow"
BAR = 14
BESIDE_NAMES = 64
"""Columns of text that counts, times and bars need."""
DETAILED = 2
"""Findings shown with what they mean and their evidence; the others have their titles only."""
FINDINGS, EVIDENCE = 4, 1
"""Findings shown, and lines of evidence below each, where --top does not say otherwise; JSON and the library have
all.
"""
CLOSING = "0 ns unexplained"
EIGHTHS = " ▏▎▍▌▋▊▉█"


def render(
    comparison: Comparison,
    *,
    device: str | None = None,
    sort: str = "change",
    top: int | None = None,
    view: str | None = None,
    tables: bool = False,
) -> RenderableType:
    """The answer as rich renderables.

    Args:
        device: cpu, gpu, or None for both where there is a GPU.
        sort: one of `sections.SORTS`.
        top: rows of each table of changes; by default 5 each of two tables, 10 of one.
        view: instead of the tables of changes the work summed by family, phase, module, op, kernel or cause.
        tables: instead of the tables of changes the further tables that were loaded.
    """
    c, t = comparison.control, comparison.test
    parts: list[RenderableType] = [
        Text(printable(f"{c.label} → {t.label}"), style="bold"),
        Text(printable(facts(comparison)), style="dim"),
        Text(),
    ]
    style = "" if is_of_different_work(comparison) else "bold"  # its percentages are not to be relied on
    parts.append(Padding(Text(printable(headline(comparison)), style=style), (0, 2)))
    parts += [*(Padding(Text(aside), (0, 2)) for aside in asides(comparison)), Text()]
    parts += _remarks(
        "Compared with caution" if comparison.comparability.level == "caution" else "Not comparable",
        sections.caution_lines(comparison),
    )
    if not comparison.was_refused:
        parts.append(_step_table(comparison))
        parts += _work(comparison, device=device, sort=sort, top=top, view=view, tables=tables)
        parts += _findings(comparison, top if top is not None else FINDINGS)
    parts += _remarks("Health of the traces", sections.health_lines(comparison))
    return Group(*parts)


def show(
    comparison: Comparison,
    console: Console,
    *,
    device: str | None = None,
    sort: str = "change",
    top: int | None = None,
    view: str | None = None,
    tables: bool = False,
) -> None:
    """Print the answer; see `render`."""
    print_screen(console, render(comparison, device=device, sort=sort, top=top, view=view, tables=tables))


def _work(
    comparison: Comparison, *, device: str | None, sort: str, top: int | None, view: str | None, tables: bool
) -> list[RenderableType]:
    """The tables of what changed."""
    if tables:
        return [to_rich(table) for table in comparison_tables(comparison, top if top is not None else 15)]
    if view:
        return [_view(comparison, view, top if top is not None else 15)]
    shown = sections.devices(comparison, device)
    return [
        _changes(comparison, device_shown, sort, top if top is not None else 10 // len(shown)) for device_shown in shown
    ]


def _view(comparison: Comparison, view: str, top: int) -> RenderableType:
    rows, more = sections.view_rows(comparison, view, top)
    title = sections.work_title(comparison, view)
    if not rows:
        return Group(Text(f"{title}: {no_rows_shown(more, 'none')}", style="bold"), Text())
    unit = time_unit([r.control_us for r in rows] + [r.test_us for r in rows])
    table = _table("", unit, with_counts=True)
    for row in rows:
        _add(table, row, unit=unit, largest=max(abs(r.delta_us) for r in rows), with_counts=True)
    remarks = [
        sections.matched_line(comparison),
        sections.tensor_core_line(comparison),
        f"{more:,} more (--top)" if more else None,
    ]
    notes = [Padding(Text(r, style="dim"), (0, 2)) for r in remarks if r]
    return Group(Text(title, style="bold"), _no_wider(table, rows), *notes, Text())


def _findings(comparison: Comparison, top: int) -> list[RenderableType]:
    """A line of code and title each, what it means below."""
    if not comparison.findings:
        return []
    parts: list[RenderableType] = [Text("Findings", style="bold")]
    for place, finding in enumerate(comparison.findings[:top]):
        parts.append(Padding(Text.assemble((finding.code, "bold"), "  ", printable(finding.title)), (0, 2)))
        if place >= DETAILED:
            continue
        parts.append(Padding(Text(printable(finding.detail), style="dim"), (0, 4)))
        parts += [
            Padding(Text(printable(evidence_line(e)), style="dim", no_wrap=True, overflow="ellipsis"), (0, 4))
            for e in finding.evidence[:EVIDENCE]
        ]
        parts += [
            Padding(Text.assemble("of this: ", (part.code, "bold"), "  ", printable(part.title)), (0, 4))
            for part in finding.parts
        ]
    if len(comparison.findings) > top:
        parts.append(Padding(Text(f"{len(comparison.findings) - top:,} more (--top)", style="dim"), (0, 2)))
    return [*parts, Text()]


def _step_table(comparison: Comparison) -> RenderableType:
    rows = sections.step_rows(comparison)
    step, us = comparison.step_time, comparison.us
    unit = time_unit([us(step.control), us(step.test)])
    table = _table("Where the step went", unit, with_counts=False)
    for row in rows:
        _add(table, row, unit=unit, largest=max(abs(r.delta_us) for r in rows), with_counts=False)
    closing = CLOSING.replace("0", f"{step.residual / comparison.scale:g}")
    table.add_row(
        Text("step", style="bold"),
        unit.plain(us(step.control)),
        unit.plain(us(step.test)),
        unit.signed(us(step.delta)),
        Text(closing, style="dim"),
    )
    foreign = us(step.foreign_control), us(step.foreign_test)
    if not any(foreign):
        return Group(_no_wider(table, rows), Text())
    note = f"GPU time launched outside the used steps: {change(*foreign)}"
    return Group(_no_wider(table, rows), Padding(Text(note, style="dim"), (0, 2)), Text())


def _changes(comparison: Comparison, device: str, sort: str, top: int) -> RenderableType:
    rows, more = sections.change_rows(comparison, device, sort, top)
    where = "on the GPU" if device == "gpu" else "on the host (self time)"
    title = f"Largest changes {where}" if sort == "change" else f"Work {where}, sorted by {sort}"
    if not rows:
        return Group(Text(f"{title}: {no_rows_shown(more, 'none')}", style="bold"), Text())
    unit = time_unit([r.control_us for r in rows] + [r.test_us for r in rows])
    table = _table("", unit, with_counts=True, with_words=any(r.word for r in rows))
    for row in rows:
        _add(
            table,
            row,
            unit=unit,
            largest=max(abs(r.delta_us) for r in rows),
            with_counts=True,
            with_words=any(r.word for r in rows),
        )
    lines: list[RenderableType] = [Text(title, style="bold"), _no_wider(table, rows)]
    remark = [f"{more:,} more (--top)"] if more else []
    if device == "gpu":
        remark.insert(0, _gpu_account(comparison))
    common = sections.common_line(comparison)
    if common and device == sections.devices(comparison, None)[-1]:
        remark.append(common)
    if remark:
        lines.append(Padding(Text("; ".join(remark), style="dim"), (0, 2)))
    return Group(*lines, Text())


def _gpu_account(comparison: Comparison) -> str:
    gpu = comparison.gpu_time
    row = sections.gpu_summary(comparison)
    unit = time_unit([row.control_us, row.test_us])
    parts = {
        "matched": gpu.matched,
        "in the same module or family": gpu.placed,
        "added": gpu.added,
        "removed": gpu.removed,
        "not attributed": gpu.unattributed,
    }
    total = f"GPU time {change(row.control_us, row.test_us)} in {counts(row.control_count, row.test_count)} events"
    named = {name: unit.signed(comparison.us(n)) for name, n in parts.items() if n}
    if len(named) == 1:
        return f"{total}, all {next(iter(named))}"
    sums = " + ".join(f"({figure}) {name}" for name, figure in named.items())
    return f"{total}; {unit.signed(row.delta_us)} = {sums}" if named else total


def _no_wider(table: Table, rows: list[Row]) -> RenderableType:
    """``table`` as wide as its longest name needs: on a wide terminal numbers stay beside their names."""
    return Constrain(table, max(len(row.name) for row in rows) + BESIDE_NAMES)


def _table(title: str, unit: Unit, with_counts: bool, with_words: bool = False) -> Table:
    table = Table(box=None, expand=True, padding=(0, 1), pad_edge=False, header_style="bold", show_edge=False)
    table.add_column(title, ratio=1, no_wrap=True, overflow="ellipsis")
    if with_counts:
        table.add_column("count", justify="right", no_wrap=True)
    for name in ("control", "test", "change"):
        table.add_column(f"{name} {unit.name}" if name == "control" else name, justify="right", no_wrap=True)
    if with_words:
        table.add_column("significance", no_wrap=True)
    table.add_column("", width=BAR if with_counts else len(CLOSING) + 6, no_wrap=True)
    return table


def _add(table: Table, row: Row, *, unit: Unit, largest: float, with_counts: bool, with_words: bool = False) -> None:
    width = BAR if with_counts else len(CLOSING)
    colour = FASTER if row.delta_us < 0 else SLOWER
    cells: list[RenderableType] = [Text(printable(f"  {row.name}"))]
    if with_counts:
        cells.append(counts(row.control_count, row.test_count))
    cells += [unit.plain(row.control_us), unit.plain(row.test_us), unit.signed(row.delta_us)]
    if with_words:
        cells.append(Text(row.word, style=colour if row.word in ("faster", "slower") else "dim"))
    cells.append(Text(_bar(row.delta_us, largest, width), style=colour))
    table.add_row(*cells)


def _bar(value: float, largest: float, width: int) -> str:
    eighths = round(8 * width * abs(value) / largest) if largest else 0
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _remarks(title: str, lines: list[str]) -> list[RenderableType]:
    if not lines:
        return []
    body: list[RenderableType] = [Text(title, style="bold")]
    body += [Padding(Text(printable(line)), (0, 2)) for line in lines]
    return [*body, Text()]
