"""Recordings without steps that hold other amounts of the same work."""

from __future__ import annotations

import pytest
from build_trace import call, document, kernel, op, step, write

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
