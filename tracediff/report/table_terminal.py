"""Tables in a terminal: any, and that of changes by work; and how a screen is printed."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import compress

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from tracediff import bounds
from tracediff.errors import log_line, printable
from tracediff.formatting import Unit, time_unit
from tracediff.patterns import late
from tracediff.present.plain_text import BAR, Table, bars, cut_left, no_rows_shown, shortened, shortened_pairs
from tracediff.present.sections import ReportRow, Sums
from tracediff.structs import FrozenStruct, Pair

LEAST_NAME, GAP, INDENT = 16, 2, 2
"""Characters: minimum of a name, gap between columns, indentation."""
WITHOUT_VALUE = ("", "–", "unknown")
"""Texts of a cell whose value is unknown."""


class AsWide(FrozenStruct):
    """What ``draw`` makes of the number of columns that there are."""

    draw: Callable[[int], Iterable[RenderableType]]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """Its parts, for rich."""
        yield from self.draw(options.max_width)


def fitted(table: Table, width: int) -> Iterator[RenderableType]:
    """``table`` in ``width`` columns: names are cut where they must be, numbers never; columns without a value are left
    out, columns that do not fit are omitted with a note.
    """
    first = 0, table.texts  # these columns stay even without a value
    has_value = [k in first or any(row[k] not in WITHOUT_VALUE for row in table.rows) for k in range(len(table.heads))]
    table = whole = _of_columns(table, has_value)
    room, widths = width - INDENT, _widths(table)

    def fit(numbers: int) -> bool:
        """Whether the first numbers have room beside names of the least width."""
        names = [min(width, LEAST_NAME) for width in widths[: table.texts]]
        return sum(width + GAP for width in (*names, *widths[table.texts :][:numbers])) <= room

    while table.texts > 1 and not fit(table.together + 1):  # with what it is about
        last_name = table.texts - 1  # it says least
        table = _of_columns(table, [k != last_name for k in range(len(table.heads))])
        widths = _widths(table)
    visible = len(widths) - table.texts
    while visible > table.together and not fit(visible):
        visible -= 1
    numbers = widths[table.texts :][:visible]
    names = _shared(widths[: table.texts], room - sum(n + GAP for n in numbers) - GAP * table.texts)
    columns = [shortened([row[k][: bounds.CELL] for row in table.rows], most) for k, most in enumerate(names)]
    hidden = (*whole.heads[table.texts : whole.texts], *table.heads[table.texts + visible :])
    lines = grid(table.heads[: table.texts + visible], "l" * table.texts + "r" * visible, header_style="dim")
    for column, column_width in zip(lines.columns, [*names, *numbers], strict=True):
        column.width = column_width
    for k, row in enumerate(table.rows):
        cells = [*(column[k] for column in columns), *row[table.texts : table.texts + visible]]
        lines.add_row(*(Text(printable(cell)) for cell in cells))
    yield Padding(lines, (0, 0, 0, INDENT))
    omitted = [f"{table.more:,} more (--top)"] if table.more else []
    if hidden:
        omitted.append(f"columns omitted: {', '.join(hidden)} (widen the terminal or use --markdown)")
    if omitted:
        yield line("; ".join(omitted), "dim", INDENT)


def _of_columns(table: Table, is_visible: Sequence[bool]) -> Table:
    """``table`` with those of its columns that are visible."""
    return table.replace(
        heads=tuple(compress(table.heads, is_visible)),
        texts=sum(is_visible[: table.texts]),
        rows=tuple(tuple(compress(row, is_visible)) for row in table.rows),
    )


def _widths(table: Table) -> list[int]:
    """Characters that each column wants."""
    return [max(len(head), *(len(row[k]) for row in table.rows)) for k, head in enumerate(table.heads)]


def _shared(natural_widths: list[int], room: int) -> list[int]:
    """Widths of text columns: what each wants, and where that is too much the longest give way."""
    widths = list(natural_widths)
    while sum(widths) > max(room, sum(min(w, LEAST_NAME) for w in natural_widths)) and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths


def to_rich(table: Table) -> RenderableType:
    """For a terminal of any width."""
    if not table.rows:
        return Group(line(f"{table.title}: {no_rows_shown(table.more, 'nothing recorded')}", "bold"), line())
    return Group(line(table.title, "bold"), AsWide(partial(fitted, table)), line())


def line(text: str = "", style: str = "", indent: int = 0) -> RenderableType:
    """``text``, in which names out of traces may be, ``indent`` columns from either side; without text a blank line."""
    return Padding(Sentence(printable(text), style), (0, indent))


UNBROKEN = late(r"(?<=\d) (?=(?:s|ms|µs|ns|B|[kMG]B)\b|[%×]|→ \d)|(?<=\d →) (?=\d)|(?<=\d [%×]) (?=→ \d)")
"""Blanks within an amount."""
KEPT = "\ue000"
"""In their place while lines are broken; no text has it that `printable` let through."""


class Sentence(FrozenStruct):
    """A text whose lines end beside amounts, not within them, and whose further lines are indented."""

    text: str
    style: str
    lead: str = ""
    """what it begins with, bold"""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Its lines, for rich."""
        unbroken, width = UNBROKEN.sub(KEPT, self.text), options.max_width
        first, *others = Text(unbroken).wrap(console, width) or [Text()]
        texts = [first.plain.rstrip()]
        if others:
            further = Text(unbroken[len(texts[0]) :].lstrip()).wrap(console, max(width - INDENT, 1))
            texts += [f"{' ' * INDENT}{part.plain.rstrip()}" for part in further]
        lines = [Text(text.replace(KEPT, " "), self.style) for text in texts]
        lines[0].stylize("bold", 0, len(self.lead))
        yield from lines


