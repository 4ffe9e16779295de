"""The sets that may be read: those given by name, those below one folder, and files dropped on the page; no others,
whatever a URL asks for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import islice

from tracediff.errors import TracediffError, quoted
from tracediff.load_options import SetOptions
from tracediff.set_folder import REMEDY, SetFolder
from tracediff_dashboards.reading.uploads import Uploads

MOST_SETS = 1000


class Sets:
    """The sets that the dashboard may read.

    Attributes:
        given: name → path of the sets given on the command line, as for `load_sets`.
        folder: the one below which sets can be selected, None for none.
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
        self.folder = SetFolder(root) if root is not None else None
        self.uploads = Uploads()

    def names(self) -> list[str]:
        """Names of the sets: those given, then folders, snapshots and single files below the root, sorted by path."""
        below = filter(is_choosable, self.folder.names() if self.folder else ())
        return [*self.given, *sorted(islice(below, MOST_SETS))]

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
        if self.folder is None:
            raise TracediffError(quoted(name), "no such set in this dashboard", REMEDY)
        return str(self.folder.path(name))


def is_choosable(value: str) -> bool:
    """Whether a value can be an option of a dropdown; ``__proto__`` breaks its index in JavaScript."""
    return "__proto__" not in value
