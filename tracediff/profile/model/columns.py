"""What the columns of a profile's tables hold, declared once, beside each field (`model`): how a snapshot writes and
checks a column, and how tables of several files are added up, follow from it.
"""

from functools import cache
from typing import Any, Literal, TypeVar, get_type_hints

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracediff.arrays import Bools, Int64, zeros
from tracediff.structs import FrozenStruct

Table = TypeVar("Table", bound=Struct)
ANY = -(1 << 63)
"""The `low` of columns that any integer fits."""


class Column(FrozenStruct, kw_only=True):
    """What a column of integers holds.

    Attributes:
        refers_to: what its values are positions in, such as ``names``; empty for other numbers.
        low, high: its values are from ``low`` to below ``high``, those of references to below the number of what they
            refer to.
        rows: what it has one value of each; columns of a table with the same are of equal length.
        is_key: no two rows of a table agree in all of its keys.
        rises: whether it rises or repeats, so that it is written as differences from the row before.
        merged: what is kept where tables are added up row by row; those with other ``equal`` columns cannot be.
    """

    refers_to: str = ""
    low: int = 0
    high: int = 1 << 63
    rows: str = "rows"
    is_key: bool = False
    rises: bool = False
    merged: Literal["equal", "sum", "least", "first"] = "equal"


def key(refers_to: str, low: int = 0, rows: str = "rows") -> Column:
    """A column of references that identifies rows."""
    return Column(refers_to=refers_to, low=low, rows=rows, is_key=True, rises=True)


def amount(low: int = 0, rows: str = "rows") -> Column:
    """A column of times, counts or sizes."""
    return Column(low=low, rows=rows, merged="sum")


def columns_of(table: object) -> dict[str, Column]:
    """Name → what it holds, of the columns of a table."""
    kind: Any = type(table)
    return _declared(kind)


def no_rows(kind: type[Table], **others: Any) -> Table:
    """A table, or other columns of int64, without rows; ``others`` are its fields that are no columns."""
    return kind(**dict.fromkeys(kind.__struct_fields__, zeros(0)) | others)


def rows_of(table: Table, rows: Int64 | Bools) -> Table:
    """The ``rows`` (positions, or whether each is one) of a table whose columns are of one length."""
    fields = {name: getattr(table, name) for name in table.__struct_fields__}
    return replace(table, **{name: field[rows] for name, field in fields.items() if isinstance(field, np.ndarray)})


@cache
def _declared(kind: type[Struct]) -> dict[str, Column]:
    hints = get_type_hints(kind, include_extras=True)
    metadata = {name: getattr(hints[name], "__metadata__", ()) for name in kind.__struct_fields__}
    return {name: column for name, data in metadata.items() for column in data if isinstance(column, Column)}
