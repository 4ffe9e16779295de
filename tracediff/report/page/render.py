"""Rendering of the page's templates; all values are escaped."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from tracediff.errors import printable
from tracediff.present.explanation_lines import direction
from tracediff.present.plain_table import LONGEST as LONGEST_CELL

LONGEST = 400
"""Characters of a name in a sentence."""
LONGEST_FIND = 200
"""Characters of a name that a link looks up in a table: its beginning is enough."""


OTHERS = re.compile(r" → | \+ ")
"""What separates the operators of a row."""


def render(template: str, **context: Any) -> str:
    """``template`` of the folder ``templates`` with ``context`` filled in; HTML in it is escaped unless it is `Markup`.

    Raises:
        jinja2.UndefinedError: the template uses a name that ``context`` does not have.
    """
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=PackageLoader("tracediff.report.page"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"text": text, "found_by": found_by, "searched": searched, "direction": direction}
    environment.globals["LONGEST_CELL"] = LONGEST_CELL
    return environment


def text(value: str, longest: int = LONGEST) -> str:
    """``value`` on one line, in its own direction, its middle left out where it is longer than ``longest``."""
    if len(value) > longest:
        value = f"{value[: longest // 2]} … {value[-longest // 2 :]}"
    return printable(value)


def searched(operator: str) -> str:
    """What finds the matched work of a row: its first operator, else its family."""
    if operator.startswith("several "):
        return found_by(operator.split()[1])
    return found_by(OTHERS.split(operator)[0].removesuffix(" kernels"))


def found_by(name: str) -> str:
    """What a link to the row of ``name`` looks for."""
    return printable(name[:LONGEST_FIND])
