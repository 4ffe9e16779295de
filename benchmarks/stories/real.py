"""Scores findings on the real pairs whose causes are known (stories.toml).

python benchmarks/stories/real.py prints a row per pair: whether the main cause is the first finding, which causes are
missing, and which findings are not known to be true.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.explain.findings import Finding

HERE = Path(__file__).resolve().parent
TRACES = Path(os.environ.get("TRACEDIFF_TRACES") or HERE.parents[2] / "shared" / "traces")


def main() -> None:
    """Score every story."""
    print("| pair | main cause first | true | misleading | missing |\n|:--|:--|--:|:--|:--|")
    for story in tomllib.loads((HERE / "stories.toml").read_text())["story"]:
        first, true, misleading, missing = score(story)
        pair = f"{story['control']} → {story['test']}"
        print(f"| {pair} | {'yes' if first else 'no'} | {true} | {'; '.join(misleading)} | {'; '.join(missing)} |")


def score(story: dict[str, Any]) -> tuple[bool, int, list[str], list[str]]:
    """(whether the main cause is first, number of true findings, the misleading ones, the missing causes)."""
    findings = compare_sets(*load_sets([str(TRACES / story[side]) for side in ("control", "test")])).findings
    known = [*story["causes"], *story["also"]]
    misleading = [f.title for f in findings if not any(_names(f, known_text) for known_text in known)]
    missing = [cause for cause in story["causes"] if not any(_names(f, cause) for f in findings)]
    return _names(findings[0], story["causes"][0]), len(findings) - len(misleading), misleading, missing


def _names(finding: Finding, cause: str) -> bool:
    code, _, text = cause.partition(": ")
    evidence = (e.label for e in finding.evidence)
    return finding.code == code and text in " ".join([finding.title, finding.detail, *evidence])


if __name__ == "__main__":
    main()
