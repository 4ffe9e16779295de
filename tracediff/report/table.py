"""Tables ready to be shown: texts in rows, the same for every format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass

from tracediff.diff.comparison import Comparison
from tracediff.diff.table_changes import TableDiff
from tracediff.formatting import byte_unit, count, flop_unit, number, percent, time_unit
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.tables.schema import Column, Rate, TableSchema

LONGEST = 300
"""Characters of a name."""


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
        return f"+{text}" if value > 0 and text.strip("0.,") else text


def shown(column: Column, values: Iterable[float]) -> Shown:
    """One way to show all ``values`` of ``column``."""
    largest = max((abs(v) for v in values), default=0.0)
    if column.unit == "ns":
        times = time_unit([largest / 1000])
        return Shown(times.name, lambda v: times.plain(v / 1000))
    if column.unit == "count":
        return Shown("", count)
    unit, none = (byte_unit([largest]), "0") if column.unit == "bytes" else (flop_unit([largest]), "–")
    return Shown(unit.name, lambda v: unit.plain(v) if v else none)  # no FLOPs: none are known


def rate(of: Rate, schema: TableSchema, values: Sequence[float]) -> float | None:
    """The quotient for a row, None where nothing is to be divided by."""
    at = {column.name: k for k, column in enumerate(schema.columns)}
    under = values[at[of.under]]
    return of.factor * values[at[of.over]] / under if under else None


def rate_text(value: float | None) -> str:
    """A rate; a dash where there is none."""
    return "–" if value is None else number(value)


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
    return "–" if part is None else percent(part)


def _readable(schema: TableSchema, key: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        display_name(text) if name in schema.events else text for name, text in zip(schema.keys, key, strict=True)
    )


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


def column_key(column: Column) -> str:
    """The name of a column with its unit: ``NAME_us``, ``NAME_bytes``, ``NAME_flop``, or ``NAME`` of a count."""
    return {"ns": f"{column.name}_us", "count": column.name}.get(column.unit, f"{column.name}_{column.unit}")


def line_of(
    schema: TableSchema, key: tuple[str, ...], values: Sequence[float], gpus: tuple[str, ...], prefix: str = ""
) -> dict[str, str | float | None]:
    """A row of a table as an object: keys by name; columns as `column_key` names them; rates and parts or null."""
    out: dict[str, str | float | None] = dict(zip(schema.keys, key, strict=True))
    for column, value in zip(schema.columns, values, strict=True):
        out[prefix + column_key(column)] = value / 1000 if column.unit == "ns" else value
    return out | {prefix + name: value for name, value in quotients(schema, key, values, gpus).items()}


def table_columns(schema: TableSchema, prefixes: Sequence[str]) -> list[str]:
    """The keys of a row's object (`line_of` with each prefix), which a table without rows has, too."""
    key, zeros = ("",) * len(schema.keys), (0,) * len(schema.columns)
    return list(dict.fromkeys(column for prefix in prefixes for column in line_of(schema, key, zeros, (), prefix)))
