"""Finding the commit that made the step slower: a binary search over commits, each set recorded by the user's command
in a worktree of its own.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tracediff import bounds, thresholds
from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.comparison import Comparison
from tracediff.engine import load_sets
from tracediff.errors import TracediffError, did_you_mean, printable, quoted
from tracediff.git import Repository, environment
from tracediff.history.evidence import (
    BAD,
    GOOD,
    INCONCLUSIVE,
    SKIPPED,
    Criterion,
    Decision,
    Difference,
    Round,
    by_counts,
    by_times,
    change_text,
    difference,
    quiet,
    sides,
)
from tracediff.history.series import Point, Series
from tracediff.process.group import run_group
from tracediff.process.temporary import is_left, temporary_folder
from tracediff.source.changed_code import changed_between
from tracediff.structs import FrozenStruct


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


OUT = "{out}"
"""In the command: the folder that it writes the set to."""


class NotRecordedError(Exception):
    """The command failed in a commit, or wrote no set; the message names the commit, and why."""


def _last_line(log: Path) -> str:
    with log.open("rb") as written:
        written.seek(max(log.stat().st_size - 4 * bounds.REASON, 0))
        return "".join(written.read().decode(errors="replace").strip().splitlines()[-1:])[: bounds.REASON]


def _variant(out: Path) -> Path:
    """The set in ``out``: of a collection its only variant."""
    inside = [path for path in sorted(out.iterdir()) if (path / "manifest.json").is_file()] if out.is_dir() else []
    return inside[0] if len(inside) == 1 else out


class Bisected(FrozenStruct):
    """The result of a bisection.

    Attributes:
        suspects: the first bad commit; several where commits between them were skipped or not decided.
        inconclusive: why the search stopped before its end; empty otherwise.
        why: what the result rests on. comparison: of the last good commit with the first bad one. Of several suspects
            empty and None.
    """

    suspects: tuple[str, ...]
    inconclusive: str = ""
    why: str = ""
    comparison: Comparison | None = None


def only_series(series: Sequence[Series]) -> Series:
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
    criterion: Criterion,
) -> Bisected:
    """Find the first commit after ``good``, up to ``bad``, whose step is slower. What each decision rests on is a line
    on standard error.

    Args:
        series: has an entry of ``good``, which names what ``arguments``, the command that records a set into ``{out}``,
            have to record. Its times are not used.

    Raises:
        TracediffError: a commit is unknown, has no entry, or is not after the other one; the command has no ``{out}``,
            fails in one of both commits or records another program than the entry is of; or git fails.
    """
    if not any(OUT in argument for argument in arguments):
        raise TracediffError("CMD", f"does not name {OUT}", f"write the folder of the set as {OUT}: -o {OUT}")
    first, last = _commit(repository, "--good", good), _commit(repository, "--bad", bad)
    points = {point.commit: point for point in series.points}
    if first not in points:
        nearest = did_you_mean(good, points, "commits: " + ", ".join(_short(name) for name in points))
        raise TracediffError("--good", f"the history has no entry of {quoted(good)}", nearest)
    after = repository.after(first, last)
    if not after:
        raise TracediffError("--bad", f"{quoted(bad)} is not after {quoted(good)}", "exchange them")
    with temporary_folder() as folder:
        remove_left_worktrees(repository)
        inside = repository.run("rev-parse", "--show-prefix").strip()
        return Bisection(repository, criterion, arguments, folder, inside).run(points[first], [first, *after])


def _commit(repository: Repository, option: str, name: str) -> str:
    commit = repository.commit(name)
    if commit is None:
        raise TracediffError(
            option, f"{quoted(name)} is not a commit of the repository here", "give a hash, branch or tag"
        )
    return commit.name


def _write(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)


class Bisection(FrozenStruct):
    """One bisection.

    Attributes:
        command: what records a set into the folder ``{out}``, in a worktree. folder: for what it writes.
        inside: the folder of the worktree in which it runs, relative.
    """

    repository: Repository
    criterion: Criterion
    command: Sequence[str]
    folder: Path
    inside: str

    def run(self, good: Point, commits: Sequence[str]) -> Bisected:
        """The first bad one of ``commits``, of which the first is ``good`` and the last one is bad."""
        with self._worktree(commits[0]) as first, self._worktree(commits[-1]) as last:
            rounds, start = self._interleaved_rounds(first, last, self.criterion)
            ends = sides(rounds)
            self._check_program(good, ends[0])
            decide = "counts decide" if start.counts_decide else "step times decide"
            _write(f"{_short(commits[0])} (good) to {_short(commits[-1])} (bad): {start.sentence}: {decide}")
            if reason := _no_difference(start):
                return Bisected(tuple(commits[1:]), reason)
            suspects = self._suspects(commits, start)
            low, high, reason = self._search(
                commits, suspects, lambda worktree: self._decide(worktree, (first, last), ends, start)
            )
        if reason or len(commits[low + 1 : high]):
            return Bisected(tuple(commits[low + 1 : high + 1]), reason)
        return self._confirmed(commits[low], commits[high], start, len(commits) == 2)

    def _suspects(self, commits: Sequence[str], start: Difference) -> list[int]:
        """Positions of the commits that changed what the work that changed runs for, the likeliest first."""
        changed_code = changed_between(start.comparison, self.repository, (commits[0], commits[-1]))
        places = [place for place in changed_code.touching if place.commit] if changed_code else []
        for place in places[: bounds.SUSPECTS]:
            _write(f"{place.commit} is tried early: it changed {place.name} in {place.file}")
        return [k for place in places for k, commit in enumerate(commits) if commit.startswith(place.commit)]

    def _search(
        self, commits: Sequence[str], suspects: Sequence[int], decide: Callable[[Path], Decision]
    ) -> tuple[int, int, str]:
        """(the last good one of ``commits``, the first bad one as far as decided, why the search stopped early); a
        suspect is tried after the commit before it.
        """
        first = [k for suspect in suspects[: bounds.SUSPECTS] for k in (suspect - 1, suspect)]
        low, high, skipped = 0, len(commits) - 1, set[int]()
        subjects = self.repository.subjects(commits)
        while untested := [k for k in range(low + 1, high) if k not in skipped]:
            halving = min(untested, key=lambda k: abs(2 * k - low - high))
            k = next((k for k in first if k in untested), halving)
            try:
                with self._worktree(commits[k]) as worktree:
                    decision = decide(worktree)
            except NotRecordedError as error:
                decision = Decision(SKIPPED, str(error))
            short = _short(commits[k])
            _write(f"{short} {decision.result}: {decision.why}  {subjects.get(commits[k], '')}".rstrip())
            if decision.result == INCONCLUSIVE:
                return low, high, f"{short}: {decision.why}"
            if decision.result == SKIPPED:
                skipped.add(k)
            low, high = (k if decision.result == GOOD else low), (k if decision.result == BAD else high)
        return low, high, ""

    def _decide(
        self, worktree: Path, ends: tuple[Path, Path], recorded: Sequence[TraceSet], start: Difference
    ) -> Decision:
        """Whether the commit at ``worktree`` is bad: by its counts if these differ between ``ends``, else by its step
        times, recorded beside both in the order ABCCBA…
        """
        (traces,) = self._round((worktree,), 0)
        decided = by_counts(recorded[0], traces, recorded[1]) if start.counts_decide else None
        if decided:
            return decided
        rounds = [(traces, *self._round(ends, 0))]
        while True:
            if len(rounds) >= thresholds.LEAST_ROUNDS:
                decision = by_times(rounds, self.criterion)
                if decision.result != INCONCLUSIVE or len(rounds) == bounds.ROUNDS:
                    return decision
            rounds.append(self._round((worktree, *ends), len(rounds)))

    def _confirmed(self, before: str, commit: str, start: Difference, is_recorded: bool) -> Bisected:
        """``commit``, if it differs from the one ``before`` it where both are recorded beside each other."""
        evidence = start
        if not is_recorded:
            criterion = Criterion(allow=self.criterion.allow)
            with self._worktree(before) as first, self._worktree(commit) as last:
                _, evidence = self._interleaved_rounds(first, last, criterion)
        if evidence.slower or (evidence.slower is None and start.counts_decide and evidence.other_counts):
            return Bisected((commit,), "", evidence.sentence, evidence.comparison)
        return Bisected((commit,), f"not confirmed against the commit before it: {evidence.sentence}")

    def _interleaved_rounds(self, control: Path, test: Path, criterion: Criterion) -> tuple[list[Round], Difference]:
        """Rounds of two commits in the order ABBA…, until step times differ significantly, there are enough, or the
        machine disturbs all and counts differ.
        """
        rounds: list[Round] = []
        while True:
            try:
                rounds.append(self._round((control, test), len(rounds)))
            except NotRecordedError as error:
                raise TracediffError("CMD", str(error), "try it in a worktree of that commit") from None
            if len(rounds) >= thresholds.LEAST_ROUNDS:
                evidence = difference(rounds, criterion)
                is_done = evidence.slower is not None or (evidence.other_counts and not quiet(rounds))
                if is_done or len(rounds) == bounds.ROUNDS:
                    return rounds, evidence

    def _round(self, worktrees: Sequence[Path], number: int) -> Round:
        """One set of each of ``worktrees``, recorded in their order or, in every second round, in the reverse."""
        order = worktrees if number % 2 == 0 else worktrees[::-1]
        sets = {worktree: self._recorded(worktree) for worktree in order}
        return tuple(sets[worktree] for worktree in worktrees)

    def _recorded(self, worktree: Path) -> TraceSet:
        """A new set of the commit in ``worktree``.

        Raises:
            NotRecordedError: the command failed there, or wrote no set.
        """
        label, place = _short(worktree.name), worktree / self.inside
        if not place.is_dir():
            raise NotRecordedError(f"{label} has no folder {self.inside}")
        with TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as folder:
            out, log = Path(folder, "set"), Path(folder, "log")
            command = [part.replace(OUT, os.fspath(out)) for part in self.command]
            with log.open("wb") as written:
                code = run_group(command, place, environment(), written)
            if code:
                last_line = printable(_last_line(log)) or "no output"
                raise NotRecordedError(f"in {label} the command failed with exit code {code} ({last_line})")
            try:
                (traces,) = load_sets([_variant(out)])
            except TracediffError as error:
                raise NotRecordedError(f"in {label} the command wrote no set ({error})") from None
        traces.label = label
        return traces

    def _check_program(self, good: Point, traces: TraceSet) -> None:
        """Check that ``traces`` are of the program of the entry; its step times are of another time and load."""
        entry = self.criterion.check(good.traces, traces, 0.0)
        if entry.stopping:
            reason = f"does not record what the entry of --good is of ({entry.codes})"
            raise TracediffError("CMD", reason, "name its series by --configuration, or accept it by --allow")
        _write(f"{_short(good.commit)} now against its entry: {change_text(entry.comparison)}; not used")

    @contextmanager
    def _worktree(self, commit: str) -> Iterator[Path]:
        """``commit`` in a new worktree of its name, removed at the end.

        Raises:
            TracediffError: git cannot make it.
        """
        place = self.folder / commit
        try:
            self.repository.run("worktree", "add", "--quiet", "--detach", str(place), commit)
            yield place
        finally:
            _remove(self.repository, place)


def _no_difference(start: Difference) -> str:
    """Why nothing distinguishes the bad commit from the good one; empty if something does."""
    if start.stopping:
        return f"bad is not comparable with good ({start.stopping}): accept it by --allow"
    if start.slower or (start.slower is None and start.other_counts):
        return ""
    if start.comparison.verdict.result == "same":
        return f"bad takes as long as good: {start.sentence}; does the command import an installed package?"
    if start.slower is None:
        return f"step times do not tell bad from good: {start.sentence}"
    return f"bad is not slower than good: {start.sentence}"


def _short(commit: str) -> str:
    """As much of a commit's hash as a line shows."""
    return commit[: bounds.SHORT_HASH]
