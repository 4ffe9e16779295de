"""Memory of this process that nothing uses any more."""

from __future__ import annotations

import sys

from tracediff import bounds


def return_freed(events: int) -> None:
    """Return freed memory to the system, between parts of work on a file of so many events. glibc keeps what lies below
    something that is still used, a third of what a large file takes; other C libraries are left alone.
    """
    if events < bounds.EVENTS_TRIMMED or sys.platform != "linux":
        return
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
