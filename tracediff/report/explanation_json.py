"""`Explanation` → the key ``explanation`` of the JSON document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tracediff.aggregate.side import Side
from tracediff.explain.effects import EFFECTS
from tracediff.explain.explanation import Cause, Explanation
from tracediff.explain.lines import GROSS
from tracediff.explain.tree import REPLACED, ROOT, SINGLE, Node
from tracediff.report import json_types
from tracediff.report.json_text import filled

LEAST = 0.01
"""Part of what lines are judged against from which a node is written; the others are one child, the rest."""
REST, GROUP, PART = "rest", "group", "part"
KINDS = {REPLACED: "replaced", SINGLE: "event"}
"""Note of a node → its kind."""
UNKNOWN: dict[str, Any] = {"amount": None, "reasons": [], "significance": None, "first": None}
"""What a node says that is no line."""
Sides = tuple[Side, Side]


def explanation_of(found: Explanation | None, sides: Sides) -> json_types.DiffExplanation | None:
    """The explanation with a tree that closes at every node; None of a refused comparison."""
    if found is None:
        return None
    root = found.root
    scale = max(abs(root.change), GROSS * sum(abs(child.work) for child in root.children.values()))
    causes = {id(cause.node): cause for cause in found.causes}
    return json_types.DiffExplanation(
        facts=[filled(json_types.FactRow, fact) for fact in found.facts],
        lines=[
            filled(json_types.CauseRow, cause, trail=list(cause.trail), **_known(cause, sides))
            for cause in found.causes
        ],
        exposure_us=sum(found.exposure_us.values()),
        rest_us=found.rest_us,
        change_us=found.change_us,
        tree=_node(root, ROOT, LEAST * scale, causes, sides),
    )


def _node(node: Node, kind: str, least: float, causes: dict[int, Cause], sides: Sides) -> json_types.ExplanationNode:
    shown = [(step, child) for step, child in node.children.items() if max(abs(child.work), abs(child.change)) >= least]
    shown.sort(key=lambda entry: (-abs(entry[1].work), entry[1].label))
    children = [
        _node(child, KINDS.get(child.note, GROUP if isinstance(step, int) else PART), least, causes, sides)
        for step, child in shown
    ]
    if shown and len(shown) < len(node.children):
        rest = _without(node, [child for _, child in shown])
        children.append(_node(rest, REST, least, causes, sides))
    cause = causes.get(id(node))
    control, test = (float(ns) / 1000 for ns in node.total)
    return json_types.ExplanationNode(
        label=node.label,
        kind=kind,
        control_us=control,
        test_us=test,
        path_control_us=float(node.path[0]) / 1000,
        path_test_us=float(node.path[1]) / 1000,
        delta_us=node.change / 1000,
        effects=json_types.NodeEffects(
            **{name: float(ns) / 1000 for name, ns in zip(EFFECTS, node.effects, strict=True)}
        ),
        children=children,
        **(_known(cause, sides) if cause else UNKNOWN),
    )


def _without(node: Node, shown: Iterable[Node]) -> Node:
    """What ``node`` is beside the children ``shown``."""
    rest = Node(REST, node.depth + 1, path=node.path, total=node.total, count=node.count, effects=node.effects)
    for child in shown:
        rest.path, rest.total = rest.path - child.path, rest.total - child.total
        rest.count, rest.effects = rest.count - child.count, rest.effects - child.effects
    return rest


def _known(cause: Cause, sides: Sides) -> dict[str, Any]:
    """What a line and its node say of a cause."""
    return {
        "amount": cause.amount,
        "reasons": [filled(json_types.CauseReason, reason) for reason in cause.reasons],
        "significance": filled(json_types.LineSignificance, cause.significance),
        "first": _first(cause, sides),
    }


def _first(cause: Cause, sides: Sides) -> json_types.FirstEvent | None:
    if cause.first is None:
        return None
    side, event = cause.first
    return json_types.FirstEvent(("control", "test")[side], sides[side].files[event.file], event.ns / 1000)
