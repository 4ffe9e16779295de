"""`Comparison` → a terminal screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tracediff.aggregate.tables import MISSING
from tracediff.diff.comparison import Comparison
from tracediff.diff.views import Modules
from tracediff.errors import printable
from tracediff.formatting import Unit, change, counts, time_unit
from tracediff.report import sections
from tracediff.report.bars import Bars, bars
from tracediff.report.explanation_terminal import explanation
from tracediff.report.next_command import next_command
from tracediff.report.plain_table import no_rows_shown
from tracediff.report.sections import ALL_MODULES, Row
from tracediff.report.table import comparison_tables
from tracediff.report.table_terminal import print_screen, to_rich
from tracediff.report.text import asides, facts, headline, is_tested
from tracediff.report.work_terminal import WorkTable

BESIDE_NAMES = 64
"""Columns of text that times and bars need."""
LEAST_BAR = 0.05
"""Fraction of the step that at least makes a whole bar: small changes have small bars."""
SMALL_STATE = 0.005
"""States below this fraction of the step share a row."""
LEAST_CHANGE = 0.001
"""Fraction of the step below which the usual screen shows no change."""
SMALL_FAMILY = 0.02
"""Families of operators below this fraction share a row where the screen is too small for `FEW_ROWS` of changes."""
ROWS, FEW_ROWS, LEAST_ROWS = 8, 4, 1
"""Rows of the table of changes: as many of these as fit on the screen."""
SCREEN, OF_ONE_TABLE = 40, 15
"""Lines of a screen; rows where one table is asked for."""
CLOSING = "0 ns unexplained"
SHORT = re.compile(r": | \(")
"""Where the short form of a note ends."""


@dataclass(frozen=True, kw_only=True)
class Screen:
    """What a screen shows.

    Attributes:
        device: gpu for matched work, cpu for self time on the host, all for both; None for matched work, and both if
            ``verbose``.
        sort: one of `sections.SORTS`.
        top: rows of each table of changes; None for ``rows``.
        small_family: families of operators below this fraction of the step share a row.
        states: whether the table of states is shown.
        view: instead of the tables of changes the work summed by family, phase, module, op, kernel or cause.
        modules: how the view by module sums them.
        tables: instead of the tables of changes the further tables that were loaded.
        verbose: every caution and note in full.
    """

    device: str | None = None
    sort: str = "change"
    top: int | None = None
    rows: int = ROWS
    small_family: float = sections.SMALL_FAMILY
    states: bool = True
    view: str | None = None
    modules: Modules = ALL_MODULES
    tables: bool = False
    verbose: bool = False

    @property
    def is_usual(self) -> bool:
        """Whether nothing but the usual screen is asked for."""
        return replace(self, sort="change", rows=ROWS, small_family=sections.SMALL_FAMILY, states=True) == USUAL


USUAL = Screen()


def render(comparison: Comparison, screen: Screen = USUAL) -> RenderableType:
    """The answer as rich renderables."""
    c, t = comparison.control, comparison.test
    parts: list[RenderableType] = [
        Text(printable(f"{c.label} → {t.label}"), style="bold"),
        Text(printable(facts(comparison)), style="dim"),
    ]
    brief = not (screen.verbose or comparison.was_refused)
    unlike = any(r.is_unlike for r in sections.cautions(comparison))
    cautions = _caution_line(comparison, unlike) if brief else []
    style = "" if comparison.verdict.other_work else "bold"  # its percentages are not to be relied on
    asked = (screen.view or screen.tables) and not comparison.was_refused
    answer = headline(comparison) if not asked else comparison.verdict.reason_of_other_work + headline(comparison)
    verdict = Padding(Text(printable(answer), style=style), (0, 2))
    parts += [*cautions, verdict] if unlike else [verdict, *cautions]
    if asked:
        return Group(*parts, Text(), *_work(comparison, screen))
    parts += [Padding(Text(aside), (0, 2)) for aside in asides(comparison)]
    parts += [*_health_line(comparison), Text()] if brief else [Text(), *_cautions(comparison)]
    if not comparison.was_refused:
        parts.append(Why(comparison, screen.verbose))
        small = SMALL_STATE if brief else sections.SMALL_STATE
        parts += [_step_table(comparison, small, screen.small_family)] if screen.states else []
        parts += _work(comparison, screen) if screen.rows else []
    if not brief:
        parts += _remarks("Health of the traces", sections.health_lines(comparison))
    return Group(*parts)


def show(
    comparison: Comparison,
    console: Console,
    screen: Screen = USUAL,
    command: str = "tracediff compare CONTROL TEST",
) -> None:
    """Print the answer, on one screen unless more is asked for; and what ``command``, which compared, can show next."""
    usual = screen.is_usual and not comparison.was_refused
    following = next_command(comparison, command) if usual else None
    last = f"Next: {following}\n" if following else ""  # a command to copy: only the terminal breaks it
    room = SCREEN - ceil(len(last.rstrip()) / console.width)
    answer = render(comparison, screen)
    for shorter in _shorter(screen) if usual else ():
        if len(console.render_lines(answer)) <= room:
            break
        answer = render(comparison, shorter)
    print_screen(console, answer)
    console.file.write(last)


def _shorter(screen: Screen) -> Iterator[Screen]:
    """``screen`` with ever fewer rows of changes; when few are left, with more families of operators in one row; at
    last without the states, which are a second account, and without changes.
    """
    yield from (replace(screen, rows=rows) for rows in range(screen.rows - 1, FEW_ROWS - 1, -1))
    merged = replace(screen, small_family=SMALL_FAMILY)
    yield from (replace(merged, rows=rows) for rows in range(FEW_ROWS, LEAST_ROWS - 1, -1))
    yield from (replace(screen, states=False, rows=rows) for rows in range(FEW_ROWS, -1, -1))


def _caution_line(comparison: Comparison, unlike: bool) -> list[RenderableType]:
    title = "Not like for like" if unlike else "Caution"
    return _in_a_line(title, list(dict.fromkeys(r.short for r in sections.cautions(comparison))))


def _health_line(comparison: Comparison) -> list[RenderableType]:
    sums: dict[str, tuple[int, int]] = {}
    for _, message, a, b in sections.health(comparison):
        short = SHORT.split(message)[0]
        sums[short] = a + sums.get(short, (0, 0))[0], b + sums.get(short, (0, 0))[1]
    return _in_a_line("Health", [f"{a:,} → {b:,} {short}" for short, (a, b) in sums.items()])


def _in_a_line(title: str, texts: list[str]) -> list[RenderableType]:
    text = Text(printable(f"{title} (-v): {'; '.join(texts)}"), no_wrap=True, overflow="ellipsis")
    return [Padding(text, (0, 2))] if texts else []


def _cautions(comparison: Comparison) -> list[RenderableType]:
    title = "Compared with caution" if comparison.comparability.level == "caution" else "Not comparable"
    return _remarks(title, sections.caution_lines(comparison))


@dataclass(frozen=True)
class Why:
    """Why the step changed, as wide as there is room."""

    comparison: Comparison
    verbose: bool

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """The facts and lines, for rich."""
        if self.comparison.explanation is not None:
            tested = is_tested(self.comparison)
            yield from explanation(
                self.comparison.explanation, options.max_width, is_tested=tested, verbose=self.verbose
            )


def _work(comparison: Comparison, screen: Screen) -> list[RenderableType]:
    """The tables of what changed."""
    most = screen.top if screen.top is not None else OF_ONE_TABLE
    if screen.tables:
        missing = sections.health_lines(comparison, [MISSING])
        return [
            *(to_rich(table) for table in comparison_tables(comparison, most)),
            *_remarks("Health of the traces", missing),
        ]
    if screen.view:
        return [_view(comparison, screen.view, most, screen.modules)]
    rows = screen.top if screen.top is not None else screen.rows
    device = screen.device or ("all" if screen.verbose else "gpu")
    tables = sections.changes(comparison, device, screen.sort, rows)
    return [_changes(comparison, _without_small(comparison, t) if screen.is_usual else t) for t in tables]


def _without_small(comparison: Comparison, table: sections.Changes) -> sections.Changes:
    """``table`` without changes that the step hardly has; the largest stays."""
    step = comparison.us(max(comparison.step_time.control, comparison.step_time.test))
    shown = [row for k, row in enumerate(table.rows) if not k or abs(row.delta_us) >= LEAST_CHANGE * step]
    return replace(table, rows=shown, more=table.more + len(table.rows) - len(shown))


def _changes(comparison: Comparison, table: sections.Changes) -> RenderableType:
    if not table.rows:
        return Group(Text(f"{table.title}: {no_rows_shown(table.more, 'none')}", style="bold"), Text())
    is_matched = any(row.operator for row in table.rows)
    remarks = [_gpu_account(comparison)] if is_matched and comparison.gpu_time.groups else []
    remarks += [line for line in (sections.common_line(comparison),) if line]
    remarks += [f"{table.more:,} more rows (--top)"] if table.more else []
    return Group(WorkTable(table.title, table.rows), *_dim("; ".join(remarks)), Text())


def _view(comparison: Comparison, view: str, top: int, modules: Modules) -> RenderableType:
    rows, more = sections.view_rows(comparison, view, top, modules)
    title = sections.work_title(comparison, view)
    if not rows:
        return Group(Text(f"{title}: {no_rows_shown(more, 'none')}", style="bold"), Text())
    remarks = [
        sections.matched_line(comparison),
        sections.tensor_core_line(comparison),
        f"{more:,} more (--top)" if more else None,
    ]
    notes = [note for remark in remarks for note in _dim(remark)]
    return Group(WorkTable(title, rows), *notes, Text())


def _dim(text: str | None) -> list[RenderableType]:
    return [Padding(Text(text, style="dim"), (0, 2))] if text else []


def _step_table(comparison: Comparison, small: float, small_family: float) -> RenderableType:
    rows = sections.step_rows(comparison, small, small_family)
    step, us = comparison.step_time, comparison.us
    unit = time_unit([us(step.control), us(step.test)])
    table = _table("Where the step went", unit)
    drawn = bars((r.delta_us for r in rows), len(CLOSING) + 1, LEAST_BAR * us(max(step.control, step.test)))
    for row in rows:
        _add(table, row, unit, drawn)
    closing = CLOSING.replace("0", f"{step.residual / comparison.scale:g}")
    table.add_row(
        Text("step", style="bold"),
        unit.plain(us(step.control)),
        unit.plain(us(step.test)),
        unit.signed(us(step.delta)),
        Text(closing, style="dim"),
    )
    foreign = us(step.foreign_control), us(step.foreign_test)
    note = f"GPU time launched outside the used steps: {change(*foreign)}" if any(foreign) else None
    return Group(_no_wider(table, rows), *_dim(note), Text())


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
        return f"{total}, {'all with a counterpart' if gpu.matched else f'all {next(iter(named))}'}"
    sums = " + ".join(f"({figure}) {name}" for name, figure in named.items())
    return f"{total}; {unit.signed(row.delta_us)} = {sums}" if named else total


def _no_wider(table: Table, rows: list[Row]) -> RenderableType:
    """``table`` as wide as its longest name needs: on a wide terminal numbers stay beside their names."""
    return Constrain(table, max((len(row.name) for row in rows), default=0) + BESIDE_NAMES)


def _table(title: str, unit: Unit) -> Table:
    table = Table(box=None, expand=True, padding=(0, 1), pad_edge=False, header_style="bold", show_edge=False)
    table.add_column(title, ratio=1, no_wrap=True, overflow="ellipsis")
    for name in ("control", "test", "change"):
        table.add_column(f"{name} {unit.name}" if name == "control" else name, justify="right", no_wrap=True)
    table.add_column("", width=len(CLOSING) + 6, no_wrap=True)
    return table


def _add(table: Table, row: Row, unit: Unit, drawn: Bars) -> None:
    figures = unit.plain(row.control_us), unit.plain(row.test_us), unit.signed(row.delta_us)
    table.add_row(Text(printable(f"  {row.name}")), *figures, drawn.draw(row.delta_us))


def _remarks(title: str, lines: list[str]) -> list[RenderableType]:
    if not lines:
        return []
    body: list[RenderableType] = [Text(title, style="bold")]
    body += [Padding(Text(printable(line)), (0, 2)) for line in lines]
    return [*body, Text()]
