"""The table of changes by work in a terminal: names as wide as it allows, numbers never cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from tracediff.errors import printable
from tracediff.formatting import Unit, time_unit
from tracediff.present.sections import Row, Sums
from tracediff.present.shorten import cut_left, shortened, shortened_pairs
from tracediff.report.bars import BAR, bars

GAP, INDENT = 2, 2
LEAST_NAME, WIDE = 40, 80
"""Columns that names need before bars have room; and from which every row says where it runs."""
LEAST_PLACE, LEAST_KERNELS = 12, 18
"""Columns that a place needs, and kernels beside it, which are left out with fewer."""
SIGNIFICANCE = "significance"
BESIDE = "kernels, or where"
LARGEST_OPERATOR, LARGEST_PLACE = 0.5, 0.35
"""Parts of the room that operators and places may take."""


@dataclass(frozen=True)
class SumsTable:
    """The work by operator: rows that add up to all of it."""

    work: Sums

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """The grid, for rich."""
        rows = [*self.work.rows, self.work.whole]
        heads, cells, room = _numbers(rows, self.work.unit, options.max_width)
        *names, whole = shortened([printable(row.name) for row in rows], room)
        grid = _grid(self.work.title, heads)
        for name, texts in zip(names, cells, strict=False):
            grid.add_row(Text(f"  {name}"), *texts)
        grid.add_row(Text(whole, style="bold"), *cells[-1])
        yield grid
        yield Text()


@dataclass(frozen=True)
class WorkRows:
    """``rows`` under ``title``: operator, kernels and, where there is room or rows look alike, module and shapes."""

    title: str
    rows: list[Row]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """The grid, for rich."""
        unit = time_unit([r.control_us for r in self.rows] + [r.test_us for r in self.rows])
        heads, cells, room = _numbers(self.rows, unit, options.max_width)
        has_bars = room - BAR - GAP >= LEAST_NAME
        column, names = work_names(self.rows, room - (BAR + GAP if has_bars else 0))
        grid = _grid(_heading(self.title, column, max(map(len, names))), heads)
        if has_bars:
            grid.add_column("", width=BAR, no_wrap=True)
        drawn = bars((row.delta_us for row in self.rows), BAR)
        for name, row, texts in zip(names, self.rows, cells, strict=True):
            grid.add_row(Text(f"  {printable(name)}"), *texts, *([drawn.draw(row.delta_us)] if has_bars else []))
        yield grid


def _numbers(rows: Sequence[Row], unit: Unit, width: int) -> tuple[list[str], list[list[str]], int]:
    """(heads of the numbers, their cells in each row, what they leave of ``width`` to names)."""
    is_tested = any(row.time_change for row in rows)
    heads = ["count", f"control {unit.name}", "test", "change", *([SIGNIFICANCE] if is_tested else [])]
    cells = [[*row.cells(unit), *([row.time_change] if is_tested else [])] for row in rows]
    taken = sum(max(map(len, column)) + GAP for column in zip(heads, *cells, strict=True))
    return heads, cells, width - INDENT - taken


def _grid(title: str, heads: Sequence[str]) -> Table:
    grid = Table(box=None, padding=(0, 0, 0, GAP), pad_edge=False, header_style="bold")
    grid.add_column(title, no_wrap=True)
    for head in heads:
        grid.add_column(head, justify="left" if head == SIGNIFICANCE else "right", no_wrap=True)
    return grid


def _heading(title: str, column: int, width: int) -> str:
    """``title``, and above the kernels or places, which begin at ``column``, what they are."""
    before = INDENT + column
    fits = column and len(title) + GAP <= before and before + len(BESIDE) <= INDENT + width
    return f"{title:<{before}}{BESIDE}" if fits else title


def work_names(rows: list[Row], width: int) -> tuple[int, list[str]]:
    """(where the second column begins, a line of at most ``width`` characters for each row, in which different rows
    differ).
    """
    operators = shortened([row.operator for row in rows], _operator_width(rows, width))
    column = max(map(len, operators), default=0) + GAP if any(operators) else 0
    rest = width - column
    beside_places = rest - int(LARGEST_PLACE * rest) if rest >= WIDE else rest
    kernels = shortened_pairs([row.kernels for row in rows], beside_places)
    seen = list(zip(operators, kernels, strict=True))
    lines = []
    for row, operator, text in zip(rows, operators, kernels, strict=True):
        alike = [other for other, names in zip(rows, seen, strict=True) if names == (operator, text)]
        if rest >= WIDE or len(alike) > 1 or not row.kernels:
            text = _with_place(row, _place(row, alike), rest)
        lines.append(f"{operator:<{column}}{text}".rstrip())
    return column, lines


def _operator_width(rows: list[Row], width: int) -> int:
    """What operators may take beside their kernels."""
    longest = max((len(row.operator) for row in rows), default=0)
    beside = any(row.kernels or row.module or row.shapes for row in rows)
    return min(longest, int(LARGEST_OPERATOR * width)) if beside else width


def _place(row: Row, alike: list[Row]) -> str:
    """The module of ``row``, or its shapes where these tell it from rows that look ``alike``."""
    same_module = sum(other.module == row.module for other in alike) > 1
    return row.shapes or row.module if same_module else row.module or row.shapes


def _with_place(row: Row, place: str, width: int) -> str:
    """Kernels and where they run: the end of a module's path tells more than its beginning."""
    if not place:
        return shortened_pairs([row.kernels], width)[0]
    room = min(len(place), max(LEAST_PLACE, width - len(row.kernels) - GAP, int(LARGEST_PLACE * width)))
    beside = width - room - GAP
    if not row.kernels or (beside < len(row.kernels) and beside < LEAST_KERNELS):
        return cut_left(place, width) if place == row.module else shortened([place], width)[0]
    (kernels,) = shortened_pairs([row.kernels], beside)
    return f"{kernels}{' ' * GAP}{cut_left(place, room) if place == row.module else shortened([place], room)[0]}"
