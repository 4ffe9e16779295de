"""The state of a page in its URL: sets, filters, tab, selected row, timeline; the columns of the changes page and the
layout that a user has chosen; and what of the flame graph is shown.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any
from urllib.parse import parse_qs, urlencode

from msgspec import field, to_builtins
from msgspec.structs import asdict

from tracediff import bounds
from tracediff.diff.comparison import Part
from tracediff.present.columns import (
    CHANGES,
    COUNT,
    GRID,
    HOST_OPS,
    MODULES,
    OPS,
    SUMS,
    TEXT,
    TIME,
    P,
    RowColumn,
)
from tracediff.profile.model.selection import Selection
from tracediff.structs import FrozenStruct

SCHEMAS = {
    "groups": CHANGES,
    "ops": HOST_OPS,
    "kernels": OPS,
    "scopes": OPS,
    "modules": MODULES,
    "families": SUMS,
}
"""Tab → its rows."""


def _place(column: RowColumn) -> tuple[bool, bool, bool, int]:
    """The names first, then changes, other times, counts and texts."""
    return (
        column.name != "name",
        column.name != "kernels",
        not column.is_change,
        (TIME, COUNT, P, TEXT).index(column.kind),
    )


OF_TABS = {
    tab: {column.name: column for column in sorted(schema.of[GRID], key=_place)} for tab, schema in SCHEMAS.items()
}
"""Tab → its columns by name, in order."""
COLUMNS = {name: column for columns in OF_TABS.values() for name, column in columns.items()}
"""The columns of all tabs."""
PINNED = ("name",)

ORDERS = ("asc", "desc")
SORTS = {f"{name}:{order}" for name in COLUMNS for order in ORDERS}
"""What `TableLayout.sort` may contain."""
CONDITIONS = (
    *("contains", "notContains", "equals", "notEqual", "startsWith", "endsWith", "blank", "notBlank"),  # of texts
    *("lessThan", "lessThanOrEqual", "greaterThan", "greaterThanOrEqual", "inRange"),  # of numbers
)


def default_columns(tab: str) -> tuple[str, ...]:
    """The columns that a tab shows by default."""
    return tuple(name for name, column in OF_TABS[tab].items() if GRID not in column.hidden)


class TableLayout(FrozenStruct):
    """Sort order, columns and filters of the table; an empty attribute is the default.

    Attributes:
        sort: columns followed by ``:asc`` or ``:desc``, in order of precedence. visible, pinned: columns.
        where: the filters of the grid as JSON, see `where_of`.
    """

    sort: tuple[str, ...] = ()
    visible: tuple[str, ...] = field(default=(), name="show")
    pinned: tuple[str, ...] = field(default=(), name="pin")
    where: str = ""

    def order(self) -> dict[str, tuple[str, int]]:
        """Column → (asc or desc, its position in the sort order)."""
        return {entry.partition(":")[0]: (entry.partition(":")[2], k) for k, entry in enumerate(self.sort)}

    def filters(self) -> dict[str, Any]:
        """The filter model of the grid."""
        model: dict[str, Any] = json.loads(self.where or "{}")
        return model


def parse_layout(sort: Sequence[str], visible: Sequence[str], pinned: Sequence[str], where: str) -> TableLayout:
    """The layout in a URL; unknown columns and invalid filters are ignored."""
    sorts = {entry.partition(":")[0]: entry for entry in sort if entry in SORTS}
    visible, pinned = (tuple(name for name in dict.fromkeys(names) if name in COLUMNS) for names in (visible, pinned))
    try:
        model = json.loads(where)
    except (ValueError, RecursionError):
        model = None
    return TableLayout(tuple(sorts.values()), visible, pinned, where_of(model))


def sort_of(state: Any) -> tuple[str, ...]:
    """The sort order in the grid's ``columnState``, as `TableLayout.sort`."""
    entries = [(c.get("sortIndex") or 0, f"{c.get('colId')}:{c.get('sort')}") for c in state or ()]
    return tuple(entry for _, entry in sorted(entries, key=itemgetter(0)) if entry in SORTS)


