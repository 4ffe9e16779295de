"""Worktrees of single commits below the system's temporary folder: the user's own is not touched."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracediff.git import Repository
from tracediff.process.temporary import is_left


@contextmanager
def worktree(repository: Repository, commit: str, parent: Path) -> Iterator[Path]:
    """A new worktree of ``commit`` in the temporary folder ``parent``, removed at the end.

    Raises:
        TracediffError: git cannot make it.
    """
    place = parent / commit
    try:
        repository.run("worktree", "add", "--quiet", "--detach", str(place), commit)
        yield place
    finally:
        _remove(repository, place)


def remove_left_worktrees(repository: Repository) -> None:
    """Remove the worktrees of killed processes, below whichever temporary folder they are."""
    for line in (repository.ask("worktree", "list", "--porcelain") or "").splitlines():
        place = Path(line.removeprefix("worktree "))
        if line.startswith("worktree ") and is_left(place.parent.name):
            _remove(repository, place)


def _remove(repository: Repository, place: Path) -> None:
    """Twice ``--force``: it is changed, and locked if git was killed while it made it."""
    shutil.rmtree(place, ignore_errors=True)
    repository.ask("worktree", "remove", "--force", "--force", str(place))
