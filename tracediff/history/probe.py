"""One step of a bisection, which ``git bisect run`` starts in each commit: record a set, check it against the good one.

Its exit code is that which git expects: 0 good, 1 bad, 125 undecided.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import msgspec

from tracediff.aggregate.snapshot import SUFFIX, write_snapshot
from tracediff.diff.gate.config import Settings
from tracediff.diff.gate.judge import Gate, check
from tracediff.engine import load_sets
from tracediff.errors import TracediffError, printable
from tracediff.explain.compare import compare_sets
from tracediff.formatting import signed_percent
from tracediff.history.git import Repository
from tracediff.temporary import temporary_folder

GOOD, BAD, SKIP = 0, 1, 125
OUT = "{out}"
"""In the command: the folder that it writes the set to."""
PLAN, BASELINE = "plan.json", f"good{SUFFIX}"


class Plan(msgspec.Struct, frozen=True):
    """What every step does.

    Attributes:
        command: what records a set. max_regression: the limit on the step, relative. allow: accepted cautions.
    """

    command: list[str]
    max_regression: float
    allow: list[str]


@dataclass(frozen=True)
class Probed:
    """What became of one commit: the exit code, and why in words."""

    code: int
    why: str


def main(folder: Path) -> int:
    """Test the commit that is checked out, by the plan in ``folder``; the recorded set is kept there under its hash."""
    plan = msgspec.json.decode((folder / PLAN).read_bytes(), type=Plan)
    repository = Repository(Path.cwd())
    commit = repository.run("rev-parse", "HEAD").strip()
    probed = probe(plan, folder / BASELINE, folder / f"{commit}{SUFFIX}")
    if repository.is_changed:  # by the command: no file was when it began
        repository.run("reset", "--hard", "--quiet")
    word = {GOOD: "good", BAD: "bad", SKIP: "skipped"}[probed.code]
    subject = repository.subjects([commit]).get(commit, "")
    print(printable(f"{commit[:9]} {word}: {probed.why}  {subject}".rstrip()), file=sys.stderr, flush=True)
    return probed.code


def probe(plan: Plan, baseline: Path, keep: Path) -> Probed:
    """Record a set with the plan's command, write its snapshot to ``keep`` and check it against ``baseline``."""
    with temporary_folder() as folder:
        out = folder / "set"
        arguments = [part.replace(OUT, str(out)) for part in plan.command]
        try:
            done = subprocess.run(arguments, capture_output=True, text=True, errors="replace", check=False)
        except OSError as error:
            return Probed(SKIP, f"the command cannot be run ({error.strerror})")
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            return Probed(SKIP, f"the command failed with exit code {done.returncode} ({''.join(last)[:200]})")
        try:
            (good,), (recorded,) = load_sets([baseline]), load_sets([_variant(out)])
            write_snapshot(recorded, keep)
            return _judged(plan, check(compare_sets(good, recorded), _settings(plan), date.today()))
        except TracediffError as error:
            return Probed(SKIP, str(error))


def _settings(plan: Plan) -> Settings:
    return Settings(max_regression=plan.max_regression, allow=frozenset(plan.allow))


def _judged(plan: Plan, gate: Gate) -> Probed:
    verdict = gate.comparison.verdict
    change = signed_percent(verdict.median_test_us / verdict.median_control_us - 1)
    if gate.stopping:
        return Probed(SKIP, f"{change}, not decided ({', '.join(reason.code for reason in gate.stopping)})")
    limit = f"limit {signed_percent(plan.max_regression)}"
    code = {0: GOOD, 1: BAD}.get(gate.exit_code, SKIP)
    return Probed(code, f"{change}, {limit}" if code != SKIP else f"{change}, too noisy for the {limit}")


def _variant(out: Path) -> Path:
    """The set in ``out``: of a collection its only variant."""
    inside = [path for path in sorted(out.iterdir()) if (path / "manifest.json").is_file()] if out.is_dir() else []
    return inside[0] if len(inside) == 1 else out


def command(folder: Path) -> list[str]:
    """The command that runs `main`; modules are never those of the working directory, which is under test."""
    return [sys.executable, "-P", "-m", __name__, os.fspath(folder)]


def run(arguments: Sequence[str]) -> int:
    """`main` of the folder in ``arguments``; errors that concern every commit end the bisection."""
    try:
        return main(Path(arguments[0]))
    except TracediffError as error:
        print(error, file=sys.stderr)
        return 128 + SKIP


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
