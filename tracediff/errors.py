"""Errors that a user can act on: the input at fault, what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterable

from tracediff import bounds, thresholds


class TracediffError(Exception):
    """An invalid input or request. ``str()`` is one line: ``subject: reason; remedy``.

    Attributes:
        subject: the file, set or option at fault.
        reason: what is wrong with it.
        remedy: what the user can do.
    """

    def __init__(self, subject: object, reason: str, remedy: str) -> None:
        self.subject = str(subject)
        super().__init__(self.subject, reason, remedy)  # all three, so that it pickles
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return printable(f"{self.subject}: {self.reason}; {self.remedy}")


class NotATrace(TracediffError):
    """A readable file that is not a PyTorch profiler trace; a folder may contain such files beside traces."""


def did_you_mean(name: str, names: Iterable[str], otherwise: str) -> str:
    """``did you mean aten::mm or aten::bmm?`` with up to three of ``names`` that are near ``name``, the nearest first;
    ``otherwise`` if none is. Upper and lower case are alike.
    """
    from difflib import SequenceMatcher, get_close_matches  # for errors only

    spelling_of: dict[str, str] = {}
    for candidate in names:
        spelling_of.setdefault(candidate[: bounds.REASON].lower(), candidate)
    name = name[: bounds.REASON].lower()
    ratios = {near: SequenceMatcher(None, near, name).ratio() for near in get_close_matches(name, spelling_of)}
    near = [
        spelling_of[match] for match, ratio in ratios.items() if ratio >= max(ratios.values()) - thresholds.SUGGESTED
    ]
    if not near:
        return otherwise
    return f"did you mean {' or '.join(filter(None, (', '.join(near[:-1]), near[-1])))}?"


def whole_number(text: str) -> int | None:
    """The number that ``text`` writes with up to 18 digits 0–9; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def quoted(text: str) -> str:
    """A user's own ``text`` as an error repeats it: in quotes, and cut where it is long."""
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


def printable(text: str) -> str:
    """``text`` on one line, with control and direction-changing characters replaced: names in traces are untrusted."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c in "\n\t\r" else "�" for c in text)
