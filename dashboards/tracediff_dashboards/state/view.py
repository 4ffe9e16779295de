"""The state of a page in its URL: sets, filters, tab, selected row, timeline and table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs, urlencode

from tracediff.diff.subset import Part
from tracediff.profile.selection import Selection
from tracediff_dashboards.state.columns import OF_TABS, TableLayout, parse_layout
from tracediff_dashboards.state.flame_view import FlameView, flame_view

LONGEST = 8000
"""Maximum length of the query of a URL, in characters."""
TABS = tuple(OF_TABS)
Window = tuple[int, int]
LATEST = 1 << 60
"""Upper bound of the time within a step, in ns."""


@dataclass(frozen=True)
class Filters:
    """The filters of a comparison, under the names that they have in the URL and as controls.

    Attributes:
        device: gpu or cpu, None for both. phase, family, module: those of the work to show, empty for all.
        steps: ``A..B``, empty for the default steps. rank: the ranks to use, empty for all; test_rank: those of the
            test, empty for the same.
    """

    device: str | None = None
    _: KW_ONLY
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


@dataclass(frozen=True)
class View:
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
    filters: Filters = field(default_factory=Filters)
    _: KW_ONLY
    forced: bool = False
    tab: str = TABS[0]
    row: str = ""
    flame: FlameView = field(default_factory=FlameView)
    at_control: str = ""
    at_test: str = ""
    window: Window | None = None
    table: TableLayout = field(default_factory=TableLayout)

    @property
    def page_state(self) -> View:
        """The state that determines the page; the table, the flame graph and the timeline update themselves for
        the rest.
        """
        return replace(self, row="", flame=FlameView(), at_control="", at_test="", window=None, table=TableLayout())

    def query(self) -> str:
        """The query of the URL, from ``?`` on, without defaults; `view_of` reads it."""
        fields: dict[str, str | Sequence[object]] = {
            "control": self.control,
            "test": self.test,
            **vars(self.filters),
            "forced": "1" if self.forced else "",
            "tab": self.tab if self.tab != TABS[0] else "",
            "row": self.row,
            **self.flame.fields,
            "at_control": self.at_control,
            "at_test": self.at_test,
            "window": f"{self.window[0]}..{self.window[1]}" if self.window else "",
            "sort": self.table.sort,
            "show": self.table.visible,
            "pin": self.table.pinned,
            "where": self.table.where,
        }
        given = {key: value for key, value in fields.items() if value}
        return f"?{urlencode(given, doseq=True)}" if given else ""


def view_of(search: str | None) -> View:
    """The state in the query of a URL; missing and invalid values are the default."""
    try:
        found = parse_qs((search or "")[:LONGEST].removeprefix("?"), max_num_fields=300)
    except ValueError:
        return View()
    tab = _first(found, "tab")
    return View(
        _first(found, "control"),
        _first(found, "test"),
        filters_of({**found, "device": _first(found, "device"), "steps": _first(found, "steps")}),
        forced=_first(found, "forced") == "1",
        tab=tab if tab in TABS else TABS[0],
        row=_first(found, "row"),
        flame=flame_view(
            {key: found.get(key, []) if key == "zoom" else _first(found, key) for key in FlameView().fields}
        ),
        at_control=_first(found, "at_control"),
        at_test=_first(found, "at_test"),
        window=_window(_first(found, "window")),
        table=parse_layout(found.get("sort", ()), found.get("show", ()), found.get("pin", ()), _first(found, "where")),
    )


def filters_of(values: Mapping[str, Any]) -> Filters:
    """The filters with the ``values`` of the URL or of the controls; what is missing or invalid is the default."""
    phase, family, module = (tuple(dict.fromkeys(values.get(key) or ())) for key in ("phase", "family", "module"))
    rank, test_rank = (_ranks(values.get(key) or ()) for key in ("rank", "test_rank"))
    return Filters(
        device if (device := values.get("device")) in ("gpu", "cpu") else None,
        phase=phase,
        family=family,
        module=module,
        steps=(values.get("steps") or "").strip(),
        rank=rank,
        test_rank=test_rank,
    )


def _ranks(values: Iterable[str | int]) -> tuple[int, ...]:
    texts = map(str, values)
    return tuple(sorted({int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 10}))


def _first(found: Mapping[str, Sequence[str]], key: str) -> str:
    return found.get(key, ("",))[0]


def _window(text: str) -> Window | None:
    ends = text.split("..")
    if len(ends) != 2 or not all(end.isascii() and end.isdigit() and len(end) < 20 for end in ends):
        return None
    low, high = map(int, ends)
    return (low, high) if low < high < LATEST else None
