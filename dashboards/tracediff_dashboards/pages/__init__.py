"""The pages: ``page(context)`` of each module returns the components."""

from __future__ import annotations

from typing import Any

from tracediff_dashboards.pages import changes, flame, overview, static, timeline
from tracediff_dashboards.reading.comparisons import PageContext

PAGES = {
    "overview": "Overview",
    "changes": "Changes",
    "flame": "Flame graph",
    "timeline": "Timeline",
    "ranks": "Ranks",
    "memory": "Memory",
    "health": "Health",
}
"""Page → its title, in order; the first one is at ``/``."""


def page_at(pathname: str | None) -> str | None:
    """The page of a URL path, None if there is none."""
    page = (pathname or "/").strip("/") or "overview"
    return page if page in PAGES else None


DRAWN = {
    "overview": overview.page,
    "changes": changes.page,
    "flame": flame.page,
    "timeline": timeline.page,
    "ranks": static.ranks,
    "memory": static.memory,
    "health": static.health,
}


def draw(which: str, context: PageContext) -> list[Any]:
    """The components of a page."""
    return DRAWN[which](context)
