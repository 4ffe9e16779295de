"""The options that a project sets once: ``[tool.tracediff]`` in the nearest pyproject.toml."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracediff.errors import TracediffError, did_you_mean, quoted

FILE, TABLE = "pyproject.toml", "[tool.tracediff]"
PROJECT = "TRACEDIFF_PROJECT"
"""The environment variable that names the folder to begin at, if it is not the current one."""
KEYS = ("step-marker", "families", "jobs", "max-memory", "keep-going", "equivalence-band", "noise-floor")
"""Options that hold for every set of a project. None that starts something or reaches another machine."""


def project_settings() -> dict[str, Any]:
    """Parameter of commands → its value, from the nearest pyproject.toml of the current folder and those above.

    Empty if that has no such table.

    Raises:
        TracediffError: a key is unknown, or a value is neither a text, a number, true nor false.
    """
    folder = Path(os.environ.get(PROJECT) or os.curdir).absolute()
    path = next((file for parent in (folder, *folder.parents) if (file := parent / FILE).is_file()), None)
    if path is None or TABLE not in path.read_text(encoding="utf-8", errors="replace"):
        return {}
    from tracediff.ingest.documents import read_toml

    found = read_toml(path, f"correct {FILE}").get("tool", {}).get("tracediff", {})
    return dict(_parameters(found, path))


def _parameters(found: dict[str, Any], path: Path) -> Iterable[tuple[str, Any]]:
    where = f"{path}, {TABLE}"
    for key, value in found.items():
        if key not in KEYS:
            raise TracediffError(
                where, f"unknown key {quoted(key)}", did_you_mean(key, KEYS, f"keys: {', '.join(KEYS)}")
            )
        if not isinstance(value, str | int | float):
            raise TracediffError(where, f"{key} is not one value", "write a text, a number, true or false")
        yield key.replace("-", "_"), str(path.parent / str(value)) if key == "families" else value
