"""What the words of the product mean: the page of the glossary is written from them, and tooltips show them.

`terms.toml` has them by section. Their texts are Markdown, whose links lead from docs/ on.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources

from tracediff.profile.events.step_states import LABELS

MARKUP = re.compile(r"<!--[^<>]*-->|\[([^\[\]]*)\]\([^()\s]*\)|`")
LINKED_PAGE = re.compile(r" \(\[[^\[\]]*\]\([^()\s]*\)\)")


@cache
def sections() -> dict[str, dict[str, str]]:
    """Section → the names of each term, separated by commas → what it means, in Markdown."""
    return tomllib.loads(resources.files("tracediff.present").joinpath("terms.toml").read_text("utf-8"))


@cache
def _meanings() -> dict[str, str]:
    meanings: dict[str, str] = {}
    for terms in sections().values():
        for names, text in terms.items():
            # `op` is a state and a level.
            meanings |= {n: f"{meanings[n]}; {text}" if n in meanings else text for n in names.split(", ")}
    return meanings | {label: meanings[state] for state, label in LABELS.items()}


def meaning(word: str) -> str:
    """What ``word`` means, as plain text: a term, the label of a state, or a term and of which side, ``count, test``;
    empty for any other word.
    """
    meanings = _meanings()
    text = LINKED_PAGE.sub("", meanings.get(word) or meanings.get(word.rpartition(", ")[0], ""))
    return MARKUP.sub(r"\1", text)
