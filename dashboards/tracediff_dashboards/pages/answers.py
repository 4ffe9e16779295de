"""The two questions that the overview answers first: which module regressed most, and why the GPU is idle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dash import dcc, html

from tracediff.diff.table_changes import TableRowDiff
from tracediff.diff.views import UNKNOWN
from tracediff.formatting import change, signed_time
from tracediff.profile.step_states import GPU_STATES, state_label
from tracediff_dashboards.pages import components
from tracediff_dashboards.pages.rows import table_rows
from tracediff_dashboards.reading.loading import IDLE
from tracediff_dashboards.reading.page_context import PageContext


def answers(context: PageContext) -> Any:
    """Both questions with their answers."""
    has_gpu = context.whole.control.has_gpu or context.whole.test.has_gpu
    questions = [("Which module regressed most", _module(context))]
    if has_gpu:
        questions.append(("Why the GPU is idle", _idle(context)))
    terms = [piece for question, answer in questions for piece in (html.Dt(question), html.Dd(answer))]
    return html.Dl(terms, className="answers")


def _module(context: PageContext) -> list[Any]:
    """The module with the largest added time, as a link to its row."""
    rows = [row for row in table_rows(context.comparison, "modules") if row.cells["name"] != UNKNOWN]
    if not rows:
        return ["unknown: the traces contain no modules (record them with with_stack=True)"]
    if rows[0].cells["delta_us"] <= 0:
        return ["none: no module became slower; ", _link(context, "modules", "", "all modules")]
    cells = rows[0].cells
    instances = f" ({cells['instances']} instances)" if cells["instances"] > 1 else ""
    link = _link(context, "modules", rows[0].key, components.name(cells["name"]))
    return [link, f"{instances}: {_times(cells['control_us'], cells['test_us'])}"]


def _idle(context: PageContext) -> list[Any]:
    """The idle time per step, its largest state in the test, and what the host does most in it."""
    whole = context.whole
    states = [s for s in whole.step_time.states if s.name not in GPU_STATES]
    if not any(s.control or s.test for s in states):
        return ["it is not idle during a step"]
    idle = _times(whole.us(sum(s.control for s in states)), whole.us(sum(s.test for s in states)))
    most = max(states, key=lambda s: (s.test, s.control))
    sentence = [f"{idle} per step; longest in the test: {state_label(most.name, has_gpu=False)}, "]
    sentence.append(_times(whole.us(most.control), whole.us(most.test)))
    idle_rows = (row for table in whole.tables if table.schema.name == IDLE for row in table.rows)
    host = _largest(row for row in idle_rows if row.key[0] == most.name.partition(":")[0])
    if host is None:
        return sentence
    at = whole.us(host.control[0]), whole.us(host.test[0])
    if not host.key[1]:
        return [*sentence, f", where mostly nothing of the host is recorded: {_times(*at)}"]
    return [*sentence, ", where the host is mostly in ", components.name(host.key[1]), f": {_times(*at)}"]


def _largest(rows: Iterable[TableRowDiff]) -> TableRowDiff | None:
    return max(rows, key=lambda row: (row.test[0], row.control[0]), default=None)


def _link(context: PageContext, tab: str, row: str, children: Any) -> Any:
    return dcc.Link(children, href=context.address("changes", tab=tab, row=row))


def _times(control: float, test: float) -> str:
    return f"{change(control, test)} ({signed_time(test - control)})"
