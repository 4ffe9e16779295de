"""The format of numbers in every output: times, bytes, FLOPs, counts and percentages.

The unit is that in which the largest number of a table, an axis or a sentence is at least 1; of times at least 10, but
for µs: 1,020 ms, 7,662 µs, 1.50 µs. Numbers have at least three significant digits: two decimals below 10, one below
1,000, none from there on, and none for nanoseconds and bytes. A table of changes has as many decimals as give its
largest change two digits (`with_digits`). A column of amounts that do not add up to a total (`common_unit`) gives each
amount a unit of its own where a common one would leave fewer than two digits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import ceil, floor, log10
from typing import NamedTuple

MINUS, ARROW = "−", " → "
TIMES = (("s", 1e6, 10), ("ms", 1e3, 10), ("µs", 1.0, 1), ("ns", 1e-3, 0))
"""Symbols, sizes in µs, and how many of it the largest time has at least: parts of a step have digits, too."""
BYTES = (("GB", 1e9, 1), ("MB", 1e6, 1), ("kB", 1e3, 1), ("B", 1.0, 0))
FLOPS = (("TFLOP", 1e12, 1), ("GFLOP", 1e9, 1), ("MFLOP", 1e6, 1), ("FLOP", 1.0, 0))
LEAST_DIGITS = 9.5
"""An amount in units of its last decimal, from which it is shown with two significant digits."""
NEXT_UNIT = 0.9995
"""Share of a unit from which it is used: 9,999 µs are shown as 10.0 ms."""
DECIMALS = ((999.5, 0), (9.995, 1), (0.0, 2))
"""The amount in a unit from which a number is shown with so many decimals."""
PERCENT_DECIMALS = ((0.0995, 0), (0.00095, 1), (0.0, 2))
"""The share from which a percentage is shown with so many decimals."""
LEAST_P = 0.001
"""A p-value below this is shown as less than it."""
INTEGRAL = 1e-6
"""A count that lies nearer to an integer is one: means of counts are not exact."""


class Unit(NamedTuple):
    """A unit and the decimals shown in it, for all numbers of a table or an axis.

    Attributes:
        name: its symbol. size: in µs, bytes or FLOPs. decimals: shown for every number.
    """

    name: str
    size: float
    decimals: int

    def scaled(self, amount: float) -> float:
        """``amount`` in this unit, for an axis."""
        return amount / self.size

    def plain(self, amount: float) -> str:
        """``amount`` in this unit, without its symbol; 0 has no sign."""
        return _signless_zero(f"{amount / self.size:,.{self.decimals}f}")

    def signed(self, amount: float) -> str:
        """``amount`` in this unit with its sign, without symbol; 0 has no sign."""
        return _signless_zero(f"{amount / self.size:+,.{self.decimals}f}")

    def text(self, amount: float) -> str:
        """``132.8 ms``."""
        return f"{self.plain(amount)} {self.name}"

    def change(self, control: float, test: float) -> str:
        """``42.65 → 40.77 ms``."""
        return f"{self.plain(control)}{ARROW}{self.text(test)}"

    def signed_text(self, amount: float) -> str:
        """``+1.24 ms``, ``−42.7 %``; 0 has no sign."""
        return f"{self.signed(amount)} {self.name}"

    def rounded(self, amount: float) -> float:
        """``amount`` as far as it is shown."""
        return round(amount / self.digit) * self.digit

    @property
    def digit(self) -> float:
        """What one more in the last decimal is, in µs, bytes or FLOPs."""
        return self.size / 10.0**self.decimals


PERCENT = Unit("%", 0.01, 1)
"""The unit of a column of shares or changes."""


def _unit(units: tuple[tuple[str, float, int], ...], amounts: Iterable[float]) -> Unit:
    largest = max((abs(amount) for amount in amounts), default=0.0)
    name, size, least = next((unit for unit in units if largest >= NEXT_UNIT * unit[1] * unit[2]), units[-1])
    return Unit(name, size, _decimals(DECIMALS, largest / size) if least else 0)


time_unit = partial(_unit, TIMES)
"""The unit of times in µs."""
byte_unit = partial(_unit, BYTES)
"""The unit of amounts of memory in bytes."""
flop_unit = partial(_unit, FLOPS)
"""The unit of arithmetic work in FLOPs."""


def with_digits(unit: Unit, changes: Iterable[float]) -> Unit:
    """``unit`` with as many decimals as give the largest of ``changes`` two significant digits, to the nanosecond: rows
    that add up do so as they are shown.
    """
    largest = max(map(abs, changes), default=0.0) / unit.size
    enough = ceil(log10(LEAST_DIGITS / largest)) if largest else 0
    return unit._replace(decimals=max(unit.decimals, min(enough, _most_decimals(unit))))


def _most_decimals(unit: Unit) -> int:
    """Those of a nanosecond, which has none."""
    return round(log10(unit.size)) + 3


def closing(unit: Unit, amounts: Sequence[float], whole: float) -> list[float]:
    """``amounts``, which add up to ``whole``, rounded so that they do so as ``unit`` shows them: those that rounding
    would change most are rounded the other way.
    """
    exact = [amount / unit.digit for amount in amounts]
    digits = [*map(round, exact)]
    missing = round(whole / unit.digit) - sum(digits)
    sign = 1 if missing > 0 else -1
    by_error = sorted(range(len(exact)), key=lambda k: sign * (digits[k] - exact[k]))
    for k in by_error[: abs(missing)]:
        digits[k] += sign
    return [n * unit.digit for n in digits]


def with_decimals_of(unit: Unit, largest: float) -> Unit:
    """``unit`` with the decimals that an amount as ``largest`` has in it."""
    decimals = min(_decimals(DECIMALS, largest / unit.size), _most_decimals(unit))
    return unit._replace(decimals=max(unit.decimals, decimals))


def _decimals(table: tuple[tuple[float, int], ...], amount: float) -> int:
    return next(decimals for least, decimals in table if abs(amount) >= least)


def common_unit(unit_of: Callable[[Iterable[float]], Unit], amounts: Iterable[float]) -> Unit | None:
    """The unit of all ``amounts`` by ``unit_of``; None if it leaves one of them fewer than two significant digits."""
    sizes = [abs(amount) for amount in amounts if amount]
    unit, smallest = unit_of(sizes), min(sizes, default=0.0)
    has_digits = smallest / unit.size * 10**unit.decimals >= LEAST_DIGITS
    return unit if has_digits or unit == unit_of([smallest]) else None


def number(value: float) -> str:
    """A number without a choice of unit, such as a rate, in three significant digits: ``0.0398``, ``61.0``,
    ``1,555``.
    """
    rounded = float(f"{value:.2e}")
    return _signless_zero(f"{value:,.{max(2 - floor(log10(abs(rounded))), 0) if rounded else 0}f}")


def time(us: float, *others: float) -> str:
    """``132.8 ms``, ``2,000 ms``; in the unit of the largest, if ``others`` are in the same sentence."""
    return time_unit([us, *others]).text(us)


def clock(seconds: float) -> str:
    """``0:48``, ``1:02:05``: time to wait."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def signed_time(us: float, *others: float) -> str:
    """``+1.24 ms``, ``−42.7 ms``; 0 has no sign. ``others``: as for `time`."""
    return time_unit([us, *others]).signed_text(us)


