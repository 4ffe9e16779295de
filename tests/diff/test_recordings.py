"""Recordings without steps that hold other amounts of the same work."""

from __future__ import annotations

import pytest
from build_trace import annotation, call, document, kernel, op, step, write

import tracediff

KERNELS = ("flash_fwd", "sm90_gemm", "layer_norm", "copy_kernel")


def recording(units, period=1000, with_steps=False):
    """``units`` times the same four kernels, each of 100 µs."""
    events = [step(1, 0, units * period)] if with_steps else []
    for n in range(units):
        for k, name in enumerate(KERNELS):
            start, number = period * n + 200 * k, 10 * n + k
            events += [op(f"aten::{name}", start, 50), call("cudaLaunchKernel", start + 5, 10, number)]
            events.append(kernel(name, start + 60, 100, number))
    return events


def findings(tmp_path, control, test):
    sides = [write(tmp_path / f"{name}.json", document(e)) for name, e in (("a", control), ("b", test))]
    return tracediff.compare(*map(str, sides)).findings


def test_the_first_finding_says_how_long_as_much_work_takes(tmp_path):
    """17 units in the time of 20: each takes 1.18 times as long."""
    first = findings(tmp_path, recording(20), recording(17, 1176))[0]
    assert first.code == "workload-changed"
    assert first.title.startswith("b holds 0.85 times as much of the same work as a, and takes about 17")
    assert first.title.endswith(" % longer for as much")
    assert "missing-work" not in {f.code for f in findings(tmp_path, recording(20), recording(17, 1176))}


def test_work_that_only_one_recording_reached_is_part_of_that(tmp_path):
    """The 18th to 20th time, some of which no pair is found for, is no work that the program lost."""
    control, test = recording(20), [e for e in recording(17, 1176) if e["ts"] < 1176 * 16]
    found = findings(tmp_path, control, test)
    assert found[0].code == "workload-changed"
    assert "count-change" not in {f.code for f in found}


def test_times_of_recordings_are_of_the_whole_file(tmp_path):
    files = [
        str(write(tmp_path / f"{name}.json", document(recording(20, p)))) for name, p in (("a", 1000), ("b", 1300))
    ]
    difference = tracediff.compare(*files).verdict.difference
    assert difference == "b is 29 % slower over the whole file"


def marked(tail):
    """Four annotations ``mark`` of 100 µs with a kernel launched in each, and ``tail`` launched behind each."""
    events = []
    for n in range(4):
        t = 10_000 * n
        events += [annotation("mark", t, 100), call("cudaLaunchKernel", t + 5, 10, 100 * n)]
        events.append(kernel("inside", t + 20, 50, 100 * n))
        for k in range(tail):
            events += [call("cudaLaunchKernel", t + 200 + 100 * k, 10, 100 * n + k + 1)]
            events.append(kernel("behind", t + 250 + 100 * k, 50, 100 * n + k + 1))
    return [*events, annotation("mark", 40_000, 100), call("cudaLaunchKernel", 40_005, 10, 999)]


@pytest.mark.parametrize(("tail", "is_caution"), [(0, False), (5, True)])
def test_work_behind_the_markers_is_a_caution(tmp_path, tail, is_caution):
    """A marker that ends before the launches makes steps of almost no work."""
    path = str(write(tmp_path / "a.json", document(marked(tail))))
    marked_set = tracediff.load(path, step_marker="mark")
    reasons = {r.code for r in tracediff.compare(marked_set, marked_set).comparability.reasons}
    assert ("outside-steps" in reasons) == is_caution


def ranks(tmp_path, name, periods):
    for rank, period in enumerate(periods):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        write(folder / f"rank{rank}.json", document(recording(8, period)))
    return str(tmp_path / name)


@pytest.mark.parametrize(
    ("control", "test", "is_caution"),
    [((1001, 1000), (1000, 1001), True), ((1001, 1000), (1001, 1000), False), ((1500, 1000), (1000, 1500), False)],
)
def test_steps_of_other_ranks_are_a_caution_where_the_choice_is_chance(tmp_path, control, test, is_caution):
    sides = ranks(tmp_path, "a", control), ranks(tmp_path, "b", test)
    found = [r for r in tracediff.compare(*sides).comparability.reasons if r.code == "slowest-rank"]
    assert [(r.control, r.test) for r in found] == [("0", "1")] * is_caution


@pytest.mark.parametrize(
    ("control", "test"),
    [
        (recording(20), recording(20, 1200)),
        (recording(20, with_steps=True), recording(17, with_steps=True)),
        (recording(20), [e for e in recording(20) if "flash" not in e["name"]]),
    ],
)
def test_as_much_work_or_work_of_a_step_is_no_other_amount(tmp_path, control, test):
    assert not [f for f in findings(tmp_path, control, test) if "as much of the same work" in f.title]
