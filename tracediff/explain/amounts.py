"""How much work a leaf is on each side, in a unit that both sides share: ratios only, no absolute figure is claimed."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from math import isclose, log, nan, prod
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from tracediff import thresholds
from tracediff.aggregate.call_tree import Call, CallTree, Trees
from tracediff.arrays import Floats
from tracediff.diff.comparison import OPERATOR
from tracediff.diff.groups import Group
from tracediff.diff.matching.items import VIEWS, Item, base_name
from tracediff.explain.leaves import CALLS, COLUMNS, HOST, OPERATORS, OTHER_CALLS, SHARED_CALLS, Chain, Leaves
from tracediff.explain.lines import Amount
from tracediff.explain.tree import Node
from tracediff.formatting import ARROW, times
from tracediff.patterns import late
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.families import AUTOGRAD_NODE, COMMUNICATION
from tracediff.profile.kernels.match_names import match_name
from tracediff.profile.perf_model.operator_costs import ATTENTION, base_of, flop_work, has_flop
from tracediff.profile.perf_model.recorded_sizes import Inputs, read_inputs
from tracediff.runtimes import MEMCPY
from tracediff.structs import Pair

T = TypeVar("T")
Amounts = tuple[Sequence[float], str]
"""(how much work control is, and test; unit)."""
Launching = list[tuple[Call, float, int]]
"""(innermost operator with shapes, its calls per step, ns of the work that it launches)."""

CallShares = dict[tuple[str, str], float]
"""(outermost operator, operator) → the part of its own time that is of calls which the other side makes, too."""
HEAVY = ("gemm", "conv", "attention")
"""Families whose work is FLOPs, where the shapes are recorded."""
NUMBER = late(r"\d+")
BLOCK_TILE = late(r"(?:MT|_)(\d{2,3})x(\d{2,3})(?:x\d+)?(?:_|$)")
"""Rows and columns of the tile that a block of a product computes."""
PERSISTENT = late(r"nvjet|sm(?:9|1\d)\d_|warpspecialized|persistent|(?i:stream_?k)")
"""Products whose grid is the multiprocessors, each of which computes several tiles."""
BACKWARD = "backward"
LOOKUP = late(r"(?i)embedding|lookup|index|gather|scatter|take")
"""Operators that read or write some rows of a tensor, whose size is not work."""
LOOKED_UP = ("aten::embedding", "aten::embedding_bag", "aten::_embedding_bag", "aten::_embedding_bag_forward_only")
"""Of these, those whose inputs begin with the rows and the indices."""
EVENTS = "events"
"""What is counted where the amount of work is unknown."""
COUNTED = ("op", "call")
"""Kinds of host leaves whose amount is their number of calls; a wait is not work."""


def with_calls_apart(leaves: Leaves, shared: Pair[CallShares]) -> Leaves:
    """The same leaves, where operators on the host that one side calls more often are two: the calls that both sides
    make, and the others, each with its part of the operator's time, and of the calls of the driver in it, which is
    ``shared``, or as many of the calls. What of these one side alone calls in operators of both is by itself.
    """
    calls, is_call = _calls_of_operators(leaves), leaves.below(HOST, OPERATORS)
    of_both, is_driver = is_call & calls.all(axis=0), leaves.kinds == "call"
    has_driver = leaves.count[:, is_driver].any(axis=1).all()  # else it is not recorded
    is_new = of_both & is_driver & ~leaves.count.all(axis=0) & has_driver
    is_same = of_both & ~is_new
    part = np.divide(calls.min(axis=0), calls, out=np.ones_like(calls), where=is_same)
    more = np.flatnonzero((part < 1).any(axis=0))
    time = part.copy()
    for i in more.tolist():
        key = str(leaves.chains[i][2]), display_name(leaves.ops[0][i] or leaves.ops[1][i])
        for side in np.flatnonzero(part[:, i] < 1).tolist():
            time[side, i] = shared[side].get(key, time[side, i])
    order = [*range(len(leaves)), *more.tolist()]
    labels = [*np.where(is_same, SHARED_CALLS, OTHER_CALLS).tolist(), *(OTHER_CALLS for _ in more)]

    def chain_of(i: int, label: str) -> Chain:
        chain = leaves.chains[i]
        if is_new[i]:
            return HOST, CALLS, str(chain[-1]).split(" in ")[0], chain[-1]
        return (HOST, label, *chain[2:]) if is_call[i] else chain

    part, time = (np.append(share, 1 - share[:, more], axis=1) for share in (part, time))
    samples = Pair(*(ns[:, order] * of_side for ns, of_side in zip(leaves.samples, time, strict=True)))
    columns = {name: getattr(leaves, name)[..., order] for name in COLUMNS}
    columns |= {name: columns[name] * share for name, share in (("path", time), ("total", time), ("count", part))}
    chains = [chain_of(i, label) for i, label in zip(order, labels, strict=True)]
    return replace(leaves, chains=chains, samples=samples, **columns)


def measure(leaves: Leaves, groups: Sequence[Group], trees: Trees, same_vendor: bool) -> None:
    """Give every leaf its amounts and unit, where they are known."""
    calls = _calls_of_operators(leaves)
    for i, group in enumerate(leaves.groups):
        amount: Amounts | None = None
        if i in leaves.single:  # its time is not a rate
            continue
        if group >= 0:
            amount = group_amounts(groups[group], trees, same_vendor)
        elif leaves.kinds[i] in COUNTED and calls[:, i].all():
            amount = calls[:, i].tolist(), "calls"
        leaves.amounts[:, i], leaves.unit[i] = amount or (nan, "")


def _calls_of_operators(leaves: Leaves) -> Floats:
    """float64[2, l] calls per step: of a call of the driver, which is how an operator works and not how much it does,
    those of the operator that makes it.
    """
    counted = {leaves.chains[i]: leaves.count[:, i] for i, kind in enumerate(leaves.kinds) if kind == "op"}
    calls = leaves.count.copy()
    for i, chain in enumerate(leaves.chains):
        name = leaves.ops[0][i] or leaves.ops[1][i]
        operator = (*chain[:-1], display_name(name) if name else "")
        calls[:, i] = counted.get(operator, calls[:, i])
    return calls


def node_amount(node: Node, leaves: Leaves) -> Amount | None:
    """How much more work a node is, where enough of it is counted in one unit, of an operator nearly all; elsewhere the
    number of its events, and None where most of it has neither.
    """
    mine = np.array(node.leaves, np.int64)
    is_known, times = ~np.isnan(leaves.amounts[0, mine]), leaves.total[:, mine].sum(axis=0)
    ns = Counter[str]()
    for unit, of_leaf in zip(leaves.unit[mine][is_known], times[is_known].tolist(), strict=True):
        ns[unit] += of_leaf
    part = {unit: of_unit / float(times.sum()) for unit, of_unit in ns.items()}
    unit = max(part.keys() - {EVENTS}, key=lambda unit: (part[unit], unit), default=EVENTS)
    least = thresholds.KNOWN_AMOUNT if node.depth > 2 else thresholds.MOSTLY
    control, test = leaves.amounts[:, mine[is_known & (leaves.unit[mine] == unit)]].sum(axis=1).tolist()
    if unit != EVENTS and part[unit] >= least:
        return Amount(test / control, unit, part[unit]) if control and test else None
    is_counted = sum(part.values()) >= thresholds.MOSTLY and node.count.all()
    return Amount(float(node.count[1] / node.count[0]), EVENTS, 1.0) if is_counted else None


def calls_of(node: Node, leaves: Leaves) -> Floats:
    """Calls per step of the operator that ``node`` is called after, or else of all below it, float64[2]; where it has
    none, of what else is called.
    """
    ops = [i for i in node.leaves if leaves.kinds[i] == "op"]
    own = [i for i in ops if leaves.chains[i][-1] == node.label]  # not what it calls
    return np.asarray(leaves.count[:, own or ops or node.leaves].sum(axis=1))


def group_amounts(group: Group, trees: Trees, same_vendor: bool) -> Amounts | None:
    """How much work both sides of ``group`` are, by the first measure that each has, if it has any work."""
    if all(item.size for items in group.items for item in items):
        sizes = [sum(item.size for item in items) for items in group.items]
        return [size / tree.denominator for size, tree in zip(sizes, trees, strict=True)], "bytes"
    if is_of_other_kinds(group):
        return None
    names = [{match_name(item.name) for item in items} for items in group.items]
    if all(AUTOGRAD_NODE.match(name) or VIEWS.match(base_name(name)) for name in names[0] | names[1]):  # do no work
        return group.count, "calls"
    calls = [_calls(tree, items) for tree, items in zip(trees, group.items, strict=True)]
    if all(launched or not items for launched, items in zip(calls, group.items, strict=True)):
        return _of_shapes(group, calls)
    if group.family == COMMUNICATION or not all(group.items):  # its grid is its channels
        return None
    if same_vendor and names[0] == names[1] and (threads := _of_launches(group, _threads, "threads")):
        return threads
    if same_vendor and (tiles := _of_launches(group, _tiles, "GEMM tiles")):
        return tiles
    if names[0] == names[1] and group.count.control and group.count.test:
        return group.count, EVENTS
    return None


def is_of_other_kinds(group: Group) -> bool:
    """Whether one side copies what a kernel of the other writes: its size is not how much either does."""
    kinds = [{item.category for item in items} for items in group.items]
    return all(kinds) and MEMCPY in set.union(*kinds) and not set.intersection(*kinds)


def _calls(tree: CallTree, items: Sequence[Item]) -> Launching:
    """Of the work; none where too much of it has no operator with shapes, or none that does it itself.

    The innermost do the work, but for what takes little of an operator's time: those around them may have the shapes of
    one example of a batch.
    """
    shaped: Counter[int] = Counter()  # node → ns
    few = 1 - thresholds.KNOWN_AMOUNT
    for item in items:
        call = tree.calls[item.node] if item.node >= 0 else None
        if call is None or call.kind != "op" or not elements(call.shapes):
            continue
        # as aten::addmm does for aten::linear
        if item.category != OPERATOR or call.self_ns >= few * call.total:
            shaped[item.node] += item.ns
    if shaped.total() < thresholds.KNOWN_AMOUNT * sum(item.ns for item in items):
        return []
    helpers = {n for n in shaped if any(shaped[n] < few * shaped[outer] for outer in nodes_around(tree, [n]))}
    workers = shaped.keys() - helpers - nodes_around(tree, shaped.keys() - helpers)
    return [(tree.calls[n], tree.calls[n].count / tree.denominator, shaped[n]) for n in shaped if n in workers]


def nodes_around(tree: CallTree, nodes: Iterable[int]) -> set[int]:
    """The nodes that hold one of ``nodes``."""
    around: set[int] = set()
    for node in nodes:
        while (node := tree.calls[node].parent) >= 0 and node not in around:
            around.add(node)
    return around


def work_within(tree: CallTree, nodes: Collection[int]) -> int:
    """ns of the work of ``nodes`` and of what is within them, on the scale of ``tree``."""
    is_theirs: list[bool] = []
    for node, call in enumerate(tree.calls):  # parents before children
        is_theirs.append(node in nodes or (call.parent >= 0 and is_theirs[call.parent]))
    return sum(work.ns for work in tree.work if work.node >= 0 and is_theirs[work.node])


def _of_shapes(group: Group, sides: Sequence[Launching]) -> Amounts | None:
    if group.family in HEAVY and (flops := _summed(sides, lambda call: flop(call.label, call.shapes, call.types))):
        return flops, "FLOPs"
    if all(sides) and {c.label for c, *_ in sides[0]} != {c.label for c, *_ in sides[1]}:
        return None  # of other operators more elements are not more work
    sizes = _summed(
        sides, lambda call: 0 if is_sparse(call.shapes, call.strides) else processed(call.label, call.shapes), 1
    )
    return (sizes, "elements") if sizes else None


def _summed(
    sides: Sequence[Sequence[tuple[T, float, int]]],
    size: Callable[[T], int | None],
    least: float = thresholds.KNOWN_AMOUNT,
) -> list[float] | None:
    """The sums of the sizes of what both sides have, each so often and of so many ns; None where less than the part
    ``least`` of a side's time has any.
    """
    sums = []
    for side in sides:
        sizes = [(size(one) or 0, number, ns) for one, number, ns in side]
        if sum(ns for work, _, ns in sizes if work) < least * sum(ns for *_, ns in sizes):
            return None
        sums.append(sum(work * number for work, number, _ in sizes))
    return sums


def _of_launches(group: Group, size: Callable[[Item], int], unit: str) -> Amounts | None:
    sums = _summed([[(item, item.count, item.ns) for item in items] for items in group.items], size)
    return (sums, unit) if sums and all(sums) else None


def changed_shape(groups: Sequence[Group], trees: Trees, ratio: float, unit: str) -> str:
    """``aten::mm [64,64] → [256,64]``: the first input of another shape, of the calls that grew most nearly by
    ``ratio``, if that is of FLOPs of those that have any, with their own ratio where that is another one; of several
    those that take most time; empty for none.
    """
    examples: list[tuple[float, int, str]] = []
    for group in groups:
        sides = [[call for call, *_ in _calls(tree, items)] for tree, items in zip(trees, group.items, strict=True)]
        has_several = any(len({call.shapes for call in calls}) > 1 for calls in sides)
        if has_several and not group.ops:  # which is whose is unknown
            continue
        for calls in zip(*sides, strict=False):
            work = [flop(c.label, c.shapes, c.types) or 0 for c in calls]
            if unit != "FLOPs":
                work = [n or processed(c.label, c.shapes) for n, c in zip(work, calls, strict=True)]
            shapes = resized(*(call.shapes for call in calls))
            if calls[0].label == calls[1].label and shapes and all(work):
                grown = work[1] / work[0]
                if log(grown) * log(ratio) <= 0:
                    continue
                apart = max(round(abs(log(grown / ratio)), 3) - thresholds.SAME_RATIO, 0.0)
                own = f" ({times(grown)} ×)" if apart else ""
                examples.append((apart, -sum(group.time), f"{calls[0].label} {shapes}{own}"))
    return min(examples)[2] if examples else ""


def resized(*shapes: str | None) -> str:
    """``[64,64] → [256,64]``: the largest input of another shape; empty for none, as of operands in other places."""
    sizes = [sorted(NUMBER.findall(of_side or "")) for of_side in shapes]
    if sizes[0] == sizes[1]:
        return ""
    inputs = zip(*(json.loads(of_side or "[]") for of_side in shapes), strict=False)
    both = max(filter(_is_resized, inputs), key=lambda both: max(map(prod, both)), default=())
    return ARROW.join(json.dumps(shape, separators=(",", ":")) for shape in both)


def _is_resized(both: tuple[list[int], list[int]]) -> bool:
    """Whether some of the dimensions of a tensor's shape are other ones, and not all."""
    changed = [a != b for a, b in zip(*both, strict=False)]
    if any(isinstance(dim, list) for shape in both for dim in shape):  # a list of tensors
        return False
    return len(both[0]) == len(both[1]) and any(changed) and (len(changed) == 1 or not all(changed))


