"""What is told of a chosen row: what it is, its steps, its partners, where it is called with which shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import html

from tracediff.aggregate.samples import per_step, work_per_step
from tracediff.charts.name_steps import name_steps
from tracediff.diff.call_stacks import Place, places, places_of
from tracediff.diff.groups import Group, Member
from tracediff.diff.matching.items import Item
from tracediff.diff.ops import GPU_WORK, Op
from tracediff.diff.views import VIEWS, Sum
from tracediff.errors import printable
from tracediff.formatting import change, count, counts, plural, signed_time, time, time_unit
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import table_name
from tracediff.report.explain import WHY
from tracediff_dashboards import components
from tracediff_dashboards.page_context import Shown
from tracediff_dashboards.rows import Line

MOST_GROUPS = 6
MOST_MEMBERS = 12
MOST_PLACES = 12
MATCHED = (*GPU_WORK, "cpu_op")
"""Categories of work that is matched and stands in a call tree."""
NO_PLACE = (
    "Runtime calls, annotations and Python functions stand in no call tree: on the timeline a click on one "
    "tells the operators around it."
)


def details(shown: Shown, line: Line) -> list[Any]:
    """The pieces of the panel beside the table."""
    of = line.of
    if isinstance(of, Op):
        return _op(shown, of)
    if isinstance(of, Group):
        return [
            html.H2(components.name(of.name)),
            *_group(shown, of),
            *_steps(shown, of.items),
            *_places(places_of(shown.whole, of), shown),
        ]
    return _sum(shown, of)


def _op(shown: Shown, op: Op) -> list[Any]:
    us, number = shown.comparison.us, shown.comparison.number
    facts = [
        ("recorded as", components.name(op.raw_name)),
        ("kind", f"{op.category}, {op.family}"),
        (
            "count",
            (
                f"{counts(number(op.control_count), number(op.test_count))} a "
                f"step{' (varies from step to step)' if op.counts_vary else ''}"
            ),
        ),
        ("self time", _times(us(op.control_self), us(op.test_self), us(op.delta))),
        ("total time", _times(us(op.control_total), us(op.test_total), us(op.total_delta))),
        ("tested", _tested(op)),
    ]
    steps = tuple(per_step(traces, op.category, table_name(op.raw_name)) for traces in shown.sets)
    whole = (
        [html.P("The steps are of all work of this name, whatever is chosen above.", className="facts")]
        if shown.view.filters.part.has_place
        else []
    )
    groups = [g for g in shown.comparison.work.groups if any(_is(m, op) for side in g.sides for m in side)]
    matched = (
        [html.H3(f"Matched in {plural(len(groups), 'group')}"), *_first_groups(shown, groups)]
        if groups or op.category in MATCHED
        else []
    )
    return [
        html.H2(components.name(op.name)),
        _facts(facts),
        *matched,
        html.H3("Step by step"),
        *whole,
        components.figure(name_steps((steps[0], steps[1]), theme=shown.theme), "steps"),
        *(
            _places(places(shown.comparison, op.category, op.raw_name), shown)
            if op.category in MATCHED
            else [html.P(NO_PLACE, className="missing")]
        ),
    ]


def _is(member: Member, op: Op) -> bool:
    """Whether a group's member is work of ``op``, or launched by it."""
    own = member.category == op.category and table_name(member.name) == table_name(op.raw_name)
    return own or (op.category == "cpu_op" and member.op == op.raw_name)


def _tested(op: Op) -> str:
    if op.p_value is None or op.q_value is None:
        return "no: that needs three runs a side or more, and time enough"
    return f"{op.time_change} (p = {op.p_value:.2g}, q = {op.q_value:.2g})"


def _steps(shown: Shown, items: Sequence[Sequence[Item]]) -> list[Any]:
    """What work took in every used step."""
    gpu = shown.whole.control.has_gpu or shown.whole.test.has_gpu
    sides = zip(shown.sets, shown.whole.trees, items, strict=True)
    control, test = (work_per_step(traces, tree, gpu, [item.work for item in of]) for traces, tree, of in sides)
    return [
        html.H3("Step by step"),
        components.figure(name_steps((control, test), quantity="time", theme=shown.theme), "steps"),
    ]


