"""Errors that a user can act on: the input at fault, what is wrong and what to do."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

from tracediff import bounds, thresholds
from tracediff.patterns import late

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

COMMAND = late(r"##(?=[\w.-]*\[)")
"""How commands in the logs of Azure Pipelines, TeamCity and older GitHub Actions begin, anywhere in a line."""


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


LIST_NAMES = "list the names with compare --by kernel or --device cpu"
SUBJECTS = {"NAME": "name", "--": "arguments"}
PHRASES = {
    "see tracediff collect --help": "see help(tracediff.collect)",
    "FILE.py:make_step or --workload NAME": "a target or a workload",
    "; --list lists the workloads": "",
    " (--timeout)": "",
    " after --": "",
    "see --list-backends": "see torch.compiler.list_backends()",
    LIST_NAMES: 'list the names with by("kernel") or ops',
    "--source REPO --commit ctrl=BEFORE --commit test=AFTER": "source=REPO, commits=(BEFORE, AFTER)",
    "--source REPO": "source=REPO",
    "--device cpu": 'device="cpu"',
    "--jobs 1": "jobs=1",
}
ARGUMENTS = {name: f"{name}s" for name in ("capture", "commit", "limit", "rank", "step", "table", "variant")}
ARGUMENTS |= {name: f"{name}=True" for name in ("force", "overwrite")}
"""Words of the command line, and options → what the same is called in Python; any other option has the same name."""
OPTION = re.compile(r"`[^`]*`|(?<![\w/.-])--(?P<name>[a-z]+(?:-[a-z]+)*)")
"""An option; or a whole command, which stays one."""


def in_python(text: str) -> str:
    """``text`` of an error with the names that arguments have in Python in place of options."""
    for phrase, words in PHRASES.items():
        text = text.replace(phrase, words)
    return OPTION.sub(lambda m: ARGUMENTS.get(m["name"], m["name"].replace("-", "_")) if m["name"] else m[0], text)


def speaks_python(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A function of the library, whose errors name its arguments, not the options of the command line."""

    @wraps(function)
    def called(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except TracediffError as error:
            error.subject = SUBJECTS.get(error.subject) or in_python(error.subject)
            error.reason, error.remedy = in_python(error.reason), in_python(error.remedy)
            error.args = (error.subject, error.reason, error.remedy)
            raise

    return called


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


def check_choice(choice: str, choices: Iterable[str], subject: str, reason: str, otherwise: str) -> None:
    """Check that ``choice`` is one of ``choices``.

    Raises:
        TracediffError: it is none, for ``reason``; with those that are near it, else with ``otherwise``.
    """
    if choice not in choices:
        raise TracediffError(subject, reason, did_you_mean(choice, choices, otherwise))


def whole_number(text: str) -> int | None:
    """The number that ``text`` writes with up to 18 digits 0–9; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def number_of(variable: str, default: int) -> int:
    """The whole number in an environment variable; ``default`` if it is not set.

    Raises:
        TracediffError: it is anything else.
    """
    text = os.environ.get(variable, str(default))
    number = whole_number(text)
    if number is None:
        raise TracediffError(f"environment variable {variable}", f"{quoted(text)} is not a whole number", "unset it")
    return number


def quoted(text: str) -> str:
    """A user's own ``text`` as an error repeats it: in quotes, and cut where it is long."""
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


def printable(text: str) -> str:
    """``text`` on one line, with control and direction-changing characters replaced: names in traces are untrusted."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c in "\n\t\r" else "�" for c in text)


def log_line(line: str) -> str:
    """``line`` without workflow commands, which continuous integration runs when it finds them in a log: ``::error::``
    at the start of a line, ``##[error]`` anywhere.
    """
    line = COMMAND.sub("# #", line)
    return line.replace("::", ": :", 1) if line.lstrip().startswith("::") else line
