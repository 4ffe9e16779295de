"""`Comparison` → the JSON document of schema ``tracediff.diff/1`` (docs/reference/json.md)."""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from tracediff import thresholds
from tracediff.aggregate.summary import Side
from tracediff.diff.accounts import TableDiff
from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import WorkTime
from tracediff.explain.explanation import Cause, Explanation
from tracediff.explain.lines import scale_of
from tracediff.explain.tree import REPLACED, ROOT, SINGLE, Node
from tracediff.present.answer import answer_of
from tracediff.present.columns import FAMILIES, GROUPS, OPS, STATES
from tracediff.present.limits import limits_of
from tracediff.present.setting import spans_us
from tracediff.present.tables import row_object, sides_of
from tracediff.report import json_types
from tracediff.report.json_text import both, filled, json_text
from tracediff.structs import SIDES, Amounts, Pair

Work = TypeVar("Work", bound=json_types.DiffWorkTime)


def document(comparison: Comparison) -> json_types.DiffDocument:
    """The document: times in µs per step, counts per step, null where something was not tested."""
    host = comparison.host_time
    return filled(
        json_types.DiffDocument,
        comparison,
        answer=answer_of(comparison),
        step_time=_step_time(comparison),
        gpu_time=_gpu_time(comparison),
        host_time=_work_time(json_types.DiffWorkTime, comparison, host) if host.groups else None,
        ops=OPS.json(comparison, comparison.ops),
        families=FAMILIES.json(comparison, comparison.families),
        tables=tables_of(comparison),
        explanation=explanation_of(comparison.explanation, comparison.sides),
        health=json_types.Health(*(side.notes for side in comparison.sides)),
    )


def to_json(comparison: Comparison) -> str:
    """The document as indented text, with a new line at its end."""
    return json_text(document(comparison))


def plain(document: msgspec.Struct) -> dict[str, Any]:
    """A document as dicts, lists, texts and numbers."""
    out: dict[str, Any] = msgspec.to_builtins(document)
    return out


def _step_time(comparison: Comparison) -> json_types.DiffStepTime:
    step, us, limits = comparison.step_time, comparison.us, limits_of(comparison)
    return filled(
        json_types.DiffStepTime,
        step,
        "us",
        us,
        **both("*_us", step.period.map(us)),
        states=STATES.json(comparison, step.states),
        foreign_gpu_us=json_types.BothSides(*step.foreign.map(us)),
        **both("range_*_us", spans_us(comparison) or Pair(None, None)),
        limits=json_types.Limits(*limits) if limits else None,
        draining_us=json_types.BothSides(*map(us, step.draining)),
    )


def _work_time(kind: type[Work], comparison: Comparison, work: WorkTime, **more: Any) -> Work:
    residual = work.delta - work.matched - work.placed - work.added - work.removed - work.unattributed.delta
    return filled(
        kind,
        work,
        "us",
        comparison.us,
        **both("*_us", work.time.map(comparison.us)),
        **both("count_*", work.count.map(comparison.number)),
        unattributed_us=comparison.us(work.unattributed.delta),
        groups=GROUPS.json(comparison, work.groups),
        residual_us=comparison.us(residual),
        **more,
    )


def _gpu_time(comparison: Comparison) -> json_types.DiffGpuTime:
    gpu, us = comparison.gpu_time, comparison.us
    return _work_time(
        json_types.DiffGpuTime,
        comparison,
        gpu,
        **both("busy_*_us", gpu.busy.map(us)),
        overlap_control_us=us(gpu.time.control - gpu.busy.control),
        overlap_test_us=us(gpu.time.test - gpu.busy.test),
        tensor_core_share=json_types.TensorCoreShare(*(gpu.tensor_core_shares or (None, None))),
        spilled=_other_events(gpu.spilled),
        outside=_other_events(gpu.outside),
    )