def remarks(title: str, texts: Iterable[str]) -> list[RenderableType]:
    """``texts`` below ``title``; nothing where there are none."""
    lines = [line(text, indent=INDENT) for text in texts]
    return [line(title, "bold"), *lines, line()] if lines else []


def grid(heads: Sequence[str], aligned: str, *, expand: bool = False, header_style: str = "bold") -> RichTable:
    """A table without lines; ``aligned`` has l or r for each column. Where it is expanded, the first column is."""
    table = RichTable(box=None, padding=(0, 0, 0, GAP), pad_edge=False, header_style=header_style, expand=expand)
    for head, side in zip(heads, aligned, strict=True):
        table.add_column(head, justify="left" if side == "l" else "right", no_wrap=True)
    table.columns[0].ratio = 1 if expand else None
    return table


def screen_console() -> Console:
    """The standard output; in a pipe without a width of its own nothing is cut or wrapped."""
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=bounds.SCREEN if piped else None, emoji=False)


def print_screen(console: Console, screen: RenderableType) -> None:
    """Print ``screen`` as `screen_text` spells it."""
    console.file.write(screen_text(console, screen))
    console.file.flush()


def screen_text(console: Console, screen: RenderableType) -> str:
    """``screen`` without the blanks that rich puts at the ends of lines, and without workflow commands: names are
    untrusted, and any may begin a line.
    """
    with console.capture() as captured:
        console.print(screen, highlight=False, soft_wrap=False)
    return "\n".join(log_line(line.rstrip()) for line in captured.get().split("\n"))


LEAST_WORK, WIDE = 40, 80
"""Columns that names need before bars have room; and from which every row says where it runs."""
LEAST_PLACE, LEAST_KERNELS = 12, 18
"""Columns that a place needs, and kernels beside it, which are left out with fewer."""
SIGNIFICANCE = "significance"
BESIDE = "kernels, or where"
LARGEST_OPERATOR, LARGEST_PLACE = 0.5, 0.35
"""Parts of the room that operators and places may take."""


def sums_table(work: Sums, sides: Pair[str], width: int) -> Iterator[RenderableType]:
    """The work by operator: rows that add up to all of it; ``sides`` are what both are called."""
    rows = [*work.rows, work.whole]
    heads, cells, room = _numbers(rows, work.unit, width, sides, work.counted)
    *names, whole = shortened_pairs([printable(row.name) for row in rows], room)
    (title,) = shortened([work.title], room + INDENT)  # numbers are never cut
    lines = _numbers_grid(title, heads)
    for name, texts in zip(names, cells, strict=False):
        lines.add_row(Text(f"  {name}"), *texts)
    lines.add_row(Text(whole, style="bold"), *cells[-1])
    yield lines
    yield line()


