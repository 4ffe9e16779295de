"""Compares the snapshot of this commit with the baseline: comment, summary, JUnit, JSON, report and annotations.

A regression does not end the step, so that comment and artefact follow; the last step of the action ends with its code.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

from traces import TRACEDIFF
from workflow import annotate, output, refuse, setting, summarise

from tracediff.report.escape import escaped

PASSED, REGRESSION, UNDECIDED = 0, 1, 3
ACCEPTABLE = ("inconclusive", "not-comparable")


def main() -> None:
    """Write ``comment.md`` and the other files, and output result and exit code."""
    folder, baseline = Path(setting("FOLDER")), Path(setting("BASELINE"))
    accepted = setting("ACCEPT").replace(",", " ").split()
    if not {*accepted} <= {*ACCEPTABLE}:
        refuse(f"accept {setting('ACCEPT')!r}: not a list of {' and '.join(ACCEPTABLE)}")
    if not baseline.exists():
        no_baseline(folder)
        return
    files = {"markdown": "comment.md", "json": "check.json", "junit": "junit.xml", "html": "report.html"}
    outputs = [word for option, name in files.items() for word in (f"--{option}", str(folder / name))]
    sides = [str(baseline), setting("SNAPSHOT")]
    limits = shlex.split(setting("LIMITS"))
    code = subprocess.run([*TRACEDIFF, "check", *sides, *limits, *outputs, "--github"], check=False).returncode
    if code not in (PASSED, REGRESSION, UNDECIDED):
        sys.exit(code)
    result = json.loads((folder / "check.json").read_text())["result"]
    report = f"\nThe report is in the artefact `tracediff-{setting('NAME')}` of the workflow run.\n"
    finish(folder, (folder / "comment.md").read_text() + report, result, PASSED if result in accepted else code)


def no_baseline(folder: Path) -> None:
    """Say that nothing was compared: the first run, or no run on the base branch for so long that the cache lost it."""
    message = f"nothing was compared: {setting('BRANCH')} has no baseline yet; its next run of this workflow keeps one"
    annotate("warning", message)
    finish(folder, f"## ❔ tracediff\n\n**no baseline**: {escaped(message)}.\n", "no-baseline", PASSED)


def finish(folder: Path, markdown: str, result: str, code: int) -> None:
    """Write the comment and the summary, which are the same text."""
    (folder / "comment.md").write_text(markdown)
    summarise(markdown)
    output(result=result, exit_code=str(code))


if __name__ == "__main__":
    main()
