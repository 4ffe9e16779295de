"""`Gate` → terminal, Markdown, GitHub's annotations, JUnit's XML, and the JSON document of schema ``tracediff.check/1``
(docs/reference/check.md).
"""

from collections.abc import Sequence
from typing import Annotated
from xml.etree import ElementTree as xml

from msgspec import UNSET, UnsetType
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tracediff import bounds
from tracediff.diff.comparison import Comparison
from tracediff.diff.gate.judge import EXIT_CODES, INCONCLUSIVE, PASS, REGRESSION, WAIVED, Gate, Judged
from tracediff.diff.gate.limits import FACTORS, Waiver
from tracediff.diff.verdict import DiffVerdict
from tracediff.errors import printable
from tracediff.formatting import ARROW
from tracediff.present import sections
from tracediff.present.answer import answer_of, evidence, headline
from tracediff.present.check import (
    bound,
    change,
    cut,
    explanation,
    figures,
    interval,
    not_passed,
    reasons,
    result,
    row_subject,
    sentence,
    subject,
)
from tracediff.present.columns import RowColumn, RowSchema
from tracediff.present.setting import facts
from tracediff.report import json_types
from tracediff.report.escape import escaped
from tracediff.report.json_text import JsonObject, filled, json_text, one_of
from tracediff.report.table_terminal import INDENT, grid, line, print_screen
from tracediff.report.to_json import tables_of
from tracediff.report.to_markdown import joined, list_lines, rows_table, step_lines, table_lines

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
        line(ARROW.join(comparison.labels), "bold"),
        line(facts(comparison), "dim"),
        line(),
        line(sentence(gate), STYLES[gate.result], INDENT),
        *(line(text, indent=INDENT) for text in _verdict(comparison)),
        line(),
        _table(gate),
    ]
    for judged, reason in reasons(gate):
        what = printable(f"  {subject(judged)}: {judged.result}")
        parts += [line(), Text(what, style="bold", no_wrap=True, overflow="ellipsis")]
        parts.append(line(reason, indent=2 * INDENT))
    parts += [line(f"caution: {caution}", "dim", INDENT) for caution in sections.caution_lines(comparison)]
    print_screen(console, Group(*parts))


def _table(gate: Gate) -> Table:
    table = grid(["  subject", "control", "test", "change", "limit", "result"], "lrrrll")
    for column in table.columns[3:5]:
        column.no_wrap = False
    for judged in gate.judged:
        changed = "\n".join(part for part in (change(judged), interval(judged)) if part)
        decision = Text(result(gate, judged), style=STYLES[judged.result])
        table.add_row(Text(printable(f"  {row_subject(judged)}")), *figures(judged), changed, bound(judged), decision)
    return table


def _verdict(comparison: Comparison) -> list[str]:
    """How the work differs, if it does, and the step; and whether that is significant."""
    texts = comparison.verdict.reason_of_other_work + headline(comparison), evidence(comparison)
    return [*filter(None, texts)]


SIGNS = {"pass": "✅", "regression": "❌", "inconclusive": "❔", "waived": "⏸️", "not-comparable": "❔"}


def to_markdown(gate: Gate) -> str:
    """The result, the table of limits, the limits that did not pass; folded, the step and the largest changes."""
    comparison = gate.comparison
    answer = answer_of(comparison)
    lines = [
        f"## {SIGNS[gate.result]} {escaped(ARROW.join(comparison.labels))}",
        "",
        f"**{escaped(sentence(gate))}**",
        "",
        *(text for sentence in _verdict(comparison) for text in (escaped(sentence), "")),
        *(line for text in (answer.why, answer.code) if text for line in (escaped(text), "")),
        escaped(facts(comparison)),
        "",
        *_limits(gate),
        "",
    ]
    failing = reasons(gate)[: bounds.COMMENT_LIMITS]
    lines += [*(f"- **{escaped(subject(j))}**: {escaped(reason)}" for j, reason in failing), ""] if failing else []
    lines += list_lines("Compared with caution:", map(escaped, sections.caution_lines(comparison)))
    if not comparison.was_refused:
        lines += [*_folded("Where the step went", step_lines(comparison)), *_changes(gate)]
    return joined(lines)


def _limits(gate: Gate) -> list[str]:
    limits = [*not_passed(gate), *gate.with_result(PASS)]
    heads = ["subject", "control", "test", "change", "95 % interval", "limit", "result"]
    rows = [
        [
            *(escaped(row_subject(judged)), *figures(judged), change(judged), interval(judged), bound(judged)),
            f"{SIGNS[judged.result]} {result(gate, judged)}",
        ]
        for judged in limits[: bounds.COMMENT_LIMITS]
    ]
    used = [k for k, head in enumerate(heads) if head != "95 % interval" or any(cells[k] for cells in rows)]
    aligned = "".join("lrrrrll"[k] for k in used)
    lines = table_lines([heads[k] for k in used], aligned, [[cells[k] for k in used] for cells in rows])
    more = len(limits) - bounds.COMMENT_LIMITS
    return [*lines, "", f"{more:,} more limits are in the JSON document (--json)."] if more > 0 else lines


def _changes(gate: Gate) -> list[str]:
    """The five largest changes of matched work."""
    comparison = gate.comparison
    (table,) = sections.changes(comparison, "gpu", "change", bounds.COMMENT_CHANGES)
    rows = [row.replace(name=cut(row.name)) for row in table.rows]
    return _folded(table.title, rows_table("name", rows)) if rows else []


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>", ""]


LEVELS = {REGRESSION: "error", INCONCLUSIVE: "warning", WAIVED: "notice"}