def change_and_delta(control: float, test: float) -> str:
    """``7.35 → 7.76 ms (+0.41)``: times in µs and their change, in one unit."""
    unit = time_unit([control, test])
    return f"{unit.change(control, test)} ({unit.signed(test - control)})"


def with_more(names: str, more: int) -> str:
    """``aten::mul + 2 more``."""
    return f"{names} + {more} more" if more > 0 else names


def joined(*texts: str | None, by: str = ", ") -> str:
    """Those of ``texts`` that are not empty, with ``by`` between them."""
    return by.join(filter(None, texts))


def once(texts: Iterable[str]) -> str:
    """``28 → 29``, or ``28`` where all read the same."""
    return ARROW.join(dict.fromkeys(texts))


def size(amount: float) -> str:
    """Bytes: ``4.49 GB``."""
    return byte_unit([amount]).text(amount)


def signed_size(amount: float) -> str:
    """``+4.49 GB``."""
    return byte_unit([amount]).signed_text(amount)


def _both(unit_of: Callable[[Iterable[float]], Unit], control: float, test: float) -> str:
    """Both in the unit of the larger; each in its own where the smaller would read 0."""
    unit, both = unit_of([control, test]), (control, test)
    before, after = (unit.plain(amount) if amount else "0" for amount in both)
    if any(amount and not text.strip("0.,") for amount, text in zip(both, (before, after), strict=True)):
        return f"{unit_of([control]).text(control)} → {unit_of([test]).text(test)}"
    return f"{before} → {after} {unit.name}"


