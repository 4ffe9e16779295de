"""A collection: every variant and repeat in its own process, interleaved, into ``out/<variant>/run<k>/`` with a
manifest a variant.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracediff.collect.user_code import git_commit
from tracediff.collect.variant import Variant
from tracediff.errors import TracediffError

MANIFEST = "tracediff.manifest/1"
COLLECTION = "tracediff.collection/1"
CONTENDED = 0.03
"""A CPU run that misses more than this part of its usual process time in either pass was disturbed."""
ATTEMPTS = 3
"""How often a disturbed run is collected before the last attempt is kept, marked."""


@dataclass
class Collection:
    """What to collect, and what came of it.

    Attributes:
        out: folder of the collection.
        variants: in the order given; the first is what the others are compared with.
        settings: options that the worker takes (workload or target, size, device, steps, detail, …).
        repeats: runs of each variant.
        failed: variant → why it failed.
        runs: variant → its runs' measurements in order.
    """

    out: Path
    variants: list[Variant]
    settings: dict[str, Any]
    repeats: int
    failed: dict[str, str] = field(default_factory=dict)
    runs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    rank: int = field(default_factory=lambda: int(os.environ.get("RANK", "0")))
    world_size: int = field(default_factory=lambda: int(os.environ.get("WORLD_SIZE", "1")))
    _caches: Path = Path()

    def collect(self) -> int:
        """Run everything; returns the exit code: 0, or 1 where a variant failed.

        Raises:
            TracediffError: the disk is full or the folder not writable.
        """
        with tempfile.TemporaryDirectory(prefix="tracediff-cache-") as caches:
            self._caches = Path(caches)
            return self._collect()

    def _collect(self) -> int:
        self._write_collection()  # an interrupted collection has its table, too
        order = 0
        for run, variant in self._interleaved():
            if variant.text in self.failed:
                continue
            order += 1
            self._say(f"{variant.text}, run {run} of {self.repeats}")
            measured = self._run(variant, run, order)
            if measured is not None:
                self.runs.setdefault(variant.text, []).append(measured)
                self._write_manifest(variant)
        self._collect_disturbed_again(order)
        self._write_collection()
        return 1 if self.failed else 0

    def _interleaved(self) -> Iterator[tuple[int, Variant]]:
        """ABBA…: slow drifts of the machine meet all variants alike."""
        for run in range(1, self.repeats + 1):
            for variant in self.variants if run % 2 else reversed(self.variants):
                yield run, variant

    def _run(self, variant: Variant, run: int, order: int, attempt: int = 1) -> dict[str, Any] | None:
        """One process. None where it failed, which is kept in `failed`, and nothing of the variant is left behind."""
        trace = self.out / variant.folder / f"run{run}" / f"rank{self.rank}.pt.trace.json.gz"
        spec = {**self.settings, "variant": variant.text, "trace": str(trace), "rank": self.rank}
        with tempfile.TemporaryDirectory(prefix="tracediff-") as scratch:
            spec_file, result_file = Path(scratch) / "spec.json", Path(scratch) / "result.json"
            spec_file.write_text(json.dumps(spec))
            command = [sys.executable, "-m", "tracediff.collect.worker", str(spec_file), str(result_file)]
            process = subprocess.run(
                command, env=self._environment(variant, order), stderr=subprocess.PIPE, text=True, check=False
            )
            result = json.loads(result_file.read_text()) if result_file.exists() else {}
        if process.returncode or "error" in result:
            self._fail(
                variant,
                result.get("error") or _last_line(process.stderr),
                process.stderr if "error" not in result else "",
            )
            return None
        return {"run": run, "order": order, "attempts": attempt, "contended": False, **result}

    def _environment(self, variant: Variant, order: int) -> dict[str, str]:
        """The worker's environment: set before torch is imported."""
        threads = str(self.settings["threads"])
        fixed = {
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "PYTHONHASHSEED": "0",
            "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1",  # compiled CPU kernels have no events without it
            "TORCHINDUCTOR_CACHE_DIR": str(
                self._caches / variant.folder
            ),  # the first run compiles everything, whatever ran before
            "KINETO_LOG_LEVEL": "5",
        }
        package = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(dict.fromkeys([package, *os.environ.get("PYTHONPATH", "").split(os.pathsep)])).strip(
            os.pathsep
        )
        env = {**os.environ, **fixed, "PYTHONPATH": path}
        if self.world_size > 1:  # each run is a process group of its own: the launcher's store serves only one
            env |= {
                "TORCHELASTIC_USE_AGENT_STORE": "False",
                "MASTER_PORT": str(int(os.environ.get("MASTER_PORT", "29500")) + order),
            }
        return env

    def _fail(self, variant: Variant, reason: str, traceback: str) -> None:
        if traceback:
            sys.stderr.write(traceback)
        self._say(f"{variant.text} failed: {reason}")
        self.failed[variant.text] = reason
        self.runs.pop(variant.text, None)
        shutil.rmtree(self.out / variant.folder, ignore_errors=True)

    def _collect_disturbed_again(self, order: int) -> None:
        """Judged by process time against wall time, never by how long the steps took."""
        if self.settings["device"] != "cpu" or self.world_size > 1:
            return
        for variant in self.variants:
            runs = self.runs.get(variant.text, [])
            for i, measured in enumerate(runs):
                attempt = 1
                while (taken := _taken(runs, i)) > CONTENDED and attempt < ATTEMPTS:
                    attempt, order = attempt + 1, order + 1
                    self._say(
                        f"{variant.text}, run {measured['run']} again: other processes took {taken:.0%} of its time"
                    )
                    again = self._run(variant, measured["run"], order, attempt)
                    if again is None:
                        return
                    runs[i] = again
                runs[i]["contended"] = taken > CONTENDED
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
        found = {
            "schema": COLLECTION,
            "name": self.settings["workload"] or Path(self.settings["target"]).name,
            "size": self.settings["size"],
            "variants": [
                {"variant": v.text, "folder": v.folder, "failed": self.failed.get(v.text)} for v in self.variants
            ],
        }
        write_json(self.out / "collection.json", found)

    def _say(self, text: str) -> None:
        if not self.rank:
            print(text, file=sys.stderr, flush=True)


def _taken(runs: list[dict[str, Any]], i: int) -> float:
    """The part of its usual process time that run ``i`` missed, in the pass that missed more."""
    parts = []
    for key in (
        "occupancy",
        "profiled_occupancy",
    ):  # each against its own median: the profiler adds work of one thread, which changes what is usual
        usual = statistics.median(r[key] for r in runs)
        parts.append(1 - runs[i][key] / usual if usual else 0.0)
    return max(parts)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "the process died without a word"


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` whole or not at all.

    Raises:
        TracediffError: the disk is full, or the folder not writable.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n")
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        reason = f"cannot be written ({(error.strerror or str(error)).lower()})"
        raise TracediffError(str(path), reason, "free some space, or choose another folder with -o") from None
