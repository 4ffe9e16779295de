"""The pages: ``page(context)`` of each module returns the components."""

from tracediff_dashboards.pages import changes, flame, static, timeline

PAGES = {
    "overview": ("Overview", static.overview),
    "changes": ("Changes", changes.page),
    "flame": ("Flame graph", flame.page),
    "timeline": ("Timeline", timeline.page),
    "ranks": ("Steps and ranks", static.ranks),
    "memory": ("Memory", static.memory),
    "health": ("Health", static.health),
}
"""Page → its title and what draws its components, in order; the first one is at ``/``."""


def page_at(pathname: str | None) -> str | None:
    """The page of a URL path, None if there is none."""
    page = (pathname or "/").strip("/") or "overview"
    return page if page in PAGES else None
