"""Values of a trace for plotly's typed arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def data_array(values: Iterable[Any]) -> Any:
    """``values`` as a list: numbers, texts, None for a gap, or rows of them.

    plotly takes all of these wherever it takes data; plotly-stubs (0.1) allows numbers only, hence the type.
    """
    return list(values)
