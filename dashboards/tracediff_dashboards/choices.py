"""What a choice on the page does to its address, and what the address says is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any

from tracediff_dashboards.columns import PINNED, Arranged, chosen_of, sort_of, usual, where_of
from tracediff_dashboards.filters import SIZES, TABS, Filters, View

CONTROLS = ("control", "test", "device", "phase", "family", "module", "steps", "rank")
"""Those around every page."""
OTHERS = ("tab", "size", "grid", "at-control", "at-test", "columns", "pinned", "grid.columnState", "grid.filterModel", "swap", "clear", "dropped")
"""Those of single pages, and buttons; of the grid the chosen row, and apart from it its order and filters."""


def values_of(view: View) -> list[Any]:
    """The values of CONTROLS."""
    of = view.filters
    return [view.control or None, view.test or None, of.device, list(of.phases), list(of.families), list(of.modules), of.steps, list(of.ranks)]


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
    """The view after the choices in ``moved``."""
    if moved & set(CONTROLS):
        phases, families, modules = (tuple(map(str, values[key] or ())) for key in ("phase", "family", "module"))
        ranks = tuple(sorted(int(rank) for rank in values["rank"] or ()))
        filters = Filters(values["device"] or None, phases, families, modules, str(values["steps"] or "").strip(), ranks)
        control, test = (str(values[key] or "") for key in ("control", "test"))
        view = replace(view, control=control, test=test, filters=filters, forced=view.forced and not moved & {"control", "test"})
        view = replace(view, at_control="" if "control" in moved else view.at_control, at_test="" if "test" in moved else view.at_test)
    if "clear" in moved:
        view = replace(view, filters=Filters())
    if "swap" in moved:
        view = replace(view, control=view.test, test=view.control, at_control=view.at_test, at_test=view.at_control)
    if "dropped" in moved and values["dropped"]:
        names = [str(name) for name in values["dropped"]]
        view = replace(view, control=names[0] if len(names) > 1 else view.control or names[0], test=names[-1], filters=Filters(), row="")
    if "tab" in moved and values["tab"] in TABS and values["tab"] != view.tab:
        return replace(view, tab=values["tab"], row="", table=Arranged())  # what else the page says is of the tab before
    if "size" in moved and values["size"] in SIZES:
        view = replace(view, size=values["size"])
    if "at-control" in moved:
        view = replace(view, at_control=str(values["at-control"] or ""))
    if "at-test" in moved:
        view = replace(view, at_test=str(values["at-test"] or ""))
    view = replace(view, table=_arranged(view, moved, values))
    row = row_of(values["grid"]) if "grid" in moved else None
    return replace(view, row=row) if row is not None else view


def _arranged(view: View, moved: Set[str], values: Mapping[str, Any]) -> Arranged:
    table = view.table
    if "columns" in moved:
        table = replace(table, shown=chosen_of(values["columns"], usual(view.tab)))
    if "pinned" in moved:
        table = replace(table, pinned=chosen_of(values["pinned"], PINNED))
    if "grid.columnState" in moved and values["grid.columnState"]:
        table = replace(table, sort=sort_of(values["grid.columnState"]))
    if "grid.filterModel" in moved:
        table = replace(table, where=where_of(values["grid.filterModel"]))
    return table
