"""Recording sets of commits: the user's command, in a worktree of the commit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tracediff.aggregate.traceset import TraceSet
from tracediff.engine import load_sets
from tracediff.errors import TracediffError, printable
from tracediff.git import environment
from tracediff.process.group import run_group

OUT = "{out}"
"""In the command: the folder that it writes the set to."""
LONGEST = 200
"""Characters of the command's last line in a reason."""


class NotRecordedError(Exception):
    """The command failed in a commit, or wrote no set; the message names the commit, and why."""


@dataclass(frozen=True)
class CommitRecorder:
    """Records sets of commits.

    Attributes:
        command: what records a set into the folder ``{out}``, in a worktree. folder: for what it writes.
        inside: the folder of the worktree in which it runs, relative.
    """

    command: Sequence[str]
    folder: Path
    inside: str

    def record(self, worktree: Path, label: str) -> TraceSet:
        """A new set of the commit in ``worktree``.

        Raises:
            NotRecordedError: the command failed there, or wrote no set.
        """
        place = worktree / self.inside
        if not place.is_dir():
            raise NotRecordedError(f"{label} has no folder {self.inside}")
        with TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as made:
            out = Path(made, "set")
            code, last_line = self._run(place, out, Path(made, "log"))
            if code:
                raise NotRecordedError(f"in {label} the command failed with exit code {code} ({last_line})")
            try:
                (traces,) = load_sets([_variant(out)])
            except TracediffError as error:
                raise NotRecordedError(f"in {label} the command wrote no set ({error})") from None
        traces.label = label
        return traces

    def _run(self, place: Path, out: Path, log: Path) -> tuple[int, str]:
        """(exit code of the command in ``place``, the last line that it wrote, in words if none)."""
        command = [part.replace(OUT, os.fspath(out)) for part in self.command]
        with log.open("wb") as written:
            code = run_group(command, place, environment(), written)
        return code, printable(_last_line(log)) or "no output"


def _last_line(log: Path) -> str:
    with log.open("rb") as written:
        written.seek(max(log.stat().st_size - 4 * LONGEST, 0))
        return "".join(written.read().decode(errors="replace").strip().splitlines()[-1:])[:LONGEST]


def _variant(out: Path) -> Path:
    """The set in ``out``: of a collection its only variant."""
    inside = [path for path in sorted(out.iterdir()) if (path / "manifest.json").is_file()] if out.is_dir() else []
    return inside[0] if len(inside) == 1 else out
