"""Finding the commit that made the step slower: ``git bisect run`` with a recording and a check of each commit."""

from __future__ import annotations

import math
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tracediff.aggregate.snapshot import SUFFIX, read_snapshot, write_snapshot
from tracediff.diff.comparison import Comparison
from tracediff.diff.gate.config import DEFAULT_RELATIVE
from tracediff.errors import TracediffError, did_you_mean, quoted
from tracediff.explain.compare import compare_sets
from tracediff.history.git import Commit, Repository
from tracediff.history.probe import BASELINE, OUT, PLAN, Plan, command
from tracediff.history.series import Point, Series
from tracediff.ingest.source import TraceFile
from tracediff.temporary import temporary_folder


@dataclass(frozen=True)
class Bisected:
    """The result of a bisection.

    Attributes:
        suspects: the first bad commit; several where commits between them could not be tested.
        comparison: of the good commit with the first bad one; None where that one was not recorded.
    """

    suspects: tuple[str, ...]
    comparison: Comparison | None


def chosen(series: Sequence[Series]) -> Series:
    """The only one of ``series``.

    Raises:
        TracediffError: there are several.
    """
    if len(series) > 1:
        listed = "; ".join(
            f"--machine {shlex.quote(one.machine)} --configuration {shlex.quote(one.configuration)}" for one in series
        )
        raise TracediffError("--configuration", "the history has several series", f"choose one: {listed}")
    return series[0]


def bisect(
    series: Series,
    good: str,
    bad: str,
    arguments: Sequence[str],
    repository: Repository,
    *,
    max_regression: float | None = None,
    allow: Sequence[str] = (),
) -> Bisected:
    """Find the first commit after ``good``, up to ``bad``, that is slower than ``good`` by more than a limit.

    Args:
        series: has an entry of ``good``. arguments: the command that records a set into ``{out}``.
        max_regression: the limit; None for half of the change between both commits, 5 % if ``bad`` has no entry.

    Raises:
        TracediffError: the worktree is modified, a bisection is under way, a commit is unknown or has no entry, the
            command has no ``{out}``, or git fails.
    """
    if not any(OUT in argument for argument in arguments):
        raise TracediffError("CMD", f"does not name {OUT}", f"write the folder of the set as {OUT}: -o {OUT}")
    if repository.is_changed:
        raise TracediffError("the worktree", "has modified files", "commit or stash them first")
    if Path(repository.folder, repository.run("rev-parse", "--git-path", "BISECT_LOG").strip()).exists():
        raise TracediffError("the worktree", "a bisection is under way", "end it with `git bisect reset`")
    commits = {"--good": _commit(repository, "--good", good), "--bad": _commit(repository, "--bad", bad)}
    points = {point.commit: point for point in series.points}
    before = points.get(commits["--good"].name)
    if before is None:
        nearest = did_you_mean(good, points, "commits: " + ", ".join(name[:9] for name in points))
        raise TracediffError("--good", f"the history has no entry of {quoted(good)}", nearest)
    limit = max_regression if max_regression is not None else _limit(before, points.get(commits["--bad"].name))
    with temporary_folder() as folder:
        write_snapshot(before.traces, folder / BASELINE)
        (folder / PLAN).write_bytes(msgspec.json.encode(Plan(list(arguments), limit, list(allow))))
        suspects = _run(repository, commits["--good"], commits["--bad"], folder)
        return Bisected(suspects, _compared(before, suspects, points, folder))


def _commit(repository: Repository, option: str, name: str) -> Commit:
    found = repository.commit(name)
    if found is None:
        raise TracediffError(
            option, f"{quoted(name)} is no commit of the repository here", "give a hash, branch or tag"
        )
    return found


def _limit(before: Point, after: Point | None) -> float:
    if after is None:
        return DEFAULT_RELATIVE
    change = math.log(after.step_us / before.step_us)
    if change <= 0:
        reason = "is not slower than --good in the history"
        raise TracediffError("--bad", reason, "exchange them, or give --max-regression PERCENT")
    return math.expm1(change / 2)


def _run(repository: Repository, good: Commit, bad: Commit, folder: Path) -> tuple[str, ...]:
    """The commits that may be the first bad one. The worktree is as before at the end, whatever happens."""
    started = False
    try:
        repository.run("bisect", "start", "--first-parent", bad.name, good.name)
        started = True
        done = subprocess.run(
            ["git", "bisect", "run", *command(folder)], cwd=repository.folder, stdout=subprocess.DEVNULL, check=False
        )
        log = repository.run("bisect", "log")
    finally:
        if started:
            repository.run("reset", "--hard", "--quiet")
        repository.run("bisect", "reset")
    found = [line for line in log.splitlines() if line.startswith(("# first bad commit:", "# possible first bad"))]
    suspects = tuple(line.partition("[")[2].partition("]")[0] for line in found)
    if not suspects:
        reason = f"ended without a result (exit code {done.returncode})"
        raise TracediffError("git bisect run", reason, "see the lines above")
    return suspects


def _compared(before: Point, suspects: tuple[str, ...], points: dict[str, Point], folder: Path) -> Comparison | None:
    """``before`` with the only suspect, as it was recorded now or before."""
    if len(suspects) > 1:
        return None
    recorded = folder / f"{suspects[0]}{SUFFIX}"
    if recorded.is_file():
        after = read_snapshot(TraceFile(str(recorded)))
        after.label = suspects[0][:9]
    elif suspects[0] in points:
        after = points[suspects[0]].traces
    else:
        return None
    return compare_sets(before.traces, after, force=True)
