"""How often the verdict is wrong, and what it finds, on real runs: python benchmarks/calibration/bench.py

Collects runs of the two workloads of steps.py, base and planted in turn (10 minutes), keeps one number a run and
operator in runs.json, and writes the
tables into README.md beside it. `--no-collect` makes the tables of the runs.json that is there.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from splits import false_alarms, in_order, power

from tracediff.aggregate.averages import step_average
from tracediff.aggregate.samples import op_samples
from tracediff.engine import load_sets
from tracediff.profile.kernels.match_names import table_name

HERE = Path(__file__).resolve().parent
RAW, PAGE = HERE / "runs.json", HERE / "README.md"
BEGIN, END = "<!-- measured: written by bench.py -->", "<!-- end of measured -->"
WORKLOADS = {"training": "aten::cumsum", "inference": "aten::erf"}
"""Workload of steps.py → the name of its planted operator."""
SIDES = {"base": "eager", "planted": "eager@planted"}
SIZES = {"training": 800_000, "inference": 230_000}
"""Elements of the planted operator: what takes 5 % of the profiled step while nothing else runs. Sized once: to size it
while others take the caches
gave two to three times as many."""
RUNS, ACTIVE, TIMED = 12, 25, 25
A_SIDE = (3, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--no-collect", action="store_true", help="make the tables of runs.json")
    if not parser.parse_args().no_collect:
        RAW.write_text(json.dumps(collected(), indent=None, separators=(",", ":")).replace('"aten', '\n"aten') + "\n")
    raw = json.loads(RAW.read_text())
    text = "\n".join([BEGIN, *tables(raw), "", raw["machine"], END])
    print(text)
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + text + rest.partition(END)[2])


# Tables


def tables(raw: dict[str, Any]) -> list[str]:
    """Lines of Markdown."""
    alarms = [
        "| workload | runs per side | wrong verdicts (required ≤ 6 %) | any operator flagged (required ≤ 6 %) | "
        "in order of collection: splits, wrong, flagged |"
    ]
    alarms.append("|:--|--:|--:|--:|--:|")
    finds = [
        "| workload | step | sd, base / planted | contended | operator adds | step changed | found | detectable | "
        "first by µs (required ≥ 90 %) | by q |"
    ]
    finds.append("|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for workload, found in raw["workloads"].items():
        base, planted = (found["sides"][side] for side in SIDES)
        for runs in A_SIDE:
            wrong, flagged = false_alarms(base, runs)
            alarms.append(
                f"| {workload} | {runs} | {percent(wrong)} | {percent(flagged)} | "
                f"{', '.join(map(str, in_order(base, runs)))} |"
            )
        of = power(base, planted, WORKLOADS[workload], max(A_SIDE))
        spread = " / ".join(percent(statistics.stdev(map(math.log, side["period_us"]))) for side in (base, planted))
        contended = (
            f"{sum(base['contended']) + sum(planted['contended'])} of "
            f"{len(base['contended']) + len(planted['contended'])}"
        )
        step = f"{statistics.median(base['period_us']) / 1000:.1f} ms"
        told = [percent(of[key]) for key in ("share", "change", "found", "detectable", "first", "first_by_q")]
        finds.append(f"| {workload} | {step} | {spread} | {contended} | {' | '.join(told)} |")
    return [
        "### Equal runs: false alarms",
        "",
        *alarms,
        "",
        f"### A planted operator, {max(A_SIDE)} runs per side: what is found",
        "",
        *finds,
    ]


def percent(part: float) -> str:
    """``3.6 %``."""
    return "–" if math.isnan(part) else f"{100 * part:.1f} %"


# Collecting


def collected() -> dict[str, Any]:
    """What runs.json holds."""
    with tempfile.TemporaryDirectory(prefix="calibration-") as folder:
        found = {workload: collect(workload, Path(folder) / workload) for workload in WORKLOADS}
    return {"machine": machine(), "workloads": found}


def collect(workload: str, out: Path) -> dict[str, Any]:
    """Base and planted runs of one workload, interleaved."""
    size = SIZES[workload]
    variants = [word for variant in SIDES.values() for word in ("--variant", variant)]
    counts = ["--repeats", str(RUNS), "--active", str(ACTIVE), "--timed", str(TIMED), "--threads", "1"]
    command = [
        sys.executable,
        "-m",
        "tracediff.collect",
        f"{HERE / 'steps.py'}:{workload}",
        *variants,
        *counts,
        "-o",
        str(out),
        "--",
        str(size),
    ]
    subprocess.run(command, check=True, cwd=HERE.parents[1])
    return {"size": size, "sides": {side: reduced(out / folder) for side, folder in SIDES.items()}}


def reduced(folder: Path) -> dict[str, Any]:
    """One number a run, and one a run and operator, of a set of traces."""
    (traces,) = load_sets([str(folder)])
    assert traces.manifest
    facts = {run.run: run for run in traces.manifest.runs}
    steps = step_average(traces).runs
    told = [facts[int(name.split()[1])] for name in steps]
    values = op_samples(traces).values
    return {
        "period_us": [round(statistics.median(s.period_ns for s in of) / 1000, 3) for of in steps.values()],
        "mean_us": [round(statistics.fmean(s.period_ns for s in of) / 1000, 3) for of in steps.values()],
        "unprofiled_us": [round(statistics.median(s.wall_us for s in run.unprofiled_steps), 3) for run in told],
        "contended": [run.contended for run in told],
        "occupancy": [round(run.occupancy, 4) for run in told],
        "order": [run.order for run in told],
        "attempts": [run.attempts for run in told],
        "ops": {
            table_name(name): np.round(v, 3).tolist() for (category, name), v in values.items() if category == "cpu_op"
        },
    }


def machine() -> str:
    import torch

    with open("/proc/cpuinfo") as lines:
        model = next(
            (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown processor"
        )
    return f"{os.cpu_count()} cores of {model}, shared with other work; torch {torch.__version__}, 1 thread."


if __name__ == "__main__":
    main()