def flop_ratio(trees: Trees, least: float) -> float | None:
    """How many times as many FLOPs per step the test side does, whatever is matched with what; None where the work of
    operators whose FLOPs are known is a smaller part than ``least`` (0–1). Convolutions whose backward pass is recorded
    count by that, which has the shape of the output, as layers differ in their strides: None where only one side has
    any, or one side calls more of them forward for each backward.
    """
    per_backward = [forward / backward for forward, backward in map(_convolutions, trees) if backward]
    is_trained = bool(per_backward)
    if is_trained and (len(per_backward) == 1 or not isclose(*per_backward)):
        return None
    sums, known_parts = zip(*(_flops(tree, without_forward=is_trained) for tree in trees), strict=True)
    return sums[1] / sums[0] if all(sums) and sum(known_parts) >= 2 * least else None


def _convolutions(tree: CallTree) -> tuple[int, int]:
    """How many outermost convolutions a side calls forward, and backward."""
    numbers = [0, 0]
    for call in tree.calls:
        if is_conv(call.label) and (call.parent < 0 or not is_conv(tree.calls[call.parent].label)):
            numbers[BACKWARD in call.label] += call.count
    return numbers[0], numbers[1]


def flop_calls(tree: CallTree) -> dict[str, float]:
    """Operator → calls per step of those whose FLOPs are known."""
    calls: dict[str, float] = defaultdict(float)
    flops, around = _known_flops(tree)
    for node in flops.keys() - around:
        calls[tree.calls[node].label] += tree.calls[node].count / tree.denominator
    return calls


