"""Graph replays against the same of another batch size, whose partners are known (benchmarks/matching/variants.py)."""

import importlib.util
import random
import sys
from pathlib import Path
from statistics import fmean

import pytest
from traces import FOLDER, needs_traces

SPEC = importlib.util.spec_from_file_location(
    "variants", Path(__file__).parents[2] / "benchmarks" / "matching" / "variants.py"
)
variants = importlib.util.module_from_spec(SPEC)
sys.modules["variants"] = variants  # dataclasses look their module up
SPEC.loader.exec_module(variants)

pytestmark = needs_traces


@pytest.mark.parametrize("name", variants.REPLAYS)
def test_events_of_another_batch_size_are_paired_rightly(name):
    tree = variants.replay(FOLDER / name)
    scores = [variants.score(tree, seed) for seed in range(100, 105)]
    assert fmean(s.events for s in scores) >= 0.95
    assert fmean(s.time for s in scores) >= 0.91
    assert fmean(s.precision for s in scores) >= 0.93


def test_a_variant_keeps_what_it_says_of_partners():
    tree = variants.replay(FOLDER / "tinylm_cudagraph")
    other, partners = variants.variant(tree, random.Random(7))
    orders = {work.order for work in other.work}
    assert {order for found in partners.values() for order in found} <= orders
    assert len({work.launch_shape for work in tree.work} & {work.launch_shape for work in other.work}) < 100
    assert sum(work.ns for work in other.work) > 2 * sum(work.ns for work in tree.work)
