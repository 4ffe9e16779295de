"""The profile of one file."""

from __future__ import annotations

from typing import Any

from tracediff.engine import profile_ranks
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.model.profile import Profile


def profile_file(file: TraceFile, **options: Any) -> Profile:
    """That of a file with one rank; ``options`` as of `profile_ranks`."""
    (profile,) = profile_ranks(file, **options)
    return profile
