"""The Python code of one commit that the work runs for: the definitions in its files, what each refers to, and which of
them run other code than before.
"""

from __future__ import annotations

import ast
import builtins
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cached_property
from pathlib import PurePosixPath
from types import CodeType
from typing import TypeVar

from tracediff import bounds
from tracediff.arrays import group_by
from tracediff.ingest.model.names import LINE_OF_CODE
from tracediff.source.revisions import Revisions
from tracediff.structs import FrozenStruct

LARGEST = 1 << 20
"""Bytes of a file that is parsed: the parser takes some hundred times as much memory."""
BODY = "<module>"
LOADER = "DataLoader"
RUNS_BY_ITSELF = ("forward", "setup_context", "backward")
"""Methods that a class runs though nothing names them, beside those with two underscores."""
Node = TypeVar("Node", bound=Hashable)
Block = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Definition(FrozenStruct, eq=False):
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


class SourceFile(FrozenStruct):
    """A Python file.

    Attributes:
        path: in the repository. definitions: in their order. imports: what it imports, ``package.module.name``, with a
            dot in front for each level of a relative import.
    """

    path: str
    text: str
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
    """Take out what has no effect on what runs: strings that are statements, and annotations."""
    for node in ast.walk(tree):
        if isinstance(node, Block | ast.Module):
            statements = [n for n in node.body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
            node.body = statements or [ast.copy_location(ast.Pass(), inner) for inner in node.body[:1]]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.copy_location(ast.Constant(None), node.annotation)


def _functions(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _functions(constant)


def _of_node(file: str, node: ast.stmt, owner: str, codes: dict[int, CodeType]) -> Iterator[Definition]:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    last = node.end_lineno or node.lineno
    own: list[ast.AST] = [node]
    inner: list[Block] = []
    if isinstance(node, ast.ClassDef):
        inner = [n for n in node.body if isinstance(n, Block)]
        own = [*node.decorator_list, *node.bases, *node.keywords, *(n for n in node.body if n not in inner)]
    code: Hashable = _dump(own)
    if first in codes and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        around = [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
        code = _dump(around), _meaning(codes[first])
    name = f"{owner}{node.name}" if isinstance(node, Block) else _assigned(node)
    names = frozenset[str]().union(*map(_names, own))
    yield Definition(file, name, first, last, owner, not isinstance(node, Block), names, _loaded(own), code)
    for method in inner:
        yield from _of_node(file, method, f"{name}.", codes)


def _assigned(node: ast.stmt) -> str:
    """The first name that a statement imports or assigns; BODY where it does more, or neither."""
    if isinstance(node, ast.If | ast.For | ast.With):
        return BODY
    imports = [n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)]
    imported = [alias.asname or alias.name for statement in imports for alias in statement.names]
    targets = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return next(iter([*imported, *targets]), BODY)


def _names(node: ast.AST) -> frozenset[str]:
    """The names, attributes and imported names in ``node``."""
    names = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            names.add(inner.id)
        elif isinstance(inner, ast.Attribute):
            names.add(inner.attr)
        elif isinstance(inner, ast.Import | ast.ImportFrom):
            names |= {alias.name.rpartition(".")[2] for alias in inner.names}
    return frozenset(names - vars(builtins).keys())


def _loaded(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names in the arguments of a DataLoader."""
    calls = (inner for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Call))
    loaders = (call for call in calls if ast.unparse(call.func).rpartition(".")[2] == LOADER)
    return frozenset().union(*(_names(argument) for call in loaders for argument in (*call.args, *call.keywords)))


def _dump(nodes: Iterable[ast.AST]) -> str:
    return " ".join(ast.dump(node) for node in nodes)


def _meaning(code: CodeType) -> Hashable:
    """What the code does, independent of its place and of the names of its local variables."""
    constants = tuple(_meaning(c) if isinstance(c, CodeType) else (type(c).__name__, repr(c)) for c in code.co_consts)
    return code.co_code, constants, code.co_names, len(code.co_freevars), code.co_argcount, code.co_flags


def reached(start: Iterable[Node], following: Callable[[Node], Iterable[Node]]) -> dict[Node, None]:
    """``start`` and all that is reached from it by ``following``, the nearest first."""
    nodes = dict.fromkeys(start)
    waiting = deque(nodes)
    while waiting:
        new = dict.fromkeys(node for node in following(waiting.popleft()) if node not in nodes)
        nodes |= new
        waiting += new
    return nodes


DATASETS = frozenset(("Dataset", "IterableDataset"))


class Code:
    """The files of one commit that hold ``frames``, those in ``others``, and what these import.

    Args:
        side: 0 for the commit of control, 1 for that of test.
        frames: lines of code as in traces, ``model.py(12): forward``.
    """

    def __init__(self, revisions: Revisions, side: int, frames: Iterable[str], others: Iterable[str]) -> None:
        self._revisions, self._side = revisions, side
        paths = sorted(path for path in revisions.files[side] if path.endswith(".py"))
        self._named = group_by(paths, lambda path: PurePosixPath(path).name)
        self.files: dict[str, SourceFile] = {}
        self._imports: dict[str, list[str]] = {}
        matches = (LINE_OF_CODE.fullmatch(frame) for frame in frames)
        frame_paths = {path for m in matches if m for path in self._named[m["file"]]}
        reached([*sorted(frame_paths), *sorted(set(others) & set(paths))], self._read)

    def _read(self, path: str) -> Iterable[str]:
        """Read a file, unless there are too many; the files that it imports."""
        text = self._revisions.text(self._side, path) if len(self.files) < bounds.SOURCE_FILES else None
        file = parse(path, text) if text is not None else None
        if file is None:
            return ()
        self.files[path] = file
        self._imports[path] = list(dict.fromkeys(self._imported(file)))
        return self._imports[path]

    def _imported(self, file: SourceFile) -> Iterator[str]:
        """The paths of the files that ``file`` imports."""
        folder = PurePosixPath(file.path).parent
        for name in file.imports:
            levels = len(name) - len(name.lstrip("."))
            parts = "/".join(filter(None, name.lstrip(".").split(".")))
            around = str(folder.parents[levels - 2] if levels > 1 else folder) if levels else None
            for ending in (f"{parts}.py", f"{parts}/__init__.py"):
                for path in self._named[PurePosixPath(ending).name]:
                    if around is not None:
                        if path == str(PurePosixPath(around) / ending):
                            yield path
                    elif path == ending or path.endswith(f"/{ending}"):
                        yield path

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """All of them."""
        return tuple(d for file in self.files.values() for d in file.definitions)

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], list[Definition]]:
        return group_by(self.definitions, lambda definition: (definition.file, definition.simple_name))

    @cached_property
    def _methods(self) -> dict[str, list[Definition]]:
        methods = (definition for definition in self.definitions if definition.owner)
        return group_by(methods, lambda method: method.simple_name)

    def of_frame(self, frame: str) -> Definition | None:
        """The definition that a frame runs; None where no file, or more than one, has that function at that line."""
        match = LINE_OF_CODE.fullmatch(frame)
        if match is None:
            return None
        line, function = int(match["line"]), match["function"]
        files = [self.files[path] for path in self._named[match["file"]] if path in self.files]
        around = (d for file in files for d in file.definitions if d.first <= line <= d.last)
        innermost = {d.file: d for d in around if self._fits(d, function)}
        return innermost.popitem()[1] if len(innermost) == 1 else None

    def _fits(self, definition: Definition, function: str) -> bool:
        """Whether ``function`` is the definition, or is defined in it."""
        if definition.is_statement or function == BODY:
            return definition.is_statement and function == BODY
        if function == definition.simple_name:
            return True
        lines = self.files[definition.file].text.splitlines()[definition.first - 1 : definition.last]
        return function.startswith("<") or any(f"def {function}(" in line for line in lines)

    def refers(self, definition: Definition) -> Iterator[Definition]:
        """The definitions that ``definition`` refers to, or that run with it."""
        yield from self._named_in(definition, definition.refers)
        for other in self.files[definition.file].definitions:  # what a class runs by itself, and the class of a method
            if other.owner == f"{definition.name}." and _runs_by_itself(other):
                yield other
            if definition.owner and other.name == definition.owner[:-1]:
                yield other

    def loading(self) -> Iterator[Definition]:
        """The definitions of what loads data: datasets, and what is given to a DataLoader."""
        for definition in self.definitions:
            if definition.refers & DATASETS and not definition.is_statement:
                yield definition
            yield from self._named_in(definition, definition.loads)

    def _named_in(self, definition: Definition, names: Iterable[str]) -> Iterator[Definition]:
        for name in names:
            here = [d for d in self._by_name[definition.file, name] if d is not definition]
            for path in self._imports[definition.file]:
                here += self._by_name[path, name]
            alike = self._methods[name]
            yield from here or (alike if len(alike) <= bounds.METHODS_ALIKE else ())

    def importing(self, paths: Iterable[str]) -> list[Definition]:
        """What runs when the files at ``paths`` do, and the files that they import: their statements."""
        files = [self.files[p] for p in reached(paths, lambda p: self._imports.get(p, ())) if p in self.files]
        return [d for file in files for d in file.definitions if d.is_statement and not d.owner]


def _runs_by_itself(method: Definition) -> bool:
    name = method.simple_name
    return name in RUNS_BY_ITSELF or (name.startswith("__") and name.endswith("__")) or method.is_statement
