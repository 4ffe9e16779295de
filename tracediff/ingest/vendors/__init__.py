"""Devices whose events in Kineto's JSON do not have Kineto's categories: a module for each, which gives them those.

A translator changes a `Trace` in place: categories, correlations, streams and names as events of CUDA have them. Names
of categories and calls are in the vendor's record of `tracediff.runtimes`.
"""

from __future__ import annotations

from collections.abc import Callable

from tracediff.ingest.health import Notes
from tracediff.ingest.trace import Trace
from tracediff.ingest.vendors.ascend import translate_ascend
from tracediff.ingest.vendors.mtia import translate_mtia
from tracediff.ingest.vendors.xla import translate_xla

Translator = Callable[[Trace, Notes], None]

TRANSLATORS: tuple[Translator, ...] = (translate_ascend, translate_mtia, translate_xla)
"""Each does nothing to a trace without its device's events."""
