"""Patterns over names from traces, which are untrusted: none takes more than linear time, whatever the name.

A search begins anew at each character, so ``first.*second`` reads the rest of the name once for every ``first``.
`followed` is the linear form; ``tests/test_patterns.py`` holds all patterns to it.
"""

from __future__ import annotations

NAMES_KEPT = 1 << 18
"""Names whose answers a function keeps: more than a pair of traces has, or each table would search them anew."""


def followed(first: str, second: str, gap: str = r"\w") -> str:
    r"""A pattern found exactly where ``first``, any number of ``gap`` and ``second`` follow each other, but found from
    the last ``first`` on: no character between two of them is read for both.
    """
    return rf"(?:{first})(?:(?!{first}){gap})*?(?:{second})"
