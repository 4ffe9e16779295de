"""What every JSON document shares: how it is written, and how its types state the values of a key."""

from __future__ import annotations

import json

import msgspec
from msgspec import Meta

from tracediff.report.escape import COMMAND
from tracediff.write import encoded


def one_of(description: str, *values: str) -> Meta:
    """A text that is one of ``values``; a later version may add to them."""
    return Meta(description=description, extra_json_schema={"enum": list(values)})


def json_text(document: msgspec.Struct) -> str:
    """A document as indented text, with a new line at its end; � replaces bytes of a path that are not UTF-8."""
    try:
        compact = msgspec.json.encode(document)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(document), ensure_ascii=False)
        compact = msgspec.json.encode(json.loads(encoded(text)))
    text = msgspec.json.format(compact, indent=1).decode() + "\n"
    return COMMAND.sub(r"#\\u0023", text)  # the same text, but no command where a log shows it
