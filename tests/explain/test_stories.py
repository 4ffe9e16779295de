"""Changes planted into real traces (benchmarks/stories): the explanation names the cause, and nothing else."""

import importlib
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from traces import FOLDER, needs_traces

from tracediff.explain.compare import compare_sets

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "stories"))
bench, plant, retime, judge = (importlib.import_module(name) for name in ("bench", "plant", "retime", "judge"))

pytestmark = needs_traces

CASES = [
    ("a family of kernels slower", "tinylm_compile"),
    ("one kernel slower", "tinylm_cudagraph"),
    ("one kernel slower", "vllm_graph_mi300"),
    ("an operator added", "bertsmall_mi300"),
    ("an operator removed", "falconsai_mi300"),
    ("an operator removed", "transformer_h100_run1"),
    ("one long call", "transformer_h100_run1"),
    ("one long call", "dlrm_8ranks"),
    ("one stretch of Python", "bertsmall_h100"),
    ("another batch", "bertsmall_mi300"),
    ("another program", "tinylm_compile"),
    ("waiting for the DataLoader", "transformer_h100_run1"),
    ("all operators slower", "falconsai_h100"),
    ("GPU-bound to host-bound", "tinylm_compile"),
    ("host-bound to GPU-bound", "triton_mi300"),
    ("5 % of kernels renamed", "tinylm_compile"),
    ("noise", "tinylm_cudagraph"),
]


@cache
def recorded(name):
    trace = bench.read(FOLDER / name)
    return trace, bench.loaded(trace, trace.events)


def compared(name, kind):
    """(comparison, what was planted) of the first variant of ``kind``."""
    trace, control = recorded(name)
    planted = next(planted for _, planted, _ in bench.variants(name, trace, 5, (kind,)))
    test = bench.loaded(trace, trace.apply(planted.change))
    sets = (test, control) if planted.turned else (control, test)
    return compare_sets(*sets, force=True), planted, sets


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind} in {name}" for kind, name in CASES])
def test_the_planted_cause_comes_first_and_no_line_is_false(kind, name):
    comparison, planted, _ = compared(name, kind)
    verdict = judge.judge(comparison, planted.truth, -1 if planted.turned else 1)
    assert verdict.matters, "what was planted changes nothing: the case tests nothing"
    assert verdict.first, bench.lines_of(comparison)
    assert not verdict.false, bench.lines_of(comparison)
    assert not verdict.effects, bench.lines_of(comparison)


@pytest.mark.parametrize("name", ["tinylm_cudagraph", "transformer_h100_run1", "bertsmall_mi300", "vllm_graph_mi300"])
def test_an_exact_copy_has_no_lines(name):
    trace, control = recorded(name)
    explanation = compare_sets(control, bench.loaded(trace, trace.apply(retime.Change()))).explanation
    assert explanation.root.path[0] > 0
    assert explanation.causes == ()
    assert explanation.change_us == 0


def test_gpu_time_behind_which_the_host_runs_ahead_stays_hidden():
    """Kernels of a step that waits for the host take longer: the step does not."""
    trace, _ = recorded("bertsmall_h100")
    kernels = [i for i in trace.gpu if trace.is_used(i)]
    slower = trace.apply(retime.Change(durations={i: 1.1 * trace.events[i]["dur"] for i in kernels}))
    ends = [max(e["ts"] + e["dur"] for e in events if e.get("ph") == "X") for events in (trace.events, slower)]
    planted = 0.1 * sum(trace.events[i]["dur"] for i in kernels)
    assert planted > 20
    assert ends[1] - ends[0] < 0.1 * planted


def test_sides_turned_change_signs():
    comparison, _, sides = compared("tinylm_compile", "one kernel slower")
    turned = compare_sets(*reversed(sides), force=True).explanation
    explanation = comparison.explanation
    assert [round(c.delta_us, 3) for c in turned.causes] == [-round(c.delta_us, 3) for c in explanation.causes]
    np.testing.assert_allclose(turned.root.parts, -explanation.root.parts, rtol=1e-9, atol=1)


def test_names_changed_alike_leave_the_tree_as_it_is():
    name = "transformer_h100_run1"
    trace, _ = recorded(name)
    comparison, planted, _ = compared(name, "one long call")
    sides = [bench.loaded(trace, plant.renamed(events)) for events in (trace.events, trace.apply(planted.change))]
    assert plant.renamed(trace.events) != trace.events
    assert bench.shape(compare_sets(*sides, force=True)) == bench.shape(comparison)


def test_an_operator_that_is_gone_is_one_line():
    comparison, _, _ = compared("transformer_h100_run1", "an operator removed")
    (cause,) = comparison.explanation.causes
    assert (cause.effect, cause.test_us) == ("presence", 0)
