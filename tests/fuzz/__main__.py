"""``python -m fuzz``, in the folder tests: inputs until the time is up; ends with 1 if one was a fault."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from pathlib import Path

from fuzz.run import run
from fuzz.targets import TARGETS


def main() -> int:
    """Run, and print the counts."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help="kinds of input (default: all)")
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="first seed, one for each process (default: 0)")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="default: one per core")
    parser.add_argument("--faults", type=Path, default=Path("fuzz-faults"), help="folder for inputs that are faults")
    asked = parser.parse_args()
    asked.faults.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + asked.seconds
    work = [(asked.seed + k, until, asked.faults, asked.targets or list(TARGETS)) for k in range(asked.processes)]
    with multiprocessing.get_context("spawn").Pool(asked.processes) as pool:
        total = sum(pool.starmap(run, work), Counter())
    for name, count in sorted(total.items()):
        print(f"{name:<20} {count:>10,}")
    seeds = f"seeds {asked.seed}–{asked.seed + asked.processes - 1}"
    print(f"{sum(total.values()):,} inputs, {seeds}")
    return 1 if any(name.endswith("FAULT") for name in total) else 0


if __name__ == "__main__":
    sys.exit(main())
