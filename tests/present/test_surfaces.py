"""Numbers and sentences of one comparison agree on every surface: terminal, Markdown, HTML and JSON of real pairs."""

from __future__ import annotations

import html
import json
import re
from io import StringIO
from operator import attrgetter, ge
from typing import Any

import pytest
from pair_stories import STORIES, Story, compared
from rich.console import Console

from tracediff import thresholds
from tracediff.diff.comparison import Comparison
from tracediff.present.answer import answer_of
from tracediff.present.explanation_lines import REST, ExplanationLine, ExplanationTable, explanation_table
from tracediff.present.path import read_path, unit_of
from tracediff.present.sections import changed_work
from tracediff.report.explain import explain
from tracediff.report.page.html import to_summary
from tracediff.report.to_json import to_json
from tracediff.report.to_markdown import to_markdown
from tracediff.report.to_terminal import show

LARGE = ("flux",)
"""Pairs that take seconds."""
NUMBER = r"[\d,]+(?:\.\d+)?"
SIGNED = rf"(?:[+−]{NUMBER}|0(?:\.0+)?)"
PART = r"(GPU work|host|operators)"
EXPOSURE = rf"(?:other )?{PART}[^()]*, (?:now|less|more) (?:hidden|exposed) \(({SIGNED}) (s|ms|µs|ns)[^()]*\)"
IN_PLACE = rf"(?:other )?[\w ]+ exposed in place of [\w ]+ \({SIGNED} (?:s|ms|µs|ns)[^()]*\)"
US = {"s": 1e6, "ms": 1e3, "µs": 1.0, "ns": 1e-3}
FULL = 24
"""Lines of a screen without room for changed work."""
WIDE = 250
"""Columns in which no sentence is broken."""


def terminal(comparison: Comparison, width: int) -> list[str]:
    console = Console(file=StringIO(), width=width)
    show(comparison, console)
    return console.file.getvalue().splitlines()


