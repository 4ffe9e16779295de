"""A collection: each run of each variant in its own process, interleaved, written to ``out/<variant>/run<k>/`` with one
manifest per variant.
"""

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracediff import thresholds
from tracediff.collect.run_progress import PHASES, OnRun, RunProgress, RunTimes
from tracediff.collect.user_code import git_commit
from tracediff.collect.variant import Variant
from tracediff.errors import number_of
from tracediff.process.child import child_command
from tracediff.process.temporary import temporary_folder
from tracediff.write import make_folder, write_text

MANIFEST = "tracediff.manifest/1"
COLLECTION = "tracediff.collection/1"
OF_VARIANT = ("modules", "provenance", "items", "lost_format", "fx_nodes")
"""What a worker returns that is the same in all runs of a variant: once in its manifest."""
OF_RUN = ("threads", "seed", "wait", "warmup", "active", "timed", "detail", "annotate")
"""Options of the worker that its measurements depend on."""
OF_PROFILER = re.compile(r"STAGE:|\[[WI]\d|[WI]\d{4} |INFO|WARNING")
POLL_S = 0.5
"""Interval in seconds at which the phase of a run is read: seldom, so that it does not disturb the run."""
ATTEMPTS = 3
"""Attempts per run by default; if the last one is disturbed as well, it is kept and marked as contended."""
TIMED_OUT, REFUSED = -1000, 2
"""Codes of a worker that was killed because it took too long, and of one that refused in a line."""
TIMEOUT_S = 20 * 60
"""A run that takes longer by default does not end."""
Runs = dict[int, dict[str, Any]]
EPHEMERAL, FREE = 32_768, range(20_000, 30_000)
"""Ports from which systems take those of connections, where the next may be in use; and ports that few programs use."""


