"""How names from traces enter each kind of text, so that whoever reads it finds a name and no markup, link, formula or
command. Terminals and logs: `tracediff.errors`. HTML: the templates. JSON and XML: their libraries.
"""

import re
from itertools import groupby
from typing import Any
from unicodedata import normalize

from tracediff.errors import printable
from tracediff.patterns import late

ACTIVE = late(
    r"[\\`*_\[\]<>#~$&@]"  # markup, HTML, formulas; links to users, whom GitHub notifies, and to issues
    r"|::|:(?=[\w+-]+:)"  # names of C++; emoji
    r"|//|(?<=www)\.|(?<=\w)\.(?=[^\W\d])"  # addresses
    r"|\bgh-(?=\d)|\b(?=\d*[a-f])[0-9a-f]{7,40}\b",  # issues and commits
    re.IGNORECASE,
)
"""What Markdown, GitHub or Slack would read as more than text, in a word."""
MARKER = late(r"[-+=]+|\d+[.)]")
"""A first word that would begin a list, or underline a heading."""
QUOTATION = late(r"\(?`[^`]+`\)?[.,;:]?(?= |\Z)")
"""Code in backticks, as our sentences contain it: it is code in Markdown, too."""
TOKEN = late(rf"{QUOTATION.pattern}|[^ ]+")
BACKTICKS = late(r"`+")
READ_IN_CODE = late(r"<(?=[!@#])|#(?=#[\w.-]*\[)")
"""What is read in code, too: Slack's mentions, which may notify a whole channel, and commands in logs."""
BREAK = "\u200b"
"""A space without width."""
FORMULA = ("=", "+", "-", "@")
NUMBER = late(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def escaped(text: str) -> str:
    """``text`` as Markdown that shows it as it is on GitHub, in Slack and where nothing renders it: words that would be
    more than text are in code spans, and bars, which would end a cell of a table, have a backslash.
    """
    line = READ_IN_CODE.sub(rf"\g<0>{BREAK}", " ".join(printable(text).split()))
    return r"\|".join(map(_escaped, line.split("|")))


def _escaped(text: str) -> str:
    """Escapes ``text``, which has no bar."""
    runs = []
    for in_code, words in groupby(enumerate(TOKEN.findall(text)), lambda word: _is_active(*word)):
        run = " ".join(word for _, word in words)
        runs.append(_code_span(run) if in_code else run)
    before, after = (" " if end == " " else "" for end in (text[:1], text[-1:]))
    return f"{before}{' '.join(runs)}{after}"


def _is_active(position: int, word: str) -> bool:
    """Whether the word at this position would be more than text."""
    if position == 0 and MARKER.fullmatch(word):
        return True
    return ACTIVE.search(word) is not None and not QUOTATION.fullmatch(word)


def _code_span(words: str) -> str:
    """``words`` in a code span, without the punctuation and brackets around them."""
    name = words.rstrip(",;:.") or words
    opening = "(" if len(name) > 1 and name.startswith("(") else ""
    name = name[len(opening) :]
    if len(name) > 1 and name.endswith(")") and name.count(")") > name.count("("):
        name = name[:-1]
    after = words[len(opening) + len(name) :]
    marks = "`" * (1 + max(map(len, BACKTICKS.findall(name)), default=0))
    space = " " if "`" in (name[0], name[-1]) else ""
    return f"{opening}{marks}{space}{name}{space}{marks}{after}"


def csv_cell(value: Any) -> Any:
    """``value`` for a CSV file: text on one line, after a ``'`` where a spreadsheet would take it for a formula, also
    if spaces come first or its sign is full-width.
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    first = normalize("NFKC", text.lstrip()[:1])
    return f"'{text}" if first in FORMULA and not NUMBER.fullmatch(text) else text
