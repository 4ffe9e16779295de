"""The call stacks of an operation or a group, on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tracediff.aggregate.call_tree import CallTree
from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group
from tracediff.diff.matching.items import Item
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import table_name


@dataclass(kw_only=True)
class Place:
    """One stack; counts and times are numerators over the comparison's scale. The time of an operator includes
    everything below it; else it is that of the GPU work.

    Attributes:
        stack: from the phase to the call itself. shapes: its inputs as recorded, of work its grid and block; None where
            not recorded.
    """

    stack: tuple[str, ...]
    shapes: str | None
    control_count: int = 0
    test_count: int = 0
    control_ns: int = 0
    test_ns: int = 0


def places(comparison: Comparison, category: str, raw_name: str) -> list[Place]:
    """All stacks that contain ``raw_name`` or another spelling of its row in a table, the longest time first; empty if
    it is in no tree.
    """
    below = () if category == "cpu_op" else (display_name(raw_name),)
    return _placed(
        (
            which,
            (*_stack(tree, node), *below),
            shapes,
            comparison.scale // tree.denominator * count,
            comparison.scale // tree.denominator * ns,
        )
        for which, tree in enumerate(comparison.trees)
        for node, shapes, count, ns in _occurrences(tree, category, table_name(raw_name))
    )


def places_of(comparison: Comparison, group: Group) -> list[Place]:
    """All stacks that contain a group's work; shapes are those of its operator where they are known, else grid and
    block.
    """
    return _placed(
        (
            which,
            (*_stack(tree, item.node), *(() if item.work.category == "cpu_op" else (display_name(item.work.name),))),
            _shapes(tree, item),
            item.count,
            item.ns,
        )
        for which, (tree, items) in enumerate(zip(comparison.trees, group.items, strict=True))
        for item in items
    )


def _placed(occurrences: Iterable[tuple[int, tuple[str, ...], str | None, int, int]]) -> list[Place]:
    """Occurrences (side, stack, shapes, count, ns) summed, the longest time first."""
    found: dict[tuple[tuple[str, ...], str | None], Place] = {}
    for which, stack, shapes, count, ns in occurrences:
        place = found.setdefault((stack, shapes), Place(stack=stack, shapes=shapes))
        if which == 0:
            place.control_count, place.control_ns = place.control_count + count, place.control_ns + ns
        else:
            place.test_count, place.test_ns = place.test_count + count, place.test_ns + ns
    return sorted(
        (p for p in found.values() if p.control_count or p.test_count),
        key=lambda p: (-max(p.control_ns, p.test_ns), p.stack, p.shapes or ""),
    )


def _shapes(tree: CallTree, item: Item) -> str | None:
    return (tree.calls[item.node].shapes if item.node >= 0 else None) or item.work.launch_shape


def _occurrences(tree: CallTree, category: str, name: str) -> Iterator[tuple[int, str | None, int, int]]:
    """(node, shapes, count, ns)."""
    if category == "cpu_op":
        for node, call in enumerate(tree.calls):
            if call.kind == "op" and table_name(call.name) == name:
                yield node, call.shapes, call.count, call.total
        return
    for work in tree.work:
        if work.category == category and table_name(work.name) == name:
            yield work.node, work.launch_shape, work.count, work.ns


def _stack(tree: CallTree, node: int) -> list[str]:
    names: list[str] = []
    while node >= 0:
        call = tree.calls[node]
        names.append(display_name(call.name) if call.kind == "op" else call.label)
        node = call.parent
    return names[::-1]
