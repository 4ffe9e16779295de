"""`Comparison` → a terminal screen."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache, partial
from textwrap import wrap

from rich.cells import set_cell_size
from rich.console import Console, Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.text import Text

from tracediff import bounds
from tracediff.aggregate.summary import MISSING
from tracediff.diff.comparison import Comparison
from tracediff.diff.views import ALL_MODULES, UNKNOWN, Modules
from tracediff.errors import printable
from tracediff.explain.explanation import Explanation
from tracediff.formatting import ARROW, change, counts, time_unit
from tracediff.present import sections
from tracediff.present.answer import answer_of
from tracediff.present.explanation_lines import explanation_table
from tracediff.present.next_command import next_command
from tracediff.present.plain_text import bars, no_rows_shown, shortened_pairs
from tracediff.present.setting import heading, side_names
from tracediff.report.table_terminal import (
    GAP,
    INDENT,
    AsWide,
    Sentence,
    grid,
    line,
    print_screen,
    remarks,
    screen_text,
    sums_table,
    to_rich,
    work_rows,
)
from tracediff.structs import FrozenStruct, Pair

BESIDE_NAMES = 64
"""Columns of text that times and bars need."""
ROWS, LEAST_ROWS = 8, bounds.WORK_ROWS
"""Rows of changed work: as many of these as fit on the screen."""
LINES = bounds.CAUSE_ROWS
"""Lines of causes: as many as fit."""
SHORT, SCREEN = 24, 30
"""Lines of a screen: rows give way to the first, all else to the second."""
CLOSING = "0 ns unexplained"


class Screen(FrozenStruct, kw_only=True):
    """What a screen shows.

    Attributes:
        device: tables of changes in detail: gpu for matched work, cpu for self time on the host, all for both; None for
            the work by operator.
        sort: one of `sections.SORTS`, of tables in detail.
        top: rows of each table of changes; None for ``rows``.
        lines, detailed: causes that are shown, and of how many of these what happened is; None for all.
        view: instead of the tables of changes the work summed by family, phase, module, op, kernel or cause.
        modules: how the view by module sums them.
        tables: instead of the tables of changes the further tables that were loaded.
        verbose: every caution and note, cause and table in full.
    """

    device: str | None = None
    sort: str = "change"
    top: int | None = None
    rows: int = ROWS
    lines: int | None = LINES
    detailed: int | None = None
    view: str | None = None
    modules: Modules = ALL_MODULES
    tables: bool = False
    verbose: bool = False


USUAL = Screen()
SHORTER = [
    *(Screen(rows=rows) for rows in range(ROWS - 1, LEAST_ROWS - 1, -1)),
    *(Screen(rows=LEAST_ROWS, detailed=number) for number in range(LINES - 1, -1, -1)),
    *(Screen(rows=rows, detailed=0) for rows in range(LEAST_ROWS - 1, 1, -1)),
    *(Screen(rows=0, detailed=0, lines=number) for number in range(LINES, 0, -1)),
]
"""Screens with ever fewer rows of changed work, then with less on each cause, no such rows, as one says less than a
cause, at last fewer causes: each is no longer than the one before.
"""


def render(comparison: Comparison, screen: Screen = USUAL) -> RenderableType:
    """The answer as rich renderables."""
    answer, title = answer_of(comparison), printable(heading(comparison))
    style = "" if comparison.verdict.other_work else "bold"  # its percentages are not to be relied on
    parts: list[RenderableType] = [
        Sentence(f"{title}{printable(f' · {answer.setting}')}", "dim", title),
        line(answer.verdict, style),
        *map(line, answer.below),
        line(),
    ]
    if (screen.view or screen.tables) and not comparison.was_refused:
        return Group(*parts, *_work(comparison, screen))
    in_full = screen.verbose or comparison.was_refused
    if in_full:
        parts += remarks(sections.doubt(comparison), sections.caution_lines(comparison))
    if not comparison.was_refused:
        if comparison.explanation is not None:
            most = None if screen.verbose else screen.lines
            why = partial(explanation, comparison.explanation, most=most, detailed=screen.detailed)
            parts.append(AsWide(why))
        parts += [_step_table(comparison)] if screen.verbose else []
        parts += _work(comparison, screen)
    if in_full:
        parts += remarks("Health of the traces", sections.health_lines(comparison))
    return Group(*parts)


def show(
    comparison: Comparison,
    console: Console,
    screen: Screen = USUAL,
    command: str = "",
) -> None:
    """Print the answer, on one screen unless more is asked for; and what ``command``, if any, can show next."""
    usual = screen == USUAL and not comparison.was_refused
    following = next_command(comparison, command) if usual and command else None
    last = f"Next: {following}\n" if following else ""  # one line, to copy: only the terminal breaks it

    @cache
    def text_of(screen: Screen) -> str:
        return screen_text(console, render(comparison, screen))

    def fits(screen: Screen) -> bool:
        return 1 + text_of(screen).count("\n") <= (SHORT if screen.rows > LEAST_ROWS else SCREEN)

    if usual and not fits(screen):
        screen = SHORTER[bisect_left(SHORTER, True, hi=len(SHORTER) - 1, key=fits)]
    console.file.write(text_of(screen) + last)
    console.file.flush()


def _work(comparison: Comparison, screen: Screen) -> list[RenderableType]:
    """The tables of what changed."""
    most = screen.top if screen.top is not None else bounds.TABLE_ROWS
    parts = [_view(comparison, screen.view, most, screen.modules)] if screen.view else []
    if screen.tables:
        from tracediff.present.tables import comparison_tables

        missing = sections.health_lines(comparison, [MISSING])
        parts += [to_rich(table) for table in comparison_tables(comparison, most)]
        parts += remarks("Health of the traces", missing)
    if parts or screen.tables or (screen.top is None and not screen.rows):
        return parts
    rows = screen.top if screen.top is not None else screen.rows
    if screen.device is None and screen.sort == "change" and not screen.verbose:
        work = sections.changed_work(comparison, rows)
        return [AsWide(partial(sums_table, work, side_names(comparison)))] if work.rows or not rows else []
    tables = sections.changes(comparison, screen.device or "all", screen.sort, rows)
    return [_changes(comparison, table) for table in tables]


def _changes(comparison: Comparison, table: sections.Changes) -> RenderableType:
    is_matched = any(row.operator for row in table.rows)
    notes = [
        _gpu_account(comparison) if is_matched and comparison.gpu_time.groups else None,
        sections.common_line(comparison),
        f"{table.more:,} more rows (--top)" if table.more else None,
    ]
    return _table(comparison, table, "; ".join(filter(None, notes)))


NEEDING_STACKS = ("module", "line")
STACKS = "neither side has stacks: record with_stack=True, or collect --detail structure"


def _view(comparison: Comparison, view: str, top: int, modules: Modules) -> RenderableType:
    table = sections.work_by(comparison, view, top, modules)
    lacks_stacks = view in NEEDING_STACKS and [row.name for row in table.rows] == [UNKNOWN]
    notes = sections.matched_line(comparison), sections.tensor_core_line(comparison), STACKS if lacks_stacks else None
    return _table(comparison, table, *notes, f"{table.more:,} more (--top)" if table.more else None)


def _table(comparison: Comparison, table: sections.Changes, *notes: str | None) -> RenderableType:
    if not table.rows:
        return Group(line(f"{table.title}: {no_rows_shown(table.more, 'none')}", "bold"), line())
    rows = AsWide(partial(work_rows, table.title, table.rows, side_names(comparison)))
    return Group(rows, *_dim(*notes), line())


def _dim(*texts: str | None) -> list[RenderableType]:
    return [line(text, "dim", INDENT) for text in texts if text]


def _step_table(comparison: Comparison) -> RenderableType:
    step = sections.step_sums(comparison)
    unit, whole = step.unit, step.whole
    control, test = side_names(comparison)
    table = grid([step.title, f"{control} {unit.name}", test, "change"], "lrrr", expand=True)
    table.add_column("", width=len(CLOSING) + 6, no_wrap=True)
    change_bars = bars((row.delta_us for row in step.rows), len(CLOSING) + 1, bounds.LEAST_BAR * max(whole.us))
    for row in step.rows:
        table.add_row(Text(printable(f"  {row.name}")), *row.times(unit), change_bars.draw(row.delta_us))
    closing = CLOSING.replace("0", sections.unexplained_ns(comparison))
    table.add_row(Text(whole.name, style="bold"), *whole.times(unit), Text(closing, style="dim"))
    foreign = comparison.step_time.foreign.map(comparison.us)
    note = f"GPU time launched outside the used steps: {change(*foreign)}" if any(foreign) else None
    # on a wide terminal numbers stay beside their names
    constrained = Constrain(table, max((len(row.name) for row in step.rows), default=0) + BESIDE_NAMES)
    return Group(constrained, *_dim(note), line())


def _gpu_account(comparison: Comparison) -> str:
    gpu = comparison.gpu_time
    times = gpu.time.map(comparison.us)
    unit = time_unit(times)
    parts = {
        "matched": gpu.matched,
        "in the same module or family": gpu.placed,
        "added": gpu.added,
        "removed": gpu.removed,
        "not attributed": gpu.unattributed.delta,
    }
    total = f"GPU time {change(*times)} in {counts(*gpu.count.map(comparison.number))} events"
    figures = {name: unit.signed(comparison.us(n)) for name, n in parts.items() if n}
    if len(figures) == 1:
        return f"{total}, {'all with a counterpart' if gpu.matched else f'all {next(iter(figures))}'}"
    sums = " + ".join(f"({figure}) {name}" for name, figure in figures.items())
    return f"{total}; {unit.signed(comparison.us(gpu.delta))} = {sums}" if figures else total


WIDE = 110
"""Columns from which what is unexplained is beside the total."""
LABELS = 71
"""Columns of labels, however wide the screen or pipe."""


def explanation(
    explanation: Explanation,
    width: int,
    *,
    most: int | None = None,
    detailed: int | None = None,
) -> list[RenderableType]:
    """Why the step changed, in a table that adds up.

    Args:
        width: columns; what happened is below its line where it has no room beside it.
        most: lines of causes; the smaller ones are one line. None for all, with whole names and reasons.
        detailed: the largest of them, of which what happened is shown; None for all.
    """
    causes = explanation_table(explanation, most)
    if not causes.lines:
        return []
    levels, lines = zip(*causes.rows, strict=True)
    heads, *figures, whole = causes.heads[1:], *map(causes.figures, lines), causes.figures(causes.total)
    labels, reasons = ([*map(printable, texts)] for texts in zip(*((k.label, k.because) for k in lines), strict=True))
    widths = [max(map(len, column)) for column in zip(heads, *figures, whole, strict=True)]
    others = sum(widths) + len(widths) * GAP
    closing = causes.total.because
    room = width - others - (len(closing) + GAP if width >= WIDE else 0)
    label_width = min(max(room, 1), LABELS)
    room_aside = width - label_width - others - GAP
    has_room = room_aside >= len(closing)
    of_label = label_width - (1 + max(levels)) * INDENT
    short = labels if most is None else shortened_pairs(labels, of_label)
    by_size = sorted(lines, key=lambda line: -abs(line.delta_us))[:detailed]
    row = partial(_row, label_width, widths)
    parts: list[RenderableType] = [*row(causes.heads[0], heads, style="bold")]
    for k, (level, label, reason, cells) in enumerate(zip(levels, short, reasons, figures, strict=True)):
        is_below = reason and len(reason) > room_aside and lines[k] in by_size
        parts += row(label, cells, "" if is_below or not has_room else _fitting(reason, room_aside), level=1 + level)
        if is_below:
            text = reason if most is None else _fitting(reason, width - (2 + level) * INDENT)
            parts.append(Padding(Text(text, style="dim"), (0, 0, 0, (2 + level) * INDENT)))
    parts += row(causes.total.label, whole, closing if has_room else "", style="bold")
    return [Group(*parts), line()]


def _row(
    room: int,
    widths: Sequence[int],
    label: str,
    cells: Sequence[str],
    aside: str = "",
    *,
    level: int = 0,
    style: str = "",
) -> Iterator[Text]:
    """The lines of a ``label``, which folds in ``room`` columns, with times in columns of these ``widths`` and, dim,
    what is ``aside``.
    """
    indent = " " * (level * INDENT)
    parts = wrap(label, max(room - len(indent), 1), break_on_hyphens=False) or [""]  # of a blank name
    first, *more = (f"{indent}{part}" for part in parts)
    times = "".join(f"{'':{GAP}}{cell:>{size}}" for cell, size in zip(cells, widths, strict=True))
    yield Text.assemble((f"{set_cell_size(first, room)}{times}", style), (f"{'':{GAP}}{aside}", "dim"), no_wrap=True)
    yield from map(Text, more)


def show_explanation(why: Explanation, names: Pair[str], console: Console) -> None:
    """Print the ``names`` of the sides, the facts, and all lines of ``why`` with whole names and reasons."""
    texts = ARROW.join(names), *(fact.text for fact in why.facts)
    print_screen(console, Group(*map(line, texts), *explanation(why, console.width)))


def _fitting(reason: str, room: int) -> str:
    """The first parts of ``reason`` that fit ``room`` columns; the first one always, cut if it must be."""
    if len(reason) <= room:
        return reason
    part, name = reason.rfind("; ", 0, room + 1), reason.rfind(", ", 0, room - 2)  # one of several in a part
    if max(part, name) < 1:
        return f"{reason[: room - 1]}…"
    return reason[:part] if part > name else f"{reason[:name]}, …"
