"""Which files are snapshots; `snapshot` reads and writes them."""

from __future__ import annotations

import re

from tracediff.errors import TracediffError
from tracediff.ingest.source import TraceFile, open_trace

SUFFIX = ".tdprof.gz"
OPENING = re.compile(rb'\s*\{\s*"schema"\s*:\s*"tracediff\.snapshot/')


def is_snapshot(file: TraceFile) -> bool:
    """Whether ``file`` is a snapshot, by its name or its first bytes; of a URL by its name alone. Files that cannot be
    read are none.
    """
    if file.name.partition("?")[0].endswith((SUFFIX, SUFFIX.removesuffix(".gz"))):
        return True
    if "://" in file.path:
        return False
    try:
        with open_trace(file) as stream:
            return bool(OPENING.match(stream.read(200)))
    except TracediffError:
        return False
