"""Tables ready to be shown: texts in rows, the same for every format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from tracediff.diff.comparison import Comparison
from tracediff.diff.formatting import MINUS, count, size_unit
from tracediff.diff.table_changes import TableDiff
from tracediff.profile.kernels.display_names import readable
from tracediff.profile.tables.schema import Column, Rate, TableSchema
from tracediff.report.text import unit_for

LONGEST = 300
"""Characters of a name."""
WORK = (("TFLOP", 1e12), ("GFLOP", 1e9), ("MFLOP", 1e6), ("FLOP", 1.0))


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        title: its heading. about: what its columns mean, may be empty.
        heads: of the columns. texts: how many of the columns, from the left, are texts; the others are numbers.
        rows: texts. more: how many rows were left out.
    """

    title: str
    about: str
    _: KW_ONLY
    heads: tuple[str, ...]
    texts: int
    rows: tuple[tuple[str, ...], ...]
    more: int = 0


@dataclass(frozen=True)
class Shown:
    """How a column is shown: its unit's symbol, empty for counts, and the text of a value per step (ns, bytes, flop or
    a count).
    """

    unit: str
    text: Callable[[float], str]

    def head(self, title: str) -> str:
        """``title`` with the unit."""
        return f"{title} ({self.unit})" if self.unit else title

    def change(self, value: float) -> str:
        """The text with its sign; 0 has none."""
        text = self.text(value)
        return (
            f"+{text}"
            if value > 0 and text.strip("0.,")
            else text.strip(MINUS)
            if not text.strip(f"{MINUS}0.,")
            else text
        )


def shown(column: Column, values: Iterable[float]) -> Shown:
    """One way to show all ``values`` of ``column``."""
    largest = max((abs(v) for v in values), default=0.0)
    if column.unit == "ns":
        unit = unit_for([largest / 1000])
        return Shown(unit.name, lambda v: unit.plain(v / 1000))
    if column.unit == "count":
        return Shown("", lambda v: count(v).replace("-", MINUS))
    none = "–" if column.unit == "flop" else "0"  # no FLOPs: none are known
    symbol, size = (
        size_unit(largest) if column.unit == "bytes" else next(((s, n) for s, n in WORK if largest >= n), WORK[-1])
    )
    return Shown(symbol, lambda v: f"{v / size:,.{0 if size == 1 else 2}f}".replace("-", MINUS) if v else none)


def rate(of: Rate, schema: TableSchema, values: Sequence[float]) -> float | None:
    """The quotient for a row, None where nothing is to be divided by."""
    at = {column.name: k for k, column in enumerate(schema.columns)}
    under = values[at[of.under]]
    return of.factor * values[at[of.over]] / under if under else None


def rate_text(value: float | None) -> str:
    """A rate with three figures that matter; a dash where there is none."""
    return (
        "–"
        if value is None
        else f"{value:,.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f}".replace("-", MINUS)
    )


def quotients(
    schema: TableSchema, key: tuple[str, ...], values: Sequence[float], gpus: tuple[str, ...]
) -> dict[str, float | None]:
    """Rates and parts of a row by name; ``gpus`` are the names of the set's devices."""
    return {r.name: rate(r, schema, values) for r in schema.rates} | {
        p.name: p.of(key, values, gpus) for p in schema.parts
    }


def _quotient_texts(schema: TableSchema, found: dict[str, float | None]) -> list[str]:
    return [rate_text(found[r.name]) for r in schema.rates] + [_percent(found[p.name]) for p in schema.parts]


def _percent(part: float | None) -> str:
    return "–" if part is None else f"{100 * part:.{0 if part >= 0.1 else 1}f} %"


