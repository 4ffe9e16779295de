"""The pages without controls: the overview (verdict, the first answers, why the step changed, where it went, largest
changes); ranks, runs and steps; memory over a step; the preflight and the health of the traces.
"""

from functools import partial
from typing import Any

from dash import dcc, html

from tracediff import bounds, charts
from tracediff.arrays import group_by
from tracediff.formatting import change_and_delta
from tracediff.present import sections
from tracediff.present.answer import answer_of
from tracediff.present.explanation_lines import IN_WORK, ON_HOST
from tracediff.present.setting import side_names
from tracediff.profile.events.step_states import BUSY_STATES, state_label
from tracediff.report.page.html import answer, explanation, origin
from tracediff.structs import total
from tracediff_dashboards.pages import components, rows
from tracediff_dashboards.pages.rows import table_rows
from tracediff_dashboards.reading.comparisons import PageContext
from tracediff_dashboards.reading.loading import IDLE
from tracediff_dashboards.state.view import TableLayout, where_of


def overview(context: PageContext) -> list[Any]:
    """The components: verdict, explanation, step, and the largest changes of the filtered work."""
    comparison = context.comparison
    if context.whole.was_refused:
        again = html.P(dcc.Link("Compare anyway", href=context.address("", forced=True)))
        return [
            *_answer(context),
            again,
            components.figure(charts.timeline(comparison, theme=context.theme), "both-steps"),
        ]
    return [
        *_answer(context),
        answers(context),
        html.H2("Why", className="unseen"),
        *_explanation(context),
        *components.rendered("facts.html.jinja", answer=answer_of(context.whole)),
        html.H2("Where the step went"),
        *components.rendered(
            "step_table.html.jinja",
            step=sections.step_sums(comparison),
            unexplained_ns=sections.unexplained_ns(comparison),
            names=side_names(context.whole),
            comparison=comparison,
        ),
        html.H2("Changed work"),
        *_changes(context),
    ]


def _answer(context: PageContext) -> list[Any]:
    whole = answer(context.whole) | {"answer": answer_of(context.whole, remedy="")}
    return components.rendered("answer.html.jinja", **whole, heading="h1")


def _explanation(context: PageContext) -> list[Any]:
    """A table that adds up to the step's change."""
    why = explanation(context.whole)
    return components.rendered("explanation.html.jinja", why=why, link=partial(_work_link, context)) if why else []


def _work_link(context: PageContext, table: str, words: tuple[str, ...]) -> dict[str, str]:
    """Attributes of a link to the matched work of the operator that the last of ``words`` names, to the row of that
    name, else to all operators or to the work of the family that the first names; none without either.
    """
    if table == IN_WORK and words and (row := rows.row_of_operator(context.comparison, words[-1])):
        contains = {"name": {"filterType": "text", "type": "contains", "filter": words[-1]}}
        layout = TableLayout(where=where_of(contains))
        return {"href": context.address("changes", tab="groups", row=row, table=layout)}
    place = rows.row_named(context.comparison, words[-1]) if words else None
    tab, row = place or (ON_HOST, "")
    if place or table == ON_HOST:
        return {"href": context.address("changes", tab=tab, row=row)}
    if not any(words[:1] == (family.name,) for family in context.whole.families):
        return {}
    filters = context.view.filters.replace(family=words[:1])
    return {"href": context.address("changes", filters=filters)}


def _changes(context: PageContext) -> list[Any]:
    work = sections.changed_work(context.comparison, bounds.PAGE_CHANGES)
    every = html.P(dcc.Link("All changes", href=context.address("changes")))
    if not work.rows:
        nothing = "The filters leave no matched work." if context.is_filtered else "Nothing changed."
        return [components.missing(nothing), every]
    return [
        *components.rendered(
            "changes_table.html.jinja",
            changes=work,
            names=side_names(context.whole),
            comparison=context.whole,
            link=partial(_work_link, context),
        ),
        every,
        components.note(sections.matched_line(context.comparison)),
    ]


def answers(context: PageContext) -> Any:
    """Both questions with their answers."""
    questions = [_module(context)]
    if context.whole.has_gpu:
        questions.append(("Why the GPU is idle", _idle(context)))
    terms = [piece for question, answer in questions for piece in (html.Dt(question), html.Dd(answer))]
    return html.Dl(terms, className="answers")


def _module(context: PageContext) -> tuple[str, list[Any]]:
    """The module that regressed most, where none did the one that saved most, as a link to its row."""
    most = sections.changed_module(context.comparison)
    if most is None:
        return "Which module changed most", ["unknown: ", *rows.no_modules(context)]
    row = next(row for row in table_rows(context.comparison, "modules") if row.item.name == most.name)
    link = components.row_link(context, "modules", row.key, components.name(most.name))
    return f"Which module {most.how} most", [link, most.times]


def _idle(context: PageContext) -> list[Any]:
    """The idle time per step, the state that is most of it on either side, and the same of what the host does."""
    whole = context.whole
    states = [s for s in whole.step_time.states if s.name not in BUSY_STATES]
    if not any(any(s.time) for s in states):
        return ["it is not idle during a step"]
    idle = change_and_delta(*total(s.time for s in states).map(whole.us))
    state = max(states, key=lambda s: (max(s.time), min(s.time)))
    sentence = [f"{idle} {whole.basis}, mostly {state_label(state.name).removeprefix('idle: ')}"]
    rows = [row for table in whole.tables if table.schema.name == IDLE for row in table.rows.items()]
    by_place = group_by(rows, lambda row: str(row[0][1]))
    places = {place: total(time for _, (time, *_) in some) for place, some in by_place.items()}
    place = max(places, key=lambda name: (max(places[name]), min(places[name])), default="")
    if not place:  # of a host without events there is no more to say
        return sentence
    times = change_and_delta(*places[place].map(whole.us))
    return [*sentence, "; the host is mostly in ", components.name(place), f": {times}"]


def ranks(context: PageContext) -> list[Any]:
    """The components: the period of each used step, and step time by state per rank."""
    return [
        html.H1("Steps and ranks"),
        components.chart(context, "distributions"),
        html.H2("Ranks"),
        components.chart(context, "ranks"),
    ]


def memory(context: PageContext) -> list[Any]:
    """The components: bytes allocated per device over the typical step of each side."""
    return [
        html.H1("Memory"),
        *components.memory_of_other_step(context),
        *components.missing_events(context),
        components.chart(context, "memory"),
    ]


def health(context: PageContext) -> list[Any]:
    """The components: preflight, health notes, and the sets."""
    whole = context.whole
    return components.rendered(
        "health.html.jinja",
        comparison=whole,
        health_lines=sections.health_lines(whole),
        origin=origin(whole),
        names=side_names(whole),
    )
