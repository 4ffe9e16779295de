"""Records traces, or takes those that are there, and writes their snapshot."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from workflow import output, refuse, setting

TRACEDIFF = (sys.executable, "-P", "-m", "tracediff")
"""-P: nothing is imported from the working directory, which a pull request may have written."""


def main() -> None:
    """Write the snapshot; where it is the baseline of a branch, that is the result."""
    traces = setting("TRACES") or recorded(Path(setting("FOLDER")) / "traces")
    run(
        "snapshot",
        traces,
        f"--label={setting('LABEL')}",
        *shlex.split(setting("READING")),
        "-o",
        setting("SNAPSHOT"),
    )
    if Path(setting("SNAPSHOT")).name == "base.tdprof.gz":
        output(result="recorded")


def recorded(out: Path) -> str:
    """The set that ``collect`` wrote: one variant, since a gate compares commits."""
    run("collect", *shlex.split(setting("COLLECT")), "-o", str(out))
    sets = sorted(path.parent for path in out.glob("*/manifest.json"))
    if len(sets) != 1:
        refuse(f"collect: {len(sets)} variants were recorded ({', '.join(s.name for s in sets)}); give one --variant")
    return str(sets[0])


def run(*arguments: str) -> None:
    """Run tracediff; end with its exit code if it fails, after the line that it printed."""
    code = subprocess.run([*TRACEDIFF, *arguments], check=False).returncode
    if code:
        sys.exit(code)


if __name__ == "__main__":
    main()
