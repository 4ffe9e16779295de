"""What holds for every input, however odd."""

from __future__ import annotations

from typing import Any

import msgspec
from build_trace import rows

from tracediff.diff.comparison import Comparison
from tracediff.errors import TracediffError, printable
from tracediff.ingest.syntax import NOT_JSON
from tracediff.ingest.trace import Trace

DROPPED = ("no-time", "damaged")
"""Health notes of events that were left out."""


class Fault(AssertionError):
    """An invariant that does not hold."""


def require(holds: object, what: str) -> None:
    """Check one of them.

    Raises:
        Fault: it does not hold.
    """
    if not holds:
        raise Fault(what)


def one_line(error: TracediffError) -> None:
    """An error is one line that says where, what and what to do."""
    text = str(error)
    require(text == printable(text) and "\n" not in text and len(text) < 2000, f"no line: {text[:200]!r}")
    require(error.subject and error.reason and error.remedy, f"no remedy: {text[:200]!r}")


def counted(trace: Trace, content: bytes) -> None:
    """Events kept and dropped are the events there are, in a file that is JSON."""
    try:
        document = msgspec.json.decode(content)  # as strict as the standard: half a character is damage
    except NOT_JSON:
        return
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list) or content.count(b'"traceEvents"') > 1:
        return
    if any(note.code == "truncated" for note in trace.notes):  # says that events are missing, not how many
        return
    dropped = sum(note.count for note in trace.notes if note.code in DROPPED)
    require(len(trace) + dropped == len(events), f"{len(trace)} kept + {dropped} dropped of {len(events)} events")


def same_reading(whole: Trace, pieces: Trace) -> None:
    """What is read does not depend on where chunks end."""
    require(len(whole) == len(pieces), f"chunks: {len(whole)} and {len(pieces)} events")
    require(_noted(whole) == _noted(pieces), f"chunks: {_noted(whole)} and {_noted(pieces)}")
    require(rows(whole) == rows(pieces), "chunks: other events")


def _noted(trace: Trace) -> dict[str, int]:
    found: dict[str, int] = {}
    for note in trace.notes:
        found[note.code] = found.get(note.code, 0) + note.count
    return found


def closes(comparison: Comparison) -> None:
    """Both accounts close exactly."""
    step, gpu, host = comparison.step_time, comparison.gpu_time, comparison.host_time
    require(step.residual == 0, f"residual of the step: {step.residual}")
    require(sum(s.control for s in step.states) == step.control, "states of control")
    require(sum(s.test for s in step.states) == step.test, "states of test")
    parts = gpu.matched + gpu.placed + gpu.added + gpu.removed + gpu.unattributed
    require(parts == gpu.delta, f"GPU account: {parts} of {gpu.delta}")
    require(host.matched + host.placed + host.added + host.removed == host.delta, "host account")
    require(all(sum(g.parts) == g.delta for g in gpu.groups), "parts of a group")


def mirrors(forth: Comparison, back: Comparison) -> None:
    """diff(a, b) = −diff(b, a)."""
    require(_signed(forth, 1) == _signed(back, -1), "swapped sides differ")


def _signed(comparison: Comparison, sign: int) -> dict[str, Any]:
    gpu = comparison.gpu_time
    added, removed = (gpu.added, gpu.removed) if sign > 0 else (-gpu.removed, -gpu.added)
    return {
        "scale": comparison.scale,
        "step": sign * comparison.step_time.delta,
        "states": {s.name: sign * s.delta for s in comparison.step_time.states if s.delta},
        "gpu": sign * gpu.delta,
        "added": added,
        "removed": removed,
        "ops": sorted((op.name, op.category, sign * op.delta) for op in comparison.ops if op.delta),
    }
