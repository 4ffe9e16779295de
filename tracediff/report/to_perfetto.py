"""`Comparison` → one trace of both sides' typical steps, each beginning at 0, as Perfetto and chrome://tracing open it
(docs/perfetto.md).
"""

import gzip
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tracediff import __version__, bounds
from tracediff.aggregate.averages import TypicalStep
from tracediff.aggregate.summary import Side
from tracediff.arrays import tuples
from tracediff.diff.comparison import Comparison
from tracediff.errors import TracediffError
from tracediff.formatting import ARROW, plural
from tracediff.present.explanation_lines import INNER, explanation_table, sentence
from tracediff.profile.events.step_states import state_label
from tracediff.profile.model.profile import Timeline
from tracediff.profile.timeline import KINDS
from tracediff.report.perfetto_step import (
    AMOUNT,
    MARK,
    SPAN,
    Event,
    Ids,
    StepEvents,
    bounded_text,
    encoded,
    placed_event,
    process_events,
    step_events,
    thread_events,
    us,
)
from tracediff.structs import SIDES, FrozenStruct
from tracediff.write import StrPath, write_bytes, write_text

STATE_ROW = 0
"""The row of states in a timeline."""


class MergedTrace(FrozenStruct):
    """One trace of two steps.

    Attributes:
        text: Chrome trace JSON, one event per line, times in µs with three decimals.
        summary: what is in it, in a line.
    """

    text: str
    summary: str

    def write(self, path: StrPath) -> None:
        """Write it to ``path``, compressed where that ends in ``.gz``; ``-`` is standard output.

        Raises:
            TracediffError: the folder is missing, not writable or full.
        """
        if os.fspath(path).endswith(".gz"):
            write_bytes(path, gzip.compress(self.text.encode(), 6, mtime=0))
        else:
            write_text(path, self.text)


def to_perfetto(comparison: Comparison) -> MergedTrace:
    """The typical steps of both sides with all their events, the state of each instant, memory, and the facts and
    lines of the explanation as marks.

    Raises:
        TracediffError: a side is a snapshot, its file cannot be read any more, or a step has too many events.
    """
    ids, steps = Ids(), _steps(comparison)
    missing = next((side.label for side in comparison.sides if side.typical is None), None)
    if missing is not None:
        raise TracediffError(missing, "a snapshot contains no events", "give the traces")
    lines = [encoded(event) for event in overview(comparison, steps, ids)]
    metadata: dict[str, Any] = {"tracediff": __version__}
    summaries = []
    for name, side, step in steps:
        events = step_events(step, f"{name}: {side.label}", ids)
        lines += events.lines
        metadata[name] = _metadata(side, step, events)
        without = f", without {plural(events.left_out, 'Python function')}" if events.left_out else ""
        summaries.append(f"step {step.timeline.step} of {name} ({plural(events.count, 'event')}{without})")
    return MergedTrace(document(metadata, lines), " and ".join(summaries))


Steps = list[tuple[str, Side, TypicalStep]]
"""What each side is called, the side, and its typical step."""


def _steps(comparison: Comparison) -> Steps:
    """The sides that have a typical step; a snapshot has none."""
    sides = zip(SIDES, comparison.sides, strict=True)
    return [(name, side, side.typical) for name, side in sides if side.typical is not None]


def document(metadata: dict[str, Any], events: Iterable[bytes]) -> str:
    """Chrome trace JSON, one event per line."""
    head = encoded({"displayTimeUnit": "ms", "otherData": metadata})
    return b"".join((head[:-1], b',"traceEvents":[\n', b",\n".join(events), b"\n]}\n")).decode()


def _metadata(side: Side, step: TypicalStep, events: StepEvents) -> dict[str, Any]:
    """What the file says of the origin of a side: an allow-list."""
    return {
        "label": bounded_text(side.label),
        "file": bounded_text(step.file.name),
        "rank": step.rank,
        "step": step.timeline.step,
        "gpu": [*map(bounded_text, side.gpu)],
        "torch": None if side.torch is None else bounded_text(side.torch),
        "events": events.count,
        "python_functions_left_out": events.left_out,
    }


def overview(comparison: Comparison, steps: Steps, ids: Ids) -> Iterator[Event]:
    """The process on top: rows of each side's step and states, of the explanation's lines, and of memory."""
    pid = next(ids.process)
    yield from process_events(pid, f"tracediff: {ARROW.join(comparison.labels)}")
    for name, side, step in steps:
        place = {"pid": pid, "tid": next(ids.thread)}
        yield from thread_events(**place, name=f"{name}: {side.label}")
        yield from _states(step.timeline, comparison.has_gpu, place)
    yield from _explanation(comparison, pid, ids)
    for name, _, step in steps:
        yield from _memory(step.timeline, name, pid)


