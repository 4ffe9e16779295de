"""What a page shows, as its address says it: which sets, which part of the work, which tab and row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from urllib.parse import parse_qs, urlencode

from tracediff.diff.subset import Part
from tracediff.profile.selection import Selection
from tracediff_dashboards.columns import Arranged, arranged

LONGEST = 8000
"""Characters of an address."""
TABS = ("ops", "kernels", "scopes", "modules", "families", "groups")
SIZES = ("work", "host", "count")
Window = tuple[int, int]
LATEST = 1 << 60
"""ns; no step is as long."""


@dataclass(frozen=True)
class Filters:
    """Which part of the comparison.

    Attributes:
        device: gpu or cpu, None for both. phases, families, modules: of the work, empty for all.
        steps: ``A..B``, empty for those used by default. ranks: empty for all.
    """

    device: str | None = None
    _: KW_ONLY
    phases: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    steps: str = ""
    ranks: tuple[int, ...] = ()

    @property
    def part(self) -> Part:
        """The chosen work."""
        return Part(self.device, frozenset(self.phases), frozenset(self.families), frozenset(self.modules))

    @property
    def selection(self) -> Selection | None:
        """The chosen steps, None for those used by default.

        Raises:
            TracediffError: they are no range.
        """
        return Selection.parse(self.steps) if self.steps else None


@dataclass(frozen=True)
class View:
    """All that an address says besides the page's name.

    Attributes:
        control, test: names of sets, empty where none is chosen. forced: compare even what the preflight refuses.
        tab, row: of the changes. size: what the tree's boxes are as large as.
        at_control, at_test: steps of the timeline, empty for the typical ones; see `looking.Place.key`.
        window: [start, end) of them in ns after the beginning of the step, None for all.
        table: how the changes are arranged.
    """

    control: str = ""
    test: str = ""
    filters: Filters = field(default_factory=Filters)
    _: KW_ONLY
    forced: bool = False
    tab: str = TABS[0]
    row: str = ""
    size: str = SIZES[0]
    at_control: str = ""
    at_test: str = ""
    window: Window | None = None
    table: Arranged = field(default_factory=Arranged)

    @property
    def drawn(self) -> View:
        """What a page is drawn anew for: without what its table and its timeline change by themselves."""
        return replace(self, row="", at_control="", at_test="", window=None, table=Arranged())

    def query(self) -> str:
        """The address' part from ``?`` on; what is as usual is left out. `view_of` reads it."""
        of = self.filters
        fields: dict[str, str | Sequence[object]] = {
            "control": self.control,
            "test": self.test,
            "device": of.device or "",
            "phase": of.phases,
            "family": of.families,
            "module": of.modules,
            "steps": of.steps,
            "rank": of.ranks,
            "forced": "1" if self.forced else "",
            "tab": self.tab if self.tab != TABS[0] else "",
            "row": self.row,
            "size": self.size if self.size != SIZES[0] else "",
            "at_control": self.at_control,
            "at_test": self.at_test,
            "window": f"{self.window[0]}..{self.window[1]}" if self.window else "",
            "sort": self.table.sort,
            "show": self.table.shown,
            "pin": self.table.pinned,
            "where": self.table.where,
        }
        given = {key: value for key, value in fields.items() if value}
        return f"?{urlencode(given, doseq=True)}" if given else ""


def view_of(search: str | None) -> View:
    """What the address says; what it does not say, or says in a way that nothing has, is as usual."""
    try:
        found = parse_qs((search or "")[:LONGEST].removeprefix("?"), max_num_fields=300)
    except ValueError:
        return View()
    device = _one(found, "device")
    phases, families, modules = (tuple(dict.fromkeys(found.get(key, ()))) for key in ("phase", "family", "module"))
    ranks = {int(rank) for rank in found.get("rank", ()) if rank.isascii() and rank.isdigit() and len(rank) < 10}
    steps = _one(found, "steps").strip()
    filters = Filters(
        device if device in ("gpu", "cpu") else None,
        phases=phases,
        families=families,
        modules=modules,
        steps=steps,
        ranks=tuple(sorted(ranks)),
    )
    tab, size = _one(found, "tab"), _one(found, "size")
    return View(
        _one(found, "control"),
        _one(found, "test"),
        filters,
        forced=_one(found, "forced") == "1",
        tab=tab if tab in TABS else TABS[0],
        row=_one(found, "row"),
        size=size if size in SIZES else SIZES[0],
        at_control=_one(found, "at_control"),
        at_test=_one(found, "at_test"),
        window=_window(_one(found, "window")),
        table=arranged(found.get("sort", ()), found.get("show", ()), found.get("pin", ()), _one(found, "where")),
    )


def _one(found: Mapping[str, Sequence[str]], key: str) -> str:
    return found.get(key, ("",))[0]


def _window(text: str) -> Window | None:
    ends = text.split("..")
    if len(ends) != 2 or not all(end.isascii() and end.isdigit() and len(end) < 20 for end in ends):
        return None
    low, high = map(int, ends)
    return (low, high) if low < high < LATEST else None