def _flops(tree: CallTree, *, without_forward: bool) -> tuple[float, float]:
    """(FLOPs per step, part of the time of all work that is theirs), ``without_forward`` convolutions."""
    flops, around = _known_flops(tree)
    calls = ((flops[node], tree.calls[node]) for node in flops.keys() - around)
    total = sum(
        work * call.count
        for work, call in calls
        if not (without_forward and is_conv(call.label) and BACKWARD not in call.label)
    )
    return total / tree.denominator, work_within(tree, flops) / max(sum(work.ns for work in tree.work), 1)


def _known_flops(tree: CallTree) -> tuple[dict[int, int], set[int]]:
    """(node → FLOPs of a call where they are known, the nodes around these). The innermost operators do the work: those
    around them may have the shapes of one example of a batch.
    """
    operators = ((node, call) for node, call in enumerate(tree.calls) if call.kind == "op")
    flops = {node: work for node, call in operators if (work := flop(call.label, call.shapes, call.types))}
    return flops, nodes_around(tree, flops)


@lru_cache(maxsize=1 << 16)
def flop(name: str, shapes: str | None, types: str | None) -> int | None:
    """FLOPs of one call: of convolutions up to a factor that the stride sets, which is the same on both sides, and none
    of a kernel about as large as its input, as of the gradients of gradients, where the padding decides; of attention
    with what a causal mask leaves out.
    """
    inputs = read_inputs(shapes, types)
    if attention := ATTENTION.get(base_of(name)):
        _, causal_at, _, _ = attention
        inputs = Inputs(inputs.tensors, ("",) * causal_at + ("False",))
    work = flop_work(name, inputs, {}) if has_flop(name) else None
    if work and work.flop:
        return work.flop
    dims = _dims(inputs)
    if not is_conv(name) or len(dims) < 2 or not len(dims[0]) == len(dims[1]) >= 3:
        return None
    is_backward = BACKWARD in name
    if is_backward and (len(dims) < 3 or len(dims[2]) != len(dims[0])):
        return None
    weight, places = dims[2 if is_backward else 1], dims[0][2:]
    if is_backward:  # of the output or, if that is larger, as of a transposed one, of the input
        places = min(places, dims[1][2:], key=prod)
    if any(size > thresholds.MOSTLY * place for size, place in zip(weight[2:], places, strict=True) if size > 1):
        return None
    passes = 2 if is_backward else 1  # gradients of the input and of the weight
    return 2 * passes * dims[0][0] * prod(places) * prod(weight)