def _states(timeline: Timeline, has_gpu: bool, place: dict[str, int]) -> Iterator[Event]:
    """The period of a step, and in it the state of each instant; short ones are merged, as in the timeline."""
    period = us(timeline.end - timeline.start)
    yield placed_event(SPAN, f"step {timeline.step}", "step", place, 0, dur=period, args={"period (µs)": period})
    marks = timeline.marks
    columns = tuples(marks.row, marks.start, marks.end, marks.count)
    for (row, start, end, count), name in zip(columns, marks.name, strict=True):
        if row == STATE_ROW:
            args = {"merged states": count} if count > 1 else {}
            label = bounded_text(state_label(name, has_gpu))
            yield placed_event(SPAN, label, "state", place, start, dur=us(end - start), args=args)


def _explanation(comparison: Comparison, pid: int, ids: Ids) -> Iterator[Event]:
    """A mark at 0 on a row of its own for each fact and line: viewers show one of several marks at one place."""
    if comparison.explanation is None:
        return
    table = explanation_table(comparison.explanation)
    marks: list[tuple[str, dict[str, Any]]] = [(sentence(fact.text), {}) for fact in comparison.explanation.facts]
    for level, line in table.rows:
        figures = table.figures(line)
        texts = {"why": bounded_text(line.because), **dict(zip(table.heads[1:-1], figures, strict=False))}
        args = texts | {"delta_us": line.delta_us}
        marks.append((f"{figures[-1]} {table.unit.name}  {level * INNER}{line.label}", args))
    for number, (text, args) in enumerate(marks, 1):
        place = {"pid": pid, "tid": next(ids.thread)}
        yield from thread_events(**place, name=f"why {number}")
        yield placed_event(MARK, bounded_text(text), "explanation", place, 0, args=args)


def _memory(timeline: Timeline, side: str, pid: int) -> Iterator[Event]:
    """A counter for each device."""
    for memory in timeline.memory:
        since = "" if memory.from_zero else " since the file's start"
        name = bounded_text(f"{side}: allocated on {memory.device}{since}")
        for time, allocated in tuples(memory.time, memory.allocated):
            yield placed_event(AMOUNT, name, "memory", {"pid": pid, "tid": pid}, time, args={"bytes": allocated})


def timeline_trace(comparison: Comparison) -> str | None:
    """Chrome trace JSON of the typical steps of both sides, each beginning at 0: states, explanation, memory, and the
    marks of streams and threads, in which short events are merged. None where a side is a snapshot.
    """
    ids, steps = Ids(), _steps(comparison)
    if len(steps) < len(SIDES):
        return None
    events = list(overview(comparison, steps, ids))
    for name, side, step in steps:
        events += _marks(step, f"{name}: {side.label}", ids)
    return document({"tracediff": __version__, "short events": "merged"}, map(encoded, events))


def _marks(step: TypicalStep, title: str, ids: Ids) -> Iterator[Event]:
    """A process with a row for each row of the timeline; states are in the overview."""
    timeline, pid = step.timeline, next(ids.process)
    labels = f"step {timeline.step}, rank {step.rank}, {step.file.name}"
    yield from process_events(pid, title, labels)
    threads = {row: next(ids.thread) for row in range(STATE_ROW + 1, len(timeline.rows))}
    for row, tid in threads.items():
        yield from thread_events(pid, tid, timeline.rows[row])
    marks = timeline.marks
    ends = marks.end.copy()  # viewers drop what overlaps in a row: cut where the next mark begins
    ends[:-1] = np.where(marks.row[:-1] == marks.row[1:], np.minimum(ends[:-1], marks.start[1:]), ends[:-1])
    columns = tuples(marks.row, marks.start, ends, marks.kind, marks.count, marks.busy)
    for (row, start, end, kind, count, busy), name in zip(columns, marks.name, strict=True):
        if row in threads:
            longest = bounded_text(name[: bounds.PAGE_NAME])
            args = {"longest": longest, "together (µs)": us(busy)} if count > 1 else {}
            label, category = plural(count, "event") if count > 1 else longest, state_label(KINDS[kind])
            place = {"pid": pid, "tid": threads[row]}
            yield placed_event(SPAN, label, category, place, start, dur=us(end - start), args=args)
