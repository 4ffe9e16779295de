"""GPU events, joined to the runtime or driver call that launched each, and through it to a step."""

from __future__ import annotations

import numpy as np

from tracediff.arrays import MISSING, Int64, distinct, last_equal, sorted_by, values_at
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import EventSpans, Trace
from tracediff.profile.kernels.match_names import numbered
from tracediff.profile.placement.steps import NO_STEP, Steps
from tracediff.runtimes import ARGUMENT, is_communication, is_launch

NOT_RECORDED = "gpu-not-recorded"
"""Code of the health note on a file whose launches have no GPU event."""
COMPUTES, COMMUNICATES, COPIES = range(3)
SPILLED = -2
"""Step position of a GPU event whose launch is not in the file."""


class GpuEvents(EventSpans, kw_only=True):
    """The GPU events of one file, g of them.

    Attributes:
        device, stream: int64[g] numbers, MISSING where not recorded.
        launch: int64[g] row of the launching call, −1 where spilled.
        state: int64[g] whether it COMPUTES, COMMUNICATES or COPIES; positions in `step_states.STATES`.
        step: int64[g] step position of the launch; NO_STEP outside every step, SPILLED without a launch. All events are
            in the step of a file that counts as one.
    """

    device: Int64
    stream: Int64
    launch: Int64
    state: Int64
    step: Int64


def gpu_names(gpu: GpuEvents) -> dict[int, str]:
    """Device → its name in tables; the only GPU of a file has no number, as its number depends on the rank."""
    devices = distinct(gpu.device).tolist()
    return {d: numbered("GPU", d) if len(devices) > 1 else "GPU" for d in devices}


def gpu_events(trace: Trace, steps: Steps, notes: Notes) -> GpuEvents:
    """Join the GPU events of ``trace`` to their launches and steps."""
    rows = trace.complete(cat.GPU)
    launch = _launches(trace, rows, notes)
    step = np.where(launch >= 0, steps.positions_at(trace.ts[launch]), SPILLED)
    step[:] = 0 if steps.whole_file else step
    notes.add(
        "spilled-kernels",
        "GPU events have no launch in the file (launched before the recording, or the launch is missing)",
        np.count_nonzero(step == SPILLED),
    )
    if not len(rows):
        calls = trace.complete(cat.CALLS)
        launches = trace.name_matches(is_launch, calls).sum()
        notes.add(NOT_RECORDED, "launches have no GPU event in the file: GPU activity was not recorded", launches)
    notes.add("outside-steps", "GPU events were launched outside every step", np.count_nonzero(step == NO_STEP))
    device, stream = (trace.integer_column(number, *cat.GPU)[rows] for number in (ARGUMENT.device, ARGUMENT.stream))
    state = np.where(trace.name_matches(is_communication, rows), COMMUNICATES, COMPUTES)
    state[trace.category[rows] != cat.KERNEL] = COPIES
    spans = trace.spans(rows)
    return GpuEvents(
        *spans, trace=trace, rows=rows, device=device, stream=stream, launch=launch, state=state, step=step
    )


def _launches(trace: Trace, gpu_rows: Int64, notes: Notes) -> Int64:
    """int64[g]: the row of the call, or operator where no call is recorded, with the same correlation; of several the
    latest to start.
    """
    correlation = trace.integer_column(ARGUMENT.correlation, *cat.OPS, *cat.GPU)
    calls = trace.complete(cat.OPS)
    calls = calls[correlation[calls] != MISSING]
    calls = sorted_by(calls, trace.category, trace.dur, trace.ts, correlation)
    correlations, gpu_correlations = correlation[calls], correlation[gpu_rows]
    twins = correlations[1:][correlations[1:] == correlations[:-1]]
    twins = twins[last_equal(np.sort(gpu_correlations), twins) >= 0]
    notes.add("duplicate-correlation", "launches share a correlation id; the latest one was used", len(twins))
    return values_at(calls, last_equal(correlations, gpu_correlations))
