"""The Python code of one commit that the work runs for: its definitions, found from the files of the frames on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import PurePosixPath

from tracediff.ingest.frames import LINE_OF_CODE
from tracediff.source.definitions import BODY, RUNS_BY_ITSELF, Definition, SourceFile, parse
from tracediff.source.revisions import Revisions

MOST_FILES = 400
"""Files of a commit that are parsed: 1–10 ms each."""
MOST_ALIKE = 5
"""Methods of one name that an attribute may mean; a name that more have, such as ``update``, means none of them."""
DATASETS = frozenset(("Dataset", "IterableDataset"))


class Code:
    """The files of one commit that hold ``frames``, those in ``others``, and what these import.

    Args:
        side: 0 for the commit of control, 1 for that of test.
        frames: lines of code as in traces, ``model.py(12): forward``.
    """

    def __init__(self, revisions: Revisions, side: int, frames: Iterable[str], others: Iterable[str]) -> None:
        self._revisions, self._side = revisions, side
        self._paths = sorted(path for path in revisions.files[side] if path.endswith(".py"))
        self._named: dict[str, list[str]] = defaultdict(list)
        for path in self._paths:
            self._named[PurePosixPath(path).name].append(path)
        self.files: dict[str, SourceFile] = {}
        self._imports: dict[str, list[str]] = {}
        matches = (LINE_OF_CODE.fullmatch(frame) for frame in frames)
        held = {path for m in matches if m for path in self._named[m["file"]]}
        self._read([*sorted(held), *sorted(set(others) & set(self._paths))])

    def _read(self, paths: Iterable[str]) -> None:
        waiting, seen = list(paths), set(paths)
        while waiting and len(self.files) < MOST_FILES:
            path = waiting.pop(0)
            text = self._revisions.text(self._side, path)
            file = parse(path, text) if text is not None else None
            if file is None:
                continue
            self.files[path] = file
            self._imports[path] = list(dict.fromkeys(self._imported(file)))
            new = [found for found in self._imports[path] if found not in seen]
            seen |= set(new)
            waiting += new

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
        out: dict[tuple[str, str], list[Definition]] = defaultdict(list)
        for definition in self.definitions:
            out[definition.file, definition.simple_name].append(definition)
        return out

    @cached_property
    def _methods(self) -> dict[str, list[Definition]]:
        out: dict[str, list[Definition]] = defaultdict(list)
        for definition in self.definitions:
            if definition.owner:
                out[definition.simple_name].append(definition)
        return out

    def of_frame(self, frame: str) -> Definition | None:
        """The definition that a frame runs; None where no file, or more than one, has that function at that line."""
        match = LINE_OF_CODE.fullmatch(frame)
        if match is None:
            return None
        line, function = int(match["line"]), match["function"]
        found = []
        for path in self._named[match["file"]]:
            if path in self.files:
                found += [d for d in self.files[path].definitions if d.first <= line <= d.last]
        fitting = [d for d in found if self._fits(d, function)]
        innermost = {d.file: d for d in fitting}
        return next(iter(innermost.values())) if len(innermost) == 1 else None

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
            yield from here or (alike if len(alike) <= MOST_ALIKE else ())

    def importing(self, paths: Iterable[str]) -> list[Definition]:
        """What runs when the files at ``paths`` do, and the files that they import: their statements."""
        seen, out = set(paths), []
        waiting = list(seen)
        while waiting:
            here = waiting.pop()
            if here in self.files:
                out += [d for d in self.files[here].definitions if d.is_statement and not d.owner]
                new = [p for p in self._imports[here] if p not in seen]
                seen |= set(new)
                waiting += new
        return out


def _runs_by_itself(method: Definition) -> bool:
    name = method.simple_name
    return name in RUNS_BY_ITSELF or (name.startswith("__") and name.endswith("__")) or method.is_statement
