"""How times, counts and changes are worded, in findings and reports alike."""

from __future__ import annotations

MINUS = "−"
SIZES = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))


def time(us: float) -> str:
    """A time with its unit: three figures that matter."""
    size = abs(us)
    if size >= 1e6:
        text = f"{us / 1e6:.2f} s"
    elif size >= 1000:
        text = f"{us / 1000:.{1 if size >= 20_000 else 2}f} ms"
    else:
        text = f"{us:.{0 if size >= 100 else 1}f} µs"
    return text.replace("-", MINUS)


def change(control: float, test: float) -> str:
    """``56.7 ms → 0.6 ms``."""
    return f"{time(control)} → {time(test)}"


def size_unit(amount: float) -> tuple[str, float]:
    """(symbol, bytes) of the unit in which ``amount`` reads best."""
    return next(((symbol, size) for symbol, size in SIZES if abs(amount) >= size), SIZES[-1])


def size(amount: float) -> str:
    """Bytes with their unit: ``4.49 GB``."""
    unit, factor = size_unit(amount)
    return f"{amount / factor:,.{0 if factor == 1 else 2 if abs(amount) < 10 * factor else 1}f} {unit}".replace(
        "-", MINUS
    )


def sizes(control: float, test: float) -> str:
    """``4.49 GB → 5.02 GB``."""
    return f"{size(control)} → {size(test)}"


def part(x: float, of: float) -> str:
    """``47 %``."""
    return f"{100 * x / of:.0f} %" if of else "0 %"


def count(n: float) -> str:
    """Events per step: whole where it is whole."""
    return f"{n:,.0f}" if abs(n - round(n)) < 1e-9 else f"{n:,.1f}"


def plural(n: float, noun: str) -> str:
    """``1 kernel``, ``2 kernels``."""
    return f"{count(n)} {noun}" + ("" if n == 1 else "s")


def rose(control: float, test: float) -> str:
    """rose or fell."""
    return "rose" if test > control else "fell"
