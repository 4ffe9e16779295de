"""The manifest of a set that a loop of the user's records, run by run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tracediff.collect.driver import CONTENDED, MANIFEST, write_json
from tracediff.collect.measure import environment, peak_memory
from tracediff.collect.user_code import git_commit
from tracediff.environment import number_of
from tracediff.errors import TracediffError


def add_run(run_folder: Path, settings: dict[str, Any], device: str, waiting: float | None = None) -> None:
    """Add the run in ``run_folder``, which this process has recorded, to the manifest of the set above it; runs whose
    folders are gone are dropped.

    Unlike those of `tracediff.collect`, the steps were not timed without the profiler. Peak memory is the process's so
    far.

    Args:
        settings: of the recording: wait, warmup and active, where they are known, and detail.
        device: ``cuda`` if GPU events were recorded, else ``cpu``.
        waiting: the part of the recorded steps in which threads waited for a processor, where that is known. A run on
            the CPU that waited for long is marked as disturbed.

    Raises:
        TracediffError: another program's manifest is in the way, or the folder is not writable.
    """
    import torch

    out, threads = run_folder.parent, torch.get_num_threads()
    number = int(run_folder.name.removeprefix("run"))
    before = _read(out / "manifest.json")
    disturbed = device == "cpu" and (waiting or 0) > CONTENDED
    run = {"run": number, "peak_memory_bytes": peak_memory(device), "profiled_waiting": waiting, "contended": disturbed}
    others = [r for r in before.get("runs", []) if r["run"] != number and (out / f"run{r['run']}").is_dir()]
    write_json(
        out / "manifest.json",
        {
            **before,
            "schema": MANIFEST,
            "variant": before.get("variant", out.resolve().name),
            "git_commit": _commit(before if others else {}),
            "world_size": of_group("world_size", 1),
            "settings": {"device": device, "threads": threads, **settings},
            "environment": environment(device, threads),
            "runs": sorted([*others, run], key=lambda r: int(r["run"])),
        },
    )


def _commit(before: dict[str, Any]) -> str | None:
    """The commit of the program that runs, with ``+changes`` if files are modified; None outside a checkout, in a
    notebook, and if a run of the set so far was of another.
    """
    program = getattr(sys.modules.get("__main__"), "__file__", None)
    commit = git_commit(program) if program else None
    return commit if before.get("git_commit", commit) == commit else None


def _read(path: Path) -> dict[str, Any]:
    """The manifest so far, empty if there is none."""
    try:
        found = json.loads(path.read_text())
        if found["schema"] == MANIFEST and all(isinstance(run["run"], int) for run in found["runs"]):
            return dict(found)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        pass
    raise TracediffError(
        str(path), "not a manifest of this version, so the run is not added", "record to another folder"
    )


def of_group(what: str, alone: int) -> int:
    """The ``rank`` or ``world_size`` of this process: by torch.distributed, else by the environment, else ``alone``."""
    from torch import distributed

    if distributed.is_available() and distributed.is_initialized():
        return int(getattr(distributed, f"get_{what}")())
    return number_of(what.upper(), alone)
