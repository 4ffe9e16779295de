"""A collection: each run of each variant in its own process, interleaved, written to ``out/<variant>/run<k>/`` with one
manifest per variant.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracediff.child import child_command
from tracediff.collect.run_progress import PHASES, OnRun, RunProgress, RunTimes
from tracediff.collect.user_code import git_commit
from tracediff.collect.variant import Variant
from tracediff.temporary import temporary_folder
from tracediff.write import make_folder, write_text

MANIFEST = "tracediff.manifest/1"
COLLECTION = "tracediff.collection/1"
CONTENDED = 0.03
"""A CPU run whose occupancy is lower than the median by more than this fraction, in either pass, was disturbed."""
POLL_S = 0.5
"""Interval in seconds at which the phase of a run is read: seldom, so that it does not disturb the run."""
ATTEMPTS = 3
"""Attempts per run by default; if the last one is disturbed as well, it is kept and marked as contended."""


@dataclass
class Collection:
    """The settings of a collection, and its results so far.

    Attributes:
        out: folder of the collection.
        variants: in the order given; the others are compared with the first.
        settings: options of the worker (workload or target, size, device, steps, detail, …).
        repeats: runs of each variant. attempts: most attempts of a disturbed run.
        failed: variant → reason of the failure.
        runs: variant → the measurements of its runs, in order.
        rank, world_size: of this process, from the environment of torchrun.
    """

    out: Path
    variants: list[Variant]
    settings: dict[str, Any]
    repeats: int
    attempts: int = ATTEMPTS
    failed: dict[str, str] = field(default_factory=dict)
    runs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    rank: int = field(default_factory=lambda: int(os.environ.get("RANK", "0")))
    world_size: int = field(default_factory=lambda: int(os.environ.get("WORLD_SIZE", "1")))
    _caches: Path = Path()
    _times: RunTimes = field(default_factory=RunTimes)
    _on_run: OnRun | None = None

    def collect(self, on_run: OnRun | None = None) -> int:
        """Collect all runs.

        Args:
            on_run: called during each run, twice per second; None to write a line per phase to standard error.

        Returns:
            The exit code: 0, or 1 if a variant failed.

        Raises:
            TracediffError: the disk is full, or the folder is not writable.
        """
        with temporary_folder() as self._caches:
            self._on_run = on_run
            return self._collect()

    def _collect(self) -> int:
        self._write_collection()  # so that an interrupted collection has a table as well
        order = 0
        runs = list(self._interleaved())
        for k, (run, variant) in enumerate(runs):
            if variant.text in self.failed:
                continue
            order += 1
            self._times.upcoming = [v.text for _, v in runs[k + 1 :] if v.text not in self.failed]
            measured = self._run(variant, run, order)
            if measured is not None:
                self.runs.setdefault(variant.text, []).append(measured)
                self._write_manifest(variant)
        self._repeat_disturbed_runs(order)
        self._write_collection()
        return 1 if self.failed else 0

    def _interleaved(self) -> Iterator[tuple[int, Variant]]:
        """(run, variant) in the order ABBA…, so that slow drifts of the machine affect all variants equally."""
        for run in range(1, self.repeats + 1):
            for variant in self.variants if run % 2 else reversed(self.variants):
                yield run, variant

    def _run(self, variant: Variant, run: int, order: int, attempt: int = 1) -> dict[str, Any] | None:
        """Collect one run in a process of its own; None if it failed: the variant's files are then removed."""
        trace = self.out / variant.folder / f"run{run}" / f"rank{self.rank}.pt.trace.json.gz"
        spec = {**self.settings, "variant": variant.text, "trace": str(trace), "rank": self.rank}
        with temporary_folder() as scratch:
            spec_file, result_file, phase_file = scratch / "spec.json", scratch / "result.json", scratch / "phase"
            spec_file.write_text(json.dumps({**spec, "phase_file": str(phase_file)}))
            command = child_command("tracediff.collect.worker", str(spec_file), str(result_file))
            env = {**self._environment(variant, order), "TMPDIR": str(scratch)}  # torch's own files end with the run
            self._times.start()
            code, errors = self._watched(command, env, variant, run, phase_file)
            self._times.finish(variant.text)
            result = json.loads(result_file.read_text()) if result_file.exists() else {}
        if code or "error" in result:
            self._fail(variant, result.get("error") or _last_line(errors), errors if "error" not in result else "")
            return None
        return {"run": run, "order": order, "attempts": attempt, "contended": False, **result}

    def _watched(
        self, command: list[str], env: dict[str, str], variant: Variant, run: int, phase_file: Path
    ) -> tuple[int, str]:
        """Run a worker and show its phases; returns its exit code and what it wrote to standard error."""
        phase = self._show(variant, run, PHASES[0], "")
        with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
            try:
                while True:
                    try:
                        errors = process.communicate(timeout=POLL_S)[1]
                        return process.returncode, errors
                    except subprocess.TimeoutExpired:
                        phase = self._show(variant, run, _phase(phase_file), phase)
            except BaseException:
                process.kill()
                raise

    def _show(self, variant: Variant, run: int, phase: str, before: str) -> str:
        """Show the current phase of a run, without ``on_run`` only if it is not the one ``before``; returns it."""
        times = self._times
        progress = RunProgress(
            variant=variant.text,
            run=run,
            repeats=self.repeats,
            phase=phase,
            fraction=times.fraction,
            left_s=times.left_s(variant.text),
        )
        if self._on_run and not self.rank:
            self._on_run(progress)
        elif phase != before:
            self._log(str(progress))
        return phase

    def _environment(self, variant: Variant, order: int) -> dict[str, str]:
        """The environment of the worker: these variables must be set before torch is imported."""
        threads = str(self.settings["threads"])
        fixed = {
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "PYTHONHASHSEED": "0",
            "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1",  # without it, compiled CPU kernels have no events
            "TORCHINDUCTOR_CACHE_DIR": str(
                self._caches / variant.folder
            ),  # the first run compiles everything, independent of earlier runs
            "KINETO_LOG_LEVEL": "5",
        }
        package = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(dict.fromkeys([package, *os.environ.get("PYTHONPATH", "").split(os.pathsep)])).strip(
            os.pathsep
        )
        env = {**os.environ, **fixed, "PYTHONPATH": path}
        if self.world_size > 1:  # each run has its own process group, but the launcher's store serves only one
            env |= {
                "TORCHELASTIC_USE_AGENT_STORE": "False",
                "MASTER_PORT": str(int(os.environ.get("MASTER_PORT", "29500")) + order),
            }
        return env

    def _fail(self, variant: Variant, reason: str, traceback: str) -> None:
        if traceback:
            sys.stderr.write(traceback)
        self._log(f"{variant.text} failed: {reason}")
        self.failed[variant.text] = reason
        self.runs.pop(variant.text, None)
        shutil.rmtree(self.out / variant.folder, ignore_errors=True)

    def _repeat_disturbed_runs(self, order: int) -> None:
        """Collect disturbed runs again; the criterion is process time per wall time, never the step time."""
        if self.settings["device"] != "cpu" or self.world_size > 1:
            return
        for variant in self.variants:
            runs = self.runs.get(variant.text, [])
            for i, measured in enumerate(runs):
                attempt = 1
                while (lost := _lost_time(runs, i)) > CONTENDED and attempt < self.attempts:
                    attempt, order = attempt + 1, order + 1
                    self._log(
                        f"{variant.text}, run {measured['run']}: repeated, because other processes took {lost:.0%} of "
                        f"its CPU time"
                    )
                    again = self._run(variant, measured["run"], order, attempt)
                    if again is None:
                        return
                    runs[i] = again
                runs[i]["contended"] = lost > CONTENDED
            if runs:
                self._write_manifest(variant)

    def _write_manifest(self, variant: Variant) -> None:
        if self.rank:
            return
        runs = self.runs[variant.text]
        settings = self.settings
        manifest = {
            "schema": MANIFEST,
            "variant": variant.text,
            "workload": settings["workload"],
            "target": Path(settings["target"]).name if settings["target"] else None,
            "size": settings["size"],
            "git_commit": git_commit(settings["target"]) if settings["target"] else None,
            "world_size": self.world_size,
            "settings": {
                k: settings[k]
                for k in ("device", "threads", "seed", "wait", "warmup", "active", "timed", "detail", "annotate")
            },
            "environment": runs[-1]["environment"],
            "interleaved": len(self.variants) > 1,
            "modules": next((r["modules"] for r in runs if r["modules"]), {}),
            "provenance": next((r["provenance"] for r in runs if r["provenance"]), []),
            "runs": [{k: v for k, v in r.items() if k not in ("environment", "modules", "provenance")} for r in runs],
        }
        write_json(self.out / variant.folder / "manifest.json", manifest)

    def _write_collection(self) -> None:
        if self.rank:
            return
        collection = {
            "schema": COLLECTION,
            "name": self.settings["workload"] or Path(self.settings["target"]).name,
            "size": self.settings["size"],
            "variants": [
                {"variant": v.text, "folder": v.folder, "failed": self.failed.get(v.text)} for v in self.variants
            ],
        }
        write_json(self.out / "collection.json", collection)

    def _log(self, text: str) -> None:
        if not self.rank:
            print(text, file=sys.stderr, flush=True)


def _lost_time(runs: list[dict[str, Any]], i: int) -> float:
    """The fraction by which the occupancy of run ``i`` is below the median, in the pass in which it is larger."""
    fractions = []
    for key in (
        "occupancy",
        "profiled_occupancy",
    ):  # each pass has its own median: the profiler adds single-threaded work
        median = statistics.median(r[key] for r in runs)
        fractions.append(1 - runs[i][key] / median if median else 0.0)
    return max(fractions)


def _phase(file: Path) -> str:
    """The phase that a worker has written to ``file``; build until then."""
    try:
        phase = file.read_text()
    except OSError:
        phase = ""
    return phase if phase in PHASES else PHASES[0]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "the process exited without output"


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as JSON, atomically.

    Raises:
        TracediffError: the disk is full, or the folder is not writable.
    """
    make_folder(path.parent)
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")
