"""`CollectionTable` → the JSON document of schema ``tracediff.table/1`` (docs/reference/table.md)."""

from __future__ import annotations

from typing import Any, Literal

from tracediff.collected.variants import CollectionTable, VariantRow
from tracediff.report.json_text import JsonObject, json_text


class TableDocument(JsonObject):
    """The table of a collection: what each variant costs to build and to run."""

    schema: Literal["tracediff.table/1"]
    name: str
    """name of the collected workload or function"""
    size: str | None
    """size of the workload; null for your own code"""
    environment: dict[str, Any]
    """versions, device and settings of the first variant, from its manifest"""
    rows: list[VariantRow]
    """variants, in the order in which they were given"""


def to_json(collection: CollectionTable) -> str:
    """The document, with a new line at its end."""
    return json_text(
        TableDocument("tracediff.table/1", collection.name, collection.size, collection.environment, collection.rows)
    )
