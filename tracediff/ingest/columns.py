"""Joins the parts of a file into columns that grow in place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracediff.ingest.decode import Part
from tracediff.ingest.trace import ABSENT_OF, Arguments


@dataclass
class Column:
    """A column under construction: it grows in place, so that no second copy of it is ever made."""

    kind: Any
    data: bytearray = field(default_factory=bytearray)

    def add(self, part: np.ndarray[Any, Any], rows: int) -> None:
        """Append ``part``, after as many absent values as make the column end at ``rows``."""
        gap = rows - len(part) - len(self.data) // np.dtype(self.kind).itemsize
        if gap:
            self.data += np.full(gap, ABSENT_OF[self.kind], self.kind).data
        self.data += part.data

    def array(self, rows: int) -> Any:
        """The finished column of ``rows`` values, without a copy."""
        self.add(np.empty(0, self.kind), rows)
        return np.frombuffer(self.data, self.kind)


@dataclass
class Whole:
    """The parts so far, joined.

    Attributes:
        length: events so far.
    """

    length: int = 0
    _base: dict[str, Column] = field(default_factory=dict)
    _counts: dict[int, int] = field(default_factory=dict)
    _rows: dict[int, Column] = field(default_factory=dict)
    _arguments: dict[int, dict[str, Column]] = field(default_factory=dict)

    def add(self, part: Part) -> None:
        """Append one part."""
        start, self.length = self.length, self.length + len(part.base["ts"])
        for name, values in part.base.items():
            self._base.setdefault(name, Column(values.dtype.type)).add(values, self.length)
        for code, (rows, columns) in part.arguments.items():
            count = self._counts[code] = self._counts.get(code, 0) + len(rows)
            self._rows.setdefault(code, Column(np.int64)).add(rows + start, count)
            mine = self._arguments.setdefault(code, {})
            for name, values in columns.items():
                mine.setdefault(name, Column(values.dtype.type)).add(values, count)

    def base(self) -> dict[str, Any]:
        """The base columns by name."""
        return {name: column.array(self.length) for name, column in self._base.items()}

    def arguments(self) -> dict[int, Arguments]:
        """The arguments by category code."""
        out = {}
        for code in sorted(self._rows):
            category = out[code] = Arguments(self._rows[code].array(self._counts[code]))
            into: dict[Any, Any] = {np.int64: category.ints, np.float64: category.floats, np.int32: category.texts}
            for name, column in sorted(self._arguments[code].items()):
                into[column.kind][name] = column.array(self._counts[code])
        return out
