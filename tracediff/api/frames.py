"""What the frames of comparisons and analyses have in common."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracediff.errors import TracediffError, did_you_mean
from tracediff.present.tables import table_columns
from tracediff.profile.tables import table_schema
from tracediff.write import write_text

if TYPE_CHECKING:
    import pandas as pd


def frame_of(rows: Sequence[dict[str, Any]], columns: Sequence[str] | None = None) -> pd.DataFrame:
    """The DataFrame of ``rows``, with all ``columns`` even where there are no rows."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(columns) if columns is not None else None)


def table_frame(document: dict[str, Any], name: str, prefixes: tuple[str, ...]) -> pd.DataFrame:
    """A further table of ``document`` (docs/analysis.md), with its columns even where there are no rows.

    Raises:
        TracediffError: there is no table of that name, or it was not loaded.
    """
    schema, tables = table_schema(name), document["tables"]
    if name not in tables:
        reason = "was not loaded, or the traces do not allow it (see health)"
        raise TracediffError(f"table {name}", reason, f"load the traces with load(…, tables=[{name!r}])")
    return frame_of(tables[name], table_columns(schema, prefixes))


def known_view(view: str, views: Sequence[str]) -> str:
    """``view``.

    Raises:
        TracediffError: it is none of ``views``.
    """
    if view not in views:
        raise TracediffError(
            f"view {view}", "is unknown", did_you_mean(view, views, f"choose one of {', '.join(views)}")
        )
    return view


def written(text: str, path: str | os.PathLike[str] | None) -> str:
    """``text``, also written to ``path`` if one is given."""
    if path is not None:
        write_text(path, text)
    return text
