"""Planted commits: are the changed lines named that the changed work runs for, and none where no work changed?

Records the first commit of each repository and every planted one on this machine's CPU, and writes a table:

    python benchmarks/commits/bench.py [--runs 5] [--only data] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from planted import PLANTED, Planted

import tracediff
from tracediff.present.answer import changed_code_sentence
from tracediff.source.changed_code import with_changed_code

HERE = Path(__file__).parent
RECORD = """
import os, runpy, sys, torch
program, folder, runs = sys.argv[1:]
sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
for _ in range(int(runs)):  # a process of its own for each run, which does not import torch again
    child = os.fork()
    if not child:
        sys.argv = [program, folder]
        runpy.run_path(program, run_name="__main__")
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit("a run failed")
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs per side (default: 5)")
    parser.add_argument("--only", action="append", help="only this repository, or repository/case (repeatable)")
    parser.add_argument(
        "--keep", type=Path, help="keep repositories and recordings there, and use those that are there"
    )
    arguments = parser.parse_args()
    wanted = [
        p for p in PLANTED if not arguments.only or {p.repository, f"{p.repository}/{p.name}"} & {*arguments.only}
    ]
    with tempfile.TemporaryDirectory() as temporary:
        results = [(case, *judged(case, arguments.keep or Path(temporary), arguments.runs)) for case in wanted]
    print("| repository | commit | changes the work | right | what it says |\n|---|---|---|---|---|")
    for case, is_right, said in results:
        words = case.repository, case.name, "yes" if case.runs else "no", "yes" if is_right else "**no**", said
        print(f"| {' | '.join(words)} |")
    for runs, name in ((True, "the hunk is named first"), (False, "no changed line")):
        right = [is_right for case, is_right, _ in results if case.runs is runs]
        print(f"\n{name}: {sum(right)} of {len(right)}")
    return 0


def judged(case: Planted, folder: Path, runs: int) -> tuple[bool, str]:
    """(whether what it says of a case is right, what it says)."""
    repository = folder / case.repository
    if not repository.exists():
        shutil.copytree(HERE / case.repository, repository, ignore=shutil.ignore_patterns("__pycache__"))
        git(repository, "init", "-q", "-b", "main")
        commit(repository, "Begin")
    if not (base := folder / "traces" / case.repository / "base").exists():
        record(repository, base, runs)
    if not (test := folder / "traces" / case.repository / case.name).exists():
        git(repository, "checkout", "-q", "-B", case.name, "main")
        path = repository / case.file
        text = path.read_text() if path.exists() else ""
        assert case.old in text, (case.repository, case.name)
        path.write_text(text.replace(case.old, case.new, 1) if case.old else text + case.new)
        commit(repository, case.name)
        record(repository, test, runs)
        git(repository, "checkout", "-q", "main")
    comparison = tracediff.compare(base, test).comparison
    found = with_changed_code(comparison, repository, ("main", case.name))
    said = changed_code_sentence(found)
    code = found.changed_code
    assert code is not None
    if not case.runs:
        return not code.touching, said
    first, (begin, end) = next(iter(code.touching), None), planted_lines(case)
    return first is not None and first.file == case.file and first.first <= end and begin <= first.last, said


def planted_lines(case: Planted) -> tuple[int, int]:
    """The lines that a commit changes, in its version of the file."""
    before = (HERE / case.repository / case.file).read_text().partition(case.old)[0]
    begin = before.count("\n") + 1
    return begin, begin + case.new.count("\n")


def record(repository: Path, out: Path, runs: int) -> None:
    """The runs of what is checked out."""
    program = next(path for name in ("train.py", "loop.py") if (path := repository / name).exists())
    with tempfile.TemporaryDirectory() as cache:  # of which no earlier commit left compiled code
        own = {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": cache}
        environment = {**os.environ, **own}
        done = subprocess.run(
            [sys.executable, "-c", RECORD, program.name, str(out), str(runs)],
            cwd=repository, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr)


def commit(repository: Path, message: str) -> None:
    git(repository, "add", "-A")
    git(repository, "-c", "user.name=bench", "-c", "user.email=bench@example.org", "commit", "-q", "-m", message)


def git(repository: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=repository, check=True)


if __name__ == "__main__":
    sys.exit(main())
