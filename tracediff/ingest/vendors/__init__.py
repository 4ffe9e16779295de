"""Devices whose events in Kineto's JSON do not have Kineto's categories: a module for each, which gives them those.

A translator changes a `Trace` in place: categories, correlations, streams and names as events of CUDA have them. Names
of categories and calls are in the vendor's record of `tracediff.runtimes`.
"""

from __future__ import annotations

from tracediff.ingest.health import Notes
from tracediff.ingest.processes import process_labels
from tracediff.ingest.trace import Trace
from tracediff.runtimes import ASCEND, MTIA, TPU, device_of_process


def translate(trace: Trace, notes: Notes) -> None:
    """Have the events of each device translated that the names of processes or the categories say is there; the
    translators, which look closer, are imported for such traces only.
    """
    labels = process_labels(trace)
    if any(not set(ASCEND.processes).isdisjoint(names) for names in labels):
        from tracediff.ingest.vendors.ascend import translate_ascend

        translate_ascend(trace, notes)
    if MTIA.device_events in trace.categories:
        from tracediff.ingest.vendors.mtia import translate_mtia

        translate_mtia(trace, notes)
    if any(device_of_process(names) == TPU.device for names in labels):
        from tracediff.ingest.vendors.xla import translate_xla

        translate_xla(trace, notes)
