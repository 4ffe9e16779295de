"""The sets that may be read: those given by name, those below one folder, and files dropped on the page; no others,
whatever a URL asks for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from tracediff.aggregate.snapshot import SUFFIX
from tracediff.errors import TracediffError
from tracediff.ingest.discover import NOT_TRACES, RUN, find_traces
from tracediff.ingest.readers import trace_suffixes
from tracediff.load_options import SetOptions
from tracediff_dashboards.uploads import Uploads

MOST_SETS = 1000
MOST_SEARCHED = 50_000
"""Maximum number of files below the folder that are searched for sets."""
REMEDY = "choose a listed set, or start the dashboard with the folder that contains it"


class Sets:
    """The sets that the dashboard may read.

    Attributes:
        given: name → path of the sets given on the command line, as for `load_sets`.
        root: folder below which sets can be selected, None for none.
        options: name → options of a given set. every: options of all other sets.
        uploads: files dropped on the page.
    """

    def __init__(
        self,
        given: Mapping[str, str] | None = None,
        root: str | os.PathLike[str] | None = None,
        *,
        options: Mapping[str, SetOptions] | None = None,
        every: SetOptions | None = None,
    ) -> None:
        self.given = dict(given or {})
        self.options = dict(options or {})
        self.every = every or SetOptions()
        self.root = Path(root).resolve() if root is not None else None
        self.uploads = Uploads()

    def names(self) -> list[str]:
        """Names of the sets: those given, then folders, snapshots and single files below the root, sorted by path."""
        below = []
        for name in filter(is_choosable, _sets_below(self.root)) if self.root else ():
            if name.isprintable():  # other names do not work in a URL
                below.append(name)
            if len(below) == MOST_SETS:
                break
        return [*self.given, *sorted(below)]

    def where(self, name: str) -> str:
        """The path of the set called ``name``, as for `load_sets`.

        Raises:
            TracediffError: there is no such set, or it would read files outside the folder.
        """
        if name in self.given:
            return self.given[name]
        uploaded = self.uploads.path(name)
        if uploaded is not None:
            return str(uploaded)
        if self.root is None:
            raise TracediffError(quoted(name), "no such set in this dashboard", REMEDY)
        return str(self._inside(name))

    def _inside(self, name: str) -> Path:
        """The path of a set below the root; checks that links do not lead to files outside."""
        assert self.root is not None
        plain = PurePosixPath(name)
        try:
            is_plain = not plain.is_absolute() and ".." not in plain.parts and plain.as_posix() == name
            path = (self.root / name).resolve(strict=True) if is_plain else None
        except (OSError, ValueError, RuntimeError):  # absent, a null byte, a loop of links
            path = None
        if path is None or not self._is_open(path) or not (path.is_dir() or path.is_file()):
            raise TracediffError(quoted(name), "no such set below the folder", REMEDY)
        read = [file.path for file in find_traces(path)] + [os.path.join(path, "manifest.json")]
        if not all(self._is_open(Path(member).resolve()) for member in read):
            raise TracediffError(
                quoted(name), "contains a link to a file outside the folder", "replace the link by the file"
            )
        return path

    def _is_open(self, path: Path) -> bool:
        """Whether a resolved path is below the root and not in a hidden folder."""
        assert self.root is not None
        return path.is_relative_to(self.root) and not any(
            part.startswith(".") for part in path.relative_to(self.root).parts
        )


def is_choosable(value: str) -> bool:
    """Whether a value can be an option of a dropdown; ``__proto__`` breaks its index in JavaScript."""
    return "__proto__" not in value


def quoted(name: str) -> str:
    """A name from a URL, quoted and shortened for an error message."""
    return repr(name if len(name) <= 80 else f"{name[:80]}…")


def _sets_below(root: Path) -> Iterator[str]:
    """Names of the sets below ``root``: folders with traces (or run folders), and files that are sets themselves."""
    seen, searched = set(), 0
    for parent, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        files = sorted(
            n
            for n in names
            if not n.startswith(".") and not n.endswith(NOT_TRACES) and n.endswith((*trace_suffixes(), ".zip", SUFFIX))
        )
        traces = [n for n in files if n.endswith(trace_suffixes())]
        folder = Path(parent)
        holder = folder.parent if RUN.match(folder.name) and folder != root else folder
        if traces and holder not in seen:
            seen.add(holder)
            yield holder.relative_to(root).as_posix()
        for name in files:
            if (name not in traces or len(traces) > 1) and (folder / name).is_file():
                yield (folder / name).relative_to(root).as_posix()
        searched += len(names)
        if searched > MOST_SEARCHED:
            return
