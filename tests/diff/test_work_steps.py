"""Work step by step: the steps' mean is what the comparison says, of every group, on every pair."""

from fractions import Fraction
from itertools import groupby
from pathlib import Path

import pytest
from real_sets import real_comparison, real_sets
from traces import PAIRS, needs_traces

from tracediff.aggregate.samples import work_per_step
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets

SAMPLES = Path(__file__).parents[2] / "sample_traces" / "vit"


def mean(steps):
    """Runs, of each its ranks, of each its steps: the mean of means, ns and count."""
    runs = []
    for _, run in groupby(steps, key=lambda s: s.run):
        of_rank = [list(rank) for _, rank in groupby(sorted(run, key=lambda s: s.rank), key=lambda s: s.rank)]
        means = [
            [Fraction(sum(getattr(s, what) for s in rank), len(rank)) for rank in of_rank] for what in ("ns", "count")
        ]
        runs.append([sum(step_means) / len(of_rank) for step_means in means])
    return [sum(step_means) / len(runs) for step_means in zip(*runs, strict=True)]


def closes(sets, comparison):
    gpu = comparison.control.has_gpu or comparison.test.has_gpu
    for group in comparison.work.groups[:60]:
        sums = ((group.time.control, group.count.control), (group.time.test, group.count.test))
        for traces, tree, items, (ns, count) in zip(sets, comparison.trees, group.items, sums, strict=True):
            steps = work_per_step(traces, tree, gpu, items)
            assert mean(steps) == [Fraction(ns, comparison.scale), Fraction(count, comparison.scale)]


@needs_traces
@pytest.mark.parametrize("pair", [*PAIRS, ("dlrm_8ranks", "dlrm_8ranks")], ids="-".join)
def test_the_mean_of_the_steps_is_what_the_group_took(pair):
    closes(real_sets(*pair), real_comparison(*pair))


@pytest.mark.slow
def test_runs_weigh_alike():
    sets = load_sets([SAMPLES / "eager", SAMPLES / "compile"])
    closes(sets, compare_sets(*sets))
