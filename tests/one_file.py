"""The profile of one file."""

from __future__ import annotations

from functools import cache
from typing import Any

from traces import trace

from tracediff.engine import profile_ranks
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.model.profile import Profile
from tracediff.profile.tables import OF_FILES


def profile_file(file: TraceFile, **options: Any) -> Profile:
    """That of a file with one rank; ``options`` as of `profile_ranks`."""
    (profile,) = profile_ranks(file, **options)
    return profile


@cache
def real_profile(name: str) -> Profile:
    """That of a real trace, with every table: several tests ask of each, which a process reads once."""
    return profile_file(TraceFile(str(trace(name))), tables=OF_FILES)
