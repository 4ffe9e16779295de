"""Measures the false alarms and the power of the verdict on real runs: python benchmarks/calibration/bench.py

Collects runs of the two workloads of steps.py, base and planted interleaved (10 minutes), writes one number per run and
operator to runs.json, and the tables to README.md. `--no-collect` makes the tables from the existing runs.json.
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
"""Elements of the planted operator, which takes 5 % of the profiled step on an idle machine. Constant, because sizing
it on a busy machine gave two to three times as many."""
RUNS, ACTIVE, TIMED = 12, 25, 25
RUNS_PER_SIDE = (3, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--no-collect", action="store_true", help="make the tables from the existing runs.json")
    if not parser.parse_args().no_collect:
        RAW.write_text(json.dumps(collect_all(), indent=None, separators=(",", ":")).replace('"aten', '\n"aten') + "\n")
    raw = json.loads(RAW.read_text())
    text = "\n".join([BEGIN, *tables(raw), "", raw["machine"], END])
    print(text)
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + text + rest.partition(END)[2])


# Tables


def tables(raw: dict[str, Any]) -> list[str]:
    """The tables, as lines of Markdown."""
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
        for runs in RUNS_PER_SIDE:
            wrong, flagged = false_alarms(base, runs)
            alarms.append(
                f"| {workload} | {runs} | {percent(wrong)} | {percent(flagged)} | "
                f"{', '.join(map(str, in_order(base, runs)))} |"
            )
        estimates = power(base, planted, WORKLOADS[workload], max(RUNS_PER_SIDE))
        spread = " / ".join(percent(statistics.stdev(map(math.log, side["period_us"]))) for side in (base, planted))
        contended = (
            f"{sum(base['contended']) + sum(planted['contended'])} of "
            f"{len(base['contended']) + len(planted['contended'])}"
        )
        step = f"{statistics.median(base['period_us']) / 1000:.1f} ms"
        cells = [percent(estimates[key]) for key in ("share", "change", "found", "detectable", "first", "first_by_q")]
        finds.append(f"| {workload} | {step} | {spread} | {contended} | {' | '.join(cells)} |")
    return [
        "### Equal runs: false alarms",
        "",
        *alarms,
        "",
        f"### A planted operator, {max(RUNS_PER_SIDE)} runs per side: what is found",
        "",
        *finds,
    ]


def percent(part: float) -> str:
    """``3.6 %``."""
    return "–" if math.isnan(part) else f"{100 * part:.1f} %"


# Collecting


def collect_all() -> dict[str, Any]:
    """Collect all workloads; returns the contents of runs.json."""
    with tempfile.TemporaryDirectory(prefix="calibration-") as folder:
        results = {workload: collect(workload, Path(folder) / workload) for workload in WORKLOADS}
    return {"machine": machine(), "workloads": results}


def collect(workload: str, out: Path) -> dict[str, Any]:
    """Collect base and planted runs of one workload, interleaved."""
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
    """One number per run, and one per run and operator, of a set of traces; times in µs."""
    (traces,) = load_sets([str(folder)])
    assert traces.manifest
    runs_by_number = {run.run: run for run in traces.manifest.runs}
    steps = step_average(traces).runs
    runs = [runs_by_number[int(name.split()[1])] for name in steps]
    values = op_samples(traces).values
    return {
        "period_us": [
            round(statistics.median(s.period_ns for s in run_steps) / 1000, 3) for run_steps in steps.values()
        ],
        "mean_us": [round(statistics.fmean(s.period_ns for s in run_steps) / 1000, 3) for run_steps in steps.values()],
        "unprofiled_us": [round(statistics.median(s.wall_us for s in run.unprofiled_steps), 3) for run in runs],
        "contended": [run.contended for run in runs],
        "occupancy": [round(run.occupancy, 4) for run in runs],
        "order": [run.order for run in runs],
        "attempts": [run.attempts for run in runs],
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