@dataclass
class Collection:
    """The settings of a collection, and its results so far.

    Attributes:
        out: folder of the collection.
        variants: in the order given; the others are compared with the first.
        settings: options of the worker (workload or target, size, device, steps, detail, …).
        repeats: runs of each variant. attempts: most attempts of a disturbed run. timeout_s: most seconds of a run.
        failed: variant → which run failed and why; it has no further runs.
        runs: variant → run → its measurements, of whole runs in order.
        rank, world_size: of this process, from the environment of torchrun.
    """

    out: Path
    variants: list[Variant]
    settings: dict[str, Any]
    repeats: int
    attempts: int = ATTEMPTS
    timeout_s: float = TIMEOUT_S
    failed: dict[str, str] = field(default_factory=dict)
    runs: dict[str, Runs] = field(default_factory=dict)
    rank: int = field(default_factory=lambda: number_of("RANK", 0))
    world_size: int = field(default_factory=lambda: number_of("WORLD_SIZE", 1))
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
        self._on_run = on_run
        self._write_collection()  # so that an interrupted collection has a table as well
        order = 0
        runs = list(self._interleaved())
        with temporary_folder() as self._caches:
            for k, (run, variant) in enumerate(runs):
                if variant.text in self.failed:
                    continue
                order += 1
                self._times.upcoming = [v.text for _, v in runs[k + 1 :] if v.text not in self.failed]
                measured = self._run(variant, run, order)
                if measured is not None:
                    self.runs.setdefault(variant.text, {})[run] = measured
                    self._write_manifest(variant)
            self._repeat_disturbed_runs(order)
        for variant in self.variants:
            if self.runs.get(variant.text):
                self._write_manifest(variant)
        self._write_collection()
        return 1 if self.failed else 0

    def _interleaved(self) -> Iterator[tuple[int, Variant]]:
        """(run, variant) in the order ABBA…, so that slow drifts of the machine affect all variants equally."""
        for run in range(1, self.repeats + 1):
            for variant in self.variants if run % 2 else reversed(self.variants):
                yield run, variant

    def _run(self, variant: Variant, run: int, order: int, attempt: int = 1) -> dict[str, Any] | None:
        """Collect one run in a process of its own; None if it failed."""
        trace = self.out / variant.folder / f"run{run}" / f"rank{self.rank}.pt.trace.json.gz"
        spec = {**self.settings, "variant": variant.text, "trace": str(trace), "rank": self.rank}
        with temporary_folder() as scratch:
            spec_file, result_file, phase_file = scratch / "spec.json", scratch / "result.json", scratch / "phase"
            spec_file.write_text(json.dumps({**spec, "phase_file": str(phase_file)}))
            command = child_command("tracediff.collect.worker", str(spec_file), str(result_file))
            cache = self._caches / variant.folder
            if run == 1:  # each attempt of it compiles everything; later runs find what the last one compiled
                shutil.rmtree(cache, ignore_errors=True)
            env = self._environment(cache, order)
            env["TMPDIR"] = str(scratch)  # torch's own files end with the run
            self._times.start()
            try:
                code, errors = self._watched(command, env, variant, run, phase_file)
            except BaseException:
                self._remove_unfinished(variant, run)
                raise
            self._times.finish(variant.text)
            result = json.loads(result_file.read_text()) if result_file.exists() else {}
        if code or "error" in result or not result:
            sys.stderr.write("" if code == REFUSED else errors)
            self._fail(variant, run, result.get("error") or self._how_it_ended(code, errors))
            return None
        return {"run": run, "order": order, "attempts": attempt, "contended": False, **result}

    def _remove_unfinished(self, variant: Variant, run: int) -> None:
        """Remove what an interrupted run left, and the variant's folder with its only one."""
        runs = self.runs.get(variant.text, {})
        if run not in runs:
            folder = self.out / variant.folder
            shutil.rmtree(folder / f"run{run}" if runs else folder, ignore_errors=True)

    def _watched(
        self, command: list[str], env: dict[str, str], variant: Variant, run: int, phase_file: Path
    ) -> tuple[int, str]:
        """Run a worker and show its phases; returns its exit code and what it wrote to standard error. One that does
        not end in time is killed.
        """
        phase, until = self._show(variant, run, PHASES[0], ""), time.monotonic() + self.timeout_s
        with subprocess.Popen(command, env=env, stderr=subprocess.PIPE) as process:
            try:
                while True:
                    has_ended = process.poll() is not None  # asked before what it wrote last is read
                    try:
                        errors = process.communicate(timeout=POLL_S)[1]
                        has_ended = True
                    except subprocess.TimeoutExpired as waiting:  # processes that it started may have its output open
                        errors = waiting.stderr or b""
                        phase = self._show(variant, run, _phase(phase_file), phase)
                    if has_ended:
                        return process.returncode, errors.decode(errors="replace")
                    if time.monotonic() > until:
                        process.kill()
                        return TIMED_OUT, errors.decode(errors="replace")
            except BaseException:
                process.kill()
                raise

    def _how_it_ended(self, code: int, errors: str) -> str:
        """Why a worker failed that could not say so itself."""
        if code == TIMED_OUT:
            return f"it did not end within {self.timeout_s / 60:g} minutes (--timeout)"
        if code < 0:
            memory = ", usually because memory ran out" if code == -signal.SIGKILL else ""
            name = next((member.name for member in signal.Signals if member == -code), f"signal {-code}")
            return f"its process was ended by {name}{memory}"
        return (_last_line(errors) if code else "") or f"its process ended itself, with exit code {code}"

    def _show(self, variant: Variant, run: int, phase: str, before: str) -> str:
        """Show the current phase of a run, without ``on_run`` only if it is not the one ``before``; returns it."""
        times = self._times
        left_s = times.left_s(variant.text)
        progress = RunProgress(variant.text, run, self.repeats, phase, times.fraction, left_s)
        if self._on_run and not self.rank:
            self._on_run(progress)
        elif phase != before:
            self._log(str(progress))
        return phase

    def _environment(self, cache: Path, order: int) -> dict[str, str]:
        """The environment of the worker: these variables must be set before torch is imported."""
        threads = str(self.settings["threads"])
        fixed = {
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "PYTHONHASHSEED": "0",
            "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1",  # without it, compiled CPU kernels have no events
            "TORCHINDUCTOR_CACHE_DIR": str(cache),
            "KINETO_LOG_LEVEL": "5",
        }
        package = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(dict.fromkeys([package, *os.environ.get("PYTHONPATH", "").split(os.pathsep)])).strip(
            os.pathsep
        )
        env = {**os.environ, **fixed, "PYTHONPATH": path}
        if self.world_size > 1:  # each run has its own process group, but the launcher's store serves only one
            env |= {"TORCHELASTIC_USE_AGENT_STORE": "False", "MASTER_PORT": str(_port(order))}
        return env

    def _fail(self, variant: Variant, run: int, reason: str) -> None:
        """Note why a run failed, and remove what it left; an earlier attempt of it is kept whole."""
        runs = self.runs.get(variant.text, {})
        if run in runs:
            self._log(f"{variant.text}, run {run}: kept as it was, because collecting it again failed: {reason}")
            return
        self._log(f"{variant.text}, run {run} failed: {reason}")
        self.failed[variant.text] = f"run {run}: {reason}" if self.repeats > 1 and runs else reason
        self._remove_unfinished(variant, run)

    def _repeat_disturbed_runs(self, order: int) -> None:
        """Collect disturbed runs again, in the order ABBA…; the step time is not a criterion."""
        if self.world_size > 1:
            return
        for attempt in range(2, self.attempts + 1):
            for run, variant in self._interleaved():
                runs = self.runs.get(variant.text, {})
                if run not in runs or (lost_share := self._lost_share(runs, run)) <= thresholds.CONTENDED:
                    continue
                order += 1
                cause = "other processes took" if self._on_cpu else "heat or its supply slowed the GPU down for"
                self._log(f"{variant.text}, run {run}: repeated, because {cause} {lost_share:.0%} of its time")
                runs[run] = self._run(variant, run, order, attempt) or runs[run]
                self._write_manifest(variant)  # the trace is another one now
        for runs in self.runs.values():
            for run, measured in runs.items():
                measured["contended"] = self._lost_share(runs, run) > thresholds.CONTENDED

    @property
    def _on_cpu(self) -> bool:
        return bool(self.settings["device"] == "cpu")

    def _lost_share(self, runs: Runs, run: int) -> float:
        """The part of a run that is lost: to other processes, or on a GPU to throttling."""
        return _lost_time(runs, run) if self._on_cpu else float((runs[run].get("clocks") or {}).get("throttled", 0.0))

    def _write_manifest(self, variant: Variant) -> None:
        if self.rank:
            return
        runs = list(self.runs[variant.text].values())
        was_repeated = any(r["attempts"] > 1 for every in self.runs.values() for r in every.values())
        settings = self.settings
        manifest = {
            "schema": MANIFEST,
            "variant": variant.text,
            "workload": settings["workload"],
            "target": Path(settings["target"]).name if settings["target"] else None,
            "size": settings["size"],
            "git_commit": git_commit(settings["target"]) if settings["target"] else None,
            "world_size": self.world_size,
            "settings": {k: settings[k] for k in ("device", *OF_RUN)},
            "environment": runs[-1]["environment"],
            "interleaved": len(self.variants) > 1 and not was_repeated,  # such a run is no longer beside its round
            **{name: next((r[name] for r in runs if r[name]), runs[-1][name]) for name in OF_VARIANT},
            "runs": [{k: v for k, v in r.items() if k not in (*OF_VARIANT, "environment")} for r in runs],
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


def _port(order: int) -> int:
    """Of the process group of a run, the same on every rank: the launcher's and ``order``, of which only the launcher's
    own is known to be free.
    """
    port = number_of("MASTER_PORT", 29500) + order
    return port if port < EPHEMERAL else FREE[port % len(FREE)]


def _lost_time(runs: Runs, run: int) -> float:
    """The part of ``run`` in which it waited for a processor, in the pass in which it is larger. Where the system
    does not report it, the part by which its occupancy is below the median of ``runs``.
    """
    waits = [runs[run][key] for key in ("waiting", "profiled_waiting")]
    if None not in waits:
        return float(max(waits))
    fractions = []
    for key in ("occupancy", "profiled_occupancy"):  # each has its own median: the profiler's work is single-threaded
        median = statistics.median(measured[key] for measured in runs.values())
        fractions.append(1 - runs[run][key] / median if median else 0.0)
    return max(fractions)


def _phase(file: Path) -> str:
    """The phase that a worker has written to ``file``; build until then."""
    try:
        phase = file.read_text()
    except OSError:
        phase = ""
    return phase if phase in PHASES else PHASES[0]


def _last_line(text: str) -> str:
    """The last line that is none of the profiler's own; empty if there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not OF_PROFILER.match(line)]
    return lines[-1] if lines else ""


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as JSON, atomically.

    Raises:
        TracediffError: the disk is full, or the folder is not writable.
    """
    make_folder(path.parent)
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")
