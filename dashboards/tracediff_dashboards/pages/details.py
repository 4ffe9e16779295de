"""The panel of a selected row: its numbers, the groups it is matched in, its steps, and its call sites with shapes."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import plotly.graph_objects as go
from dash import dcc, html

from tracediff import bounds
from tracediff.aggregate.samples import per_step, work_per_step
from tracediff.charts.figures.timeline import StepSpans, name_spans, name_steps
from tracediff.diff.comparison import CallPlace, places, places_of
from tracediff.diff.groups import Group
from tracediff.diff.matching.items import Item
from tracediff.diff.ops import GPU_WORK, Op
from tracediff.diff.views import Sum
from tracediff.errors import printable
from tracediff.formatting import change, change_and_delta, count, counts, p_value, plural, signed_time, time
from tracediff.present.setting import side_names
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import table_name
from tracediff.report.explain import why_matched
from tracediff_dashboards.pages import components
from tracediff_dashboards.pages.rows import SUMS, TableRow
from tracediff_dashboards.reading.comparisons import PageContext
from tracediff_dashboards.reading.step_inspector import StepInspector, events_named, events_of_work
from tracediff_dashboards.state.view import FlameView

SPANS_PX = 290
"""Height of the chart of spans, which comes later."""
MATCHED = (*GPU_WORK, "cpu_op")
"""Categories of work that is matched and is part of the call tree."""
NO_CALL_SITES = (
    "Runtime calls, annotations and Python functions are not part of the call tree: on the timeline, click on one "
    "to see the operators around it."
)


def details(context: PageContext, row: TableRow) -> list[Any]:
    """The components of the panel next to the table; `spans` fills when it runs, for which events are read."""
    item = row.item
    if isinstance(item, Group):
        call_sites = _call_sites(places_of(context.whole, item), context)
        title, body = row.cells["name"], [*_group(context, item), *_steps(context, item.items), *call_sites]
    else:
        title, body = item.name, _op(context, item) if isinstance(item, Op) else _sum(context, item)
    return [
        html.H2(components.name(title)),
        html.H3("When it runs"),
        dcc.Store(id="spans-of", data=f"{context.view.tab} {row.key}"),
        html.Div(id="spans", style={"minHeight": f"{SPANS_PX}px"}),
        *body,
    ]


def spans(context: PageContext, row: TableRow, inspector: StepInspector) -> list[Any]:
    """When the work of a row ran, in the step of each side that the timeline shows.

    Raises:
        TracediffError: the events can no longer be read.
    """
    sides = spans_of(context, row.item, inspector)
    if not any(sides):
        return [components.missing("A snapshot has no events: compare the traces to see them here.")]
    link = dcc.Link("Show on the timeline", href=context.address("timeline", row=row.key))
    return [components.figure(name_spans(sides, theme=context.theme), "spans"), html.P(link)]


def spans_of(
    context: PageContext, item: Op | Group | Sum | None, inspector: StepInspector, *, of_every_step: bool = False
) -> list[StepSpans | None]:
    """When a row of the table ran, in the step of each side that the timeline shows; without a row all work that the
    filters leave. Of operators and kernels also what other steps launched, if ``of_every_step``.

    Raises:
        TracediffError: the events can no longer be read.
    """
    if isinstance(item, Op):
        selects = [events_named(item.category, table_name(item.raw_name), of_every_step=of_every_step)] * 2
    else:
        sides = zip(context.sets, _items(context, item), context.whole.trees, strict=True)
        selects = [events_of_work(traces, {piece.key for piece in items}, tree) for traces, items, tree in sides]
    return [inspector.spans(step, select) for step, select in zip(context.shown_steps, selects, strict=True)]


def _op(context: PageContext, op: Op) -> list[Any]:
    us, number = context.comparison.us, context.comparison.number
    facts = [
        ("recorded as", components.name(op.raw_name)),
        ("kind", f"{op.category}, {op.family}"),
        (
            "count",
            f"{counts(*op.count.map(number))} per step{' (varies from step to step)' if op.counts_vary else ''}",
        ),
        ("self time", change_and_delta(*op.self_time.map(us))),
        ("total time", change_and_delta(*op.total.map(us))),
        ("significance", _significance(op)),
    ]
    samples = [per_step(traces, op.category, table_name(op.raw_name)) for traces in context.sets]
    note = "The chart covers all work of this name: the filters do not apply."
    groups = [g for g in context.comparison.work.groups if any(_belongs_to(m, op) for m in chain(*g.members))]
    matched = _matched(context, groups) if groups or op.category in MATCHED else []
    link, call_sites = [], [components.missing(NO_CALL_SITES)]
    if op.category in MATCHED:
        address = context.address("flame", flame=FlameView(find=op.name[: bounds.PAGE_CELL]))
        link = [html.P(dcc.Link("Show in the flame graph", href=address))]
        call_sites = _call_sites(places(context.comparison, op.category, op.raw_name), context)
    return [
        _facts(facts),
        *link,
        *matched,
        *_time_per_step(name_steps(samples, theme=context.theme)),
        *([components.note(note)] if context.view.filters.part.has_place else []),
        *call_sites,
    ]


def _belongs_to(member: Item, op: Op) -> bool:
    """Whether a member of a group is work of ``op`` or was launched by it."""
    is_same = member.category == op.category and table_name(member.name) == table_name(op.raw_name)
    return is_same or (op.category == "cpu_op" and member.op == op.raw_name)


def _significance(op: Op) -> str:
    significance = op.significance
    if significance.p_value is None:
        return "not tested: needs at least three runs per side, and a time above the noise floor"
    return f"{significance.time_change} (p {p_value(significance.p_value)}, q {p_value(significance.q_value)})"


def _steps(context: PageContext, items: Sequence[Sequence[Item]]) -> list[Any]:
    """The chart of the time of the work in each used step."""
    gpu = context.whole.has_gpu
    sides = zip(context.sets, context.whole.trees, items, strict=True)
    samples = [work_per_step(traces, tree, gpu, side_items) for traces, tree, side_items in sides]
    return _time_per_step(name_steps(samples, quantity="time", theme=context.theme))


def _time_per_step(chart: go.Figure) -> list[Any]:
    return [html.H3("Time per step"), components.figure(chart, "steps")]


def _call_sites(call_sites: Sequence[CallPlace], context: PageContext) -> list[Any]:
    """The table of call sites: stack, shapes, count and time."""
    head = html.H3("Call sites")
    if not call_sites:
        return [
            head,
            components.missing("Unknown: the traces contain no call of it in an operator or module."),
        ]
    number, us = context.comparison.number, context.comparison.us
    rows = []
    for place in call_sites[: bounds.MEMBERS]:
        stack = [piece for call in place.stack for piece in (" › ", components.name(call))][1:]
        shapes = [html.Br(), html.Code(components.name(place.shapes))] if place.shapes else []
        where = html.Div([*stack, *shapes], className="stack")
        rows.append([where, counts(*place.count.map(number)), change(*place.time.map(us))])
    table = components.table(["call stack and shapes", "count", "time"], rows, kind="sums wide")
    return [head, table, *_more(call_sites, bounds.MEMBERS, "more call sites")]


def _sum(context: PageContext, total: Sum) -> list[Any]:
    """The panel of a module or family: its numbers, the groups with its work, and its steps."""
    us, number = context.comparison.us, context.comparison.number
    view = SUMS[context.view.tab]
    facts = [
        ("count", f"{counts(*total.count.map(number))} events per step"),
        ("time", change_and_delta(*total.time.map(us))),
    ]
    groups = [g for g in context.comparison.work.groups if any(view(m) == total.name for m in chain(*g.members))]
    spans = any(view(m) != total.name for g in groups for m in chain(*g.members))
    note = [components.note("Groups are shown whole, with work that does not belong to this row.")]
    matched = _matched(context, groups, note if spans else [])
    return [_facts(facts), *matched, *_steps(context, _items(context, total))]


def _items(context: PageContext, item: Group | Sum | None) -> Sequence[Sequence[Item]]:
    """The work of a row on both sides; without a row all work."""
    if isinstance(item, Group):
        return item.items
    groups = context.comparison.work.groups
    items = [[piece for g in groups for piece in g.items[side]] for side in (0, 1)]
    if item is None:
        return items
    view = SUMS[context.view.tab]
    return [[piece for piece in side if view(piece) == item.name] for side in items]


def _matched(context: PageContext, groups: Sequence[Group], note: Sequence[Any] = ()) -> list[Any]:
    """The groups that contain the work of a row, the first ones with their members."""
    head = html.H3(f"Matched in {plural(len(groups), 'group')}")
    if not groups:
        nothing = "No matched work: it launches no GPU work, or is a runtime call or an annotation."
        return [head, components.missing(nothing)]
    group_details = [
        html.Details(
            [
                html.Summary([components.name(g.name), f" {signed_time(context.comparison.us(g.delta))}, {g.level}"]),
                *_group(context, g),
            ],
            open=k == 0,
        )
        for k, g in enumerate(groups[: bounds.GROUPS_LISTED])
    ]
    return [head, *note, *group_details, *_more(groups, bounds.GROUPS_LISTED, "more groups with smaller changes")]


def _more(rows: Sequence[object], most: int, what: str) -> list[Any]:
    """How many are not shown; nothing if all are."""
    return [components.note(f"and {len(rows) - most:,} {what}")] if len(rows) > most else []


def _group(context: PageContext, group: Group) -> list[Any]:
    comparison = context.comparison
    by_count, by_mean = (float(part / (comparison.scale * 1000)) for part in group.parts)
    facts = [
        (
            "match level",
            printable(f"{group.level}: {why_matched(group.level, group.call, side_names(context.whole))}"),
        ),
        (
            "phase, module, family",
            components.name(f"{group.phase}{f', {group.module}' if group.module else ''}, {group.family}"),
        ),
        ("time", change_and_delta(*group.time.map(comparison.us))),
        ("change by", f"count {signed_time(by_count)}, mean duration {signed_time(by_mean)}"),
    ]
    sides = [
        html.Div([html.H4(side), _members(context, members)])
        for side, members in zip(side_names(context.whole), group.members, strict=True)
    ]
    return [_facts(facts), html.Div(sides, className="sides")]


def _members(context: PageContext, members: Sequence[Item]) -> Any:
    if not members:
        return components.missing("none")
    return components.items([_member(context, member) for member in members])


def _member(context: PageContext, member: Item) -> list[Any]:
    operator = [" in ", components.name(member.op)] if member.op and member.op != member.name else []
    return [
        f"{count(context.comparison.number(member.count))} × ",
        components.name(display_name(member.name)),
        *operator,
        f", {time(context.comparison.us(member.ns))}",
    ]


def _facts(pairs: Sequence[tuple[str, Any]]) -> Any:
    return html.Dl([piece for key, value in pairs for piece in (html.Dt(key), html.Dd(value))])
