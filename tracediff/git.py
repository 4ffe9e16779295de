"""What git says of the repository in a folder, whatever the user's configuration and environment; None or nothing where
there is none.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tracediff.errors import TracediffError

HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""A whole hash: only such names of entries are given to git."""
CHANGES = "+changes"
"""What the collector appends to the commit where files were modified."""
SETTINGS = (
    "--no-pager",
    "--no-optional-locks",  # does not write the index
    *("-c", "color.ui=false"),
    *("-c", "core.quotePath=false"),
    *("-c", "core.fsmonitor=false"),  # starts programs
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "i18n.logOutputEncoding=UTF-8"),
    *("-c", "log.showSignature=false"),
    *("-c", "submodule.recurse=false"),
)
"""Of every call: what the user's configuration may set otherwise. Commands below are git's plumbing where there is one,
which heeds less of it.
"""
ELSEWHERE = frozenset(
    f"GIT_{name}"
    for name in (
        "ALTERNATE_OBJECT_DIRECTORIES",
        "ATTR_SOURCE",
        "COMMON_DIR",
        "DIR",
        "GRAFT_FILE",
        "IMPLICIT_WORK_TREE",
        "INDEX_FILE",
        "INTERNAL_SUPER_PREFIX",
        "NAMESPACE",
        "NO_REPLACE_OBJECTS",
        "OBJECT_DIRECTORY",
        "PREFIX",
        "REPLACE_REF_BASE",
        "SHALLOW_FILE",
        "WORK_TREE",
    )
)
"""Environment variables, which git sets for its hooks, that point to another repository than that of the folder."""


def environment() -> dict[str, str]:
    """The environment of this process, in which git finds the repository by the folder."""
    return {name: value for name, value in os.environ.items() if name not in ELSEWHERE}


class Commit(NamedTuple):
    """A commit's hash, and its time in s since 1970."""

    name: str
    time: int


class Repository(NamedTuple):
    """The repository that ``folder`` is in, if any."""

    folder: Path

    def commit(self, name: str) -> Commit | None:
        """The commit that ``name`` (a hash, branch or tag) is; None if there is none."""
        commit_hash = (
            self.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}") or ""
        ).strip()
        if not HASH.fullmatch(commit_hash):
            return None
        time = self.ask("rev-list", "--no-walk", "--timestamp", commit_hash)
        return Commit(commit_hash, int(time.split()[0])) if time else None

    @property
    def is_changed(self) -> bool:
        """Whether a file that git tracks differs from HEAD."""
        return bool(self.ask("status", "--porcelain", "--untracked-files=no"))

    def in_order(self, commits: Iterable[str]) -> list[str] | None:
        """``commits``, parents first, along first parents; None if the repository lacks one."""
        hashes = set(commits)
        if not all(map(HASH.fullmatch, hashes)):
            return None
        lines = self.ask(
            "rev-list", "--topo-order", "--reverse", "--first-parent", "--stdin", stdin="\n".join(sorted(hashes))
        )
        return [line for line in lines.splitlines() if line in hashes] if lines else None

    def subjects(self, commits: Iterable[str]) -> dict[str, str]:
        """Commit → the first line of its message, of those that the repository has."""
        hashes = sorted(filter(HASH.fullmatch, commits))
        text = self.ask(
            "rev-list", "--no-walk", "--ignore-missing", "--format=%H %s", "--stdin", stdin="\n".join(hashes)
        )
        lines = (line.partition(" ") for line in (text or "").split("\n"))
        return {commit: subject for commit, _, subject in lines if HASH.fullmatch(commit)} if hashes else {}

    def distance(self, before: str, after: str) -> int | None:
        """How many commits ``after`` has that ``before`` does not, along first parents."""
        if not (HASH.fullmatch(before) and HASH.fullmatch(after)):
            return None
        count = self.ask("rev-list", "--count", "--first-parent", f"{before}..{after}")
        return int(count) if count else None

    def after(self, before: str, commit: str) -> list[str]:
        """The commits after ``before`` up to ``commit`` along first parents, parents first; none if it is not."""
        if self.ask("merge-base", "--is-ancestor", before, commit) is None:
            return []
        return (self.ask("rev-list", "--first-parent", "--reverse", f"{before}..{commit}") or "").split()

    def run(self, *arguments: str) -> str:
        """The output of a git command.

        Raises:
            TracediffError: it fails; with git's own words.
        """
        try:
            process = self._run(arguments)
        except OSError as error:
            raise TracediffError("git", f"cannot be run ({error})", "install git") from None
        if process.returncode:
            lines = process.stderr.strip().splitlines() or ["no reason given"]
            reason = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0])
            raise TracediffError(f"git {arguments[0]}", reason, "run the command in the repository")
        return process.stdout

    def ask(self, *arguments: str, stdin: str = "") -> str | None:
        """The output of a git command that reads ``stdin``; None if it fails."""
        try:
            process = self._run(arguments, stdin)
        except OSError:
            return None
        return None if process.returncode else process.stdout

    def _run(self, arguments: tuple[str, ...], stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *SETTINGS, *arguments],
            cwd=self.folder,
            env=environment(),
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