def is_conv(name: str) -> bool:
    """Whether an operator is a convolution, forward or backward."""
    return "conv" in name


@lru_cache(maxsize=1 << 16)
def elements(shapes: str | None) -> int:
    """Elements of all tensors of one call."""
    return sum(map(prod, _dims(read_inputs(shapes, None))))


def _dims(inputs: Inputs) -> list[tuple[int, ...]]:
    """The dimensions of the tensors that have any."""
    return [t.dims for t in inputs.tensors if t is not None and t.dims]


@lru_cache(maxsize=1 << 16)
def is_sparse(shapes: str | None, strides_of_inputs: str | None) -> bool:
    """Whether an input has a shape but no strides: how much of a sparse tensor there is, is not recorded."""
    both = zip(json.loads(shapes or "[]"), json.loads(strides_of_inputs or "[]"), strict=False)
    return any(shape and strides == [] for shape, strides in both)


def processed(name: str, shapes: str | None) -> int:
    """Elements that one call processes: of all tensors; of a lookup in a table those that it reads, 0 where unknown."""
    if not LOOKUP.search(name):
        return elements(shapes)
    dims = [t.dims for t in read_inputs(shapes, None).tensors[:2] if t is not None and t.dims] if shapes else []
    if name not in LOOKED_UP or len(dims) < 2 or len(dims[0]) != 2:
        return 0
    return int(prod(dims[1]) * dims[0][1])


def _grid(item: Item) -> tuple[int, int]:
    """(blocks, threads of a block); 0 where unknown."""
    numbers = [int(n) for n in NUMBER.findall(item.launch_shape or "")]
    return (prod(numbers[:3]), prod(numbers[3:6])) if len(numbers) >= 6 else (0, 0)


def _threads(item: Item) -> int:
    return prod(_grid(item))


def _tiles(item: Item) -> int:
    tile = BLOCK_TILE.search(item.name)
    return _grid(item)[0] * int(tile[1]) * int(tile[2]) if tile and not PERSISTENT.search(item.name) else 0
