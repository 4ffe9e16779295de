"""Limits: the largest change that a check allows for a subject; waivers, which permit one to be exceeded until a date;
and reading both from `tracediff.toml`.
"""

import re
from collections.abc import Callable, Sequence
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from tracediff import thresholds
from tracediff.diff.preflight import DOUBTFUL
from tracediff.errors import TracediffError, did_you_mean, quoted
from tracediff.ingest.files.documents import read_toml
from tracediff.profile.events.step_states import STATES
from tracediff.structs import FrozenStruct

NAMED = ("state", "family", "op", "gpu-below")
"""Kinds of subject that need a name after a colon."""
UNIT_OF = {**dict.fromkeys(("step", *NAMED), "us"), "kernels": "count", "memory": "bytes", "graph-breaks": "count"}
"""Kind of subject → its unit."""
FACTORS: dict[str, dict[str, float]] = {
    "us": {"ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6},
    "bytes": {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30},
    "count": {"": 1},
}
EXAMPLES = {"us": "50us or 1ms", "bytes": "16MB", "count": "2"}
AMOUNT = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([a-zA-Zµ]*)", re.ASCII)
PERCENT = re.compile(r"(\d{1,6}(?:\.\d{1,15})?)\s*%", re.ASCII)
FRACTION = re.compile(r"0(?:\.\d{1,15})?", re.ASCII)
FORM = "write SUBJECT=RELATIVE or SUBJECT=RELATIVE,ABSOLUTE, such as family:gemm=5%,20us"


class Limit(FrozenStruct):
    """The largest increase that is allowed for a subject; exceeded if both parts are exceeded.

    Attributes:
        subject: step, state:NAME, family:NAME, op:PATTERN, gpu-below:PATTERN, kernels, memory or graph-breaks.
        relative: fraction of control. absolute: µs per step, bytes or a count.
    """

    subject: str
    relative: float = 0.0
    absolute: float = 0.0

    @property
    def kind(self) -> str:
        """The subject without its name."""
        return self.subject.partition(":")[0]

    @property
    def name(self) -> str:
        """The name after the kind, empty if there is none."""
        return self.subject.partition(":")[2]

    @property
    def unit(self) -> str:
        """The unit of the subject: us, bytes or count."""
        return UNIT_OF[self.kind]

    def bound(self, control: float) -> float:
        """The largest increase within the limit, in the subject's unit."""
        return max(self.relative * control, self.absolute)


def parse_limit(text: str) -> Limit:
    """The limit of ``SUBJECT=RELATIVE[,ABSOLUTE]``; the subject may contain ``=``.

    Raises:
        TracediffError: any other text.
    """
    subject, mark, amounts = text.rpartition("=")
    if not mark:
        raise TracediffError(f"limit {quoted(text)}", "no limit given", FORM)
    relative, _, absolute = amounts.partition(",")
    return limit_of(subject, relative, absolute or "0")


def limit_of(subject: str, relative: str, absolute: str, source: str = "") -> Limit:
    """The limit on ``subject``; ``source`` precedes it in errors.

    Raises:
        TracediffError: an unknown subject, or an invalid part.
    """
    kind, mark, name = subject.partition(":")
    where = f"{source}limit on {quoted(subject)}"
    if kind == "step":
        raise TracediffError(where, "the step has its own limit", "set it with --max-regression")
    if kind not in UNIT_OF or bool(mark) != (kind in NAMED) or (mark and not name):
        hint = did_you_mean(kind, UNIT_OF, "") if kind not in UNIT_OF else ""
        subjects = (
            "valid subjects: state:NAME, family:NAME, op:PATTERN, gpu-below:PATTERN, kernels, memory, graph-breaks"
        )
        raise TracediffError(where, "unknown subject", f"{hint} {subjects}" if hint else subjects)
    if kind == "state" and name not in STATES and not name.startswith("op:"):
        hint = did_you_mean(name, STATES, f"valid states: {', '.join(STATES)}")
        raise TracediffError(where, "unknown state", hint)
    return Limit(subject, parse_relative(relative, where), parse_absolute(absolute, UNIT_OF[kind], where))


def parse_relative(text: str, where: str) -> float:
    """``3%`` or ``0.03`` as a fraction.

    Raises:
        TracediffError: any other text; also 3, which could mean 3 % or 300 %.
    """
    text = text.strip()
    if percent := PERCENT.fullmatch(text):
        return float(percent[1]) / 100
    if FRACTION.fullmatch(text):
        return float(text)
    raise TracediffError(
        where,
        f"{quoted(text)} is not a relative limit",
        "write it as 3% or 0.03 (an absolute part comes after a comma)",
    )


def parse_absolute(text: str, unit: str, where: str) -> float:
    """``50us``, ``16MB`` or ``2`` in ``unit``; 0 needs no unit.

    Raises:
        TracediffError: any other text.
    """
    amount = AMOUNT.fullmatch(text.strip())
    if amount and not amount[2] and not float(amount[1]):
        return 0.0
    if not amount or amount[2] not in FACTORS[unit]:
        raise TracediffError(where, f"{quoted(text.strip())} is not an absolute limit", f"write it as {EXAMPLES[unit]}")
    return float(amount[1]) * FACTORS[unit][amount[2]]


class Waiver(FrozenStruct):
    """Permission for limits to be exceeded until a date."""

    pattern: str
    """pattern of the subjects that it covers"""
    reason: str
    expires: date
    """last day on which it applies"""

    def covers(self, subject: str) -> bool:
        """Whether it applies to ``subject``."""
        return fnmatchcase(subject, self.pattern)

    def has_expired(self, today: date) -> bool:
        """Whether its last day has passed."""
        return today > self.expires


def waiver_for(subject: str, waivers: Sequence[Waiver]) -> Waiver | None:
    """The waiver of ``subject`` that expires last, even if it has expired; None without one."""
    return max((w for w in waivers if w.covers(subject)), key=lambda w: w.expires, default=None)


T = TypeVar("T")
FILE = "tracediff.toml"
STOPPING = (*DOUBTFUL, "single-run")
"""Cautions that make the sides not comparable unless they are allowed."""
KEYS = ("max_regression", "min_delta", "allow", "limit", "waiver")
SEE = "docs/ci.md lists the valid keys"


class GateSettings(FrozenStruct):
    """The settings of a check.

    Attributes:
        limits: the limit on the step, then the others.
        allow: codes of cautions that do not stop the check. waivers: permitted breaches.
    """

    limits: tuple[Limit, ...] = (Limit("step", thresholds.MAX_REGRESSION),)
    allow: frozenset[str] = frozenset()
    waivers: tuple[Waiver, ...] = ()


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


def read_settings(path: Path) -> GateSettings:
    """The settings in ``path``.

    Raises:
        TracediffError: the file cannot be read, is not TOML, or has an unknown key or an invalid value.
    """
    document = read_toml(path, SEE)
    check = document.get("check")
    if not isinstance(check, dict) or set(document) != {"check"}:
        raise TracediffError(path, "[check] must be its only table", SEE)
    return _settings(check, str(path))


def _settings(check: dict[str, Any], path: str) -> GateSettings:
    _known(check, KEYS, f"{path}, [check]")
    allow = check.get("allow", [])
    if not isinstance(allow, list) or not all(isinstance(code, str) for code in allow):
        raise TracediffError(f"{path}, allow", "not a list of codes", 'write allow = ["gpu"]')
    relative, absolute = f"{path}, max_regression", f"{path}, min_delta"
    step = Limit(
        "step",
        parse_relative(_amount(check.get("max_regression", thresholds.MAX_REGRESSION), relative), relative),
        parse_absolute(_amount(check.get("min_delta", 0.0), absolute), "us", absolute),
    )
    return GateSettings(
        merged([step, *_tables(check, "limit", path, _limit)]),
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
    return format(value, "f").rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