def work_rows(title: str, rows: list[ReportRow], sides: Pair[str], width: int) -> Iterator[RenderableType]:
    """``rows`` under ``title``: operator, kernels and, where there is room or rows look alike, module and shapes."""
    unit = time_unit([us for row in rows for us in row.us])
    heads, cells, room = _numbers(rows, unit, width, sides)
    has_bars = room - BAR - GAP >= LEAST_WORK
    column, names = work_names(rows, room - (BAR + GAP if has_bars else 0))
    lines = _numbers_grid(_heading(title, column, max(map(len, names))), heads)
    if has_bars:
        lines.add_column("", width=BAR, no_wrap=True)
    change_bars = bars((row.delta_us for row in rows), BAR)
    for name, row, texts in zip(names, rows, cells, strict=True):
        lines.add_row(Text(f"  {printable(name)}"), *texts, *([change_bars.draw(row.delta_us)] if has_bars else []))
    yield lines


def _numbers(
    rows: Sequence[ReportRow], unit: Unit, width: int, names: Pair[str], counted: str = "count"
) -> tuple[list[str], list[list[str]], int]:
    """(heads of the numbers, their cells in each row, what they leave of ``width`` to names)."""
    is_tested = any(row.time_change for row in rows)
    heads = [
        counted,
        f"{printable(names.control)} {unit.name}",
        printable(names.test),
        "change",
        *([SIGNIFICANCE] if is_tested else []),
    ]
    cells = [[*row.cells(unit), *([row.time_change] if is_tested else [])] for row in rows]
    number_width = sum(max(map(len, column)) + GAP for column in zip(heads, *cells, strict=True))
    return heads, cells, width - INDENT - number_width


def _numbers_grid(title: str, heads: Sequence[str]) -> RichTable:
    return grid([title, *heads], "l" + "".join("l" if head == SIGNIFICANCE else "r" for head in heads))


def _heading(title: str, column: int, width: int) -> str:
    """``title``, and above the kernels or places, which begin at ``column``, what they are."""
    before = INDENT + column
    fits = column and len(title) + GAP <= before and before + len(BESIDE) <= INDENT + width
    return f"{title:<{before}}{BESIDE}" if fits else title


def work_names(rows: list[ReportRow], width: int) -> tuple[int, list[str]]:
    """(where the second column begins, a line of at most ``width`` characters for each row, in which different rows
    differ).
    """
    operators = shortened([row.operator for row in rows], _operator_width(rows, width))
    column = max(map(len, operators), default=0) + GAP if any(operators) else 0
    rest = width - column
    beside_places = rest - int(LARGEST_PLACE * rest) if rest >= WIDE else rest
    kernels = shortened_pairs([row.kernels for row in rows], beside_places)
    name_pairs = list(zip(operators, kernels, strict=True))
    lines = []
    for row, operator, text in zip(rows, operators, kernels, strict=True):
        alike = [other for other, names in zip(rows, name_pairs, strict=True) if names == (operator, text)]
        if rest >= WIDE or len(alike) > 1 or not row.kernels:
            text = _with_place(row, _place(row, alike), rest)
        lines.append(f"{operator:<{column}}{text}".rstrip())
    return column, lines


def _operator_width(rows: list[ReportRow], width: int) -> int:
    """What operators may take beside their kernels."""
    longest = max((len(row.operator) for row in rows), default=0)
    has_second_column = any(row.kernels or row.module or row.shapes for row in rows)
    return min(longest, int(LARGEST_OPERATOR * width)) if has_second_column else width


def _place(row: ReportRow, alike: list[ReportRow]) -> str:
    """The module of ``row``, or its shapes where these distinguish it from rows that look ``alike``."""
    same_module = sum(other.module == row.module for other in alike) > 1
    return row.shapes or row.module if same_module else row.module or row.shapes


def _with_place(row: ReportRow, place: str, width: int) -> str:
    """Kernels and where they run: the end of a module's path is more specific than its beginning."""
    if not place:
        return shortened_pairs([row.kernels], width)[0]
    room = min(len(place), max(LEAST_PLACE, width - len(row.kernels) - GAP, int(LARGEST_PLACE * width)))
    remaining, kernels = width - room - GAP, ""
    if row.kernels and remaining >= min(len(row.kernels), LEAST_KERNELS):
        kernels = f"{shortened_pairs([row.kernels], remaining)[0]}{' ' * GAP}"
    else:
        room = width
    return kernels + (cut_left(place, room) if place == row.module else shortened([place], room)[0])