def value(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-").replace("+", ""))


def places(text: str) -> int:
    return len(text.partition(".")[2])


def the_numbers_of_a_table_add_up(lines: list[str], head: str, last: str, column: int) -> tuple[float, str]:
    """(change of the last row, unit of the head); the changes of the rows before it, the signed numbers at ``column``,
    add up to it as they are shown, and those of rows inside a row to that.
    """
    start = next(k for k, line in enumerate(lines) if line.startswith(head))
    rows: list[tuple[int, float]] = []
    for line in lines[start + 1 :]:
        if found := re.findall(rf"(?<=\s\s)({SIGNED})(?:\s\s|$)", line):
            rows.append((len(line) - len(line.lstrip()), value(found[column])))
        if line.startswith(last):
            break
    *parts, (_, whole) = rows
    if parts:
        assert sum(change for indent, change in parts if indent <= 2) == pytest.approx(whole, abs=1e-6), lines[start:]
    outer = [k for k, (indent, _) in enumerate(parts) if indent <= 2]
    for k, following in zip(outer, [*outer[1:], len(parts)], strict=True):
        if inner := parts[k + 1 : following]:
            assert sum(change for _, change in inner) == pytest.approx(parts[k][1], abs=1e-6), lines[start:]
    return whole, re.search(r"\b(s|ms|µs|ns)\b", lines[start])[1]


def sums_close_in_one_unit(comparison: Comparison) -> None:
    lines = terminal(comparison, WIDE)
    units = set()
    if any(line.startswith("Why ") for line in lines):
        change, unit = the_numbers_of_a_table_add_up(lines, "Why ", f"{comparison.explanation.period} ", -1)
        units.add(unit)
        assert f"{abs(change):g}" == f"{abs(value(_signed(comparison, unit))):g}"
    head = "GPU work by" if comparison.gpu_time.groups else "Operators (self time)"
    if any(line.startswith(head) for line in lines):
        units.add(the_numbers_of_a_table_add_up(lines, head, "all ", -1)[1])
    else:
        assert len(lines) >= FULL or not changed_work(comparison, 10).rows
    assert len(units) <= 1


def a_row_reads_the_same_however_many_are_shown(comparison: Comparison) -> None:
    shown: dict[str, list[str]] = {}
    for top in (1, 2, 3, 5, 10, 25, 100):
        work = changed_work(comparison, top)
        for row in (*work.rows, work.whole):
            if not row.name.endswith((" other", " others")):
                assert shown.setdefault(row.name, row.times(work.unit)) == row.times(work.unit)
        if work.rows:
            for side in (0, 1):
                times = [work.unit.plain(row.us[side]) for row in work.rows]
                assert sum(map(value, times)) == pytest.approx(value(work.unit.plain(work.whole.us[side])))


def _signed(comparison: Comparison, unit: str) -> str:
    document = json.loads(to_json(comparison))
    (line,) = [line for line in terminal(comparison, WIDE) if line.startswith(f"{comparison.explanation.period} ")]
    control, test = re.search(rf"({NUMBER}) → ({NUMBER})", line).groups()
    shown = re.findall(rf"(?<=\s\s)({SIGNED})(?:\s\s|$)", line)[-1]
    assert value(shown) == pytest.approx(value(test) - value(control), abs=1e-6)
    assert value(shown) == pytest.approx(document["explanation"]["change_us"] / US[unit], abs=10 ** -places(shown))
    return shown


def directions_agree_with_signs(comparison: Comparison) -> None:
    verdict = comparison.verdict
    if " less time " in verdict.sentence:
        assert verdict.delta_us < 0
    if " longer " in verdict.sentence:
        assert verdict.delta_us > 0
    for cause in comparison.explanation.causes:
        assert cause.what != "added" or cause.test_us > cause.control_us
        assert cause.what != "removed" or cause.test_us < cause.control_us


def sentences_state_numbers_of_the_document(comparison: Comparison) -> None:
    document = json.loads(to_json(comparison))
    answer, lines = document["answer"], document["explanation"]["lines"]
    effects = [(line, line["delta_us"]) for line in lines if line["delta_us"]]
    path = read_path(comparison.explanation)
    wholes, exposure = (
        {part.label: us(part.times) for part in path.parts.values()}
        for us in (attrgetter("own"), attrgetter("exposure"))
    )
    parts_named = set()  # as wholes, so that no line of theirs is an offset
    for whole in (answer["because"], answer["offset_by"]):
        sentence = re.sub(IN_PLACE, "", re.sub(EXPOSURE, "", whole))
        for label, number, unit in re.findall(EXPOSURE, whole):
            assert value(number) * US[unit] == pytest.approx(exposure[label], rel=0.06, abs=60), sentence
        parts = re.findall(rf"\(({SIGNED}) (s|ms|µs|ns)", sentence)
        named = [value(number) * US[unit] for number, unit in parts]
        for label, number, unit in re.findall(rf"(?:of|by|and) {PART}(?: time)? \(({SIGNED}) (\w+)[:,)]", sentence):
            us = value(number) * US[unit]
            if us == pytest.approx(wholes[label], rel=0.06, abs=60):  # a part of the critical path
                named.remove(us)
                parts_named.add(label)
        if not named:
            continue
        sign = 1 if named[0] > 0 else -1
        is_offset = whole == answer["offset_by"]
        lines_of = [(us, (line["trail"] or [line["label"]])[0]) for line, us in effects]
        along = [us for us, part in lines_of if sign * us > 0 and not (is_offset and part in parts_named)]
        of_lines = sorted(along, key=lambda us: -sign * us)
        if whole.startswith("Work that differs"):  # not what takes another time
            every = [us for _, us in effects]
            assert all(any(us == pytest.approx(of_line, rel=0.06, abs=60) for of_line in every) for us in named)
            assert sorted(named, key=lambda us: -abs(us)) == named
            continue
        expected = of_lines[: len(named)]
        if re.search(r" and \d+ more ", sentence):
            expected = [*of_lines[: len(named) - 1], sum(of_lines[len(named) - 1 :])]
        if len(named) == len(parts):
            assert named == pytest.approx(expected, rel=0.06, abs=60), sentence
        assert all(any(us == pytest.approx(of_line, rel=0.06, abs=60) for of_line in of_lines) for us in named)
    for cause in comparison.explanation.causes:
        assert any(line["label"] == cause.label and line["delta_us"] == cause.delta_us for line in lines)


def sentences_add_up(comparison: Comparison) -> None:
    """The times of the sentences to the change of the step, but for what is not worth a line."""
    answer, explanation = answer_of(comparison), comparison.explanation
    sentence = "; ".join((answer.because, answer.offset_by, answer.not_explained))
    stated = re.findall(rf"(?:\(|all else )({SIGNED}) (s|ms|µs|ns)", sentence)
    if answer.because:
        total, least = sum(value(number) * US[unit] for number, unit in stated), unit_of(explanation).digit
        worth_a_line = thresholds.WORTH_A_LINE * explanation.scale_us
        assert total == pytest.approx(explanation.change_us, abs=worth_a_line + least), sentence


def the_parts_of_a_line_add_up(comparison: Comparison) -> None:
    """As ``explain`` prints them, to the effect of the line and what of it is exposed, but for what their digits do not
    show.
    """
    unit = unit_of(comparison.explanation)
    effect = rf"effect on the {comparison.explanation.period} ({SIGNED})[^,]*(?:, ([\d.,]+) \S+ (more|less) exposed)?"
    for _, line in explanation_table(comparison.explanation).rows:
        if line.label.endswith(REST):
            continue
        head, *text = explain(comparison, line.label, most=100).split("\n\n")[0].splitlines()
        parts = [value(part[1]) for row in text if (part := re.match(rf" +({SIGNED})  ", row))]
        whole = re.search(effect, head)
        assert whole, head
        us, exposed, way = whole.groups()
        change = value(us) + (value(exposed) * (1 if way == "more" else -1) if exposed else 0.0)
        if parts:
            assert sum(parts) == pytest.approx(change, abs=(len(parts) + 2) * unit.digit / unit.size), line.label


def every_surface_has_the_same_sentences(comparison: Comparison) -> None:
    document = json.loads(to_json(comparison))["answer"]
    screen = terminal(comparison, WIDE * 10)
    markdown = to_markdown(comparison).replace("`", "").replace("\\", "").replace("\u200b", "")
    page = re.sub(r"<[^>]+>", "", to_summary(comparison))
    page = html.unescape(page)
    for name in ("verdict", "because", "offset_by"):
        sentence = document[name].strip()
        assert any(sentence in line for line in screen), name
        assert _plain(sentence) in _plain(page), name
        assert _plain(sentence) in _plain(html.unescape(markdown)), name
    for sentence in document["unlike"]:
        assert any(sentence in line for line in screen)


def _plain(text: str) -> str:
    return re.sub(r"[^\w.,:+−→%]", "", text)


def the_screen_is_short(comparison: Comparison) -> None:
    lines = terminal(comparison, 100)
    assert len(lines) <= 30
    assert max(map(len, lines[:-1])) <= 100


def the_columns_of_why_add_up(comparison: Comparison) -> None:
    """Effects of rows inside a row to that row's, and of all rows to the step's, and their times in all but for a
    digit, which are no less than on the critical path.
    """
    explanation = comparison.explanation
    path, table = read_path(explanation), explanation_table(explanation)
    for times in [*(row.times for row in path.rows), *(part.times for part in path.parts.values())]:
        assert min(times.path) >= 0
        assert all(map(ge, times.every, times.path))
    for whole, inner in [(table.total, table.lines), *((line, line.inner) for line in table.lines)]:
        if not inner:
            continue
        every, change = figures_of(table, whole)
        parts, changes = zip(*(figures_of(table, line) for line in inner), strict=True)
        assert sum(changes) == pytest.approx(change)
        if whole is not table.total:  # of what overlaps there is no sum
            digit = table.unit.digit / table.unit.size
            assert [*map(sum, zip(*parts, strict=True))] == pytest.approx(every, abs=1.5 * digit)


def figures_of(table: ExplanationTable, line: ExplanationLine) -> tuple[list[Any], float]:
    """([control, test] in all, nothing of what is only exposed, the change)."""
    every, change = table.figures(line)
    return [*map(value, every.split(" → "))] if every else [], value(change)


CHECKS = (
    the_columns_of_why_add_up,
    sums_close_in_one_unit,
    a_row_reads_the_same_however_many_are_shown,
    directions_agree_with_signs,
    sentences_state_numbers_of_the_document,
    sentences_add_up,
    the_parts_of_a_line_add_up,
    every_surface_has_the_same_sentences,
    the_screen_is_short,
)


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize(
    "story", [story for story in STORIES if not story.name.startswith(LARGE)], ids=lambda story: story.name
)
def test_numbers_and_sentences_agree(story: Story) -> None:
    comparison = compared(*story.paths)
    for check in CHECKS:
        check(comparison)
