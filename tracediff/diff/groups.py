"""Groups of work on both sides: every piece of work in exactly one."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain

from msgspec.structs import replace

from tracediff.aggregate.call_tree import CallTree, Trees
from tracediff.aggregate.summary import Side
from tracediff.arrays import group_by, shared_value
from tracediff.diff.matching.call_pairs import Pairing, pair_calls, shape_key
from tracediff.diff.matching.cascade import cascade, count_of_calls
from tracediff.diff.matching.items import PLACED, TURNED, FamilyOf, Item, Match, Origins, items_of
from tracediff.profile.events.work import UNMATCHED
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import match_name, table_name
from tracediff.runtimes import KERNEL, MEMSET
from tracediff.structs import NONE, FrozenStruct, Pair, Timed, total


class Group(Timed, FrozenStruct, kw_only=True, dict=True):
    """Work of both sides that is the same; counts and times are numerators over scale.

    Attributes:
        level: one of matching.match.LEVELS.
        phase: part of the step, unknown where there are several.
        items: its pieces of work, of control and test, with their nodes in the tree.
        ops: occurrences of the operator that all items share, None where they share none.
        call: that operator with its shapes, None where they share none.
    """

    level: str
    phase: str
    items: Pair[tuple[Item, ...]]
    ops: Pair[int] | None = None
    call: str | None = None

    @cached_property
    def members(self) -> Pair[tuple[Item, ...]]:
        """Equal items summed, of control and test, the largest first."""
        return self.items.map(members_of)

    @cached_property
    def largest(self) -> str:
        """Raw name of its largest piece of work."""
        return max(chain(*self.items), key=lambda i: (i.ns, i.name, i.op or "")).name

    @cached_property
    def family(self) -> str:
        """What kind of work most of it is."""
        families = Counter[str]()
        for item in chain(*self.items):
            families[item.family] += item.ns
        return max(families, key=lambda family: (families[family], family))

    @cached_property
    def module(self) -> str | None:
        """Path of its module, None where unknown or several."""
        return shared_value(item.module for item in chain(*self.items) if item.module)

    @property
    def operator(self) -> str:
        """The operator that all items share; empty where they share none."""
        return (self.call or "").partition("(")[0]

    @property
    def shapes(self) -> str:
        """The inputs of that operator, in parentheses; empty where unknown."""
        return (self.call or "")[len(self.operator) :]

    @cached_property
    def name(self) -> str:
        """Readable name of its largest piece of work."""
        return display_name(table_name(self.largest))

    @property
    def has_other_kernels(self) -> bool:
        """Whether both sides have kernels, none of which are alike, and neither is the fusion of the other's."""
        kernels = self.members.map(lambda side: {match_name(m.name) for m in side if m.category != MEMSET})
        is_pair = self.level != "fusion" and all(kernels) and self.members.control[0].category == KERNEL
        return is_pair and kernels.control.isdisjoint(kernels.test)

    @cached_property
    def time(self) -> Pair[int]:
        """Time of the members."""
        return self.members.map(lambda side: sum(m.ns for m in side))

    @cached_property
    def count(self) -> Pair[int]:
        """Events of the members."""
        return self.members.map(lambda side: sum(m.count for m in side))

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of code outside of torch that it runs for, on either side; the one with most time first."""
        ns: Counter[str] = Counter()
        for item in chain(*self.items):
            if item.line:
                ns[item.line] += item.ns
        return tuple(sorted(ns, key=lambda line: (-ns[line], line)))

    @property
    def counts(self) -> Pair[int]:
        """What the group is counted in: occurrences of its operator where its members share one, else events."""
        return self.ops or self.count

    @property
    def parts(self) -> tuple[Fraction, Fraction]:
        """(part of the change by count, part by mean duration), in the same unit as `delta`."""
        return split_change(self.counts, self.time)


class WorkTime(Timed, FrozenStruct, dict=True):
    """Work per step on both sides, in groups; numerators over scale.

    Attributes:
        groups: all of it, the largest change first.
        unattributed: work that a health note keeps out of matching.
    """

    groups: tuple[Group, ...]
    unattributed: Pair[int] = NONE

    @cached_property
    def time(self) -> Pair[int]:
        """Σ durations."""
        return total((*(g.time for g in self.groups), self.unattributed))

    def members(self) -> Iterator[tuple[int, Item]]:
        """(side, member) of all groups; work whose module one side did not record is of its counterpart's."""
        for group in self.groups:
            for side, members in enumerate(group.members):
                for member in members:
                    is_lacking = group.module is not None and not member.module
                    yield side, replace(member, module=group.module) if is_lacking else member

    def items(self) -> Iterator[tuple[int, Item]]:
        """(side, item) of all groups."""
        return ((side, item) for group in self.groups for side in (0, 1) for item in group.items[side])

    @cached_property
    def count(self) -> Pair[int]:
        """Events in groups."""
        return total(g.count for g in self.groups)

    @cached_property
    def matched(self) -> int:
        """Change within groups that have members on both sides and name a partner."""
        return sum(g.delta for g in self.groups if all(g.members) and g.level not in PLACED)

    @cached_property
    def placed(self) -> int:
        """Change within groups of one module or family that are too wide to name a partner."""
        return sum(g.delta for g in self.groups if g.level in PLACED)

    @cached_property
    def added(self) -> int:
        """Change by groups that only the test side has."""
        return sum(g.delta for g in self.groups if not g.members.control)

    @cached_property
    def removed(self) -> int:
        """Change by groups that only the control side has."""
        return sum(g.delta for g in self.groups if not g.members.test)


