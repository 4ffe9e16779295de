"""The options of commands that say which changed lines the changed work runs for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracediff_cli.options.groups import option

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison


@dataclass(frozen=True)
class Source:
    """A folder in a repository, None if nobody asked, and the commits of both sides, None for those recorded."""

    folder: Path | None
    commits: tuple[str, str] | None

    def explain(self, comparison: Comparison) -> Comparison:
        """``comparison`` with the changed lines, if asked for."""
        if self.folder is None:
            return comparison
        from tracediff.source.commits import with_changed_code

        return with_changed_code(comparison, self.folder, self.commits)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--source`` and ``--commits``; the command gets them as ``code``."""

    @option(
        "--source",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        metavar="REPO",
        help="Say which changed lines, between both sides' commits in this repository, the changed work runs for.",
    )
    @option("--commits", nargs=2, metavar="BEFORE AFTER", help="With --source: the commits [default: those recorded].")
    @wraps(command)
    def with_source(source: Path | None, commits: tuple[str, str] | None, **others: Any) -> Any:
        if commits and not source:
            raise click.UsageError("--commits needs --source REPO")
        return command(code=Source(source, commits), **others)

    return with_source