def _readable(schema: TableSchema, key: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(readable(text) if name in schema.events else text for name, text in zip(schema.keys, key, strict=True))


def _in_order(columns: Sequence[str], rates: Sequence[str], before: int) -> tuple[str, ...]:
    """The first columns, then the rates, then the others, which give way where room is short."""
    return (*columns[:before], *rates, *columns[before:])


def one_sided(
    schema: TableSchema,
    rows: Sequence[tuple[tuple[str, ...], Sequence[float]]],
    gpus: tuple[str, ...],
    top: int | None = None,
) -> Table:
    """The table of a table of one set with the devices ``gpus``; ``rows`` are (key, values per step), in order."""
    ways = [shown(column, (values[k] for _, values in rows)) for k, column in enumerate(schema.columns)]
    titles = [*(r.title for r in schema.rates), *(p.title for p in schema.parts)]
    heads = _in_order([way.head(column.title) for way, column in zip(ways, schema.columns, strict=True)], titles, 2)
    lines = []
    for key, values in rows[:top]:
        texts = [way.text(v) for way, v in zip(ways, values, strict=True)]
        lines.append(
            (
                *_readable(schema, key),
                *_in_order(texts, _quotient_texts(schema, quotients(schema, key, values, gpus)), 2),
            )
        )
    return Table(
        schema.title,
        schema.about,
        heads=(*schema.keys, *heads),
        texts=len(schema.keys),
        rows=tuple(lines),
        more=len(rows) - len(lines),
    )


def two_sided(
    of: TableDiff, scale: int, gpus: tuple[tuple[str, ...], tuple[str, ...]], top: int | None = None
) -> Table:
    """The table of a table of two sets: the first column as control, test and change, the others as ``control → test``.

    Args:
        gpus: names of the devices of both sides.
    """
    schema = of.schema
    sides = [([n / scale for n in row.control], [n / scale for n in row.test]) for row in of.rows]
    ways = [shown(column, (v[k] for pair in sides for v in pair)) for k, column in enumerate(schema.columns)]
    first, titles = ways[0], [*(r.title for r in schema.rates), *(p.title for p in schema.parts)]
    heads = [first.head(f"control {schema.columns[0].title}"), "test", "change"]
    heads += [way.head(column.title) for way, column in zip(ways[1:], schema.columns[1:], strict=True)]
    lines = []
    for row, (a, b) in list(zip(of.rows, sides, strict=True))[:top]:
        texts = [first.text(a[0]), first.text(b[0]), first.change(b[0] - a[0])]
        texts += [both(way.text(a[k]), way.text(b[k])) for k, way in enumerate(ways[1:], start=1)]
        rates = [
            _quotient_texts(schema, quotients(schema, row.key, values, on))
            for values, on in zip((a, b), gpus, strict=True)
        ]
        lines.append(
            (*_readable(schema, row.key), *_in_order(texts, [both(x, y) for x, y in zip(*rates, strict=True)], 4))
        )
    return Table(
        schema.title,
        schema.about,
        heads=(*schema.keys, *_in_order(heads, titles, 4)),
        texts=len(schema.keys),
        rows=tuple(lines),
        more=len(of.rows) - len(lines),
    )


def further(comparison: Comparison, top: int | None = None) -> list[Table]:
    """The further tables of a comparison, those that both sets were loaded with."""
    return [
        two_sided(of, comparison.scale, (comparison.control.gpu, comparison.test.gpu), top) for of in comparison.tables
    ]


def both(control: str, test: str) -> str:
    """``3`` or ``3 → 5``."""
    return control if control == test else f"{control} → {test}"


def line_of(
    schema: TableSchema, key: tuple[str, ...], values: Sequence[float], gpus: tuple[str, ...], prefix: str = ""
) -> dict[str, Any]:
    """A row of a table as an object: keys by name; columns as ``NAME_us``, ``NAME_bytes``, ``NAME_flop`` or ``NAME``;
    rates and parts or null.
    """
    out: dict[str, Any] = dict(zip(schema.keys, key, strict=True))
    for column, value in zip(schema.columns, values, strict=True):
        name = {"ns": f"{column.name}_us", "count": column.name}.get(column.unit, f"{column.name}_{column.unit}")
        out[prefix + name] = value / 1000 if column.unit == "ns" else value
    return out | {prefix + name: value for name, value in quotients(schema, key, values, gpus).items()}
