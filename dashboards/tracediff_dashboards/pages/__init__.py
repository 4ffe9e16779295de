"""The pages: each module's ``page(shown)`` makes its components."""

from __future__ import annotations

from typing import Any

from tracediff_dashboards.page_context import Shown
from tracediff_dashboards.pages import changes, health, memory, overview, ranks, timeline, tree

PAGES = {
    "overview": "Overview",
    "changes": "Changes",
    "tree": "Tree",
    "timeline": "Timeline",
    "ranks": "Ranks",
    "memory": "Memory",
    "health": "Health",
}
"""Page → its title, in order; the first stands at the address ``/``."""


def page_at(pathname: str | None) -> str | None:
    """The page of an address, None where there is none."""
    wanted = (pathname or "/").strip("/") or "overview"
    return wanted if wanted in PAGES else None


DRAWN = {
    "overview": overview.page,
    "changes": changes.page,
    "tree": tree.page,
    "timeline": timeline.page,
    "ranks": ranks.page,
    "memory": memory.page,
    "health": health.page,
}


def draw(which: str, shown: Shown) -> list[Any]:
    """The components of a page."""
    return DRAWN[which](shown)