def split_change(count: Pair[int], time: Pair[int]) -> tuple[Fraction, Fraction]:
    """Δ = Δcount · (mean_a + mean_b)/2 + Δmean · (count_a + count_b)/2, exact and antisymmetric; where a side is 0 all
    is count.
    """
    delta = Fraction(time.delta)
    if not all(count):
        return delta, Fraction(0)
    means = Fraction(time.control, count.control) + Fraction(time.test, count.test)
    by_count = count.delta * means / 2
    return by_count, delta - by_count


def match_work(
    trees: Trees,
    family_of: FamilyOf,
    sides: Pair[Side],
) -> tuple[WorkTime, Pairing]:
    """Every piece of work of both trees, which have one denominator, in one group, the largest change first; and how
    the calls of the trees were paired.

    Swapped sides give the same groups turned round: matching sees the sides in an order of their own.
    """
    left_out = trees.map(lambda tree: sum(w.ns for w in tree.work if w.ordinal == UNMATCHED))
    turned = _content(trees.test) < _content(trees.control)
    if turned:
        trees, sides = trees.swapped, sides.swapped
    pairing = pair_calls(*trees)
    qualified = qualified_names(sides)
    items = Pair(
        *(
            items_of(tree, family_of, Origins(side.manifest, side.torch_log), qualified)
            for tree, side in zip(trees, sides, strict=True)
        )
    )
    matches = cascade(items, trees, pairing)
    if turned:
        trees, pairing = trees.swapped, pairing.turned()
        matches = [Match(TURNED.get(m.level, m.level), m.items.swapped, m.calls.swapped) for m in matches]
    groups = [_group(match, trees) for match in matches]
    groups.sort(key=lambda g: (-abs(g.delta), g.largest, g.level, [(m.name, m.op or "") for m in chain(*g.members)]))
    return WorkTime(tuple(groups), left_out), pairing


def qualified_names(sides: Pair[Side]) -> dict[str, str]:
    """The profiler's module names → the model's own, where a side's kernels say which module they are from; the same
    for swapped sides.
    """
    recorded = [side.manifest for side in sides if side.manifest]
    names = (
        sorted((k, v) for m in recorded for k, v in m.modules.items()) if any(m.provenance for m in recorded) else []
    )
    return dict(reversed(names))


def _content(tree: CallTree) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """What distinguishes two trees."""
    calls: list[tuple[object, ...]] = [
        (c.parent, c.kind, c.name, c.shapes or "", c.ordinal, c.count, c.total) for c in tree.calls
    ]
    return calls, [(w.node, w.order, w.name, w.launch_shape or "", w.ordinal, w.count, w.ns) for w in tree.work]


def _group(match: Match, trees: Trees) -> Group:
    return Group(
        level=match.level,
        phase=shared_value(item.phase for item in chain(*match.items)) or "unknown",
        items=match.items.map(tuple),
        ops=count_of_calls(trees, match) if match.calls.control else None,
        call=_call(trees, match.calls) if match.calls.control else None,
    )


def _call(trees: Trees, nodes: Pair[Sequence[int]]) -> str:
    """An operator, of one call with its shapes, where they differ of both sides, for eyes."""
    call, other = (tree.calls[some[0]] for tree, some in zip(trees, nodes, strict=True))
    shapes, others = shape_key(call.label, call.shapes), shape_key(other.label, other.shapes)
    if len(nodes[0]) != 1 or len(nodes[1]) != 1 or not shapes:
        return call.name
    if len(shapes) == len(others):
        shapes = tuple(a if a == b else f"{a}→{b}" for a, b in zip(shapes, others, strict=True))
    return f"{call.name}({', '.join(shapes)})"


def members_of(items: Sequence[Item]) -> tuple[Item, ...]:
    """Items of one name, category, operator, family, phase and module summed, the largest first; all else is that of
    one of them.
    """
    alike = group_by(items, lambda i: (i.name, i.category, i.op, i.family, i.phase, i.module))
    members = [
        replace(
            equal[0],
            count=sum(item.count for item in equal),
            ns=sum(item.ns for item in equal),
            first=min(item.first for item in equal),
        )
        for equal in alike.values()
    ]
    return tuple(sorted(members, key=lambda m: (-m.ns, m.name, m.op or "", m.module or "")))
