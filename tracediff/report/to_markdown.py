"""`Comparison` → GitHub-flavoured Markdown, and the tables that every Markdown output has."""

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from tracediff import bounds
from tracediff.diff.comparison import Comparison
from tracediff.diff.views import ALL_MODULES, Modules
from tracediff.formatting import Unit, time_unit
from tracediff.present import sections
from tracediff.present.answer import answer_of
from tracediff.present.explanation_lines import INNER, explanation_table
from tracediff.present.plain_text import Table, bars, no_rows_shown
from tracediff.present.sections import ReportRow
from tracediff.present.setting import heading, side_names
from tracediff.present.tables import comparison_tables
from tracediff.report.escape import escaped
from tracediff.structs import SIDES, Pair

IMAGES = ("step_waterfall", "duration_diff", "timeline")
"""Charts below the tables if images are requested."""


def to_markdown(
    comparison: Comparison,
    *,
    device: str | None = None,
    sort: str = "change",
    top: int = 10,
    view: str | None = None,
    modules: Modules = ALL_MODULES,
    images: Mapping[str, tuple[str, str]] | None = None,
) -> str:
    """The answer as GitHub-flavoured Markdown with tables.

    Args:
        device, sort, top: as for the terminal: with a device or another order kernels, else the work by operator.
        view, modules: what to sum the work by instead, and how by modules.
        images: chart → (address, title) of images to show.
    """
    answer, names = answer_of(comparison), side_names(comparison)
    title = escaped(heading(comparison))
    verdict = escaped(answer.verdict)
    lines = [f"## {title}", "", verdict if comparison.verdict.other_work else f"**{verdict}**", ""]
    lines += [text for sentence in (*answer.below, answer.setting) for text in (escaped(sentence), "")]
    lines += list_lines(f"### {sections.doubt(comparison)}", map(escaped, sections.caution_lines(comparison)))
    if not comparison.was_refused:
        lines += _explanation(comparison)
        lines += ["### Where the step went", "", *step_lines(comparison), ""]
        if view is not None:
            lines += _changes(sections.work_by(comparison, view, top, modules), names, "work")
        elif device is None and sort == "change":
            work = sections.changed_work(comparison, top)
            table = rows_table("name", [*work.rows, work.whole], work.unit, names, work.counted)
            lines += [f"### {work.title}", "", *table, ""]
        else:
            changes = sections.changes(comparison, device, sort, top)
            lines += [line for change in changes if change.rows for line in _changes(change, names)]
        if sections.shows_causes(comparison):
            lines += _changes(sections.work_by(comparison, "cause", len(comparison.work.groups)), names, "work")
        lines += [line for further in comparison_tables(comparison, top) for line in section_lines(further)]
        for address, title in (images or {}).values():
            lines += [f"![{escaped(title)}]({quote(address)})", ""]
    lines += list_lines("### Health of the traces", map(escaped, sections.health_lines(comparison)))
    return joined(lines)


def joined(lines: Iterable[str]) -> str:
    """``lines`` as a document, with a new line at its end."""
    return "\n".join(lines).rstrip() + "\n"


def _changes(table: sections.Changes, names: Pair[str], first: str = "name") -> list[str]:
    lines = [f"### {table.title}", "", *rows_table(first, table.rows, names=names), ""]
    return [*lines, f"{table.more:,} more rows are not shown.", ""] if table.more else lines


def _explanation(comparison: Comparison) -> list[str]:
    """A table that adds up to the step's change."""
    if comparison.explanation is None:
        return []
    causes = explanation_table(comparison.explanation, bounds.CAUSE_ROWS)
    lines = [
        [f"{level * INNER}{escaped(line.label)}", *causes.figures(line), escaped(line.because)]
        for level, line in (*causes.rows, (0, causes.total))
    ]
    figures = len(causes.heads) - 1
    _, *table = table_lines([""] * (figures + 2), f"l{'r' * figures}l", lines)
    return ["### Why", "", f"| {' | '.join(map(escaped, causes.heads))} | |", *table, ""]


def list_lines(heading: str, items: Iterable[str]) -> list[str]:
    """``items``, which are Markdown, as a list below ``heading``; nothing where there are none."""
    lines = [f"- {item}" for item in items]
    return [heading, "", *lines, ""] if lines else []


BAR = 16
"""Blocks of the bars on both sides of zero together."""


def step_lines(comparison: Comparison) -> list[str]:
    """The table of states, the step as its last row, and the sentence that the states add up to it. Bars of times that
    fell end, and bars of times that rose begin, where their columns meet.
    """
    step = sections.step_sums(comparison)
    change_bars = bars((row.delta_us for row in step.rows), BAR + 2, bounds.LEAST_BAR * max(step.whole.us))
    rows = []
    for row in step.rows:
        less, more = (change_bars.blocks(row.delta_us) if side else "" for side in (row.delta_us < 0, row.delta_us > 0))
        rows.append([escaped(row.name), *row.times(step.unit), less, more])
    heads = ["state", *time_heads(step.unit, side_names(comparison)), "less", "more"]
    table = table_lines(heads, "lrrrrl", [*rows, [f"**{step.whole.name}**", *step.whole.times(step.unit), "", ""]])
    closing = f"The states add up to the {step.whole.name}: {sections.unexplained_ns(comparison)} ns unexplained."
    return [*table, "", closing]


def section_lines(table: Table) -> list[str]:
    """Lines of a Markdown section."""
    heading = [f"### {escaped(table.title)}", ""]
    if not table.rows:
        return [*heading, f"{no_rows_shown(table.more, '')}.", ""] if table.more else []
    lines = [*heading, *([escaped(table.about), ""] if table.about else [])]
    aligned = "l" * table.texts + "r" * (len(table.heads) - table.texts)
    lines += table_lines(table.heads, aligned, [[escaped(cell[: bounds.CELL]) for cell in row] for row in table.rows])
    return [*lines, "", *([f"{table.more:,} more rows are not shown.", ""] if table.more else [])]


def table_lines(heads: Sequence[str], aligned: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """A table of cells that are Markdown; ``aligned`` has l or r for each column."""
    sides = "|".join(":--" if side == "l" else "--:" for side in aligned)
    head, *lines = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    return [head, f"|{sides}|", *lines]


def time_heads(unit: Unit, names: Pair[str] = SIDES) -> list[str]:
    """The heads of the columns of times."""
    return [f"{name} ({unit.name})" for name in (*map(escaped, names), "change")]


def rows_table(
    title: str,
    rows: Sequence[ReportRow],
    unit: Unit | None = None,
    names: Pair[str] = SIDES,
    counted: str = "count",
) -> list[str]:
    """``rows`` below ``title``, without ``unit`` in that of their largest time."""
    unit = unit or time_unit([us for row in rows for us in row.us])
    return table_lines(
        [title, counted, *time_heads(unit, names)], "lrrrr", [[escaped(row.name), *row.cells(unit)] for row in rows]
    )
