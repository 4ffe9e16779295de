"""`Settings`: all limits of a check, and reading them from `tracediff.toml`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from tracediff.diff.gate.limits import Limit, limit_of, parse_absolute, parse_relative
from tracediff.diff.gate.waivers import Waiver
from tracediff.diff.preflight import DOUBTFUL
from tracediff.errors import TracediffError, did_you_mean, quoted
from tracediff.ingest.documents import read_toml

T = TypeVar("T")
FILE = "tracediff.toml"
STOPPING = (*DOUBTFUL, "single-run")
"""Cautions that make the sides not comparable unless they are allowed."""
DEFAULT_RELATIVE, DEFAULT_ABSOLUTE = 0.05, 0.0
KEYS = ("max_regression", "min_delta", "allow", "limit", "waiver")
SEE = "docs/ci.md lists the valid keys"


@dataclass(frozen=True)
class Settings:
    """The settings of a check.

    Attributes:
        max_regression: relative part of the limit on the step. min_delta: its absolute part in µs.
        limits: all other limits. allow: codes of cautions that do not stop the check. waivers: permitted breaches.
    """

    max_regression: float = DEFAULT_RELATIVE
    min_delta: float = DEFAULT_ABSOLUTE
    limits: tuple[Limit, ...] = ()
    allow: frozenset[str] = field(default_factory=frozenset)
    waivers: tuple[Waiver, ...] = ()

    @property
    def all_limits(self) -> tuple[Limit, ...]:
        """The limit on the step, then the others."""
        return (Limit("step", self.max_regression, self.min_delta), *self.limits)


def allowed(codes: Sequence[str], where: str) -> frozenset[str]:
    """``codes`` as a set.

    Raises:
        TracediffError: a code that never stops a check.
    """
    for code in codes:
        if code not in STOPPING:
            hint = did_you_mean(code, STOPPING, f"cautions that do: {', '.join(STOPPING)}")
            raise TracediffError(where, f"{quoted(code)} never stops a check", hint)
    return frozenset(codes)


def merged(limits: Sequence[Limit]) -> tuple[Limit, ...]:
    """``limits`` with one limit per subject, the last."""
    return tuple({limit.subject: limit for limit in limits}.values())


def read_settings(path: Path) -> Settings:
    """The settings in ``path``.

    Raises:
        TracediffError: the file cannot be read, is not TOML, or has an unknown key or an invalid value.
    """
    document = read_toml(path, SEE)
    check = document.get("check")
    if not isinstance(check, dict) or set(document) != {"check"}:
        raise TracediffError(str(path), "[check] must be its only table", SEE)
    return _settings(check, str(path))


def _settings(check: dict[str, Any], path: str) -> Settings:
    _known(check, KEYS, f"{path}, [check]")
    allow = check.get("allow", [])
    if not isinstance(allow, list) or not all(isinstance(code, str) for code in allow):
        raise TracediffError(f"{path}, allow", "not a list of codes", 'write allow = ["gpu"]')
    return Settings(
        parse_relative(
            _amount(check.get("max_regression", DEFAULT_RELATIVE), f"{path}, max_regression"), f"{path}, max_regression"
        ),
        parse_absolute(
            _amount(check.get("min_delta", DEFAULT_ABSOLUTE), f"{path}, min_delta"), "us", f"{path}, min_delta"
        ),
        merged(_tables(check, "limit", path, _limit)),
        allowed(allow, f"{path}, allow"),
        tuple(_tables(check, "waiver", path, _waiver)),
    )


def _tables(check: dict[str, Any], key: str, path: str, read: Callable[[dict[str, Any], str], T]) -> list[T]:
    """``read`` applied to each ``[[check.key]]``."""
    tables = check.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise TracediffError(f"{path}, {key}", f"not a list of tables [[check.{key}]]", SEE)
    return [read(table, f"{path}, {key} {number}") for number, table in enumerate(tables, 1)]


def _limit(table: dict[str, Any], where: str) -> Limit:
    _known(table, ("subject", "relative", "absolute"), where)
    if "relative" not in table:
        raise TracediffError(where, "the relative part is missing", 'write relative = "5%"')
    subject, absolute = _text(table, "subject", where), _amount(table.get("absolute", 0), where)
    return limit_of(subject, _amount(table["relative"], where), absolute, f"{where}, ")


def _waiver(table: dict[str, Any], where: str) -> Waiver:
    _known(table, ("pattern", "reason", "expires"), where)
    expires = table.get("expires")
    if type(expires) is not date:
        raise TracediffError(where, "the expiry date is missing", "write expires = 2026-12-31, without quotes")
    return Waiver(_text(table, "pattern", where), _text(table, "reason", where), expires)


def _known(table: dict[str, Any], keys: Sequence[str], where: str) -> None:
    for key in table:
        if key not in keys:
            hint = did_you_mean(key, keys, f"valid keys: {', '.join(keys)}")
            raise TracediffError(where, f"unknown key {quoted(key)}", hint)


def _text(table: dict[str, Any], key: str, where: str) -> str:
    text = table.get(key)
    if not isinstance(text, str) or not text.strip():
        raise TracediffError(where, f"{key} is missing", f'write {key} = "…"')
    return text


def _amount(value: Any, where: str) -> str:
    """A part of a limit as text, which is read as on the command line."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TracediffError(
            where, f"{quoted(str(value))} is not a limit", 'write it in quotes, as on the command line: "5%", "50us"'
        )
    return (
        value
        if isinstance(value, str)
        else format(value, "f").rstrip("0").rstrip(".")
        if isinstance(value, float)
        else str(value)
    )