def _places(found: Sequence[Place], shown: Shown) -> list[Any]:
    """Stacks, shapes, how often and how long."""
    head = html.H3("Where it is called")
    if not found:
        return [head, html.P("The traces do not tell: it stands in no call tree.", className="missing")]
    number, us = shown.comparison.number, shown.comparison.us
    rows = []
    for place in found[:MOST_PLACES]:
        stack = [
            piece
            for k, call in enumerate(place.stack)
            for piece in ((" › ", components.name(call)) if k else (components.name(call),))
        ]
        shapes = [html.Br(), html.Code(components.name(place.shapes))] if place.shapes else []
        times = change(us(place.control_ns), us(place.test_ns))
        rows.append(
            [
                html.Div([*stack, *shapes], className="stack"),
                counts(number(place.control_count), number(place.test_count)),
                times,
            ]
        )
    more = (
        [html.P(f"and {len(found) - MOST_PLACES:,} more places", className="facts")] if len(found) > MOST_PLACES else []
    )
    return [head, components.table(["stack and shapes", "count", "time"], rows, kind="sums narrow"), *more]


def _sum(shown: Shown, of: Sum) -> list[Any]:
    """A module or family: its numbers, and the groups that hold its work."""
    us, number = shown.comparison.us, shown.comparison.number
    view = VIEWS["module" if shown.view.tab == "modules" else "family"]
    facts = [
        ("count", f"{counts(number(of.control_count), number(of.test_count))} events a step"),
        ("time", _times(us(of.control), us(of.test), us(of.delta))),
    ]
    groups = [g for g in shown.comparison.work.groups if any(view(m) == of.name for side in g.sides for m in side)]
    spans = any(view(m) != of.name for g in groups for side in g.sides for m in side)
    whole = (
        [html.P("A group tells all that was matched together, also what is not of this row.", className="facts")]
        if spans
        else []
    )
    items = [[item for g in groups for item in g.items[side] if view(item) == of.name] for side in (0, 1)]
    matched = [html.H3(f"Matched in {plural(len(groups), 'group')}"), *whole, *_first_groups(shown, groups)]
    return [html.H2(components.name(of.name)), _facts(facts), *matched, *_steps(shown, items)]


def _first_groups(shown: Shown, groups: Sequence[Group]) -> list[Any]:
    if not groups:
        return [
            html.P(
                "None of the matched work is its own: it launches nothing, or is a runtime call or an annotation.",
                className="missing",
            )
        ]
    shown_groups = [
        html.Details([html.Summary(_title(shown, g)), *_group(shown, g)], open=k == 0)
        for k, g in enumerate(groups[:MOST_GROUPS])
    ]
    more = (
        [html.P(f"and {len(groups) - MOST_GROUPS:,} more with smaller changes", className="facts")]
        if len(groups) > MOST_GROUPS
        else []
    )
    return [*shown_groups, *more]


def _title(shown: Shown, group: Group) -> list[Any]:
    return [components.name(group.name), f" {signed_time(shown.comparison.us(group.delta))}, {group.level}"]


def _group(shown: Shown, group: Group) -> list[Any]:
    comparison = shown.comparison
    by_count, by_mean = (float(part / (comparison.scale * 1000)) for part in group.parts)
    facts = [
        ("matched by", printable(f"{group.level}: {WHY[group.level].format(call=group.call or 'an operator')}")),
        ("where", components.name(f"{group.phase}{f', {group.module}' if group.module else ''}, {group.family}")),
        ("time", _times(comparison.us(group.control_ns), comparison.us(group.test_ns), comparison.us(group.delta))),
        ("of that", f"{signed_time(by_count)} by count, {signed_time(by_mean)} by mean duration"),
    ]
    sides = [
        html.Div([html.H4(side), _members(shown, members)])
        for side, members in zip(("control", "test"), group.sides, strict=True)
    ]
    return [_facts(facts), html.Div(sides, className="sides")]


def _members(shown: Shown, members: Sequence[Member]) -> Any:
    if not members:
        return html.P("nothing", className="missing")
    lines = [html.Li(_member(shown, member)) for member in members[:MOST_MEMBERS]]
    more = [html.Li(f"and {len(members) - MOST_MEMBERS:,} more")] if len(members) > MOST_MEMBERS else []
    return html.Ul([*lines, *more])


def _member(shown: Shown, member: Member) -> list[Any]:
    below = [" below ", components.name(member.op)] if member.op and member.op != member.name else []
    return [
        f"{count(shown.comparison.number(member.count))} × ",
        components.name(display_name(member.name)),
        *below,
        f", {time(shown.comparison.us(member.ns))}",
    ]


def _times(control: float, test: float, delta: float) -> str:
    unit = time_unit([control, test])
    return f"{unit.plain(control)} → {unit.plain(test)} {unit.name} ({unit.signed(delta)})"


def _facts(pairs: Sequence[tuple[str, Any]]) -> Any:
    return html.Dl([piece for key, value in pairs for piece in (html.Dt(key), html.Dd(value))])
