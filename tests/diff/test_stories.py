"""Changes planted into real traces (benchmarks/stories/plant.py): the planted cause is the first finding."""

import importlib
import json
import random
import sys
from pathlib import Path

import pytest
from traces import FOLDER, needs_traces

from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "stories"))
bench, plant, late = (importlib.import_module(name) for name in ("bench", "plant", "late_rank"))

pytestmark = needs_traces

CASES = [
    ("every gemm 10 % slower", "tinylm_compile"),
    ("one kernel twice as slow", "tinylm_cudagraph"),
    ("waiting for the DataLoader", "transformer_h100_run1"),
    ("one launch of 12 ms", "transformer_h100_run1"),
    ("one slow step", "resnet50_workers4"),
    ("5 % of kernels renamed", "tinylm_compile"),
    ("an operator added", "timesformer_mi300"),
    ("pinned → pageable", "hta_control"),
    ("another batch", "bertsmall_mi300"),
]


@pytest.mark.parametrize(("name", "trace"), CASES, ids=[name for name, _ in CASES])
def test_the_planted_cause_comes_first(name, trace, tmp_path):
    events = bench.read(FOLDER / trace)
    planted = next(
        found for seed in range(10, 20) if (found := plant.PLANTS[name](events, random.Random(seed))) is not None
    )
    control, test = tmp_path / "control.json", tmp_path / "test.json"
    control.write_text(json.dumps({"traceEvents": events}))
    test.write_text(json.dumps({"traceEvents": planted.events}))
    sets = load_sets([str(control), str(test)])
    findings = compare_sets(*sets, force=True).findings
    assert bench.is_first(findings, planted), [f"{f.code}: {f.title}" for f in findings]
    turned = compare_sets(*reversed(sets), force=True).findings
    if planted.codes and turned[0].code not in ("workload-changed", "count-change", "outlier-step"):
        assert turned[0].delta_us == pytest.approx(-findings[0].delta_us, rel=1e-6)


def test_a_late_rank_is_named():
    assert all(late.late_rank(FOLDER / "dlrm_8ranks", random.Random(seed), shows_misses=True) for seed in (100, 101))
