"""What the page's script reads: the long tables (operators and kernels, and groups of matched work with their members;
times in µs per step), and the flame graph.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from tracediff import bounds, thresholds
from tracediff.aggregate.call_tree import CallTree
from tracediff.diff.call_trees import Frame, flame_graph, largest, line_graph, of_one, pruned
from tracediff.diff.ops import largest_first
from tracediff.diff.views import UNKNOWN
from tracediff.errors import printable
from tracediff.formatting import change, part, signed_time, time, time_unit
from tracediff.present.columns import CHANGES, MEMBERS, OPS, PAGE, TEXT, RowSchema
from tracediff.present.setting import side_names
from tracediff.profile.kernels.match_names import match_name
from tracediff.report.explain import WHY, why_matched
from tracediff.structs import FrozenStruct, Pair, total

if TYPE_CHECKING:
    from tracediff.analysis import Analysis
    from tracediff.diff.comparison import Comparison, Scaled


class Names(Struct):
    """Every text once; rows hold its number.

    Attributes:
        texts: in order of number. size: bytes of them as JSON. codes: text as recorded → its number.
    """

    texts: list[str] = field(default_factory=list)
    size: int = 0
    codes: dict[str, int] = field(default_factory=dict)

    def code(self, text: str | None) -> int:
        """The number of ``text``, −1 for None."""
        if text is None:
            return -1
        number = self.codes.get(text)
        if number is None:
            number = self.codes[text] = len(self.texts)
            self.texts.append(shortened(text))
            self.size += len(encoded(self.texts[-1])) + 1
        return number

    def by_match_name(self) -> dict[str, int]:
        """Match name → the first number of its spellings."""
        return {match_name(text): code for text, code in reversed(self.codes.items())}


def encoded(value: Any) -> str:
    """JSON in ASCII that holds no markup: ``<`` is written as an escape."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def shortened(text: str) -> str:
    """``text`` on one line, its middle left out where it is very long."""
    if len(text) > bounds.PAGE_CELL:
        half = bounds.PAGE_CELL // 2
        text = f"{text[:half]}… {len(text) - bounds.PAGE_CELL:,} characters …{text[-half:]}"
    return printable(text)


