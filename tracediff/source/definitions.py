"""The definitions in a Python file: what each refers to, and what tells whether it runs other code than before."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from types import CodeType

LARGEST = 1 << 20
"""Bytes of a file that is parsed: the parser takes some hundred times as much memory."""
BODY = "<module>"
LOADER = "DataLoader"
RUNS_BY_ITSELF = ("forward", "setup_context", "backward")
"""Methods that a class runs though nothing names them, beside those with two underscores."""
Block = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, eq=False)
class Definition:
    """A function or method, the body of a class, or a statement of a file.

    Attributes:
        file: its path in the repository. name: ``Model.forward``; of statements what they assign, else ``<module>``.
        first, last: its lines. owner: the class around a method, else empty.
        is_statement: whether it runs when the file does.
        refers: the names and attributes in it. loads: those in what it gives to a DataLoader.
        code: equal where it runs the same: without comments, docstrings, annotations, and names of local variables.
    """

    file: str
    name: str
    first: int
    last: int
    owner: str
    is_statement: bool
    refers: frozenset[str]
    loads: frozenset[str]
    code: Hashable

    @property
    def simple_name(self) -> str:
        """The name by which others refer to it."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class SourceFile:
    """A Python file.

    Attributes:
        path: in the repository. definitions: in their order. imports: what it imports, ``package.module.name``, with a
            dot in front for each level of a relative import.
    """

    path: str
    text: str = field(repr=False)
    definitions: tuple[Definition, ...]
    imports: tuple[str, ...]


def parse(path: str, text: str) -> SourceFile | None:
    """The Python code ``text``; None if it cannot be parsed. It is never run."""
    if len(text) > LARGEST:
        return None
    try:
        tree = ast.parse(text)
        _strip(tree)
        codes = {code.co_firstlineno: code for code in _functions(compile(tree, "<source>", "exec", dont_inherit=True))}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    definitions = tuple(definition for node in tree.body for definition in _of_node(path, node, "", codes))
    return SourceFile(path, text, definitions, tuple(_imports(tree)))


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield module
            yield from (f"{module}{'.' if node.module else ''}{alias.name}" for alias in node.names)


def _strip(tree: ast.Module) -> None:
    """Take out what has no effect on what runs: strings that stand alone, and annotations."""
    for node in ast.walk(tree):
        if isinstance(node, Block | ast.Module):
            left = [inner for inner in node.body if not _is_text(inner)]
            node.body = left or [ast.copy_location(ast.Pass(), inner) for inner in node.body[:1]]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.copy_location(ast.Constant(None), node.annotation)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _functions(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _functions(constant)


def _of_node(file: str, node: ast.stmt, owner: str, codes: dict[int, CodeType]) -> Iterator[Definition]:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    last = node.end_lineno or node.lineno
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        around = _dump([*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)])
        code = around, _meaning(codes[first]) if first in codes else _dump([node])
        yield Definition(file, f"{owner}{node.name}", first, last, owner, False, _names(node), _loaded([node]), code)
    elif isinstance(node, ast.ClassDef):
        name = f"{owner}{node.name}"
        inner = [n for n in node.body if isinstance(n, Block)]
        own = [*node.decorator_list, *node.bases, *node.keywords, *(n for n in node.body if n not in inner)]
        names = frozenset().union(*map(_names, own)) if own else frozenset()
        yield Definition(file, name, first, last, owner, False, names, _loaded(own), _dump(own))
        for method in inner:
            yield from _of_node(file, method, f"{name}.", codes)
    else:
        targets = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        imported = [
            a.asname or a.name for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names
        ]
        name = next(iter([*imported, *targets]), BODY) if not isinstance(node, ast.If | ast.For | ast.With) else BODY
        yield Definition(file, name, first, last, owner, True, _names(node), _loaded([node]), _dump([node]))


def _names(node: ast.AST) -> frozenset[str]:
    """The names, attributes and imported names in ``node``."""
    found = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            found.add(inner.id)
        elif isinstance(inner, ast.Attribute):
            found.add(inner.attr)
        elif isinstance(inner, ast.Import | ast.ImportFrom):
            found |= {alias.name.rpartition(".")[2] for alias in inner.names}
    return frozenset(found - vars(builtins).keys())


def _loaded(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names in the arguments of a DataLoader."""
    calls = (inner for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Call))
    loaders = (call for call in calls if ast.unparse(call.func).rpartition(".")[2] == LOADER)
    return frozenset().union(*(_names(given) for call in loaders for given in (*call.args, *call.keywords)))


def _dump(nodes: list[ast.AST]) -> str:
    return " ".join(ast.dump(node) for node in nodes)


def _meaning(code: CodeType) -> Hashable:
    """What the code does, wherever it stands and whatever its local variables are called."""
    constants = tuple(_meaning(c) if isinstance(c, CodeType) else (type(c).__name__, repr(c)) for c in code.co_consts)
    return code.co_code, constants, code.co_names, len(code.co_freevars), code.co_argcount, code.co_flags
