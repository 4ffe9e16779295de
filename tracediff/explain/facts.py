"""Facts about the comparison, which carry no time and precede the lines: what they are, and those of the recordings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tracediff import bounds, thresholds
from tracediff.aggregate.summary import Side
from tracediff.arrays import Bools, Floats
from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group
from tracediff.diff.verdict import contradicting, opposed
from tracediff.diff.views import kernels_of
from tracediff.explain.leaves import HOST, QUEUE, WAITING, Chain, Leaves, largest_kernels, operator_of
from tracediff.explain.reasons import replaced_kernels
from tracediff.explain.tree import is_near_one
from tracediff.formatting import ARROW, change, counts, percent, plural, time, time_unit, with_decimals_of, with_more
from tracediff.profile.kernels.families import COMMUNICATION
from tracediff.profile.kernels.match_names import is_compiled_call, is_generated, is_of_inductor
from tracediff.runtimes import (
    is_allocation,
    is_communication,
    is_graph_launch,
    is_host_collective,
    is_release,
)
from tracediff.structs import FrozenStruct

WORK_DIFFERS, OTHER_PROGRAM, REWRITTEN = "work-differs", "other-program", "rewritten"
AS_OFTEN, UNKNOWN_WORK, OTHER_COUNTS = "as-often", "unknown-work", "other-counts"
SAME_CALLS, SAME_PROGRAM, CHANGED_MODULES = "same-calls", "same-program", "changed-modules"
AS_MUCH, UNIFORM, ONE_MODULE = "as-much", "uniform", "one-module"
ONE_SIDED_CALLS, REPEATED, RECOMPUTED = "one-sided-calls", "repeated", "recomputed"
NOT_STEADY, FIRST_CALLS, BACKLOG, LATE_START = "not-steady", "first-calls", "backlog", "late-start"
COMPILES_ANEW = "compiles-anew"
GRAPH_REPLAYS, COMPILED, OTHER_KERNELS = "graph-replays", "compiled", "other-kernels"
OTHER_RANKS, NEW_WAIT, HOST_SPEED = "other-ranks", "new-wait", "host-speed"
OTHER_SIZES, FIRST_DIMENSION, OTHER_STREAM = "other-sizes", "first-dimension", "other-stream"
HIDDEN_HOST = "hidden-host"
"""The codes that others ask for."""
WAITS, MAY_WAIT = " waits for the GPU", " may wait for the GPU"
"""After a side that alone does, and one that gives memory back, which waits for what the GPU still has to do."""
UNSTEADY = "not in steady state"
"""What the verdict says of steps that change as more of them are recorded."""


Sides = tuple[Side, Side]


class Fact(FrozenStruct):
    """Something that differs between the recordings, not within the step.

    Attributes:
        code: stable short name, listed in docs/explanation.md. text: what differs, in one sentence without a full stop.
        control, test: the two values, as text. ratio: how much more test does, 1 where that is not a number.
        setting: for what, in what or with what the test side takes its time, as the verdict says it; may be empty.
    """

    code: str
    text: str
    control: str = ""
    test: str = ""
    ratio: float = 1.0
    setting: str = ""

    @property
    def is_other_work(self) -> bool:
        """Whether the sides do other work, so that their times alone say little."""
        return self.code in (WORK_DIFFERS, OTHER_PROGRAM, AS_OFTEN)


def other_kernels(groups: Sequence[Group]) -> list[Fact]:
    """other-kernels: work that other kernels do in as much time, which no line names."""
    whole = sum(sum(group.time) for group in groups)
    replaced = [group for group in groups if group.has_other_kernels and _takes_as_long(group)]
    part = sum(sum(group.time) for group in replaced) / whole if whole else 0.0
    if part < thresholds.WORTH_A_LINE:
        return []
    control, test, _ = replaced_kernels(replaced)
    ns: Counter[str] = Counter()
    for group in replaced:
        ns[operator_of(group) or largest_kernels(group)] += sum(group.time)
    most = min(ns, key=lambda name: (-ns[name], name))
    text = f"other kernels take as long ({percent(part)} of the GPU time): those of {with_more(most, len(ns) - 1)}"
    return [Fact(OTHER_KERNELS, text, control, test)]


def other_stream(comparison: Comparison) -> list[Fact]:
    """other-stream: work that only one side runs on another stream than most, where more of its GPU work overlaps."""
    groups = comparison.work.groups
    overlap = [work - busy for work, busy in zip(comparison.gpu_time.time, comparison.step_time.busy, strict=True)]
    main, whole = _main_streams(groups), sum(sum(group.time) for group in groups)
    if not all(main):
        return []
    moved: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for group in groups:
        is_elsewhere = [
            sum(item.ns for item in items if item.first.lane != stream) >= thresholds.MOSTLY * time
            for items, stream, time in zip(group.items, main, group.time, strict=True)
        ]
        if all(group.items) and is_elsewhere[0] != is_elsewhere[1]:
            moved[is_elsewhere[1]][kernels_of(group.family)] += sum(group.time)
    more = int(overlap[1] > overlap[0])
    ns, least = moved[more], thresholds.WORTH_A_LINE
    if ns.total() < least * whole or overlap[more] - overlap[1 - more] < least * ns.total() / 2:  # of both sides
        return []
    names, part = with_more(ns.most_common(1)[0][0], len(ns) - 1), percent(ns.total() / whole)
    text = f"only {comparison.labels[more]} runs {names} beside the main stream ({part} of the GPU time)"
    return [Fact(OTHER_STREAM, text, setting=f"{'with' if more else 'without'} {names} beside the main stream")]


def _main_streams(groups: Iterable[Group]) -> list[str]:
    """The stream of most of the time that both sides compute; of each side its own if they have none in common."""
    ns: list[Counter[str]] = [Counter(), Counter()]
    for group in groups:
        if group.family != COMMUNICATION:
            for of_side, items in zip(ns, group.items, strict=True):
                for item in items:
                    of_side[item.first.lane] += item.ns
    common = Counter({stream: ns[0][stream] + ns[1][stream] for stream in ns[0].keys() & ns[1].keys()})
    sums = [common, common] if common else ns
    return [max(of_side, key=lambda stream: (of_side[stream], stream), default="") for of_side in sums]


def _takes_as_long(group: Group) -> bool:
    """Whether its time changed as little as that of what is the same."""
    return all(group.time) and is_near_one(group.time.test / group.time.control)


def other_ranks(leaves: Leaves, sides: Sides) -> list[Fact]:
    """other-ranks: most of the change is waiting for communication, and no rank is on both sides: a rank that enters a
    collective early waits in it for those that are late, so that the side that takes longer need not be slower.
    """
    if set(sides[0].ranks) & set(sides[1].ranks):
        return []
    is_within = np.array([any(map(is_communication, both)) for both in leaves.names.T], bool)
    is_within &= leaves.kinds == "gpu"
    whole, within = leaves.step_ns, leaves.path_of(is_within)
    apart, moved = (float(values[1] - values[0]) for values in (whole, within))
    if not leaves.total[:, is_within].any(axis=1).all() or abs(apart) < thresholds.NO_DIFFERENCE * whole.max():
        return []
    if moved / apart < thresholds.MOSTLY:
        return []
    waiting, rest = (change(*values.tolist()) for values in (within / 1000, (whole - within) / 1000))
    text = f"other ranks, which wait for one another: {waiting} of the path is communication, all else {rest}"
    control, test = (", ".join(map(str, side.ranks)) for side in sides)
    return [Fact(OTHER_RANKS, text, control, test, setting="on another rank")]


def late_rank(sides: Sides) -> list[Fact]:
    """late-rank: a rank that the others wait for, on either side."""
    facts = []
    for side in sides:
        if late := side.late_rank:
            unit = time_unit([late.own_us, late.usual_us])
            own, usual = unit.text(late.own_us), unit.text(late.usual_us)
            waiting = f"in {side.label} {late.waiting} for rank {late.rank}, which works {own} per step"
            facts.append(Fact("late-rank", f"{waiting}, {late.usual} {usual}, without communication"))
    return facts


def hidden_host(leaves: Leaves) -> list[Fact]:
    """hidden-host: what the host does takes more or less time, which the step does not wait for."""
    is_host = leaves.below(HOST) & ~leaves.below(HOST, QUEUE) & ~leaves.below(HOST, WAITING)
    (before, after), on_path = leaves.total_of(is_host), leaves.path_of(is_host)
    if not is_hidden(after - before, on_path[1] - on_path[0], leaves.step_ns.max()):
        return []
    unit = with_decimals_of(leaves.step_unit, max(before, after) / 1000)
    took = unit.plain(before / 1000), unit.plain(after / 1000)
    work = f"host work without waiting{_mostly(leaves, is_host)} {ARROW.join(took)} {unit.name}"
    return [Fact(HIDDEN_HOST, f"{work}: the difference is off the critical path", *took)]


def _mostly(leaves: Leaves, some: Bools) -> str:
    """`` (mostly loading data)``: the deepest place in the tree that holds most of what ``some`` leaves change."""
    change, name = leaves.total[1] - leaves.total[0], ""
    whole, places = float(change[some].sum()), np.flatnonzero(some).tolist()
    for depth in range(2, max(len(leaves.chains[i]) for i in places) + 1):
        moved: dict[Chain, float] = defaultdict(float)
        for i in places:
            moved[leaves.chains[i][:depth]] += float(change[i])
        largest = max(moved, key=lambda chain: moved[chain] / whole)
        if moved[largest] / whole < thresholds.MOSTLY:
            break
        name = f" (mostly {largest[-1]})"
    return name


def is_hidden(changed: float, waited: float, whole: float) -> bool:
    """Whether the step waits for next to nothing of what ``changed``, which is a part of the ``whole``."""
    least = thresholds.WORTH_A_LINE
    return abs(changed) >= least * whole and abs(waited) < least * abs(changed)


def new_wait(leaves: Leaves, comparison: Comparison) -> list[Fact]:
    """new-wait: only one side waits for the GPU in some operator, or call outside of any, of each step, so that its
    host does not run ahead; or gives memory back to the driver, which waits for the GPU, too.
    """
    number: dict[str, Floats] = defaultdict(lambda: np.zeros(2))
    calls = [{*filter(None, names)} for names in leaves.names[:, leaves.kinds == "call"]]
    if len(calls[0] & calls[1]) < thresholds.MOSTLY * max(map(len, calls)):
        return []  # as one side does not record what the other does
    for i in np.flatnonzero(np.isin(leaves.kinds, ("sync", "call"))).tolist():
        (name, *_), (op, *_) = (sorted(filter(None, texts[:, i])) or [""] for texts in (leaves.names, leaves.ops))
        if is_release(name):
            number[name] += leaves.count[:, i]
        elif leaves.kinds[i] == "sync" and not is_host_collective(name):
            number[op or str(leaves.chains[i][-1])] += leaves.count[:, i]
    facts = []
    for side, label in enumerate(comparison.labels):
        new = [(n[side], where) for where, n in number.items() if n[side] >= 1 and not n[1 - side]]
        if new:
            times, where = max(new)
            places = ("", where) if side else (where, "")
            waits = MAY_WAIT if is_release(where) else WAITS
            text = f"only {label}{waits} in {where} ({plural(float(times), 'time')} {comparison.basis})"
            facts.append(Fact(NEW_WAIT, text, *places))
    return facts


def wait_of(facts: Iterable[Fact], exposure: float) -> str:
    """``only a does in aten::item (2 times)``: who alone waits for the GPU, if that is what exposes work in this
    direction; else empty.
    """
    waits = (fact for fact in facts if fact.code == NEW_WAIT and bool(fact.test) == (exposure > 0))
    return next((as_wait(fact) for fact in waits), "")


def as_wait(fact: Fact) -> str:
    """A ``new-wait`` after the words that it is waiting for the GPU."""
    return fact.text.replace(MAY_WAIT, " does").replace(WAITS, " does")


def replacing(leaves: Leaves, sides: Sides) -> list[Fact]:
    """graph-replays, compiled: only one side has what replaces operators; ``with`` it or ``without``."""
    facts, stand_ins = [], stand_ins_of(leaves)
    graphs = "replays graphs, whose kernels have no operators: matched in launch order"
    for code, is_such, name, text in (
        (GRAPH_REPLAYS, is_graph_launch, "replays of graphs", graphs),
        (COMPILED, is_of_inductor, "compiled code", "runs compiled code, which replaces operators of {}"),
    ):
        has = [code in side for side in stand_ins]
        if has[0] != has[1] and any(map(is_such, leaves.names.ravel().tolist())):
            only, other = (sides[has.index(which)].label for which in (True, False))
            values = ("without", "with") if has[1] else ("with", "without")
            facts.append(Fact(code, f"only {only} {text.format(other)}", *values, setting=f"{values[1]} {name}"))
    return facts


def graph_breaks(sides: Sides) -> list[Fact]:
    """graph-breaks: where the compiled code of a side ends its graph, if the sides differ in it."""
    breaks = [side.graph_breaks or () for side in sides]
    return [
        Fact("graph-breaks", f"{side.label} has {plural(len(places), 'graph break')}: {'; '.join(places)}")
        for side, places in zip(sides, breaks, strict=True)
        if places and breaks[0] != breaks[1]
    ]


def recompiles(sides: Sides) -> list[Fact]:
    """recompiles: where code was compiled again, if one side did so more often."""
    control, test = (side.recompiles for side in sides)
    if control is None or test is None or len(control) == len(test):
        return []
    label, most = (sides[1].label, test) if len(test) > len(control) else (sides[0].label, control)
    examples = "; ".join(list(dict.fromkeys(most))[: bounds.EXAMPLES])
    number = counts(len(control), len(test))
    return [Fact("recompiles", f"torch.compile recompiled {number} times, on {label} for {examples}")]


def stand_ins_of(leaves: Leaves) -> list[set[str]]:
    """Per side, the codes of what replaces operators there: compiled code, and replays of graphs."""
    sides: list[set[str]] = [set(), set()]
    for side, stand_ins in enumerate(sides):
        for name, ns in zip(leaves.names[side], leaves.total[side].tolist(), strict=True):
            if ns > 0:
                stand_ins |= {COMPILED} if is_compiled_call(name) or is_generated(name) else set()
                stand_ins |= {GRAPH_REPLAYS} if is_graph_launch(name) else set()
    return sides


def not_steady(leaves: Leaves) -> list[Fact]:
    """not-steady, compiles-anew: torch.compile works within the measured steps, or within every one."""
    whole = leaves.step_ns
    parts = leaves.path_of(leaves.kinds == "compiling") / np.where(whole > 0, whole, 1)
    if parts.max() < thresholds.WORTH_A_LINE:
        return []
    control, test = percent(float(parts[0])), percent(float(parts[1]))
    longer = int(parts[1] > parts[0])
    if min(leaves.steps[longer]) > 1 and leaves.in_each[longer, leaves.kinds == "compiling"].any():
        text = f"compiling takes {control} → {test} of the measured time, in every step"
        return [Fact(COMPILES_ANEW, text, control, test, setting="compiling in every step")]
    text = f"not steady state: torch.compile takes {control} → {test} of the measured time"
    return [Fact(NOT_STEADY, text, control, test, setting=UNSTEADY)]


def backlog(sides: Sides) -> list[Fact]:
    """backlog: the GPU works off what was launched before, so that it completes steps in less time than the host takes
    for them, and longer recordings, in which neither outruns the other, would change in the other direction.
    """
    steps = [[step for run in side.steps.values() for step in run] for side in sides]
    host, gpu = (
        [sum(getattr(step, name) for step in of_side) / 1000 / len(of_side) for of_side in steps]
        for name in ("host_ns", "period_ns")
    )
    lasting = list(map(max, host, gpu))
    if not all(gpu) or not opposed(gpu[1] / gpu[0] - 1, lasting[1] / lasting[0] - 1):
        return []
    text = f"not steady state: the GPU works off a queue, and completes steps in {change(*gpu)} that take the host "
    return [Fact(BACKLOG, text + change(*host), time(gpu[0]), time(gpu[1]), setting=UNSTEADY)]


def late_start(leaves: Leaves) -> list[Fact]:
    """late-start: a file's first GPU event starts long after its launch, as the GPU runs what was launched before the
    recording or the profiler starts; said where the change would be another one without that.
    """
    whole, start = leaves.step_ns, leaves.path_of(leaves.kinds == "start")
    rest = whole - start
    if not start.any() or not rest.all():
        return []
    if not contradicting(*(float(ns[1] / ns[0] - 1) for ns in (whole, rest))):
        return []
    took = change(*(start / 1000))
    text = f"until the first GPU event starts ({took}), the GPU runs earlier work, or the profiler starts"
    before, _, after = took.partition(ARROW)
    return [Fact(LATE_START, text, before, after, setting=f"of which {took} is waiting for the first GPU event")]


def _calls_of(leaves: Leaves, has_role: Callable[[str], bool]) -> tuple[list[float], set[str]]:
    """(calls per step of each side whose names have a role, their names)."""
    calls, names_of_calls = [0.0, 0.0], set()
    for side, (names, numbers) in enumerate(zip(leaves.names, leaves.count, strict=True)):
        for name, number in zip(names, numbers.tolist(), strict=True):
            if has_role(name):
                calls[side] += number
                names_of_calls.add(name)
    return calls, names_of_calls


def _memory_returned(leaves: Leaves, sides: Sides, allocations: Sequence[float]) -> list[Fact]:
    """memory-returned: most memory is given back to the driver in each step, so that it is got again."""
    frees, _ = _calls_of(leaves, is_release)
    by_side = zip(sides, frees, allocations, strict=True)
    labels = [side.label for side, freed, allocated in by_side if freed >= max(1, thresholds.MOSTLY * allocated)]
    if not labels:
        return []
    who = labels[0] if len(labels) == 1 else "each side"
    text = f"{who} returns memory to the driver in each step, and gets it again, as torch.cuda.empty_cache() makes it"
    return [Fact("memory-returned", text)]


def first_calls(leaves: Leaves, sides: Sides) -> list[Fact]:
    """first-calls: memory is still got from the driver, at least once per step: the caching allocator grows."""
    calls, names = _calls_of(leaves, is_allocation)
    if max(calls) < 1:
        return []
    if returned := _memory_returned(leaves, sides, calls):
        return returned
    call_names = " and ".join(sorted(names))
    allocating = [side.label for side, number in zip(sides, calls, strict=True) if number]
    who = f"{allocating[0]} still allocates" if len(allocating) == 1 else "both sides still allocate"
    how_often = f"{counts(*calls)} calls of {call_names}"
    text = f"not steady state: {who} memory from the driver ({how_often}), as in first calls"
    return [Fact(FIRST_CALLS, text, plural(calls[0], "call"), plural(calls[1], "call"), setting=UNSTEADY)]
