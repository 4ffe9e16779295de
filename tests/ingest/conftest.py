"""Reading bytes as if they were a file; session-wide, so that hypothesis may use it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from build_trace import noted

from tracediff.ingest.json.chunks import CHUNK
from tracediff.ingest.model.trace import Trace
from tracediff.ingest.read import read_trace


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for files that may be overwritten by any test."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="session")
def read(scratch: Path) -> Callable[..., Trace]:
    """``read(content, chunk=…)``: the trace in a file of these bytes."""

    def read_bytes(content: bytes, chunk: int = CHUNK) -> Trace:
        path = scratch / "trace.json"
        path.write_bytes(content)
        return read_trace(str(path), chunk)

    return read_bytes


@pytest.fixture(scope="session")
def codes() -> Callable[[Trace], dict[str, int]]:
    """``codes(trace)``: how many events each health note concerns, by code."""

    return noted
