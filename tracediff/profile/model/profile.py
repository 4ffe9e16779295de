"""`Profile`: the summary of one file, small tables per step from which every number of a comparison is computed."""

import pickle
import zlib
from typing import Annotated, Self

import msgspec
import numpy as np
from msgspec import field

from tracediff.arrays import Int64, Spans
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.model.health import Note
from tracediff.profile.model.columns import ANY, Column, amount, key, no_rows
from tracediff.structs import FrozenStruct

Grid = np.ndarray[tuple[int, int], np.dtype[np.int64]]
Step = Annotated[Int64, key("steps")]
Node = Annotated[Int64, key("nodes", -1)]
Category = Annotated[Int64, key("categories")]
Name = Annotated[Int64, key("names")]
NameOrNone = Annotated[Int64, key("names", -1)]
Text = Annotated[Int64, key("texts", -1)]
TextOfNode = Annotated[Int64, Column(refers_to="texts", low=-1, rows="nodes", rises=True)]
Ordinal = Annotated[Int64, Column(low=-1, high=1 << 53, is_key=True)]
Count = Annotated[Int64, amount(1)]
Amount = Annotated[Int64, amount()]
OfSteps = Annotated[Int64, amount(rows="steps")]


class Origin(FrozenStruct):
    """Where a profile comes from: allow-listed facts only.

    Attributes:
        file: the trace file.
        rank, world_size: from distributedInfo, else None.
        gpus: names of the devices that ran GPU events, else of all listed.
        flags: profiler options that were on (with_stack, record_shapes, …).
        driver: CUDA or HIP driver version as recorded.
        torch: torch version, where recorded.
        gpu_count: how many devices ran GPU events.
    """

    file: TraceFile
    rank: int | None = None
    world_size: int | None = None
    gpus: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    driver: str | None = None
    torch: str | None = None
    gpu_count: int = 0


class OpTable(FrozenStruct, kw_only=True):
    """Occurrences by (step, category, name), r rows; step is a position, −1 outside every step.

    Attributes:
        step, category, name: int64[r]; name and category are codes of the profile.
        count, total_ns, self_ns: int64[r]; total counts every level of a recursion, self is time in no child of the
            same lane.
    """

    step: Annotated[Int64, key("steps", -1)]
    category: Category
    name: Name
    count: Count
    total_ns: Amount
    self_ns: Amount


class CallTable(FrozenStruct, kw_only=True):
    """The tree of calls (`calls`), k nodes, and r rows by (step, node).

    Attributes:
        parent: int64[k] node, −1 for roots; a parent comes before its children, siblings in order of first occurrence.
        kind: int64[k] index into `calls.KINDS`.
        name: int64[k] code of the profile's names; of a phase index into `scopes.PHASES`.
        shapes: int64[k] code of the profile's texts, −1 where not recorded. ordinal: int64[k] among equal siblings.
        types, strides: int64[k] codes of the profile's texts: dtypes and strides of the inputs at the first occurrence,
            −1 where not recorded. line: int64[k] code of the profile's texts: the line of code outside of torch that it
            runs for at the first occurrence, −1 where unknown.
        step, node, count, total_ns, self_ns: int64[r] occurrences of operators.
    """

    parent: Annotated[Int64, key("nodes", -1, "nodes")]
    kind: Annotated[Int64, Column(refers_to="call kinds", rows="nodes", is_key=True)]
    name: Annotated[Int64, Column(rows="nodes", is_key=True, rises=True)]
    shapes: Annotated[Int64, key("texts", -1, "nodes")]
    ordinal: Annotated[Int64, Column(high=1 << 53, rows="nodes", is_key=True)]
    types: TextOfNode
    strides: TextOfNode
    line: TextOfNode
    step: Step
    node: Annotated[Int64, key("nodes")]
    count: Count
    total_ns: Amount
    self_ns: Amount


class CompiledCalls(FrozenStruct, kw_only=True):
    """The operators that the code of compiled graphs calls itself (`compiled_calls`), c rows by node.

    Attributes:
        node: int64[c] of the call tree. graph: int64[c] code of the profile's texts: its key in inductor's cache.
        ordinal: int64[c] among the calls of this name by one run of the graph.
    """

    node: Annotated[Int64, key("nodes")]
    graph: Annotated[Int64, Column(refers_to="texts")]
    ordinal: Annotated[Int64, Column(high=1 << 53)]


