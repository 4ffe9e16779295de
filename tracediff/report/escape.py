"""Escaping of names from traces in Markdown."""

from __future__ import annotations

import re

from tracediff.errors import printable

SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&@:]|(?<=www)\.)")
"""What Markdown, HTML or GitHub's links would read as more than text."""


def escaped(text: str) -> str:
    """``text`` so that Markdown and HTML show it as it is."""
    return SPECIAL.sub(lambda m: f"&#{ord(m[1])};" if m[1] in "<>&@|:." else f"\\{m[1]}", printable(text))
