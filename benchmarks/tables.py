"""Collects all workloads at one size and writes their tables.

python benchmarks/tables.py --size tiny --out docs/workload-results.md
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tracediff.collect.workloads import NAMES, workload

HEAD = """# Results of the workloads

What each workload's variants cost, {size}, made by `{command}`. Step times are medians without
the profiler, speed-ups are against the first variant with a 95 % interval over runs;
“profiler” is what profiling adds to a step. [What runs, and how to read it](workloads.md).
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--repeats", default="3")
    parser.add_argument("--out", type=Path, default=Path("docs/workload-results.md"))
    parser.add_argument("workloads", nargs="*")
    options = parser.parse_args()
    parts = [HEAD.format(size=options.size, command="make tables")]
    for name in options.workloads or NAMES:
        with tempfile.TemporaryDirectory(prefix="tracediff-tables-") as scratch:
            out = Path(scratch) / "out"
            command = [
                "collect",
                "--workload",
                name,
                "--size",
                options.size,
                "--repeats",
                options.repeats,
                "-o",
                str(out),
            ]
            subprocess.run([sys.executable, "-m", "tracediff", *command], check=False)
            table = subprocess.run(
                [sys.executable, "-m", "tracediff", "collect", "--show", str(out), "--markdown", "-"],
                check=True,
                capture_output=True,
                text=True,
            )
            parts.append(f"{table.stdout}\n{workload(name).title}.\n")
        options.out.write_text("\n".join(parts))  # after each workload, so that an interrupted run leaves a result


if __name__ == "__main__":
    main()
