"""The pages: each module has ``TITLE`` and ``page(shown) → components``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tracediff_dashboards.shown import Shown

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


def draw(which: str, shown: Shown) -> list[Any]:
    """The components of a page."""
    page: Callable[[Shown], list[Any]] = import_module(f"tracediff_dashboards.pages.{which}").page
    return page(shown)
