"""Tables of texts, names cut to a width, and bars of characters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from math import ceil

from rich.text import Text

from tracediff.explain.leaves import ON_THE_HOST
from tracediff.formatting import ARROW, plural
from tracediff.patterns import late
from tracediff.structs import FrozenStruct


class Table(FrozenStruct, kw_only=True):
    """One table.

    Attributes:
        title: its heading. heads: of the columns. rows: texts.
        about: what its columns mean, may be empty.
        texts: how many of the columns, from the left, are texts; the others are numbers.
        more: how many rows were left out.
        together: how many of the first numbers are never omitted.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    about: str = ""
    texts: int = 1
    more: int = 0
    together: int = 1


def no_rows_shown(more: int, otherwise: str) -> str:
    """What replaces a table of which no row is shown: ``27 rows (--top)``; ``otherwise`` if it has none."""
    return f"{plural(more, 'row')} (--top)" if more else otherwise


ELLIPSIS = "…"
BEFORE_DIFFERENCE = 2
"""Characters shown before the first difference of names that begin alike."""
SHAPES = late(r"\(\[[^()]*\)")
"""Of the tensors of a call."""
FIRST_SHAPE = late(r"(\(\[[^]()]*\]), \[[^()]*\)")
ENDINGS = late(rf"( \+ [\d,]+ more)({ON_THE_HOST})?$"), late(rf"{ON_THE_HOST}$")
LEAST = 10
"""Characters below which a name is only cut at its end."""


def shortened(names: Sequence[str], width: int) -> list[str]:
    """``names`` of at most ``width`` characters: cut at the end, and those that would then look equal in the middle."""
    return _cut_apart([(name, width) for name in names])


def _cut_apart(names: Sequence[tuple[str, int]]) -> list[str]:
    """Each name in its width, as `shortened` cuts names of one width."""
    cut = [(_end_cut(name, width), width) for name, width in names]
    alike: dict[tuple[str, int], set[str]] = defaultdict(set)
    for (name, _), text_and_width in zip(names, cut, strict=True):
        alike[text_and_width].add(name)
    return [
        _middle_cut(name, width, common_start(alike[text, width])) if len(alike[text, width]) > 1 else text
        for (name, width), (text, _) in zip(names, cut, strict=True)
    ]


def shortened_pairs(pairs: Sequence[str], width: int) -> list[str]:
    """As `shortened`, where a text may be ``old → new``: both names are cut, not only the second; and shapes that
    distinguish no two of them before any name.
    """
    pairs = _without_shapes(pairs, width)
    sides = [pair.split(ARROW, 1) if ARROW in pair and len(pair) > width else [pair] for pair in pairs]
    whole = shortened([s[0] for s in sides if len(s) == 1], width)
    halves = _halves([(s[0], s[1]) for s in sides if len(s) == 2], width - len(ARROW))
    texts = iter(whole), iter(halves)
    return [next(texts[len(s) - 1]) for s in sides]


def _without_shapes(names: Sequence[str], width: int) -> Sequence[str]:
    """``names``, those that exceed ``width`` with the first of their shapes where that fits, or none; if that does not
    tell all that differ apart, with the first one, or all.
    """
    forms = [_forms(name) if len(name) > width else (name, name, name) for name in names]
    short = [next((text for text in of_name if len(text) <= width), of_name[-1]) for of_name in forms]
    for longer in (1, 0):
        shared = Counter(dict(zip(names, short, strict=True)).values())
        short = [of_name[longer] if shared[text] > 1 else text for text, of_name in zip(short, forms, strict=True)]
    return short


def _forms(name: str) -> tuple[str, str, str]:
    """``name`` with all of its shapes, with the first one, and with none."""
    return name, FIRST_SHAPE.sub(r"\1, …)", name), SHAPES.sub("(…)", name)


def _halves(pairs: list[tuple[str, str]], room: int) -> list[str]:
    widths = [_shares(len(before), len(after), room) for before, after in pairs]
    firsts = _cut_apart([(before, width) for (before, _), (width, _) in zip(pairs, widths, strict=True)])
    seconds = _cut_apart([(after, width) for (_, after), (_, width) in zip(pairs, widths, strict=True)])
    texts = []
    for (before, after), (first, second), halves in zip(pairs, widths, zip(firsts, seconds, strict=True), strict=True):
        alike = _end_cut(before, first) == _end_cut(after, second) and before != after
        texts.append(ARROW.join(shortened([before, after], min(first, second)) if alike else halves))
    return texts


def _shares(before: int, after: int, room: int) -> tuple[int, int]:
    """Widths of two names: half of the room each, and what one does not need for the other."""
    half = room // 2
    if before <= half:
        return before, room - before
    if after <= room - half:
        return room - after, after
    return half, half


def cut_left(path: str, width: int) -> str:
    """The end of ``path``: a module is named by its last parts."""
    return path if len(path) <= width else ELLIPSIS + path[len(path) - width + 1 :]


def _end_cut(name: str, width: int) -> str:
    """``name`` cut before its end, or before the words of how many more there are and that it is the host's time, where
    there is room for both.
    """
    if len(name) <= width:
        return name
    endings = (match[0] for pattern in ENDINGS if (match := pattern.search(name)))
    suffix = next((ending for ending in endings if width >= LEAST + len(ending)), "")
    return name[: max(width - len(suffix) - 1, 0)].rstrip(ELLIPSIS) + ELLIPSIS + suffix


def common_start(names: Collection[str]) -> str:
    """What all ``names`` begin with."""
    first, last = min(names), max(names)
    same = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:same]


def _middle_cut(name: str, width: int, common: str) -> str:
    """``cutlass…_256x64`` for a name whose first part others share."""
    if len(name) <= width or width < LEAST:
        return _end_cut(name, width)
    head = width // 3
    tail = width - head - 1
    start = min(max(len(common) - BEFORE_DIFFERENCE, head), len(name) - tail)
    return name[:head].rstrip(ELLIPSIS) + ELLIPSIS + _end_cut(name[start:], tail)


FASTER, SLOWER = "cyan", "yellow"
BAR = 15
"""Columns of the bars beside counts."""
ZERO = "│"
EIGHTHS = " ▏▎▍▌▋▊▉█"


class Bars(FrozenStruct):
    """Bars on both sides of a line at zero: faster to its left, slower to its right.

    Attributes:
        scale: change of one column. left: columns of the longest bar to the left.
    """

    scale: float
    left: int

    def draw(self, change: float) -> Text:
        """The bar of ``change`` beside the line, in columns of a terminal."""
        blocks = self.blocks(change)
        if change < 0:
            return Text.assemble(" " * (self.left - len(blocks)), (blocks, FASTER), ZERO)
        return Text.assemble(" " * self.left, ZERO, (blocks, SLOWER))

    def blocks(self, change: float) -> str:
        """The bar alone; to the left, blocks grow from the line in halves of a column."""
        eighths = round(8 * abs(change) / self.scale) if self.scale else 0
        whole, rest = divmod(eighths, 8)
        if change < 0:
            return ("▐" if rest >= 4 else "") + "█" * whole
        return "█" * whole + EIGHTHS[rest].strip()


def bars(changes: Iterable[float], width: int, least: float = 0.0) -> Bars:
    """Bars for ``changes`` in ``width`` columns, the line among them.

    Args:
        least: change that at least makes the longest bar: small changes have small bars.
    """
    values = list(changes)
    lowest, highest = -min(*values, 0.0, 0.0), max(*values, 0.0, 0.0)
    scale = max(lowest + highest, least) / (width - 2)  # a column for the line, one for rounding
    return Bars(scale, ceil(lowest / scale) if scale else 0)
