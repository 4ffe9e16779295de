"""The report's templates as components, so that what both show is laid out once."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import starmap
from typing import Any

from dash import dcc, html

from tracediff.report.page.html import render


class _Parser(HTMLParser):
    """Makes components of elements; texts stay texts, whatever they contain.

    Attributes:
        children: of each element that is open, the outermost first.
    """

    def __init__(self) -> None:
        super().__init__()
        self.children: list[list[Any]] = [[]]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kind: Any = dcc.Link if tag == "a" else getattr(html, tag.capitalize())
        children: list[Any] = []
        self.children[-1].append(kind(children, **dict(starmap(_property, attrs))))
        self.children.append(children)

    def handle_endtag(self, _tag: str) -> None:
        self.children.pop()

    def handle_data(self, data: str) -> None:
        if data.strip() or "\n" not in data:  # not what only indents elements
            self.children[-1].append(data)


def rendered(template: str, **context: Any) -> list[Any]:
    """The elements of ``template`` with ``context`` filled in, as components; links are those of the dashboard."""
    parser = _Parser()
    parser.feed(render(template, **context))
    parser.close()
    return parser.children[0]


def _property(attribute: str, value: str | None) -> tuple[str, Any]:
    """The property of a component that has this attribute."""
    if attribute == "style":
        rules = (rule.split(":") for rule in (value or "").split(";"))
        return attribute, {name.replace("margin-left", "marginLeft"): size for name, size in rules}
    return "className" if attribute == "class" else attribute, True if value is None else value
