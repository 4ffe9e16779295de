"""Looking closer: a timeline of any window, and what hangs together with an event."""

from itertools import pairwise

import numpy as np
from build_trace import BACKWARD, call, document, kernel, op, step, write
from traces import needs_traces, trace

from tracediff import bounds
from tracediff.engine import read_context
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.timeline import build_timeline, follow


def context_of(folder, events):
    return read_context(TraceFile(str(write(folder / "trace.json", document(events)))))


def two_steps():
    out = []
    for k in range(2):
        start = 1000 * k
        out += [
            step(k, start, 900),
            op("aten::linear", start + 10, 100),
            op("aten::mm", start + 20, 60),
            call("cudaLaunchKernel", start + 30, 5, correlation=k),
        ]
        out += [kernel("gemm", start + 200, 500, correlation=k), op("aten::backward", start + 300, 50, tid=BACKWARD)]
    return out


def test_a_window_shows_what_lies_in_it(tmp_path):
    context = context_of(tmp_path, two_steps())
    whole, part = build_timeline(context, 1), build_timeline(context, 1, (1_020_000, 1_060_000))
    assert (part.start, part.end, part.step) == (1_020_000, 1_060_000, 1)
    shown = {
        (part.rows[r], n): (s, e)
        for r, n, s, e in zip(
            part.marks.row, part.marks.name, part.marks.start.tolist(), part.marks.end.tolist(), strict=True
        )
    }
    assert shown["thread 100 ops 2", "aten::mm"] == (0, 40_000)
    assert shown["thread 100 ops 3", "cudaLaunchKernel"] == (10_000, 15_000)
    assert ("GPU 0 stream 7", "gemm") not in shown
    assert "gemm" in whole.marks.name
    states = [(n, s, e) for (row, n), (s, e) in shown.items() if row == "state"]
    assert sum(e - s for _, s, e in states) == 40_000


def test_a_window_outside_every_step_has_no_state(tmp_path):
    timeline = build_timeline(
        context_of(tmp_path, [*two_steps(), op("aten::late", 5000, 10)]), 1, (4_990_000, 5_020_000)
    )
    assert [n for r, n in zip(timeline.marks.row, timeline.marks.name, strict=True) if r == 0] == []
    assert "aten::late" in timeline.marks.name


def test_a_kernel_leads_to_its_launch_and_the_operators_around_it(tmp_path):
    context = context_of(tmp_path, two_steps())
    marks = build_timeline(context, 1).marks
    event = int(marks.event[marks.name.index("gemm")])
    chain = follow(context, event)
    assert [(what, c.name) for what, c in chain] == [
        ("GPU event", "gemm"), ("launch", "cudaLaunchKernel"), ("around", "aten::mm"), ("around", "aten::linear"),
    ]  # fmt: skip
    assert [c.place for _, c in chain] == ["GPU 0 stream 7", "thread 100", "thread 100", "thread 100"]
    start = context.trace.ts[context.trace.dur >= 0].min()
    assert start + chain[0][1].at_ns == 1_200_000
    launch, around = (int(np.flatnonzero(context.trace.ts == start + c.at_ns)[0]) for _, c in chain[1:3])
    assert follow(context, launch) == chain
    assert [(what, c.name) for what, c in follow(context, around)] == [
        ("around", "aten::mm"),
        ("around", "aten::linear"),
    ]


def test_a_kernel_without_a_launch_stands_alone(tmp_path):
    context = context_of(tmp_path, [*two_steps(), kernel("spilled", 50, 10, correlation=99)])
    (event,) = np.flatnonzero(context.trace.name == context.trace.names.index("spilled"))
    assert [c.name for _, c in follow(context, int(event))] == ["spilled"]


@needs_traces
def test_closer_means_more_marks_of_a_real_trace():
    context = read_context(TraceFile(str(trace("resnet50_workers0"))))
    whole = build_timeline(context, 3)
    length = whole.end - whole.start
    part = build_timeline(context, 3, (whole.start + length // 2, whole.start + length // 2 + length // 50))
    inside = (whole.marks.end > length // 2) & (whole.marks.start < length // 2 + length // 50)
    assert whole.marks.count[inside].max() > 1 == part.marks.count.min()
    assert len(part.marks.row) <= bounds.TIMELINE_MARKS
    for event in part.marks.event[part.marks.event >= 0].tolist():
        chain = follow(context, event)
        assert all(
            a.at_ns >= b.at_ns for (one, a), (other, b) in pairwise(chain) if one != "GPU event" or other == "launch"
        )
