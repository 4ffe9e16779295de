"""What the frames of comparisons and analyses have in common."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from tracediff.errors import TracediffError, did_you_mean
from tracediff.profile.tables import table_schema
from tracediff.profile.tables.schema import TableSchema
from tracediff.report.rows import TableRows
from tracediff.write import write_text

if TYPE_CHECKING:
    import pandas as pd


def frame_of(table: TableRows) -> pd.DataFrame:
    """The DataFrame of ``table``, with all columns even where it has no rows."""
    import pandas as pd

    return pd.DataFrame(table.values, columns=list(table.columns))


def loaded_table(name: str, tables: Collection[str]) -> TableSchema:
    """The schema of a further table (docs/analysis.md), one of the ``tables`` that were loaded.

    Raises:
        TracediffError: there is no table of that name, or it was not loaded.
    """
    schema = table_schema(name)
    if name not in tables:
        reason = "was not loaded, or the traces do not allow it (see health)"
        raise TracediffError(f"table {name}", reason, f"load the traces with load(…, tables=[{name!r}])")
    return schema


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
