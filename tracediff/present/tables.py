"""The tables of a comparison or an analysis as rows of texts, the same for every output format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tracediff.diff.comparison import Comparison
from tracediff.formatting import Unit, byte_unit, common_unit, count, flop_unit, number, percent, time_unit
from tracediff.present.plain_text import Table
from tracediff.present.setting import side_names
from tracediff.profile.tables.schema import Column, Rate, TableSchema
from tracediff.structs import SIDES, FrozenStruct, Pair


class ColumnFormat(FrozenStruct):
    """The format of a column: its unit's symbol, empty for counts and where each value has its own, and the text of a
    value per step (ns, bytes, flop or a count).
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


def column_format(column: Column, values: Iterable[float]) -> ColumnFormat:
    """One format for all ``values`` of ``column``."""
    values = list(values)
    largest = max(map(abs, values), default=0.0)
    if column.unit == "ns":
        times = time_unit([largest / 1000])
        return ColumnFormat(times.name, lambda v: times.plain(v / 1000))
    if column.unit == "count":
        return ColumnFormat("", count)
    if column.unit == "bytes":
        return byte_format(values)
    unit = flop_unit([largest])
    return ColumnFormat(unit.name, lambda v: unit.plain(v) if v else "–")  # no FLOPs: none are known


def amount_format(unit_of: Callable[[Iterable[float]], Unit], amounts: Iterable[float]) -> ColumnFormat:
    """One unit for all ``amounts`` if it leaves each two significant digits, otherwise a unit for each."""
    unit = common_unit(unit_of, amounts)
    return ColumnFormat(unit.name, unit.plain) if unit else ColumnFormat("", lambda v: unit_of([v]).text(v))


def byte_format(amounts: Iterable[float]) -> ColumnFormat:
    """One format for all ``amounts`` of bytes; 0 has no unit."""
    form = amount_format(byte_unit, amounts)
    return ColumnFormat(form.unit, lambda v: form.text(v) if v else "0")


def _rates(
    schema: TableSchema, key: tuple[str, ...], values: Sequence[float], gpus: tuple[str, ...]
) -> list[tuple[Rate, float | None]]:
    """The rates of a row; ``gpus`` are the names of the set's devices."""
    by_name = {column.name: value for column, value in zip(schema.columns, values, strict=True)}
    return [(rate, rate.compute(key, by_name, gpus)) for rate in schema.rates]


def _rate_text(rate: Rate, value: float | None) -> str:
    """A dash where there is none."""
    return "–" if value is None else percent(value) if rate.is_part else number(value)


def _key_heads(schema: TableSchema) -> tuple[str, ...]:
    return tuple(name.replace("_", " ") for name in schema.keys)


def _display_key(schema: TableSchema, key: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(schema.labels.get(name, str)(text) for name, text in zip(schema.keys, key, strict=True))


def _with_rates(columns: Sequence[str], rates: Sequence[str], before: int) -> tuple[str, ...]:
    """The first ``before`` columns, then the rates, then the others, which are omitted first on a narrow screen."""
    return (*columns[:before], *rates, *columns[before:])


Sides = Sequence[Sequence[float]]
"""Values of a row per step, of one set or of control and test."""


def report_table(
    schema: TableSchema,
    rows: Sequence[tuple[tuple[str, ...], Sides]],
    gpus: Sequence[tuple[str, ...]],
    top: int | None = None,
    names: Pair[str] = SIDES,
) -> Table:
    """The report table of one set's table, or of both sides': first column as control, test and change, others as
    ``control → test``.

    Args:
        rows: (key, values of the sides), in order. gpus: names of the devices of each side. names: of the sides.
    """
    formats = [
        column_format(column, (values[k] for _, sides in rows for values in sides))
        for k, column in enumerate(schema.columns)
    ]
    first, has_both = formats[0], len(gpus) > 1
    heads = [form.head(column.title) for form, column in zip(formats, schema.columns, strict=True)]
    both = [first.head(f"{names.control} {schema.columns[0].title}"), names.test, "change"]
    heads[:1] = both if has_both else heads[:1]
    together = 3 if has_both else 1
    lines = []
    for key, sides in rows[:top]:
        columns = [list(map(form.text, values)) for form, *values in zip(formats, *sides, strict=True)]
        change = [first.change(sides[1][0] - sides[0][0])] if has_both else []
        rates = ([_rate_text(*rate) for rate in _rates(schema, key, *side)] for side in zip(sides, gpus, strict=True))
        texts = [*columns[0], *change, *(control_and_test(*values) for values in columns[1:])]
        rate_texts = [control_and_test(*values) for values in zip(*rates, strict=True)]
        lines.append((*_display_key(schema, key), *_with_rates(texts, rate_texts, together)))
    titles = [rate.title for rate in schema.rates]
    return Table(
        title=schema.title,
        about=schema.about,
        heads=(*_key_heads(schema), *_with_rates(heads, titles, together)),
        texts=len(schema.keys),
        rows=tuple(lines),
        more=len(rows) - len(lines),
        together=together,
    )


def comparison_tables(comparison: Comparison, top: int | None = None) -> list[Table]:
    """The tables of a comparison that both sets were loaded with (`--table`)."""
    gpus = comparison.control.gpu, comparison.test.gpu
    names = side_names(comparison)
    return [
        report_table(
            table.schema, [(key, sides_of(comparison, row)) for key, row in table.rows.items()], gpus, top, names
        )
        for table in comparison.tables
    ]


def sides_of(comparison: Comparison, row: Sequence[Pair[int]]) -> Sides:
    """The values of both sides in a row of a `TableDiff`."""
    return list(zip(*(pair.map(comparison.number) for pair in row), strict=True))


def control_and_test(*texts: str) -> str:
    """``3`` or ``3 → 5``; see `from_to`."""
    return texts[0] if len(set(texts)) == 1 else from_to(*texts)


def from_to(control: str, test: str) -> str:
    """``3 → 5``; a unit that both have is given once: ``47 → 51 %``."""
    number, _, unit = control.rpartition(" ")
    return f"{number if number and unit == test.rpartition(' ')[2] else control} → {test}"


def column_key(column: Column) -> str:
    """The name of a column with its unit: ``NAME_us``, ``NAME_bytes``, ``NAME_flop``, or ``NAME`` of a count."""
    return {"ns": f"{column.name}_us", "count": column.name}.get(column.unit, f"{column.name}_{column.unit}")


def row_object(
    schema: TableSchema, key: tuple[str, ...], values: Sequence[float], gpus: tuple[str, ...], prefix: str = ""
) -> dict[str, str | float | None]:
    """A row of a table as an object: keys by name; columns as `column_key` names them; rates or null."""
    out: dict[str, str | float | None] = dict(zip(schema.keys, key, strict=True))
    for column, value in zip(schema.columns, values, strict=True):
        out[prefix + column_key(column)] = value / 1000 if column.unit == "ns" else value
    return out | {prefix + rate.name: value for rate, value in _rates(schema, key, values, gpus)}


def table_columns(schema: TableSchema, prefixes: Sequence[str]) -> list[str]:
    """The keys of a row's object (`line_of` with each prefix), also for a table without rows."""
    key, zeros = ("",) * len(schema.keys), (0,) * len(schema.columns)
    return list(dict.fromkeys(column for prefix in prefixes for column in row_object(schema, key, zeros, (), prefix)))
