"""Lines of code that other commits have elsewhere in their file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tracediff.ingest.frames import LINE_OF_CODE


def moved_lines(control: Iterable[str], test: Iterable[str]) -> dict[str, str]:
    """Line of control, ``model.py(12): forward`` → the same code's line in test: of functions of one name in one file,
    the k-th of control is the k-th of test, if both sides have as many.
    """
    sides: list[dict[tuple[str, str], set[tuple[int, str]]]] = [defaultdict(set), defaultdict(set)]
    for places, lines in zip(sides, (control, test), strict=True):
        for line in lines:
            if match := LINE_OF_CODE.fullmatch(line):
                places[match["file"], match["function"]].add((int(match["line"]), line))
    out: dict[str, str] = {}
    for function, before in sides[0].items():
        after = sides[1].get(function, set())
        if len(before) == len(after):
            out |= {old: new for (_, old), (_, new) in zip(sorted(before), sorted(after), strict=True)}
    return out