def to_github(gate: Gate) -> str:
    """A line for each limit that did not pass; a single line if all passed or none was decided."""
    if gate.stopping:
        return _command("warning", f"tracediff: {gate.result.replace('-', ' ')}", sentence(gate))
    lines = [
        _command(level, f"tracediff: {result} of {subject(judged)}", explanation(judged))
        for result, level in LEVELS.items()
        for judged in gate.with_result(result)[: bounds.ANNOTATIONS]
    ]
    return "".join(lines) or _command("notice", f"tracediff: {PASS}", sentence(gate))


def _command(level: str, title: str, message: str) -> str:
    return f"::{level} title={_property(printable(title))}::{_data(printable(message))}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


SUITE = "tracediff check"


def to_junit(gate: Gate) -> str:
    """The document: exceeded limits are failures, inconclusive ones skipped, waived ones pass with a note."""
    attributes = {
        "name": SUITE,
        "tests": str(len(gate.judged)),
        "failures": str(len(gate.with_result(REGRESSION))),
        "skipped": str(len(gate.with_result(INCONCLUSIVE))),
        "errors": "0",
    }
    root = xml.Element("testsuites", attributes)
    suite = xml.SubElement(root, "testsuite", attributes)
    for judged in gate.judged:
        _case(suite, judged)
    xml.SubElement(suite, "system-out").text = printable(sentence(gate))
    xml.indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{xml.tostring(root, encoding='unicode')}\n"


def _case(suite: xml.Element, judged: Judged) -> None:
    case = xml.SubElement(
        suite, "testcase", {"name": printable(judged.figure.subject), "classname": SUITE.replace(" ", ".")}
    )
    message = printable(explanation(judged))
    if judged.result == REGRESSION:
        xml.SubElement(case, "failure", {"type": REGRESSION, "message": message}).text = message
    elif judged.result == INCONCLUSIVE:
        xml.SubElement(case, "skipped", {"message": message})
    else:
        xml.SubElement(case, "system-out").text = message


class CheckedSet(JsonObject):
    """One side."""

    label: str
    """name of the set in reports"""
    runs: int
    """number of runs"""


class GateComparability(json_types.DiffComparability):
    """The preflight, and which of its reasons stop the check."""

    stopping: list[str]
    """codes of the reasons that stopped the check"""


TEXT_OR_NONE, NUMBER = str | None, float | None
LIMITS = RowSchema(
    (
        RowColumn(
            "subject",
            "what was judged: step, state:NAME, family:NAME, op:NAME, gpu-below:NAME, kernels, memory, graph-breaks",
            "figure.subject",
        ),
        RowColumn("limit", "the subject as given; for operators the pattern", "limit.subject"),
        RowColumn("unit", "µs per step, bytes, or a count", "limit.unit", one_of=tuple(FACTORS)),
        RowColumn("control", "in the unit; null where unknown", "figure.control", NUMBER),
        RowColumn("test", "in the unit; null where unknown", "figure.test", NUMBER),
        RowColumn("change", "test − control; null if a side is unknown", "figure.change", NUMBER),
        RowColumn("ratio", "test / control; null where control is 0 or a side is unknown", "figure.ratio", NUMBER),
        RowColumn(
            "interval",
            "95 % confidence interval of the relative change: 0.05 is 5 %; null where untested",
            "figure.interval",
            tuple[float, float] | None,
        ),
        RowColumn("relative", "relative part of the limit: 0.05 is 5 %", "limit.relative", float),
        RowColumn("absolute", "absolute part of the limit, in the unit", "limit.absolute", float),
        RowColumn(
            "bound",
            "largest allowed growth, in the unit: the larger of the two parts; null if control is unknown",
            type=NUMBER,
        ),
        RowColumn("result", "result of this limit", one_of=(PASS, REGRESSION, INCONCLUSIVE, WAIVED)),
        RowColumn(
            "why", "reason for the result beyond the figures", lambda _, judged: judged.why or None, TEXT_OR_NONE
        ),
        RowColumn(
            "settle", "what would resolve an inconclusive result", lambda _, judged: judged.settle or None, TEXT_OR_NONE
        ),
        RowColumn(
            "explanation",
            "the result and its reasons in one sentence",
            lambda _, judged: explanation(judged),
        ),
        RowColumn("waiver", "the waiver that covers an exceeded limit, even if it has expired", type=Waiver | None),
    ),
    "LimitResult",
    "One limit, and the figure that was judged against it.",
)


class CheckDocument(JsonObject, tag_field="schema", tag="tracediff.check/1"):
    """A comparison judged against limits. null where something is unknown or was not tested."""

    result: Annotated[str, one_of(*EXIT_CODES)]
    """result of the check"""
    exit_code: int
    """0 pass, 1 regression, 3 inconclusive or not comparable"""
    sentence: str
    """the result in a sentence"""
    control: CheckedSet
    test: CheckedSet
    verdict: DiffVerdict
    comparability: GateComparability
    limits: list[LIMITS.json_type]  # type: ignore[name-defined]  # made from its columns
    """every limit, the step first"""
    tables: dict[str, list[json_types.Row]] | UnsetType = UNSET
    """tables of --table by name, as in tracediff.diff/1; absent where none was requested"""


def to_json(gate: Gate) -> str:
    """The document as indented text, with a new line at its end."""
    comparison = gate.comparison
    document = filled(
        CheckDocument,
        gate,
        sentence=sentence(gate),
        control=comparison.control,
        test=comparison.test,
        verdict=comparison.verdict,
        comparability=filled(
            GateComparability,
            comparison.comparability,
            stopping=[reason.code for reason in gate.stopping],
        ),
        limits=LIMITS.json(comparison, gate.judged),
        tables=tables_of(comparison) if comparison.tables else UNSET,
    )
    return json_text(document)
