"""Columns that are equal in several files, kept once: the ranks of a program differ in times, and hardly in calls."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class SharedColumns:
    """Those met so far; whoever reads several files keeps one while it does."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[Any, ...], np.ndarray] = {}
        self._tuples: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def of(self, part: T) -> T:
        """``part`` (a profile, or a table of it) with the columns and names of equal ones before it, so that equal is
        identical.
        """
        changed = {
            field.name: shared
            for field in fields(part)  # type: ignore[arg-type]
            if (shared := self._shared(value := getattr(part, field.name))) is not value
        }
        return replace(part, **changed) if changed else part  # type: ignore[type-var]

    def _shared(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            key = value.dtype, value.shape, hash(value.tobytes())
            known = self._arrays.setdefault(key, value)
            return known if np.array_equal(known, value) else value
        if isinstance(value, tuple):
            return self._tuples.setdefault(value, value)
        if isinstance(value, dict):
            return {name: self._shared(table) for name, table in value.items()}
        return self.of(value) if is_dataclass(value) else value
