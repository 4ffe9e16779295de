"""Variables of the product are named by nouns, not by a participle or a preposition."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FORBIDDEN = re.compile(
    "above|among|asked|at|behind|below|beside|beyond|called|chosen|drawn|found|given|gone|got|held|into|kept|known|made|"
    "met|named|of|on|said|seen|shown|taken|told|wanted"
)


def bindings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of each variable and argument; fields belong to interfaces."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            if not (isinstance(node, ast.AnnAssign) and node.simple and node.value is None):
                yield child.lineno, child.id
        elif isinstance(child, ast.arg):
            yield child.lineno, child.arg
        yield from bindings(child)


@pytest.mark.parametrize("folder", ["tracediff", "cli", "dashboards"])
def test_variables_are_named_by_nouns(folder):
    verbs = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, name in bindings(ast.parse(path.read_text()))
        if FORBIDDEN.fullmatch(name)
    ]
    assert verbs == []
