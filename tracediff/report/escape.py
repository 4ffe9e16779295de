"""How names from traces enter each kind of text, so that whoever reads it finds a name and no markup, link, formula or
command. Terminals: `tracediff.errors.printable`. HTML: the templates. JSON and XML: their libraries.
"""

from __future__ import annotations

import re
from typing import Any
from unicodedata import normalize

from tracediff.errors import printable

SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&@:\u200b]|(?<=www)\.)")
"""What Markdown, HTML or GitHub's links would read as more than text."""
LINKED = re.compile(r"@(?=\w)|#(?=\d+\b)|\bgh-(?=\d)|\b(?=\d*[a-f])[0-9a-f]{7,40}\b", re.IGNORECASE)
"""What GitHub links in the finished page, where characters are no longer escaped: the signs before users (whom it
notifies) and issues, and commits.
"""
SHORTEST_COMMIT = 7
BREAK = "\u200b"
"""A space without width, which ends such a link."""
COMMAND = re.compile(r"##(?=[\w.-]*\[)")
"""How commands in the logs of Azure Pipelines, TeamCity and older GitHub Actions begin, anywhere in a line."""
FORMULA = ("=", "+", "-", "@")
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def escaped(text: str) -> str:
    """``text`` so that Markdown and HTML show it as it is, and GitHub links nothing in it."""
    unlinked = LINKED.sub(_broken, printable(text))
    return SPECIAL.sub(lambda m: f"&#{ord(m[1])};" if m[1] in f"<>&@|:.{BREAK}" else f"\\{m[1]}", unlinked)


def _broken(linked: re.Match[str]) -> str:
    found, most = linked[0], SHORTEST_COMMIT - 1
    return found + BREAK if len(found) <= most else BREAK.join(found[k : k + most] for k in range(0, len(found), most))


def csv_cell(value: Any) -> Any:
    """``value`` for a CSV file: text on one line, after a ``'`` where a spreadsheet would take it for a formula, also
    if spaces come first or its sign is full-width.
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    first = normalize("NFKC", text.lstrip()[:1])
    return f"'{text}" if first in FORMULA and not NUMBER.fullmatch(text) else text


def log_line(line: str) -> str:
    """``line`` without workflow commands, which continuous integration runs when it finds them in a log: ``::error::``
    at the start of a line, ``##[error]`` anywhere.
    """
    line = COMMAND.sub("# #", line)
    return line.replace("::", ": :", 1) if line.lstrip().startswith("::") else line