class WorkTable(FrozenStruct, kw_only=True):
    """Work by (step, place, kind), r rows: GPU events, or on traces without them the self time of operators.

    Attributes:
        step: position, −1 outside every step, −2 spilled.
        node: of the call tree: the operator that launched it, else the scope around its launch; −1 where step is
            negative or nothing is known.
        category, name: codes of the profile.
        launch_shape: code of grid and block, −1 where not recorded.
        ordinal: among equal work that no operator launched, 0 for other; work.UNMATCHED where a health note keeps it
            out of matching.
        order: earliest position in the step by (stream, start).
        first_ns: start of the earliest event, in ns on the trace's own clock. lane: of that event, the stream of a GPU
            event, MISSING where not recorded; of an operator code of the profile's texts, its thread's id.
        count, total_ns: sums. size: bytes that copies and collectives move, 0 where not recorded.
    """

    step: Annotated[Int64, key("steps", -2)]
    node: Node
    category: Category
    name: Name
    launch_shape: Text
    ordinal: Ordinal
    order: Annotated[Int64, Column(rises=True, merged="least")]
    first_ns: Annotated[Int64, Column(low=ANY, rises=True, merged="first")]
    lane: Annotated[Int64, Column(low=ANY, merged="first")]
    count: Count
    total_ns: Amount
    size: Amount


class LeafTable(FrozenStruct, kw_only=True):
    """What each step waited for, by (step, leaf), r rows (`leaves`); over a step ``path_ns`` adds up to its period.

    Attributes:
        step: position of the period.
        kind: index into leaves.keys.KINDS.
        node, category, launch_shape, ordinal: of GPU events and, in a file without, of operators as in `WorkTable`; −1
            of other leaves.
        name: code of the profile's names: the GPU event, operator, call or scope of compilation; of a queue the launch;
            of Python the innermost function outside of torch; −1 where not recorded.
        op, root: codes of the innermost and the outermost operator around an operator or call, −1 for none.
        path_ns: on the critical path. total_ns: in the period, on the path or not. count: instances that begin.
        longest_ns, longest_at: the instance that is longest on the path, and its start on the trace's own clock; 0
            where none is. following: of Python code, code of the name of the operator or call after it, −1 for none.
    """

    step: Step
    kind: Annotated[Int64, Column(refers_to="leaf kinds", is_key=True)]
    node: Node
    category: Annotated[Int64, key("categories", -1)]
    name: NameOrNone
    launch_shape: Text
    ordinal: Ordinal
    op: NameOrNone
    root: NameOrNone
    path_ns: Amount
    total_ns: Amount
    count: Amount
    longest_ns: Annotated[Int64, Column()]
    longest_at: Annotated[Int64, Column(low=ANY, rises=True)]
    following: Annotated[Int64, Column(refers_to="names", low=-1, rises=True)]


class Marks(Spans, kw_only=True):
    """m marks in order of row and start.

    Attributes:
        row: int64[m] index into the timeline's rows.
        start, end: int64[m] in ns after the timeline's start.
        kind: int64[m] index into `timeline.KINDS`.
        names: of the events that the mark covers, each once, that of the longest first; at most MARK_NAMES.
        count: int64[m] number of events that it covers. busy: int64[m] sum of their durations in ns, within the step.
        event: int64[m] row of the longest event in the trace, −1 for states.
        operator: that launched the longest event; empty for events of the host, and where it is unknown.
    """

    row: Int64
    kind: Int64
    names: tuple[tuple[str, ...], ...]
    count: Int64
    busy: Int64
    event: Int64
    operator: tuple[str, ...]

    @property
    def name(self) -> tuple[str, ...]:
        """Of the longest event of each mark."""
        return tuple(longest for longest, *_ in self.names)


class Memory(FrozenStruct):
    """Bytes allocated on one device.

    Attributes:
        device: ``GPU 0`` or ``host``.
        time: int64[k] ns after the timeline's start. allocated: int64[k] bytes from then on.
        from_zero: False if only changes are recorded: then the amount at the start of the file counts as 0.
    """

    device: str
    time: Int64
    allocated: Int64
    from_zero: bool


class Timeline(FrozenStruct, kw_only=True):
    """The period of one step.

    Attributes:
        step: N of ProfilerStep#N.
        start, end: ns on the trace's own clock: the completion of the step before, and its own.
        rows: names from top to bottom: the state, streams, threads (``thread 7 ops 1`` is one level of nesting).
        marks: what is drawn. left_out: streams and threads that are not drawn.
        memory: by device, empty if not recorded.
    """

    step: int
    start: int
    end: int
    rows: tuple[str, ...]
    marks: Marks
    left_out: int
    memory: tuple[Memory, ...]


class PackedTimeline(FrozenStruct):
    """A timeline as it is kept: of the many files of a set, one step is shown.

    Attributes:
        position: of its step in the file. data: the timeline, pickled and compressed.
    """

    position: int
    data: bytes

    @classmethod
    def of(cls, position: int, timeline: Timeline) -> Self:
        """``timeline`` of the step at ``position``, packed."""
        return cls(position, zlib.compress(pickle.dumps(timeline, pickle.HIGHEST_PROTOCOL), zlib.Z_BEST_SPEED))

    def unpacked(self) -> Timeline:
        """The timeline."""
        timeline: Timeline = pickle.loads(zlib.decompress(self.data))
        return timeline


