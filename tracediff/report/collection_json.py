"""`CollectionTable` → the JSON document of schema ``tracediff.table/1`` (docs/reference/table.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tracediff.collected.variants import CollectionTable, VariantRow
from tracediff.report.json_text import json_text


class TableDocument(Struct):
    """The table of a collection: what each variant costs to build and to run."""

    schema: Literal["tracediff.table/1"]
    name: Annotated[str, Meta(description="name of the collected workload or function")]
    size: Annotated[str | None, Meta(description="size of the workload; null for your own code")]
    environment: Annotated[
        dict[str, Any], Meta(description="versions, device and settings of the first variant, from its manifest")
    ]
    rows: Annotated[list[VariantRow], Meta(description="variants, in the order in which they were given")]


def to_json(collection: CollectionTable) -> str:
    """The document, with a new line at its end."""
    return json_text(
        TableDocument("tracediff.table/1", collection.name, collection.size, collection.environment, collection.rows)
    )
