"""The real traces that tests run against: published traces of other projects, which are not part of this repository.

They are in the folder that TRACEDIFF_TRACES names, else in ``../shared/traces`` beside the repository where that
exists, else in ``tests/data``, which
``make traces`` fills from the projects that published them (tests/traces.toml). Tests that need them carry
`needs_traces`.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SHARED = HERE.parents[1] / "shared" / "traces"
FOLDER = Path(os.environ.get("TRACEDIFF_TRACES") or (SHARED if SHARED.is_dir() else HERE / "data"))

PAIRS_FOLDER = Path(os.environ.get("TRACEDIFF_PAIRS") or SHARED.with_name("pairs"))
"""Pairs of traces between whose sides somebody changed one thing (tests/pair_stories.py); absent in most checkouts."""

FILES: list[Path] = sorted(p for p in FOLDER.rglob("*") if p.name.endswith((".json", ".json.gz")))
"""All trace files (41 of them), in order of path; empty where the folder is absent."""

NAMES: list[str] = [p.relative_to(FOLDER).as_posix() for p in FILES]
"""The same relative to the folder, as TRUTH.tsv and traces.toml write them. Good as ids of parametrised tests."""

PAIRS = [
    ("resnet50_workers0", "resnet50_workers4"),
    ("resnet50_workers0", "resnet50_workers0_repeat"),
    ("transformer_h100_run1", "transformer_h100_run2"),
    ("tinylm_compile", "tinylm_cudagraph"),
    ("hta_control", "hta_test"),
    ("bertsmall_h100", "bertsmall_mi300"),
    ("falconsai_h100", "falconsai_mi300"),
    ("timesformer_h100", "timesformer_mi300"),
    ("hta_tiny/base.json.gz", "hta_tiny/test.json.gz"),
]
"""Control and test of real comparisons: each pair is one program twice, or two variants of it."""

needs_traces = pytest.mark.traces


def trace(name: str) -> Path:
    """The trace file ``name`` ("hta_tiny/base.json.gz"), or the only file of the folder ``name`` ("tinylm_compile")."""
    path = FOLDER / name
    if path.is_dir():
        (path,) = (p for p in FILES if p.parent == path)
    return path


def truth() -> dict[str, dict[str, str]]:
    """The rows of TRUTH.tsv by file name: column → text exactly as printed there. A slow, plain reader computed them
    from the JSON alone. Empty where
    there are no traces."""
    if not FILES:
        return {}
    with open(HERE / "TRUTH.tsv", newline="") as file:
        return {row["file"]: row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}
