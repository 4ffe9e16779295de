"""What a user sees of an error in a request: one line."""

from __future__ import annotations

import logging

from dash import set_props

from tracediff.errors import TracediffError
from tracediff_dashboards.pages import components

log = logging.getLogger("tracediff_dashboards")


def explained(error: Exception) -> TracediffError:
    """``error`` if a user can act on it. Any other is a fault of the dashboard: it is logged, and the line says so."""
    if isinstance(error, TracediffError):
        return error
    if isinstance(error, MemoryError):
        return TracediffError("dashboard", "not enough memory", "close other tabs, or compare fewer ranks")
    fault = TracediffError("dashboard", f"failed in this request ({type(error).__name__})", "report this as a bug")
    log.error("%s", fault)
    log.debug("traceback:", exc_info=error)
    return fault


def show(error: Exception) -> None:
    """Show the error of a callback at the top of the page; its other outputs stay as they are."""
    set_props("notice", {"children": components.error_alert(explained(error))})
