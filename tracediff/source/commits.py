"""The commits of both sides: given, or those of the collected sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tracediff.diff.comparison import Comparison
from tracediff.errors import TracediffError, quoted
from tracediff.git import CHANGES, Repository
from tracediff.source.changed_code import changed_code
from tracediff.source.revisions import Revisions
from tracediff.source.touching import ChangedCode

REMEDY = "give the commits of both sides: --source REPO --commits BEFORE AFTER"


def with_changed_code(comparison: Comparison, source: Path, commits: tuple[str, str] | None = None) -> Comparison:
    """``comparison`` with the changed code between ``commits``, or those that the sets were collected from, of the
    repository around ``source``.

    Raises:
        TracediffError: a commit is unknown or not in the repository, or git fails.
    """
    repository = Repository(source)
    if repository.ask("rev-parse", "--git-dir") is None:
        raise TracediffError(str(source), "is not in a git repository, or git is not installed", "give --source REPO")
    recorded = [side.manifest.git_commit if side.manifest else None for side in (comparison.control, comparison.test)]
    names = commits or (recorded[0] or "", recorded[1] or "")
    hashes = [_commit(repository, name.removesuffix(CHANGES)) for name in names]
    if any(name.endswith(CHANGES) for name in names):
        note = "a side was recorded with changes that no commit has"
        return replace(comparison, changed_code=ChangedCode(commits=(hashes[0], hashes[1]), note=note))
    return replace(comparison, changed_code=changed_code(comparison, Revisions(repository, (hashes[0], hashes[1]))))


def changed_between(comparison: Comparison, repository: Repository, commits: tuple[str, str]) -> ChangedCode | None:
    """The changed code between ``commits``; None where the repository lacks one, or git or unidiff cannot tell."""
    try:
        return with_changed_code(comparison, repository.folder, commits).changed_code
    except TracediffError:
        return None


def _commit(repository: Repository, name: str) -> str:
    if not name:
        raise TracediffError("changed lines", "the traces do not say which commit they were recorded from", REMEDY)
    found = repository.commit(name)
    if found is None:
        raise TracediffError(quoted(name), "is no commit of the repository", REMEDY)
    return found.name