def selected_columns(value: Any, default: Sequence[str]) -> tuple[str, ...]:
    """The columns selected in a dropdown, empty if they are the default."""
    selected = tuple(column for column in COLUMNS if column in value)
    return selected if set(selected) != set(default) else ()


def where_of(model: Any) -> str:
    """The grid's ``filterModel`` as JSON, empty without filters; unknown conditions are left out."""
    if not isinstance(model, dict):
        return ""
    conditions = {column: condition for column in COLUMNS if (condition := _condition(model.get(column)))}
    return json.dumps(conditions, separators=(",", ":"), sort_keys=True) if conditions else ""


def _condition(model: Any) -> dict[str, Any]:
    """The condition of a column: a single one, or several joined by AND or OR."""
    if not isinstance(model, dict) or not isinstance(model.get("conditions"), list):
        return _single(model)
    parts = [part for condition in model["conditions"][: bounds.CONDITIONS] if (part := _single(condition))]
    joined = "OR" if model.get("operator") == "OR" else "AND"
    return {"filterType": parts[0]["filterType"], "operator": joined, "conditions": parts} if parts else {}


def _single(model: Any) -> dict[str, Any]:
    if (
        not isinstance(model, dict)
        or model.get("filterType") not in ("text", "number")
        or str(model.get("type")) not in CONDITIONS
    ):
        return {}
    kind = str if model["filterType"] == "text" else (int, float)
    values = {key: value for key in ("filter", "filterTo") if isinstance(value := model.get(key), kind)}
    if any(isinstance(value, str) and len(value) > bounds.FILTER_TEXT for value in values.values()):
        return {}
    return {"filterType": model["filterType"], "type": str(model["type"]), **values}


SIZES = ("work", "host", "count")
FLAGS = ("inverted", "separate", "lines", "regex")


class FlameView(FrozenStruct, kw_only=True):
    """The state of the flame graph.

    Attributes:
        size: what the width of a box measures, empty for the first that the traces have.
        inverted: kernels first. separate: each instance of a module by itself. lines: by line of code, not by caller.
        find: what is searched. regex: as a regular expression.
        zoom: labels of the boxes from below the whole to the one at the top.
    """

    size: str = ""
    inverted: bool = False
    separate: bool = False
    lines: bool = False
    find: str = ""
    regex: bool = False
    zoom: tuple[str, ...] = ()

    @property
    def data(self) -> dict[str, Any]:
        """What the script reads; without a size it chooses one."""
        return {key: value for key, value in asdict(self).items() if value or key != "size"}


def flame_view(values: Mapping[str, Any]) -> FlameView:
    """The state that the script or the query of a URL gives; what is missing or invalid is the default."""
    size, find, zoom = values.get("size"), values.get("find"), values.get("zoom")
    names = zoom if isinstance(zoom, list) else []
    return FlameView(
        size=size if size in SIZES else "",
        find=find[: bounds.PAGE_CELL] if isinstance(find, str) else "",
        **{flag: values.get(flag) in (True, "1") for flag in FLAGS},
        zoom=tuple(name[: bounds.PAGE_CELL] for name in names[: bounds.FILTERED_MODULES] if isinstance(name, str)),
    )


TABS = tuple(OF_TABS)
Window = tuple[int, int]
LATEST = 1 << 60
"""Upper bound of the time within a step, in ns."""


class Filters(FrozenStruct):
    """The filters of a comparison, under the names that they have in the URL and as controls.

    Attributes:
        device: gpu or cpu, None for both. phase, family, module: those of the work to show, empty for all.
        steps: ``A..B``, empty for the default steps. rank: the ranks to use, empty for all; test_rank: those of the
            test, empty for the same.
    """

    device: str | None = None
    phase: tuple[str, ...] = ()
    family: tuple[str, ...] = ()
    module: tuple[str, ...] = ()
    steps: str = ""
    rank: tuple[int, ...] = ()
    test_rank: tuple[int, ...] = ()

    @property
    def part(self) -> Part:
        """The work that the filters select."""
        return Part(self.device, frozenset(self.phase), frozenset(self.family), frozenset(self.module))

    @property
    def selection(self) -> Selection | None:
        """The selected steps, None for the default.

        Raises:
            TracediffError: ``steps`` is not a range.
        """
        return Selection.parse(self.steps) if self.steps else None


