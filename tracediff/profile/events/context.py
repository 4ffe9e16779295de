"""`Context`: the events of one file, joined and nested, from which its tables and timelines are built."""

from collections.abc import Sequence
from functools import cached_property

from tracediff.arrays import Int64
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import Trace
from tracediff.profile.events.step_states import StepAccount, step_account
from tracediff.profile.kernels.families import Families
from tracediff.profile.placement.calls import Calls, build_calls
from tracediff.profile.placement.captures import Capture, with_replayed
from tracediff.profile.placement.gpu_events import GpuEvents, gpu_events
from tracediff.profile.placement.nesting import Lane, Lanes, Painting, build_lanes
from tracediff.profile.placement.scopes import collective_waits
from tracediff.profile.placement.steps import Steps, find_steps
from tracediff.structs import FrozenStruct


class Context(FrozenStruct, kw_only=True, dict=True):
    """The events of one file with steps, launches, lanes and calls; see the classes of its fields.

    Attributes:
        completions: int64[s + 1] ns, see `Steps.completions`.
        collectives: where the host waits for its own.
        launching_node: int64[g] node of the call that launched each GPU event, of a graph replay from the graph's
            capture or annotations; −1 for none.
    """

    trace: Trace
    steps: Steps
    completions: Int64
    gpu: GpuEvents
    lanes: Lanes
    families: Families
    collectives: Painting
    calls: Calls
    launching_node: Int64

    @property
    def ops(self) -> Lane:
        """The lane of operators and calls."""
        return self.lanes.ops

    @cached_property
    def account(self) -> StepAccount:
        """The state of each instant of its steps."""
        return step_account(self)


def build_context(
    trace: Trace, step_marker: str | None, families: Families, notes: Notes, captures: Sequence[Capture] = ()
) -> Context:
    """The context of a trace, for the tables of a profile, `build_timeline` and `follow`.

    Raises:
        TracediffError: the marker is not a regular expression, or matches no annotation.
    """
    steps = find_steps(trace, step_marker, notes)
    if steps.whole_file:
        notes.add("no-steps", "no ProfilerStep in the file: the whole file counts as one step")
    gpu = gpu_events(trace, steps, notes)
    lanes = build_lanes(trace, notes)
    calls = build_calls(steps, lanes, notes)
    calls, launching_node = with_replayed(trace, gpu, calls, captures, notes)
    return Context(
        trace=trace,
        steps=steps,
        completions=steps.completions(gpu.start, gpu.end, gpu.step),
        gpu=gpu,
        lanes=lanes,
        families=families,
        collectives=collective_waits(lanes),
        calls=calls,
        launching_node=launching_node,
    )