change = partial(_both, time_unit)
"""``56.7 → 0.6 ms``, of times in µs."""
sizes = partial(_both, byte_unit)
"""``4.49 → 5.02 GB``."""


def percent(share: float) -> str:
    """``47 %``, ``3.2 %``: ``0.04 %``."""
    return f"{percent_number(share)} %"


def percents(control: float, test: float) -> str:
    """``47 → 51 %``."""
    return f"{percent_number(control)} → {percent_number(test)} %"


def signed_percent(share: float) -> str:
    """``+51 %``, ``−3.2 %``; 0 has no sign."""
    return f"{_signless_zero(f'{100 * share:+,.{_percent_decimals(share)}f}')} %"


def times(ratio: float) -> str:
    """A ratio for eyes: 3 significant digits."""
    return f"{ratio:.3g}" if ratio < 1000 else f"{ratio:,.0f}"


def multiple(ratio: float, what: str) -> str:
    """``16 × the FLOPs``, ``6.25 % of the FLOPs``."""
    return f"{times(ratio)} × the {what}" if ratio >= 1 else f"{100 * ratio:.3g} % of the {what}"


def about(ratio: float, what: str) -> str:
    """``about 16 × the work``, of what is a mean of several ratios."""
    return f"about {multiple(float(f'{ratio:.2g}'), what)}"


def percent_number(share: float) -> str:
    """`percent` without the symbol %."""
    return _signless_zero(f"{100 * share:,.{_percent_decimals(share)}f}")


def _percent_decimals(share: float) -> int:
    return _decimals(PERCENT_DECIMALS, share) if share else 0


def part(amount: float, whole: float) -> str:
    """``47 %``, the share of ``amount`` in ``whole``; 0 % if ``whole`` is 0."""
    return percent(amount / whole if whole else 0.0)


def count(n: float) -> str:
    """Events per step: ``3``, or ``3.5`` if not an integer and below 1,000."""
    is_whole = abs(n - round(n)) < INTEGRAL or not _decimals(DECIMALS, n)
    return _signless_zero(f"{n:,.0f}" if is_whole else f"{n:,.1f}")


def signed_count(n: float) -> str:
    """`count` with its sign; 0 has no sign."""
    text = count(n)
    return f"+{text}" if n > 0 and text.strip("0.") else text


def counts(control: float, test: float) -> str:
    """``3`` or ``3 → 5``."""
    return count(control) if control == test else f"{count(control)} → {count(test)}"


def counts_of(control: float, test: float, noun: str) -> str:
    """``3 → 5 calls``; ``9 → 14.3 calls on average``, where a mean is not a number of calls."""
    both = counts(control, test)
    return f"{both} {noun}{' on average' if '.' in both else ''}"


def plural(n: float, noun: str) -> str:
    """``1 kernel``, ``2 kernels``."""
    return f"{count(n)} {noun}" + ("" if n == 1 else "s")


def p_value(p: float | None) -> str:
    """A p-value, as it is or corrected: ``0.012``, ``< 0.001``; a dash where nothing was tested."""
    if p is None:
        return "–"
    return f"< {LEAST_P}" if p < LEAST_P else Unit("", 1, 3).plain(p)


def browser_format() -> str:
    """The tables of this module as JSON, by which `report/page/numbers.js` writes numbers in the browser."""
    tables = {
        "minus": MINUS, "times": TIMES, "next_unit": NEXT_UNIT, "integral": INTEGRAL,
        "decimals": DECIMALS, "percent_decimals": PERCENT_DECIMALS, "least_p": LEAST_P,
    }  # fmt: skip
    return json.dumps(tables)


def _signless_zero(text: str) -> str:
    """``text`` of a formatted number with the sign −, and no sign before a number that is shown as 0."""
    return text.replace("-", MINUS) if text.strip("+-0.,") else text.lstrip("+-")


def ranges(numbers: Iterable[int]) -> str:
    """Ascending ``numbers`` in short: ``5–10``, ``1, 3–4``."""
    parts: list[list[int]] = []
    for n in numbers:
        if parts and n == parts[-1][1] + 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in parts)
