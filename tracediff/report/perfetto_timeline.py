"""`Comparison` → a small Chrome trace of what its timeline shows, for the HTML report, which has no events
(docs/perfetto.md).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tracediff.aggregate.representative_step import TypicalStep
from tracediff.diff.comparison import Comparison
from tracediff.formatting import plural
from tracediff.profile.step_states import state_label
from tracediff.profile.timeline import KINDS
from tracediff.report.perfetto_step import Event, Ids, bounded_text, encoded, process_events, thread_events, us
from tracediff.report.to_perfetto import SIDES, STATE_ROW, document, overview
from tracediff.version import VERSION

LONGEST_NAME = 400
"""Characters of the name of a mark."""


def timeline_trace(comparison: Comparison) -> str | None:
    """Chrome trace JSON of the typical steps of both sides, each beginning at 0: states, explanation, memory, and the
    marks of streams and threads, in which short events are merged. None where a side is a snapshot.
    """
    sides = (comparison.control, comparison.test)
    typical = [side.typical for side in sides if side.typical is not None]
    if len(typical) < len(sides):
        return None
    ids = Ids()
    events = list(overview(comparison, typical, ids))
    for name, side, step in zip(SIDES, sides, typical, strict=True):
        events += _marks(step, f"{name}: {side.label}", ids)
    return document({"tracediff": VERSION, "short events": "merged"}, map(encoded, events))


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
    columns = [column.tolist() for column in (marks.row, marks.start, ends, marks.kind, marks.count, marks.busy)]
    for row, start, end, kind, count, busy, name in zip(*columns, marks.name, strict=True):
        if row in threads:
            shown = bounded_text(name[:LONGEST_NAME])
            args = {"longest": shown, "together (µs)": us(busy)} if count > 1 else {}
            yield {
                "ph": "X",
                "name": plural(count, "event") if count > 1 else shown,
                "cat": state_label(KINDS[kind], False),
                "pid": pid,
                "tid": threads[row],
                "ts": us(start),
                "dur": us(end - start),
                "args": args,
            }
