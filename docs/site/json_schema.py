"""The JSON Schema (2020-12) of every JSON document, generated from the documents' types.

``python docs/site/json_schema.py docs/reference`` writes the published files (``make schemas``).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from inspect import getsource
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from tracediff.analysis import SetFinding
from tracediff.collected import CollectionTable, FxNode, VariantRow
from tracediff.diff.gate.limits import Waiver
from tracediff.diff.preflight import Reason
from tracediff.diff.verdict import DiffUnprofiled, DiffVerdict
from tracediff.explain.lines import Amount
from tracediff.ingest.model.health import Note
from tracediff.memory.lifetimes import MemorySegment
from tracediff.present.columns import First
from tracediff.present.tables import column_key
from tracediff.profile.tables import NAMES, table_schema
from tracediff.profile.tables.schema import TableSchema
from tracediff.report.analysis_json import ProfileDocument
from tracediff.report.check import CheckDocument
from tracediff.report.history import HistoryDocument
from tracediff.report.json_text import JsonObject
from tracediff.report.json_types import DiffDocument
from tracediff.report.matrix import MatrixDocument
from tracediff.report.memory import MemoryDocument
from tracediff.source.changed_code import ChangedCode, Touching

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DOCUMENTS = {
    "tracediff.diff/1": DiffDocument,
    "tracediff.profile/1": ProfileDocument,
    "tracediff.check/1": CheckDocument,
    "tracediff.matrix/1": MatrixDocument,
    "tracediff.table/1": CollectionTable,
    "tracediff.memory/1": MemoryDocument,
    "tracediff.history/1": HistoryDocument,
}
"""Schema of a document → its type."""
SIDES = {
    "DiffDocument": ("control_", "test_"),
    "CheckDocument": ("control_", "test_"),
    "MatrixComparison": ("control_", "test_"),
    "ProfileDocument": ("",),
}
"""Documents that contain tables → the prefixes of their columns."""
WITHOUT_TABLES = ("CheckDocument", "MatrixComparison")
"""Documents in which the key `tables` is absent where no table was requested."""
SHARED: tuple[type, ...] = (
    Amount,
    ChangedCode,
    CollectionTable,
    DiffUnprofiled,
    DiffVerdict,
    First,
    FxNode,
    MemorySegment,
    Note,
    Reason,
    SetFinding,
    Touching,
    VariantRow,
    Waiver,
)
"""Objects of documents that are not made for them."""
UNITS = {"ns": "µs", "count": "occurrences"}


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of the documents whose `schema` is ``name``. Objects are closed and have all their keys, but for
    WITHOUT_TABLES."""
    (top,), components = msgspec.json.schema_components([DOCUMENTS[name]])
    types = {kind.__name__: kind for kind in (*objects(JsonObject), *SHARED)}
    for title, schema in components.items():
        schema["description"] = " ".join(schema["description"].split())
        for key, text in descriptions(types.get(title, object)).items():
            schema["properties"][key] = {"description": text} | schema["properties"][key] | {"description": text}
        schema["required"] = [key for key in schema["properties"] if key != "tables" or title not in WITHOUT_TABLES]
        schema["additionalProperties"] = False
        if title in SIDES:
            schema["properties"]["tables"] |= _tables(SIDES[title])
    return {"$schema": DIALECT, "title": name, **top, "$defs": components}


def objects(kind: type[JsonObject]) -> Iterator[type[JsonObject]]:
    """``kind`` and all that extend it."""
    yield kind
    for extended in kind.__subclasses__():
        yield from objects(extended)


def descriptions(kind: type) -> dict[str, str]:
    """Field → the text below it."""
    texts = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("tracediff."):
            (body,) = ast.parse(getsource(base)).body
            assert isinstance(body, ast.ClassDef)
            for field, text in pairwise(body.body):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    texts[ast.unparse(field.target)] = " ".join(ast.literal_eval(text.value).split())
    return texts


def file_name(name: str) -> str:
    """The published file: ``tracediff.diff/1`` is in ``tracediff.diff-1.schema.json``."""
    return f"{name.replace('/', '-')}.schema.json"


def published() -> dict[str, str]:
    """File name → content of all published files."""
    return {
        file_name(name): msgspec.json.format(msgspec.json.encode(json_schema(name)), indent=2).decode() + "\n"
        for name in DOCUMENTS
    }


def _tables(prefixes: tuple[str, ...]) -> dict[str, Any]:
    return {
        "properties": {
            schema.name: {"description": schema.title, "type": "array", "items": _row(schema, prefixes)}
            for schema in map(table_schema, NAMES)
        },
        "additionalProperties": False,
    }


def _row(schema: TableSchema, prefixes: tuple[str, ...]) -> dict[str, Any]:
    properties: dict[str, Any] = {key: {"type": "string"} for key in schema.keys}
    for prefix in prefixes:
        for column in schema.columns:
            description = f"{column.title}, {UNITS.get(column.unit, column.unit)} per step"
            properties[prefix + column_key(column)] = {"description": description, "type": "number"}
        for rate in schema.rates:
            properties[prefix + rate.name] = {"description": rate.title, "type": ["number", "null"]}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


if __name__ == "__main__":
    for file, text in published().items():
        Path(sys.argv[1], file).write_text(text)
