"""Conversion between the URL's state and the values of the controls on the page."""

from collections.abc import Mapping, Set
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from tracediff_dashboards.state.view import (
    PINNED,
    Filters,
    FlameView,
    TableLayout,
    View,
    Window,
    default_columns,
    filters_of,
    flame_view,
    selected_columns,
    sort_of,
    where_of,
)

CONTROLS = ("control", "test", *(name.replace("_", "-") for name in Filters.__struct_fields__))
"""Controls on every page: the sets and the filters, in the order of `Filters`."""


class GridRow(Struct):
    """A selected row of the table, without its cells."""

    key: str = ""


class Rows(Struct):
    """Selected rows, by their keys."""

    ids: list[str] = []


class SortedColumn(Struct):
    """The state of a column of the table."""

    colId: str = ""
    sort: str | None = None
    sortIndex: int | None = None


class Box(Struct):
    """The box that the flame graph is zoomed to."""

    kind: str = ""
    name: str = ""


class Flame(FlameView):
    """What of the flame graph is shown, and the box that it is zoomed to."""

    node: Box | None = None


TYPES: dict[str, Any] = {
    **dict.fromkeys(("control.value", "test.value", "device.value", "steps.value"), str | None),
    **dict.fromkeys(("phase.value", "family.value", "module.value"), list[str] | None),
    **dict.fromkeys(("rank.value", "test-rank.value"), list[int] | None),
    **dict.fromkeys(("at-control.value", "at-test.value"), str | None),
    **dict.fromkeys(("columns.value", "pinned.value", "dropped.data"), list[str] | None),
    **dict.fromkeys(("swap.n_clicks", "clear.n_clicks"), int | None),
    "flame-view.data": Flame | None,
    "window.data": Window | None,
    "grid.selectedRows": list[GridRow] | Rows | None,
    "grid.columnState": list[SortedColumn] | None,
    "grid.filterModel": dict[str, dict[str, Any]] | None,
}
"""Property of a component that is a control, or a button → the type of its value."""
PROPERTIES = {
    name if name in ("grid.columnState", "grid.filterModel") else name.partition(".")[0]: name for name in TYPES
}
"""Control → the property of a component that has its value; ``grid`` is its selected row, its order and filters are
controls, too.
"""


def values_of(view: View) -> list[Any]:
    """The values of CONTROLS for a view."""
    filters = [list(value) if isinstance(value, tuple) else value for value in asdict(view.filters).values()]
    return [view.control or None, view.test or None, *filters]


def row_of(selected: Any) -> str | None:
    """The key of the row selected in the grid, which reports rows or ids of rows."""
    keys = selected.get("ids") if isinstance(selected, dict) else None
    if isinstance(selected, list):
        keys = [row.get("key") for row in selected]
    return str(keys[0]) if keys and keys[0] else None


def changed(view: View, controls: Set[str], values: Mapping[str, Any]) -> View:
    """The view after changes of ``controls``.

    All values are read, not only the changed ones: after quick changes, the URL lags behind the page.

    Args:
        values: control of PROPERTIES → value; None if it is not on the page.
    """
    if not controls & PROPERTIES.keys():
        return view
    before, view = view, _of_controls(view, values)
    if "clear" in controls:
        view = view.replace(filters=Filters())
    if "swap" in controls:
        return view.replace(control=view.test, test=view.control, at_control=view.at_test, at_test=view.at_control)
    if "dropped" in controls and values["dropped"]:
        names = [str(name) for name in values["dropped"]]
        view = view.replace(
            control=names[0] if len(names) > 1 else view.control or names[0],
            test=names[-1],
            filters=Filters(),
            row="",
        )
    if isinstance(values.get("flame-view"), dict):
        view = view.replace(flame=flame_view(values["flame-view"]))
    for control in ("at-control", "at-test"):
        step = str(values.get(control) or "")
        if control in controls or step:
            view = view.replace(**{control.replace("-", "_"): step})
    if "window" in controls:
        view = view.replace(window=tuple(values["window"]) if values["window"] else None)
    if (view.control, view.test) != (before.control, before.test):
        view = view.replace(
            at_control=view.at_control if view.control == before.control else "",
            at_test=view.at_test if view.test == before.test else "",
            window=None,
        )
    row = row_of(values.get("grid"))
    return view.replace(table=_layout(view, values), row=view.row if row is None else row)


def _of_controls(view: View, values: Mapping[str, Any]) -> View:
    """The view with the sets and filters of the controls."""
    if not values.keys() >= set(CONTROLS):
        return view
    control, test = (str(values[key] or "") for key in ("control", "test"))
    filters = filters_of({key.replace("-", "_"): values[key] for key in CONTROLS})
    forced = view.forced and (control, test) == (view.control, view.test)
    return view.replace(control=control, test=test, filters=filters, forced=forced)


def _layout(view: View, values: Mapping[str, Any]) -> TableLayout:
    table = view.table
    if values.get("columns") is not None:
        table = table.replace(visible=selected_columns(values["columns"], default_columns(view.tab)))
    if values.get("pinned") is not None:
        table = table.replace(pinned=selected_columns(values["pinned"], PINNED))
    if values.get("grid.columnState"):
        table = table.replace(sort=sort_of(values["grid.columnState"]))
    if values.get("grid.filterModel") is not None:
        table = table.replace(where=where_of(values["grid.filterModel"]))
    return table
