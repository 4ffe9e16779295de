"""`Gate` → workflow commands, which GitHub shows as annotations."""

from __future__ import annotations

from tracediff.diff.gate.judge import INCONCLUSIVE, PASS, REGRESSION, WAIVED, Gate, Judged
from tracediff.errors import printable
from tracediff.present.check import explanation, sentence, subject

LEVELS = {REGRESSION: "error", INCONCLUSIVE: "warning", WAIVED: "notice"}
MOST = 10
"""Annotations per level that GitHub shows for a workflow step."""


def to_github(gate: Gate) -> str:
    """A line for each limit that did not pass; a single line if all passed or none was decided."""
    if gate.stopping:
        return _command("warning", f"tracediff: {gate.result.replace('-', ' ')}", sentence(gate))
    lines = [_annotation(judged) for result in LEVELS for judged in gate.with_result(result)[:MOST]]
    return "".join(lines) or _command("notice", f"tracediff: {PASS}", sentence(gate))


def _annotation(judged: Judged) -> str:
    return _command(LEVELS[judged.result], f"tracediff: {judged.result} of {subject(judged)}", explanation(judged))


def _command(level: str, title: str, message: str) -> str:
    return f"::{level} title={_property(printable(title))}::{_data(printable(message))}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
