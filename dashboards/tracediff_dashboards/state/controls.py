"""Conversion between the URL's state and the values of the controls on the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any

from tracediff_dashboards.state.columns import PINNED, TableLayout, default_columns, selected_columns, sort_of, where_of
from tracediff_dashboards.state.flame_view import flame_view
from tracediff_dashboards.state.view import Filters, View, Window

CONTROLS = ("control", "test", "device", "phase", "family", "module", "steps", "rank", "test-rank")
"""Controls on every page."""
OTHERS = (
    "flame-view",
    "grid",
    "at-control",
    "at-test",
    "window",
    "columns",
    "pinned",
    "grid.columnState",
    "grid.filterModel",
    "swap",
    "clear",
    "dropped",
)
"""Controls of single pages, and buttons; ``grid`` is its selected row, order and filters are separate."""


def values_of(view: View) -> list[Any]:
    """The values of CONTROLS for a view."""
    filters = view.filters
    return [
        view.control or None,
        view.test or None,
        filters.device,
        list(filters.phases),
        list(filters.families),
        list(filters.modules),
        filters.steps,
        list(filters.ranks),
        list(filters.test_ranks),
    ]


def row_of(selected: Any) -> str | None:
    """The key of the row selected in the grid, which reports rows or ids of rows."""
    if isinstance(selected, dict):
        ids = selected.get("ids") or [None]
        return str(ids[0]) if ids[0] else None
    if isinstance(selected, list) and selected and isinstance(selected[0], dict):
        return str(selected[0].get("key") or "") or None
    return None


def changed_controls(triggered: Iterable[str]) -> set[str]:
    """The changed controls (and ``url``), from the properties that triggered a callback of Dash."""
    return {name if name in OTHERS else name.split(".")[0] for name in triggered} - {""}


def changed(view: View, controls: Set[str], values: Mapping[str, Any]) -> View:
    """The view after changes of ``controls``.

    All values are read, not only the changed ones: after quick changes, the URL lags behind the page.

    Args:
        values: control of CONTROLS or OTHERS → value; None if it is not on the page.
    """
    if not controls & {*CONTROLS, *OTHERS}:
        return view
    before, view = view, _of_controls(view, values)
    if "clear" in controls:
        view = replace(view, filters=Filters())
    if "swap" in controls:
        return replace(view, control=view.test, test=view.control, at_control=view.at_test, at_test=view.at_control)
    if "dropped" in controls and values["dropped"]:
        names = [str(name) for name in values["dropped"]]
        view = replace(
            view,
            control=names[0] if len(names) > 1 else view.control or names[0],
            test=names[-1],
            filters=Filters(),
            row="",
        )
    if isinstance(values.get("flame-view"), dict):
        view = replace(view, flame=flame_view(values["flame-view"]))
    at_control, at_test = (str(values.get(key) or "") for key in ("at-control", "at-test"))
    if "at-control" in controls or at_control:
        view = replace(view, at_control=at_control)
    if "at-test" in controls or at_test:
        view = replace(view, at_test=at_test)
    if "window" in controls:
        view = replace(view, window=_window(values["window"]))
    if (view.control, view.test) != (before.control, before.test):
        at_control, at_test = (
            view.at_control if view.control == before.control else "",
            view.at_test if view.test == before.test else "",
        )
        view = replace(view, at_control=at_control, at_test=at_test, window=None)
    row = row_of(values.get("grid"))
    return replace(view, table=_layout(view, values), row=view.row if row is None else row)


def _of_controls(view: View, values: Mapping[str, Any]) -> View:
    """The view with the sets and filters of the controls."""
    if not values.keys() >= set(CONTROLS):
        return view
    phases, families, modules = (tuple(map(str, values[key] or ())) for key in ("phase", "family", "module"))
    ranks, test_ranks = (tuple(sorted(int(rank) for rank in values[key] or ())) for key in ("rank", "test-rank"))
    filters = Filters(
        values["device"] or None,
        phases=phases,
        families=families,
        modules=modules,
        steps=str(values["steps"] or "").strip(),
        ranks=ranks,
        test_ranks=test_ranks,
    )
    control, test = (str(values[key] or "") for key in ("control", "test"))
    return replace(
        view,
        control=control,
        test=test,
        filters=filters,
        forced=view.forced and (control, test) == (view.control, view.test),
    )


def _window(value: Any) -> Window | None:
    return (
        (value[0], value[1])
        if isinstance(value, list) and len(value) == 2 and all(isinstance(end, int) for end in value)
        else None
    )


def _layout(view: View, values: Mapping[str, Any]) -> TableLayout:
    table = view.table
    if values.get("columns") is not None:
        table = replace(table, visible=selected_columns(values["columns"], default_columns(view.tab)))
    if values.get("pinned") is not None:
        table = replace(table, pinned=selected_columns(values["pinned"], PINNED))
    if values.get("grid.columnState"):
        table = replace(table, sort=sort_of(values["grid.columnState"]))
    if values.get("grid.filterModel") is not None:
        table = replace(table, where=where_of(values["grid.filterModel"]))
    return table
