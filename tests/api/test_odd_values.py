"""Whatever value an event carries: it is read, compared and analysed, and what was dropped is counted."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from odd_values import DIGITS, Raw, every_kind, mutated, mutations

import tracediff
from tracediff.aggregate.traceset import TraceSet
from tracediff.errors import TracediffError

SECOND_STEP = {
    (e["cat"], e["name"]): i for i, e in enumerate(every_kind()["traceEvents"]) if 1000 <= e["ts"] < 2000 and "cat" in e
}


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> TraceSet:
    path = tmp_path_factory.mktemp("usual") / "trace.json"
    path.write_text(json.dumps(every_kind()))
    return tracediff.load(path, tables=["all"])


def answers(usual: TraceSet, path: Path) -> TraceSet | str:
    """The set at ``path``, after everything that is computed from it; the line with which it is refused."""
    try:
        odd = tracediff.load(path, tables=["all"])
        for pair in ((usual, odd), (odd, usual)):
            diff = tracediff.compare(*pair, force=True, tables=["all"])
            assert diff.to_json()
            assert diff.to_markdown()
        assert tracediff.analyze(odd, tables=["all"]).to_json()
    except TracediffError as error:
        line = str(error)
    else:
        return odd
    assert "\n" not in line
    return line


def event(cat: str, name: str, *path: Any) -> tuple[Any, ...]:
    return "traceEvents", SECOND_STEP[cat, name], *path


STEP, OP = ("user_annotation", "ProfilerStep#2"), ("cpu_op", "aten::mm")


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        (event(*STEP, "name"), f"ProfilerStep#{'1' * 30}", "odd-step"),
        (event(*STEP, "dur"), 0, ""),
        (event("cpu_op", "Torch-Compiled Region: 0/1", "name"), f"Torch-Compiled Region: 0/{DIGITS}", ""),
        (event("python_function", "nn.Module: Linear_0", "name"), f"nn.Module: Linear_{DIGITS}", ""),
        (event(*OP, "tid"), "²", ""),
        (event(*OP, "tid"), DIGITS, ""),
        (event(*OP, "args", "Input type"), "<b>", "odd-arguments"),
        (event(*OP, "args", "Input type"), 5, "odd-arguments"),
        (event(*OP, "args", "Input Dims"), "abc", "odd-arguments"),
        (event(*OP, "args", "Input Dims"), [[1 << 40] * 60], "odd-arguments"),
        (event(*OP, "ts"), "1e999999999999", "no-time"),
        (event(*OP, "ts"), Raw("1e999999999999"), "no-time"),
        (("baseTimeNanoseconds",), 1 << 63, "odd-metadata"),
        (("distributedInfo", "rank"), -1, "odd-metadata"),
    ],
)
def test_an_odd_event_is_noted_and_the_rest_is_answered(
    usual: TraceSet, tmp_path: Path, path: tuple[Any, ...], value: Any, code: str
) -> None:
    (tmp_path / "trace.json").write_bytes(mutated(path, value))
    odd = answers(usual, tmp_path / "trace.json")
    assert isinstance(odd, TraceSet)
    notes = {note.code for profile in odd.profiles for note in profile.notes}
    assert code in notes if code else not notes & {"odd-step", "odd-arguments", "no-time", "odd-metadata", "damaged"}


@pytest.mark.slow
def test_any_field_may_have_any_value(usual: TraceSet, tmp_path: Path) -> None:
    draw = random.Random(17)
    for description, path, value in draw.sample(list(mutations()), 30):
        (tmp_path / "trace.json").write_bytes(mutated(path, value, everywhere=draw.random() < 0.5))
        print(description)  # shown where it fails
        answers(usual, tmp_path / "trace.json")