def tables(comparison: Comparison, room: int) -> dict[str, Any]:
    """``sides``, what they are called; ``per``, what times and counts are of; ``names``; ``members``, the columns of a
    group's members; ``ops`` and ``groups``: each {columns, rows, unit, all, time}, rows by size of their change, at
    most SEARCHED_ROWS of ``all``; ``marks`` of the timeline by side and event: the number of their name (null where no
    row has it) and those of the shorter events that they cover.

    Args:
        room: bytes of JSON that all together may take; the smallest changes are left out first.
    """
    names = Names()
    ops = _table(OPS, comparison, largest_first(comparison.ops), names, room // 2)
    ops["time"] = "self time"
    remaining = room - names.size - sum(len(encoded(row)) for row in ops["rows"])
    groups = _table(CHANGES, comparison, comparison.work_changes, names, remaining)
    groups["time"] = _what(comparison)
    spelled = names.by_match_name()
    marks = {
        mark: [spelled.get(longest), *(spelled[name] for name in others if name in spelled)]
        for mark, (longest, *others) in _marks(comparison)
    }
    spellings = {code: spelled[match_name(text)] for text, code in names.codes.items()}
    others = {code: first for code, first in spellings.items() if code != first}
    return {
        "sides": side_names(comparison),
        "per": comparison.basis,
        "names": names.texts,
        "members": [column.name for column in MEMBERS.of[PAGE]],
        "ops": ops,
        "groups": groups,
        "why": {level: why_matched(level, "{call}", side_names(comparison)) for level in WHY},
        "marks": marks,
        "spellings": others,
    }


def _marks(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """(side and event, match names of the events that it covers) of each mark of the timeline that shows an event."""
    for side, traces in enumerate(comparison.sides):
        if traces.typical is not None:
            marks = traces.typical.timeline.marks
            for event, names in zip(marks.event.tolist(), marks.names, strict=True):
                if event >= 0:
                    yield f"{side}:{event}", [*map(match_name, names)]


def _fitting(rows: Iterable[list[Any]], names: Names, room: int) -> list[list[Any]]:
    """The first SEARCHED_ROWS of ``rows``, as many as fit into ``room`` bytes with the names that they add."""
    before, size = names.size, 0
    fitting = []
    for row in islice(rows, bounds.SEARCHED_ROWS):
        size += len(encoded(row))
        if size + names.size - before > room:
            break
        fitting.append(row)
    return fitting


def _table(schema: RowSchema, comparison: Comparison, rows: Sequence[Any], names: Names, room: int) -> dict[str, Any]:
    """The first of ``rows``; the columns that the script shows, and those whose words it searches."""
    columns = schema.of[PAGE]
    every = ([_cell(value, names) for value in schema.values(PAGE, comparison, row)] for row in rows)
    sides = side_names(comparison)
    return {
        "columns": [column.name for column in columns],
        "shown": [
            [
                c.name.replace("control_count", "count"),
                c.head.split(",")[0] if "," in c.head else c.heading(sides),
                *(c.width, c.help),
            ]
            for c in columns
            if c.head and PAGE not in c.hidden and c.name != "test_count"  # counts share a column
        ],
        "words": [column.name for column in columns if column.kind == TEXT and not column.type],
        "rows": _fitting(every, names, room),
        "all": len(rows),
        "unit": time_unit(comparison.us(max(row.time)) for row in rows)._asdict(),
    }


def _cell(value: Any, names: Names) -> Any:
    """A value as the script reads it: a text by its number, a number rounded to shorten the JSON."""
    if isinstance(value, list):
        return [_cell(each, names) for each in value]
    return names.code(value) if isinstance(value, str) else round(value, 6) if isinstance(value, float) else value


KINDS = ("whole", "phase", "annotation", "module", "line", "op", "kernel", "rest")
HOW = "Width: the larger side, and at least its parts. Colour: change relative to the larger side."
KERNELS_FIRST = "Most calls are on one side only: inverted, equal kernels are one box."
HOW_ONE = "Width: time per step. Colour: kind of call."


class Drawing(FrozenStruct):
    """What a script of a page draws.

    Attributes:
        title: what it shows, in one sentence with its largest part or change. subtitle: how to read it.
        data: what the script reads; None where there is nothing to show, and ``title`` says why.
    """

    title: str
    subtitle: str = ""
    data: dict[str, Any] | None = None


def comparison_flame(comparison: Comparison) -> Drawing:
    """The flame graph of the difference."""
    if comparison.was_refused:
        return Drawing("The sides were not compared.")
    frames = flame_graph(comparison.trees, comparison.pairing)
    whole = total(f.work for f in frames)
    whole_us = whole.map(comparison.us)
    title = f"{_what(comparison)} {comparison.basis} {change(*whole_us)}"
    name, sums = largest(frames, lambda pair: pair.delta)
    if 0 < abs(sums.delta) <= thresholds.MOVED_CALLS * abs(whole.delta):
        title += f"; the box {name} changed most, {signed_time(comparison.us(sums.delta), *whole_us)}"
    alone = sum(sum(f.work) for f in frames if not all(f.work))
    how = f"{HOW} {KERNELS_FIRST}" if 2 * alone > sum(whole) else HOW
    items = ([i for group in comparison.work.groups for i in group.items[side]] for side in (0, 1))
    lines = line_graph(comparison.trees, Pair(*items))
    return _graph(comparison, title, how, (frames, lines), side_names(comparison))


def analysis_flame(analysis: Analysis) -> Drawing:
    """The flame graph of one set."""
    frames = of_one(analysis.tree)
    whole, _ = total(f.work for f in frames)
    title = f"{_what(analysis)} {analysis.basis} {time(analysis.us(whole))}"
    if whole:
        name, sums = largest(frames, lambda pair: pair[0])
        title += f"; {part(sums[0], whole)} of it in {name}"
    nothing = CallTree(analysis.tree.denominator)
    lines = line_graph(Pair(analysis.tree, nothing), Pair([], []))
    return _graph(analysis, title, HOW_ONE, (frames, lines), ("control",))


def _what(subject: Scaled) -> str:
    return "GPU time" if subject.has_gpu else "Self time of operators"


def _graph(
    subject: Scaled, title: str, subtitle: str, graphs: tuple[list[Frame], list[Frame]], sides: Sequence[str]
) -> Drawing:
    """The flame graph of frames by their callers and by their lines; without the latter where no line is known."""
    frames, lines = graphs
    if not any(amount for f in frames for pair in f.quantities for amount in pair):
        return Drawing("No work belongs to a recorded call, so there is no flame graph.")
    names = Names()
    data: dict[str, Any] = {"title": title, "sides": list(sides), "gpu": subject.has_gpu, "kinds": list(KINDS)}
    data |= _columns(frames, names, len(sides), subject.scale)
    if any(frame.kind == "line" and frame.name != UNKNOWN for frame in lines):
        data["lines"] = _columns(lines, names, len(sides), subject.scale)
    return Drawing(title, subtitle, {**data, "names": names.texts})


def _columns(frames: list[Frame], names: Names, sides: int, scale: int) -> dict[str, Any]:
    """The frames that are shown, and how small those are that are not."""
    displayed, least = pruned(frames)
    columns: dict[str, list[Any]] = {
        "parent": [k - frame.parent for k, frame in enumerate(displayed)],
        "kind": [KINDS.index(frame.kind) for frame in displayed],
        "name": [names.code(frame.name) for frame in displayed],
        "instance": [-1 if frame.instance is None else frame.instance for frame in displayed],
        "shapes": [names.code(frame.shapes) for frame in displayed],
        "left_out": [frame.left_out for frame in displayed],
    }
    for name in ("work", "host", "count"):
        columns[name] = [[_scaled(getattr(frame, name)[k], scale) for frame in displayed] for k in range(sides)]
    return {"least": least, "frames": columns}


def _scaled(numerator: int, scale: int) -> float:
    """A number of ns or events, rounded to a thousandth to shorten the JSON."""
    amount = round(numerator / scale, 3)
    return int(amount) if amount == int(amount) else amount
