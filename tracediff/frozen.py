"""`Frozen`: what a class is whose instances do not change."""

from typing import dataclass_transform

from msgspec import Struct, field


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen(Struct, frozen=True):
    """A struct whose fields cannot be set; so are those of its subclasses."""
