"""What every JSON document shares: how it is written, and how its types state the values of a key."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Meta

from tracediff.errors import COMMAND
from tracediff.structs import SIDES, Pair
from tracediff.write import encoded


class JsonObject(msgspec.Struct):
    """An object of a document: its fields are the keys, in the order in which they are written; the text below a field
    is its description in the published schema.
    """


Kind = TypeVar("Kind", bound=msgspec.Struct)


def filled(
    kind: type[Kind], source: object, unit: str = "", in_unit: Callable[[Any], Any] | None = None, /, **values: Any
) -> Kind:
    """An object of ``kind``: fields that are not in ``values`` are the attributes of ``source`` of the same names, and
    a field NAME_``unit`` the attribute NAME, by ``in_unit`` in that unit. What is an object in it is filled alike.
    """

    def value(name: str) -> Any:
        attribute, _, ending = name.rpartition("_")
        if not unit or ending != unit:
            return getattr(source, name)
        amount = getattr(source, attribute)
        return in_unit(amount) if in_unit else amount

    fields = {name: values[name] if name in values else value(name) for name in kind.__struct_fields__}
    return msgspec.convert({k: v for k, v in fields.items() if v is not msgspec.UNSET}, kind, from_attributes=True)


def both(key: str, pair: Pair[Any]) -> dict[str, Any]:
    """The keys of both sides: ``control_us`` and ``test_us`` for ``*_us``."""
    return {key.replace("*", side): value for side, value in zip(SIDES, pair, strict=True)}


def one_of(*values: str | None) -> Meta:
    """A text that is one of ``values``; a later version may add to them."""
    return Meta(extra_json_schema={"enum": list(values)})


def json_text(document: msgspec.Struct) -> str:
    """A document as indented text, with a new line at its end; � replaces bytes of a path that are not UTF-8."""
    try:
        compact = msgspec.json.encode(document)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(document), ensure_ascii=False)
        compact = msgspec.json.encode(json.loads(encoded(text)))
    text = msgspec.json.format(compact, indent=1).decode() + "\n"
    return COMMAND.sub(r"#\\u0023", text)  # the same text, but no command where a log shows it