class TableRows(FrozenStruct):
    """One further table (`tables`): r rows by (step, key).

    Attributes:
        keys: k distinct keys, each of as many texts as its table has keys.
        step: int64[r] position. key: int64[r] index into `keys`.
        values: int64[r, columns] in the units of the table's columns.
    """

    keys: tuple[tuple[str, ...], ...]
    step: Annotated[Int64, Column(refers_to="steps", is_key=True)]
    key: Annotated[Int64, Column(refers_to="keys", is_key=True)]
    values: Annotated[Grid, Column(low=ANY, merged="sum")]


class CollectiveKind(FrozenStruct):
    """The properties that distinguish kinds of collective operations.

    Attributes:
        collective: all_reduce, all_to_all, … group: name, description and size of its process group for
            display, ``unknown`` where not recorded.
        dtype: of its elements, ``unknown`` where not recorded. members: ranks of the group as recorded, empty where
            not.
        ranks: size of the group, 0 where not recorded.
    """

    collective: str
    group: str
    dtype: str
    members: str
    ranks: int


class Collectives(Spans, kw_only=True):
    """The collective operations of one file (`collectives`), k of them in order of start.

    Attributes:
        kinds: the distinct kinds. kind: int64[k] index into them.
        step: int64[k] position, negative where they belong to no step.
        sequence: int64[k] number within the group, −1 where not recorded.
        size: int64[k] bytes, −1 where not recorded.
        start, end: int64[k] in ns since the epoch, by the clock of this rank.
        exposed: int64[k] ns without simultaneous computation.
    """

    kinds: tuple[CollectiveKind, ...]
    kind: Int64
    step: Int64
    sequence: Int64
    size: Int64
    exposed: Int64


class Owned(FrozenStruct, kw_only=True):
    """Whose the time of the GPU states is, r rows.

    Attributes:
        step, state: int64[r] positions. owner: int64[r] the earliest step that launched an event that causes the state,
            −1 if only spilled or outside events cause it. ns: int64[r].
    """

    step: Annotated[Int64, Column(refers_to="steps", rises=True)]
    state: Annotated[Int64, Column(refers_to="GPU states")]
    owner: Annotated[Int64, Column(refers_to="steps", low=-1)]
    ns: Count


class Accounts(FrozenStruct, kw_only=True):
    """The accounts of one file as a snapshot keeps them. Times in ns, int64.

    Attributes:
        origin: where it comes from.
        notes: health notes.
        whole_file: the file has no steps, so all of it counts as one step.
        step_numbers: int64[s], N of ProfilerStep#N.
        completions: int64[s + 1], completion of what came before the first step, and of each step. draining_ns: how
            long after the first step's start the former is: the GPU still runs what was launched before.
        host_ns: int64[s], host duration of each step.
        state_names, state_ns: int64[s, states], rows sum to the period.
        owned: whose the time of the GPU states is.
        busy_ns: int64[s], union per GPU of the events launched in the step, summed over GPUs; time that a later step's
            events share counts there.
        ops: operations by name. calls: operators in their tree. compiled_calls: those of compiled graphs.
        kernels: GPU events.
        host_work: self time of operators in the steps of a file without GPU events, else empty.
        leaves: what each step waited for.
        categories, names, texts: the strings that codes index.
        events: all events of the file by category name.
        tables: the requested tables by name.
    """

    origin: Origin
    notes: tuple[Note, ...]
    whole_file: bool
    step_numbers: Annotated[Int64, Column(rows="steps")]
    completions: Annotated[Int64, Column(low=ANY, rows="completions")]
    draining_ns: Annotated[int, msgspec.Meta(ge=0)] = 0
    host_ns: OfSteps
    state_names: tuple[str, ...]
    state_ns: Annotated[Grid, amount(rows="steps")]
    owned: Owned
    busy_ns: OfSteps
    ops: OpTable
    calls: CallTable
    compiled_calls: CompiledCalls = field(default_factory=lambda: no_rows(CompiledCalls))
    kernels: WorkTable
    host_work: WorkTable
    leaves: LeafTable
    categories: tuple[str, ...]
    names: tuple[str, ...]
    texts: tuple[str, ...]
    events: dict[str, Annotated[int, msgspec.Meta(ge=1)]] = field(default_factory=dict)
    tables: dict[str, TableRows] = field(default_factory=dict)


class Profile(Accounts, kw_only=True):
    """The accounts of one file, and what needs its events: None if read from a snapshot.

    Attributes:
        collectives: its collective operations one by one, to be matched with those of other ranks; None if the table
            `collectives` was not requested.
        timeline: of the typical used step.
    """

    collectives: Collectives | None = None
    timeline: PackedTimeline | None = None

    @property
    def periods(self) -> Int64:
        """int64[s] period of each step in ns: completion(s) − completion(s − 1)."""
        return np.diff(self.completions)

    @property
    def has_gpu(self) -> bool:
        """Whether the file holds GPU events."""
        return bool(len(self.kernels.count))
