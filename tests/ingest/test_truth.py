"""Every fact of TRUTH.tsv (computed from the raw JSON by a slow, plain reader), from our columns, to the last printed
digit.
"""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pytest
from traces import NAMES, needs_traces, trace, truth

from tracediff.arrays import union
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import Trace
from tracediff.ingest.read import read_trace
from tracediff.profile.build import build_profile
from tracediff.profile.model.profile import Profile
from tracediff.profile.placement.gpu_events import SPILLED, gpu_events
from tracediff.profile.placement.steps import NO_STEP, find_steps


def ms(nanoseconds: int) -> str:
    return f"{Decimal(int(nanoseconds)) / 1_000_000:.3f}"


def named(trace: Trace, rows: np.ndarray, pattern: str) -> np.ndarray:
    """The rows whose name matches."""
    matches = np.array([bool(re.search(pattern, name, re.IGNORECASE)) for name in trace.names])
    return rows[matches[trace.name[rows]]]


def event_facts(trace: Trace) -> dict[str, object]:
    """The facts that need no steps."""

    def complete(*categories: int) -> np.ndarray:
        return np.flatnonzero(np.isin(trace.category, categories) & (trace.dur >= 0))

    end = trace.ts + trace.dur
    kernels, gpu, calls = complete(cat.KERNEL), complete(*cat.GPU), complete(*cat.CALLS)
    nccl = named(trace, kernels, "nccl|rccl")
    device = trace.integer_column("device", *cat.GPU)[gpu]
    annotations = (
        [cat.ANNOTATION] if "oldformat_listroot" in trace.file.path else []
    )  # which that file, and so TRUTH, has as operators
    host = complete(cat.CPU_OP, cat.PYTHON, *cat.CALLS, *annotations)
    return {
        "events": len(trace),
        "kernels": len(kernels),
        "gpu_events": len(gpu),
        "kernel_ms": ms(trace.dur[kernels].sum()),
        "gpu_busy_ms": ms(
            sum(union(trace.ts[gpu[device == d]], end[gpu[device == d]]).ns.sum() for d in np.unique(device))
        ),
        "nccl_n": len(nccl),
        "nccl_ms": ms(trace.dur[nccl].sum()),
        "launches": len(named(trace, calls, "Launch(Cooperative)?Kernel|ModuleLaunchKernel")),
        "graph_launches": len(named(trace, np.flatnonzero(trace.dur >= 0), "^(cuda|hip|cu)GraphLaunch$")),
        "host_span_ms": ms(end[host].max() - trace.ts[host].min()) if len(host) else ms(0),
    }


def step_facts(trace: Trace) -> dict[str, object]:
    """The facts about steps, and which GPU events are in none of them."""
    steps = find_steps(trace, None, Notes())
    gpu = gpu_events(trace, steps, Notes())
    dur = gpu.end - gpu.start
    in_step = [gpu.step == s for s in range(len(steps))]
    # a file without ProfilerStep is one step here, and TRUTH calls its GPU events spilled, or else outside
    spilled = gpu.launch < 0
    outside = ~spilled & ((gpu.step == NO_STEP) | steps.whole_file)
    return {
        "spill_n": int(spilled.sum()),
        "spill_ms": ms(dur[spilled].sum()),
        "outside_n": int(outside.sum()),
        "outside_ms": ms(dur[outside].sum()),
        "steps": "" if steps.whole_file else ",".join(map(str, steps.numbers.tolist())),
        "step_wall_ms": "" if steps.whole_file else ",".join(map(ms, steps.end - steps.start)),
        "step_gpu_n": "" if steps.whole_file else ",".join(str(int(s.sum())) for s in in_step),
        "step_gpu_ms": "" if steps.whole_file else ",".join(ms(dur[s].sum()) for s in in_step),
    }


def without_empty_last_step(row: dict[str, str]) -> dict[str, str]:
    """TRUTH's row less its last step, in which nothing ran."""
    lists = {k: row[k].split(",") for k in ("steps", "step_wall_ms", "step_gpu_n", "step_gpu_ms")}
    assert lists["step_gpu_n"][-1] == "0"
    return row | {k: ",".join(v[:-1]) for k, v in lists.items()}


@pytest.fixture(scope="module", params=NAMES)
def case(request: pytest.FixtureRequest) -> tuple[Trace, Profile, dict[str, str]]:
    """A real trace, its profile, and its row of TRUTH.tsv as it should come out here."""
    read = read_trace(str(trace(request.param)))
    profile = build_profile(read)
    row = truth()[request.param]
    empty_last = any(note.code == "empty-step" for note in profile.notes)
    return read, profile, without_empty_last_step(row) if empty_last else row


@needs_traces
def test_every_fact_agrees_with_the_raw_json(case: tuple[Trace, Profile, dict[str, str]]) -> None:
    read, _, row = case
    found = {k: str(v) for k, v in (event_facts(read) | step_facts(read)).items()}
    assert found == {k: v for k, v in row.items() if k != "file"}


@needs_traces
def test_the_profile_keeps_every_gpu_event_and_every_step(case: tuple[Trace, Profile, dict[str, str]]) -> None:
    _, profile, row = case
    kernels = profile.kernels
    in_step = [kernels.step == s for s in range(len(profile.step_numbers))]
    assert sum(profile.events.values()) == int(row["events"])
    assert int(kernels.count.sum()) == int(row["gpu_events"])
    assert ms(kernels.total_ns[kernels.category == cat.KERNEL].sum()) == row["kernel_ms"]
    if profile.whole_file:
        assert row["steps"] == ""
        assert [int(kernels.count[s].sum()) for s in in_step] == [int(row["gpu_events"])]
    else:
        assert int(kernels.count[kernels.step == SPILLED].sum()) == int(row["spill_n"])
        assert ",".join(map(str, profile.step_numbers.tolist())) == row["steps"]
        assert ",".join(map(ms, profile.host_ns)) == row["step_wall_ms"]
        assert ",".join(str(int(kernels.count[s].sum())) for s in in_step) == row["step_gpu_n"]
        assert ",".join(ms(kernels.total_ns[s].sum()) for s in in_step) == row["step_gpu_ms"]


@needs_traces
def test_real_traces_are_read_without_damage(case: tuple[Trace, Profile, dict[str, str]]) -> None:
    dropped = {
        "damaged",
        "repaired",
        "truncated",
        "tail-damaged",
        "head-damaged",
        "no-time",
        "no-duration",
        "odd-arguments",
        "odd-metadata",
        "odd-fields",
        "unread-device",
    }
    assert not [note for note in case[0].notes if note.code in dropped]


def test_the_list_of_traces_is_the_table_of_truth() -> None:
    assert set(NAMES) == set(truth())
