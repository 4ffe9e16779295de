"""What git says of the repository in a folder; None or nothing where there is none."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tracediff.errors import TracediffError

HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""A whole hash: only such names of entries are given to git."""


@dataclass(frozen=True)
class Commit:
    """A commit's hash, and its time in s since 1970."""

    name: str
    time: int


@dataclass(frozen=True)
class Repository:
    """The repository that ``folder`` is in, if any."""

    folder: Path

    def commit(self, name: str) -> Commit | None:
        """The commit that ``name`` (a hash, branch or tag) is; None if there is none."""
        found = self._ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if not found or not HASH.fullmatch(found.strip()):
            return None
        time = self._ask("show", "-s", "--format=%ct", found.strip())
        return Commit(found.strip(), int(time.strip())) if time else None

    @property
    def is_changed(self) -> bool:
        """Whether a file that git tracks differs from HEAD."""
        return bool(self._ask("status", "--porcelain", "--untracked-files=no"))

    def in_order(self, commits: Iterable[str]) -> list[str] | None:
        """``commits``, parents first, along first parents; None if the repository lacks one."""
        wanted = set(commits)
        if not all(map(HASH.fullmatch, wanted)):
            return None
        found = self._ask(
            "rev-list", "--topo-order", "--reverse", "--first-parent", "--stdin", given="\n".join(sorted(wanted))
        )
        return [line for line in found.splitlines() if line in wanted] if found else None

    def subjects(self, commits: Iterable[str]) -> dict[str, str]:
        """Commit → the first line of its message, of those that the repository has."""
        known = sorted(filter(HASH.fullmatch, commits))
        text = self._ask("log", "--no-walk", "--ignore-missing", "--format=%H %s", "--stdin", given="\n".join(known))
        return dict(line.split(" ", 1) for line in (text or "").splitlines() if " " in line) if known else {}

    def distance(self, before: str, after: str) -> int | None:
        """How many commits ``after`` has that ``before`` does not, along first parents."""
        if not (HASH.fullmatch(before) and HASH.fullmatch(after)):
            return None
        count = self._ask("rev-list", "--count", "--first-parent", f"{before}..{after}")
        return int(count) if count else None

    def run(self, *arguments: str) -> str:
        """The output of a git command.

        Raises:
            TracediffError: it fails; with git's own words.
        """
        try:
            done = subprocess.run(
                ["git", *arguments], cwd=self.folder, capture_output=True, text=True, errors="replace", check=False
            )
        except OSError as error:
            raise TracediffError("git", f"cannot be run ({error})", "install git") from None
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[0]
            raise TracediffError(f"git {arguments[0]}", reason, "run the command in the repository")
        return done.stdout

    def _ask(self, *arguments: str, given: str = "") -> str | None:
        try:
            return subprocess.run(
                ["git", *arguments],
                cwd=self.folder,
                input=given,
                capture_output=True,
                text=True,
                errors="replace",
                check=True,
            ).stdout
        except (OSError, subprocess.CalledProcessError):
            return None
