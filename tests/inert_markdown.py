"""Markdown as GitHub reads it: what it shows, provided that no name in it is more than text."""

import re

from markdown_it import MarkdownIt

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
TEXT = {"text", "text_special", "code_inline", "strong_open", "strong_close", "image"}
BLOCKS = {"paragraph", "heading", "list_item", "bullet_list", "inline", "table", "thead", "tbody", "tr", "th", "td"}
FOLDED = re.compile(r"<summary>[^<]*</summary>|</?details>|\s")
LINKED = re.compile(
    r"(?<![\w/])@[a-z0-9][\w-]*"  # users and teams, whom GitHub notifies
    r"|#\d+\b|\bgh-\d+|\b(?=\d*[a-f])[0-9a-f]{7,40}\b"  # issues, pull requests, commits
    r"|\w+://|\bwww\.|\w\.[^\W\d]{2,}"  # addresses
    r"|:[\w+-]+:|\$[^$]+\$",  # emoji, formulas
    re.IGNORECASE,
)
"""What GitHub or Slack makes of the text outside code in a page."""


def parsed(source: str) -> list[str]:
    """The text of each cell, paragraph, heading and item that ``source`` shows, provided that there are no links, no
    HTML but what folds sections, no emphasis but bold, and nothing that GitHub would link.
    """
    shown = []
    for block in PARSER.parse(source):
        kind = block.type.removesuffix("_open").removesuffix("_close")
        assert kind in BLOCKS or (kind == "html_block" and not FOLDED.sub("", block.content)), block
        text = ""
        for token in (child for part in block.children or () for child in (part, *(part.children or ()))):
            assert token.type in TEXT, token
            if token.type not in ("code_inline", "image"):
                assert not LINKED.search(token.content), token
            text += token.content if token.type != "image" else ""
        shown += [text.replace("\u200b", "").strip()] if block.type == "inline" else []
    return shown
