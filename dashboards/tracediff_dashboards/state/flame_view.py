"""What of the flame graph is shown, in the URL and as its script says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SIZES = ("work", "host", "count")
LONGEST = 600
"""Maximum length of a name and of what is searched, in characters."""
DEEPEST = 60


@dataclass(frozen=True, kw_only=True)
class FlameView:
    """The state of the flame graph.

    Attributes:
        size: what the width of a box measures, empty for the first that the traces have.
        inverted: kernels first. separate: each instance of a module by itself.
        find: what is searched. regex: as a regular expression.
        zoom: labels of the boxes from below the whole to the one at the top.
    """

    size: str = ""
    inverted: bool = False
    separate: bool = False
    find: str = ""
    regex: bool = False
    zoom: tuple[str, ...] = ()

    @property
    def fields(self) -> dict[str, str | Sequence[object]]:
        """Its fields of the URL's query; empty ones are the default."""
        flags = {key: "1" if getattr(self, key) else "" for key in ("inverted", "separate", "regex")}
        return {"size": self.size, **flags, "find": self.find, "zoom": self.zoom}

    @property
    def data(self) -> dict[str, Any]:
        """What the script reads; without a size it chooses one."""
        size = {"size": self.size} if self.size else {}
        flags = {"inverted": self.inverted, "separate": self.separate, "regex": self.regex}
        return {**size, **flags, "find": self.find, "zoom": list(self.zoom)}


def flame_view(values: Mapping[str, Any]) -> FlameView:
    """The state that the script or the query of a URL gives; what is missing or invalid is the default."""
    size, find, zoom = values.get("size"), values.get("find"), values.get("zoom")
    names = zoom if isinstance(zoom, list) else []
    return FlameView(
        size=size if isinstance(size, str) and size in SIZES else "",
        inverted=values.get("inverted") in (True, "1"),
        separate=values.get("separate") in (True, "1"),
        find=find[:LONGEST] if isinstance(find, str) else "",
        regex=values.get("regex") in (True, "1"),
        zoom=tuple(name[:LONGEST] for name in names[:DEEPEST] if isinstance(name, str)),
    )
