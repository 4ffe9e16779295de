"""What a browser may send to the callbacks; `check` rejects everything else before Dash or a callback sees it."""

from __future__ import annotations

from typing import Any

import flask
import msgspec
from dash import Dash
from msgspec import Struct, field
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge

PATH = "/_dash-update-component"
MOST_BYTES = 1 << 20
"""Maximum size of a request in bytes."""
JSON = "application/json"

Text = str | None
Number = float | None
Clicks = int | None


class Row(Struct):
    """A selected row of the table, without its cells."""

    key: str = ""


class Rows(Struct):
    """Selected rows, by their keys."""

    ids: list[str] = []


class Column(Struct):
    """The state of a column of the table."""

    colId: str = ""
    sort: Text = None
    sortIndex: Clicks = None


class Mark(Struct):
    """A clicked mark of a chart."""

    id: str | int | None = None


class Click(Struct):
    """A click on a chart."""

    points: list[Mark] = []


class Box(Struct):
    """The box that the flame graph is zoomed to."""

    kind: str = ""
    name: str = ""


class Flame(Struct):
    """What of the flame graph is shown."""

    size: str = ""
    inverted: bool = False
    separate: bool = False
    find: str = ""
    regex: bool = False
    zoom: list[str] = []
    node: Box | None = None


class Relayout(Struct):
    """The new range of the time axes of a chart."""

    low: Number = field(default=None, name="xaxis.range[0]")
    high: Number = field(default=None, name="xaxis.range[1]")
    both: tuple[float, float] | None = field(default=None, name="xaxis.range")
    low2: Number = field(default=None, name="xaxis2.range[0]")
    high2: Number = field(default=None, name="xaxis2.range[1]")
    both2: tuple[float, float] | None = field(default=None, name="xaxis2.range")


VALUES: dict[str, Any] = {
    **dict.fromkeys(("url.pathname", "url.search", "theme.data"), Text),
    **dict.fromkeys(("control.value", "test.value", "device.value", "steps.value"), Text),
    **dict.fromkeys(("at-control.value", "at-test.value"), Text),
    **dict.fromkeys(("phase.value", "family.value", "module.value"), list[str] | None),
    **dict.fromkeys(("columns.value", "pinned.value", "dropped.data"), list[str] | None),
    **dict.fromkeys(("swap.n_clicks", "clear.n_clicks", "again.n_clicks", "cancel.n_clicks"), Clicks),
    "ready.data": int,
    "poll.n_intervals": Clicks,
    **dict.fromkeys(("rank.value", "test-rank.value"), list[int] | None),
    "spans-of.data": Text,
    "window.data": tuple[int, int] | None,
    "shown.data": list[str | int | None] | None,
    "grid.selectedRows": list[Row] | Rows | None,
    "grid.columnState": list[Column] | None,
    "grid.filterModel": dict[str, dict[str, Any]] | None,
    "flame-view.data": Flame | None,
    "chart-timeline.relayoutData": Relayout | None,
    "chart-timeline.clickData": Click | None,
}
"""Property of a component → the type of its value."""


class Property(Struct):
    """A property of a component."""

    id: str
    property: str


class Value(Property):
    """A property of a component and its value, absent where the component is."""

    value: msgspec.Raw = msgspec.Raw(b"null")


class Body(Struct):
    """The request for one callback."""

    output: str
    outputs: list[Property] | Property = []
    inputs: list[Value] = []
    state: list[Value] = []
    changedPropIds: list[str] = []


def check(app: Dash) -> None:
    """Check the request of a callback.

    Raises:
        BadRequest: it is too large, not JSON, for an unknown callback, or its values have the wrong types.
    """
    if flask.request.mimetype != JSON:  # other sites may send other types
        raise BadRequest(f"The content type is not {JSON}.")
    try:
        body = msgspec.json.decode(flask.request.get_data(), type=Body)
        _check_properties(app, body)
        for value in (*body.inputs, *body.state):
            msgspec.json.decode(value.value, type=VALUES[_name(value)])
        flask.request.get_json()  # as Dash will
    except RequestEntityTooLarge:
        raise BadRequest(f"The request is larger than {MOST_BYTES >> 20} MB.") from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadRequest(f"Not a request of this dashboard's pages: {error}") from None


def _check_properties(app: Dash, body: Body) -> None:
    """Check that the callback exists, and that the properties are its own, in its order.

    Raises:
        ValueError: they are not.
    """
    known = app.callback_map.get(body.output)
    if known is None or "callback" not in known:  # callbacks without a function run in the browser
        raise ValueError("unknown callback")
    if isinstance(body.outputs, Property):
        outputs = _name(body.outputs)
    else:
        outputs = f"..{'...'.join(map(_name, body.outputs))}.."
    if outputs != (".." * 2 if known["no_output"] else body.output):
        raise ValueError("wrong outputs")
    for values, expected in ((body.inputs, known["inputs"]), (body.state, known["state"])):
        if [_name(value) for value in values] != [f"{each['id']}.{each['property']}" for each in expected]:
            raise ValueError("wrong inputs")
    if not {*body.changedPropIds} <= {_name(value) for value in body.inputs}:
        raise ValueError("unknown change")


def _name(given: Property) -> str:
    return f"{given.id}.{given.property}"
