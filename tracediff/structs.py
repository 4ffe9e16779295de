"""`FrozenStruct`: the base of structs that do not change."""

from typing import dataclass_transform

from msgspec import Struct, field


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class FrozenStruct(Struct, frozen=True):
    """A struct whose fields are set when it is made, and not again."""