def _other_events(events: Amounts) -> json_types.OtherEvents:
    times = both("*_us", events.time.map(lambda ns: ns / 1000))
    return json_types.OtherEvents(**both("*_count", events.count), **times)


def tables_of(comparison: Comparison) -> dict[str, list[json_types.Row]]:
    """Name → rows of the further tables that both sets were loaded with."""
    return {table_diff.schema.name: _table(comparison, table_diff) for table_diff in comparison.tables}


def _table(comparison: Comparison, table_diff: TableDiff) -> list[json_types.Row]:
    """Rows with the columns and rates of both sides."""
    out = []
    for key, row in table_diff.rows.items():
        line: json_types.Row = {}
        for name, numbers, side in zip(SIDES, sides_of(comparison, row), comparison.sides, strict=True):
            line |= row_object(table_diff.schema, key, numbers, side.gpu, f"{name}_")
        out.append(line)
    return out


REST = "rest"
KINDS = {REPLACED: "replaced", SINGLE: "event"}
"""Note of a node → its kind."""
UNKNOWN: dict[str, Any] = {"amount": None, "reasons": [], "significance": None, "first": None}
"""What a node says that is not a line."""


def explanation_of(explanation: Explanation | None, sides: Pair[Side]) -> json_types.DiffExplanation | None:
    """The explanation with a tree that closes at every node; None of a refused comparison."""
    if explanation is None:
        return None
    line_values = {id(cause.node): _known(cause, sides) for cause in explanation.causes}
    return filled(
        json_types.DiffExplanation,
        explanation,
        lines=[filled(json_types.CauseRow, cause, **line_values[id(cause.node)]) for cause in explanation.causes],
        tree=_node(explanation.root, ROOT, thresholds.WRITTEN_NODE * scale_of(explanation.root), line_values),
    )


def _node(node: Node, kind: str, least: float, line_values: dict[int, dict[str, Any]]) -> json_types.ExplanationNode:
    """``node`` with its children; ``line_values`` is what is said of the nodes that are lines."""
    visible_children = [
        (step, child) for step, child in node.children.items() if max(abs(child.work), abs(child.change)) >= least
    ]
    visible_children.sort(key=lambda entry: (-abs(entry[1].work), entry[1].label))
    children = [
        _node(child, KINDS.get(child.note, "group" if isinstance(step, int) else "part"), least, line_values)
        for step, child in visible_children
    ]
    if visible_children and len(visible_children) < len(node.children):
        rest = _without(node, [child for _, child in visible_children])
        children.append(_node(rest, REST, least, line_values))
    return json_types.ExplanationNode(
        label=node.label,
        kind=kind,
        **both("*_us", Pair(*(node.total / 1000).tolist())),
        **both("path_*_us", Pair(*(node.path / 1000).tolist())),
        delta_us=node.change / 1000,
        effects=json_types.NodeEffects(**{name: ns / 1000 for name, ns in node.effects.items()}),
        children=children,
        **line_values.get(id(node), UNKNOWN),
    )


def _without(node: Node, children: Iterable[Node]) -> Node:
    """What ``node`` is beside the children ``children``."""
    rest = Node(REST, node.depth + 1, path=node.path, total=node.total, count=node.count, parts=node.parts)
    for child in children:
        rest.path, rest.total = rest.path - child.path, rest.total - child.total
        rest.count, rest.parts = rest.count - child.count, rest.parts - child.parts
    return rest


def _known(cause: Cause, sides: Pair[Side]) -> dict[str, Any]:
    """What a line and its node say of a cause."""
    return {
        "amount": cause.amount,
        "reasons": list(cause.reasons),
        "significance": filled(json_types.LineSignificance, cause.significance, result=cause.significance.time_change),
        "first": _first(cause, sides),
    }


def _first(cause: Cause, sides: Pair[Side]) -> json_types.FirstEvent | None:
    if cause.first is None:
        return None
    side, event = cause.first
    return json_types.FirstEvent(SIDES[side], sides[side].files[event.file], event.ns / 1000)
