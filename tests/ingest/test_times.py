"""Microseconds, however a trace spells them, become exact nanoseconds; `decimal.Decimal` is the slow reference."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest
from build_trace import document, event, op, text
from hypothesis import given, strategies as st

from tracediff.arrays import MISSING
from tracediff.errors import TracediffError
from tracediff.ingest.model.times import EXACT_US, LARGEST_US, LONGEST_US, Inexact, from_numbers, from_text, number


def nanoseconds(written: str) -> int:
    return int((Decimal(written) * 1000).to_integral_value(ROUND_HALF_EVEN))


THOUSANDTHS = st.integers(-(EXACT_US - 1) * 1000, (EXACT_US - 1) * 1000)
"""Nanoseconds below the bound under which float64 microseconds are exact."""


@given(ns=st.lists(THOUSANDTHS, min_size=1))
def test_floats_below_the_bound_are_exact(ns: list[int]) -> None:
    written = [f"{Decimal(n) / 1000:.3f}" for n in ns]
    assert from_numbers([float(w) for w in written]).tolist() == ns


@given(us=st.lists(st.integers(1 - LARGEST_US, LARGEST_US - 1), min_size=1))
def test_whole_microseconds_are_exact(us: list[int]) -> None:
    assert from_numbers(us).tolist() == [u * 1000 for u in us]


@given(us=st.decimals(1 - LARGEST_US, LARGEST_US - 1, places=3), form=st.sampled_from(["{}", '"{}"', "{:.6f}", "{:E}"]))
def test_text_is_exact_whatever_its_form(us: Decimal, form: str) -> None:
    assert from_text([form.format(us).encode()]).tolist() == [nanoseconds(str(us))]


@pytest.mark.parametrize(
    "beyond",
    [
        float(EXACT_US) + 0.5,
        -float(EXACT_US),
        LARGEST_US,
        -LARGEST_US,
        2**63,
        2**64,
        -(2**70),
        10**400,
        float("nan"),
        float("inf"),
    ],
)
def test_what_numbers_cannot_hold_is_never_rounded(beyond: float) -> None:
    for values in ([beyond], [1.5, beyond], [1, beyond]):
        with pytest.raises(Inexact):
            from_numbers(values)


NO_TIMES = [
    b"",
    b"null",
    b"true",
    b'"abc"',
    b"[1]",
    b"NaN",
    b"Infinity",
    b"1e400",
    b"-1e400",
    str(LARGEST_US).encode(),
    b"1_0",
    b"9" * 30,
    b'"\xff"',
    b"1 2",
]


@pytest.mark.parametrize("written", NO_TIMES)
def test_text_that_is_no_time_is_missing(written: bytes) -> None:
    assert from_text([written]).tolist() == [MISSING]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (b"5", 5),
        (b'"5"', 5),
        (b"-5.25", -5.25),
        (b'"1e3"', 1000.0),
        (b"1e400", None),
        (b"nan", None),
        (b"1_0", None),
        (b"", None),
    ],
)
def test_numbers_are_read_also_from_strings(written: bytes, found: float | None) -> None:
    assert number(written) == found


EPOCH = st.decimals(1_600_000_000_000_000, 1_900_000_000_000_000, places=3)
SMALL = st.decimals(0, 10**9, places=3)


@pytest.mark.parametrize("spelling", ["number", "text"])
@given(
    starts=st.lists(EPOCH | SMALL | EPOCH.map(int), min_size=1, max_size=20), dur=SMALL, chunk=st.integers(200, 3000)
)
def test_a_trace_is_exact_whatever_clock_it_has(
    read, codes, spelling: str, starts: list[Decimal], dur: Decimal, chunk: int
) -> None:
    """Small and epoch times mixed, so that the switch from numbers to text falls anywhere."""
    quote = '"' if spelling == "text" else ""
    events = ",".join(
        f'{{"ph":"X","cat":"cpu_op","name":"a","ts":{quote}{s}{quote},"dur":{quote}{dur}{quote}}}' for s in starts
    )
    found = read(f'{{"traceEvents":[{events}]}}'.encode(), chunk)
    assert found.ts.dtype == found.dur.dtype == np.int64
    assert found.ts.tolist() == [nanoseconds(str(s)) for s in starts]
    assert found.dur.tolist() == [nanoseconds(str(dur))] * len(starts)
    assert codes(found).get("no-time") is None


def test_a_clock_that_turns_fractional_late_is_exact_before_and_after(read) -> None:
    starts = [1712195495519000 + i for i in range(50)] + [Decimal("1712195495519689.047")]
    written = [json.dumps(op("a", 0, 1.5)).replace('"ts": 0', f'"ts": {s}') for s in starts]
    for chunk in (300, 1 << 20):
        assert read(f"[{','.join(written)}]".encode(), chunk).ts.tolist() == [nanoseconds(str(s)) for s in starts]


def test_negative_starts_are_kept(read) -> None:
    assert read(text(document([op("a", -5, 1), op("b", -2.125, 1)]))).ts.tolist() == [-5000, -2125]


@pytest.mark.parametrize("start", [None, "soon", [1], {"a": 1}, True, 2**52, -(2**63), 2**63, 2**80, 10**400])
def test_events_without_a_usable_start_are_left_out_and_counted(read, codes, start: object) -> None:
    found = read(text(document([op("a", 1, 1), op("b", start, 1), op("c", 3, 1)]), "compact"))
    assert [found.names[i] for i in found.name.tolist()] == ["a", "c"]
    assert codes(found)["no-time"] == 1


def test_a_missing_start_is_left_out_and_a_missing_duration_is_zero_and_both_are_counted(read, codes) -> None:
    events = [
        op("a", 1, 1),
        {k: v for k, v in op("b", 2, 1).items() if k != "ts"},
        {k: v for k, v in op("c", 3, 1).items() if k != "dur"},
    ]
    found = read(text(document(events)))
    assert (found.ts.tolist(), found.dur.tolist()) == ([1000, 3000], [1000, 0])
    assert codes(found) == {"no-time": 1, "no-duration": 1}


@pytest.mark.parametrize(
    ("dur", "code"),
    [
        (None, "no-duration"), ("long", "no-duration"), ([1], "no-duration"),
        (-1, "negative-duration"), (-0.5, "negative-duration"), (-(2**62), "negative-duration"),
        (LONGEST_US + 1, "endless"), (float(2**60), "endless"),
        (2**63, "endless"), (18446744073709551615, "endless"), (10**400, "endless"),
    ],
)  # fmt: skip
def test_impossible_durations_are_zero_and_counted(read, codes, dur: object, code: str) -> None:
    found = read(text(document([op("a", 1, 2.5), op("b", 2, dur), op("c", 3, 1)]), "compact"))
    assert found.dur.tolist() == [2500, 0, 1000]
    assert codes(found)[code] == 1


def test_only_complete_events_have_a_duration(read) -> None:
    events = [
        op("a", 1, 1),
        {**op("b", 2, 5), "ph": "i"},
        {**event("x", "c", 3, 5), "ph": "B"},
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "x"}},
    ]
    assert read(text(document(events))).dur.tolist() == [1000, MISSING, MISSING, MISSING]


def test_durations_that_could_overflow_their_sum_are_refused(read) -> None:
    with pytest.raises(TracediffError, match="add up to more than"):
        read(text(document([op("a", i, LONGEST_US - 1) for i in range(3000)]), "compact"))
