"""What a choice on the page does to its address, and what the address says is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any

from tracediff_dashboards.columns import PINNED, Arranged, chosen_of, sort_of, usual, where_of
from tracediff_dashboards.filters import SIZES, TABS, Filters, View, Window

CONTROLS = ("control", "test", "device", "phase", "family", "module", "steps", "rank")
"""Those around every page."""
OTHERS = (
    "tab",
    "size",
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
"""Those of single pages, and buttons; of the grid the chosen row, and apart from it its order and filters."""


def values_of(view: View) -> list[Any]:
    """The values of CONTROLS."""
    of = view.filters
    return [
        view.control or None,
        view.test or None,
        of.device,
        list(of.phases),
        list(of.families),
        list(of.modules),
        of.steps,
        list(of.ranks),
    ]


def row_of(selected: Any) -> str | None:
    """The key of the row that the grid says is chosen: rows, or ids of rows, as they were set."""
    if isinstance(selected, dict):
        ids = selected.get("ids") or [None]
        return str(ids[0]) if ids[0] else None
    if isinstance(selected, list) and selected and isinstance(selected[0], dict):
        return str(selected[0].get("key") or "") or None
    return None


def moved_of(triggered: Iterable[str]) -> set[str]:
    """Which of the controls, ``url`` and others have changed, of the properties that Dash says have."""
    return {one if one in OTHERS else one.split(".")[0] for one in triggered} - {""}


def changed(view: View, moved: Set[str], values: Mapping[str, Any]) -> View:
    """The view after the choices in ``moved``.

    All that the page says is read, not only what has moved: of quick choices the address holds the earlier ones later.

    Args:
        values: of CONTROLS and OTHERS; None of those that are not on the page.
    """
    if not moved & {*CONTROLS, *OTHERS}:
        return view
    before, view = view, _of_controls(view, values)
    if "clear" in moved:
        view = replace(view, filters=Filters())
    if "swap" in moved:
        return replace(view, control=view.test, test=view.control, at_control=view.at_test, at_test=view.at_control)
    if "dropped" in moved and values["dropped"]:
        names = [str(name) for name in values["dropped"]]
        view = replace(
            view,
            control=names[0] if len(names) > 1 else view.control or names[0],
            test=names[-1],
            filters=Filters(),
            row="",
        )
    if values.get("size") in SIZES:
        view = replace(view, size=values["size"])
    at_control, at_test = (str(values.get(key) or "") for key in ("at-control", "at-test"))
    if "at-control" in moved or at_control:
        view = replace(view, at_control=at_control)
    if "at-test" in moved or at_test:
        view = replace(view, at_test=at_test)
    if "window" in moved:
        view = replace(view, window=_window(values["window"]))
    if (view.control, view.test) != (before.control, before.test):
        at_control, at_test = (
            view.at_control if view.control == before.control else "",
            view.at_test if view.test == before.test else "",
        )
        view = replace(view, at_control=at_control, at_test=at_test, window=None)
    if values.get("tab") in TABS and values["tab"] != view.tab:  # the table on the page is that of the tab before
        return replace(view, tab=values["tab"], row="", table=Arranged())
    row = row_of(values.get("grid"))
    return replace(view, table=_arranged(view, values), row=view.row if row is None else row)


def _of_controls(view: View, values: Mapping[str, Any]) -> View:
    """The view with the sets and filters that the controls around the page say."""
    if not values.keys() >= set(CONTROLS):
        return view
    phases, families, modules = (tuple(map(str, values[key] or ())) for key in ("phase", "family", "module"))
    ranks = tuple(sorted(int(rank) for rank in values["rank"] or ()))
    filters = Filters(
        values["device"] or None,
        phases=phases,
        families=families,
        modules=modules,
        steps=str(values["steps"] or "").strip(),
        ranks=ranks,
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


def _arranged(view: View, values: Mapping[str, Any]) -> Arranged:
    table = view.table
    if values.get("columns") is not None:
        table = replace(table, shown=chosen_of(values["columns"], usual(view.tab)))
    if values.get("pinned") is not None:
        table = replace(table, pinned=chosen_of(values["pinned"], PINNED))
    if values.get("grid.columnState"):
        table = replace(table, sort=sort_of(values["grid.columnState"]))
    if values.get("grid.filterModel") is not None:
        table = replace(table, where=where_of(values["grid.filterModel"]))
    return table
