"""Two commits: the files of each, and the lines that differ between them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from tracediff.errors import TracediffError
from tracediff.git import Repository
from tracediff.structs import FrozenStruct

LARGEST_DIFF = 64 << 20
"""Characters of a diff that is read; one of 100,000 lines has 5 million."""
Lines = tuple[int, int]
"""The first and the last of some lines."""


class ChangedFile(FrozenStruct):
    """A file that differs.

    Attributes:
        before, after: its paths, None where it does not exist.
        removed, added: the lines of ``before`` that are gone, and the lines of ``after`` that are new.
    """

    before: str | None
    after: str | None
    removed: tuple[Lines, ...]
    added: tuple[Lines, ...]

    @property
    def path(self) -> str:
        """The later of its paths."""
        return self.after or self.before or ""


class Revisions(FrozenStruct, dict=True):
    """The commits of control and test in a repository; hashes."""

    repository: Repository
    commits: tuple[str, str]

    @cached_property
    def files(self) -> tuple[frozenset[str], frozenset[str]]:
        """The paths in each commit."""
        first, second = (
            frozenset(
                filter(None, (self.repository.ask("ls-tree", "-r", "-z", "--name-only", commit) or "").split("\0"))
            )
            for commit in self.commits
        )
        return first, second

    def text(self, side: int, path: str) -> str | None:
        """A file of one commit; None where it is none."""
        return self.repository.ask("cat-file", "blob", f"{self.commits[side]}:{path}")

    @cached_property
    def changed(self) -> tuple[ChangedFile, ...]:
        """The files that differ.

        Raises:
            TracediffError: unidiff is not installed, or the diff is none, or too large.
        """
        try:
            from unidiff.errors import UnidiffParseError
            from unidiff.patch import PatchSet
        except ImportError:
            raise TracediffError("changed lines", "need unidiff", 'pip install "torch-tracediff[history]"') from None
        text = self.repository.run("diff", *DIFF, *self.commits)
        if len(text) > LARGEST_DIFF:
            raise TracediffError("git diff", f"has {len(text):,} characters", "compare commits that are closer")
        try:
            patch = PatchSet(text.splitlines(keepends=True))
        except UnidiffParseError as error:
            raise TracediffError("git diff", f"cannot be read ({error})", "report this as a bug") from None
        return tuple(
            ChangedFile(
                before=_path(file.source_file),
                after=_path(file.target_file),
                removed=_lines((h.source_start, h.source_length) for h in file),
                added=_lines((h.target_start, h.target_length) for h in file),
            )
            for file in patch
        )

    def author_of(self, path: str, lines: Lines | None) -> str:
        """The abbreviated hash of the latest commit that changed these lines of test's ``path``, or the file; empty
        where that is none after control's commit.
        """
        where = ("--", path) if lines is None else (f"-L{lines[0]},{lines[1]}:{path}",)
        since = f"{self.commits[0]}..{self.commits[1]}"
        return (self.repository.ask("log", "-1", "--no-patch", "--format=%h", since, *where) or "").strip()


DIFF = (
    *("--no-color", "--no-ext-diff", "--no-textconv", "--unified=0", "--find-renames"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--submodule=short", "--diff-algorithm=histogram"),
)


def _path(name: str) -> str | None:
    return None if name == "/dev/null" else name[2:] if name[:2] in ("a/", "b/") else name


def _lines(hunks: Iterable[Lines]) -> tuple[Lines, ...]:
    return tuple((start, start + length - 1) for start, length in hunks if length)