class View(FrozenStruct):
    """The state in the query of a URL.

    Attributes:
        control, test: names of the sets, empty if none is selected. forced: compare even if the preflight refuses.
        tab, row: tab of the changes page, and key of its selected row. flame: state of the flame graph.
        at_control, at_test: steps of the timeline, empty for the typical ones; see `step_inspector.Place.key`.
        window: [start, end) of the timeline in ns after the start of the step, None for the whole step.
        table: layout of the table of changes.
    """

    control: str = ""
    test: str = ""
    filters: Filters = Filters()
    forced: bool = False
    tab: str = TABS[0]
    row: str = ""
    flame: FlameView = FlameView()
    at_control: str = ""
    at_test: str = ""
    window: Window | None = None
    table: TableLayout = TableLayout()

    @property
    def page_state(self) -> View:
        """The state that determines the page; the table, the flame graph and the timeline update themselves for
        the rest.
        """
        return self.replace(row="", flame=FlameView(), at_control="", at_test="", window=None, table=TableLayout())

    def query(self) -> str:
        """The query of the URL, from ``?`` on, without defaults; `view_of` reads it."""
        fields: dict[str, Any] = {}
        for key, value in to_builtins(self).items():
            fields |= value if isinstance(value, dict) else {key: value}
        fields["tab"] = self.tab if self.tab != TABS[0] else ""
        fields["window"] = f"{self.window[0]}..{self.window[1]}" if self.window else ""
        changed = {key: "1" if value is True else value for key, value in fields.items() if value}
        return f"?{urlencode(changed, doseq=True)}" if changed else ""


def view_of(search: str | None) -> View:
    """The state in the query of a URL; missing and invalid values are the default."""
    try:
        query = parse_qs((search or "")[: bounds.QUERY].removeprefix("?"), max_num_fields=300)
    except ValueError:
        return View()
    first = defaultdict(str, {key: values[0] for key, values in query.items()})
    return View(
        first["control"],
        first["test"],
        filters_of({**query, "device": first["device"], "steps": first["steps"]}),
        forced=first["forced"] == "1",
        tab=first["tab"] if first["tab"] in TABS else TABS[0],
        row=first["row"],
        flame=flame_view({**first, "zoom": query.get("zoom")}),
        at_control=first["at_control"],
        at_test=first["at_test"],
        window=_window(first["window"]),
        table=parse_layout(query.get("sort", ()), query.get("show", ()), query.get("pin", ()), first["where"]),
    )


def filters_of(values: Mapping[str, Any]) -> Filters:
    """The filters with the ``values`` of the URL or of the controls; what is missing or invalid is the default."""
    names: dict[str, Any] = {key: tuple(dict.fromkeys(values.get(key) or ())) for key in ("phase", "family", "module")}
    ranks: dict[str, Any] = {key: _ranks(values.get(key) or ()) for key in ("rank", "test_rank")}
    device = values.get("device") if values.get("device") in ("gpu", "cpu") else None
    return Filters(device, steps=(values.get("steps") or "").strip(), **names, **ranks)


def _ranks(values: Iterable[str | int]) -> tuple[int, ...]:
    texts = map(str, values)
    return tuple(sorted({int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 10}))


def _window(text: str) -> Window | None:
    ends = text.split("..")
    if len(ends) != 2 or not all(end.isascii() and end.isdigit() and len(end) < 20 for end in ends):
        return None
    low, high = map(int, ends)
    return (low, high) if low < high < LATEST else None
