"""DataFrames → tables of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediff.present.plain_table import Table

if TYPE_CHECKING:
    import pandas as pd


def frame_table(title: str, frame: pd.DataFrame, top: int | None = None) -> Table:
    """``frame`` with its columns in order, those of text first; an index that is more than a row number is a column."""
    import pandas as pd

    whole = (
        frame
        if isinstance(frame.index, pd.RangeIndex)
        else frame.rename_axis(index=str(frame.index.name or "name")).reset_index()
    )
    numbers = [c for c in whole.columns if pd.api.types.is_numeric_dtype(whole[c])]
    texts = [c for c in whole.columns if c not in numbers]
    rows = tuple(
        tuple(_text(value) for value in row)
        for row in whole[[*texts, *numbers]].head(top if top is not None else len(whole)).to_numpy(object)
    )
    return Table(
        title,
        "",
        heads=tuple(str(c) for c in (*texts, *numbers)),
        texts=len(texts),
        rows=rows,
        more=len(whole) - len(rows),
    )


def _text(value: object) -> str:
    """A number with up to three decimals; a dash where there is none."""
    if isinstance(value, float):
        return "–" if value != value else f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
