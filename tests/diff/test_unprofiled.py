"""Steps with and without the profiler, and mean and median: which one the verdict believes."""

import json
import shutil
from pathlib import Path

import pytest
from build_trace import document, op, step, write

from tracediff.diff.gate.figures import figures
from tracediff.diff.gate.limits import Limit
from tracediff.diff.verdict import Judging
from tracediff.engine import load_sets
from tracediff.explain.compare import against_control, compare_sets
from tracediff.formatting import PERCENT
from tracediff.present.answer import answer_of, headline
from tracediff.report.matrix import text_rows

SAMPLES = Path(__file__).parents[2] / "sample_traces/vit"


def compared(folder, factor):
    """eager against eager whose unprofiled steps take ``factor`` times as long."""
    for name in ("a", "b"):
        shutil.copytree(SAMPLES / "eager", folder / name)
    path = folder / "b/manifest.json"
    manifest = json.loads(path.read_text())
    for run in manifest["runs"]:
        for sample in run["unprofiled_steps"]:
            sample["wall_us"] *= factor
    path.write_text(json.dumps(manifest))
    return load_sets([str(folder / "a"), str(folder / "b")])


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "result"), [(2.0, "slower"), (0.5, "faster")])
def test_unprofiled_steps_are_believed_where_they_contradict(tmp_path, factor, result):
    control, test = compared(tmp_path, factor)
    comparison = compare_sets(control, test)
    assert comparison.unprofiled.believed
    assert comparison.verdict.result == comparison.unprofiled.result == result
    assert comparison.verdict.delta_us == 0  # the profiled steps are the same
    assert "without the profiler: " in headline(comparison)
    assert any("ables of profiled steps (mean " in text for text in answer_of(comparison).notes)
    (step,) = figures(Limit("step"), comparison)
    assert step.ratio == pytest.approx(factor)
    assert comparison.verdict.p_value == comparison.unprofiled.p_value
    (cell,) = against_control(control, [test], Judging())
    assert (cell.result, cell.p_adjusted) == (result, comparison.unprofiled.p_value)
    _, (row,) = text_rows([cell])
    change = f"{PERCENT.signed(factor - 1)} %"
    assert row[5] == change  # the same test gives every number of the row
    ends = [float(end.split()[0].replace("−", "-")) for end in row[6].split(" … ")]
    assert ends[0] < 100 * (factor - 1) < ends[1]
    assert row[-1].endswith("times without the profiler")


@pytest.mark.slow
def test_one_run_per_side_is_believed_but_proves_nothing(tmp_path):
    compared(tmp_path, 2.0)
    for folder in ("a", "b"):
        path = tmp_path / folder / "manifest.json"
        manifest = json.loads(path.read_text())
        path.write_text(json.dumps(manifest | {"runs": manifest["runs"][:1]}))
        for run in (tmp_path / folder).glob("run[2-9]"):
            shutil.rmtree(run)
    sets = load_sets([str(tmp_path / "a"), str(tmp_path / "b")])
    comparison = compare_sets(*sets)
    assert comparison.unprofiled.believed
    assert comparison.verdict.result == "untested"
    assert "100 % longer per step without the profiler" in headline(comparison)


@pytest.mark.slow
def test_unprofiled_steps_that_agree_are_an_aside(tmp_path):
    comparison = compare_sets(*compared(tmp_path, 1.01))
    assert not comparison.unprofiled.believed
    assert "without the profiler" not in headline(comparison)
    assert any(text.startswith("Without the profiler: ") for text in answer_of(comparison).notes)


def test_traces_from_elsewhere_have_no_unprofiled_steps(tmp_path):
    path = str(write(tmp_path / "a.json", document([step(1, 0, 10), op("a", 1, 2)])))
    assert compare_sets(*load_sets([path, path])).unprofiled is None


def test_the_median_is_believed_where_one_step_makes_the_mean(tmp_path):
    def steps(*lengths):
        starts = [sum(lengths[:k]) for k in range(len(lengths))]
        pairs = enumerate(zip(starts, lengths, strict=True))
        return document([e for k, (at, us) in pairs for e in (step(k, at, us), op("aten::mm", at, us))])

    control = write(tmp_path / "a.json", steps(*[100] * 10))
    test = write(tmp_path / "b.json", steps(*[102] * 9, 500))
    sentence = headline(compare_sets(*load_sets([str(control), str(test)])))
    assert "took 2.0 % longer per step by the median: 100.00 → 102.00 µs (mean 100.0 → 146.2 µs)" in sentence


def test_the_mean_is_stated_where_it_is_nearer_to_what_is_tested(tmp_path):
    """Runs of one side differ, so that the median of their medians is far from their mean, as the test sees it."""

    def runs(name, *lengths):
        for run, us in enumerate(lengths):
            steps = [event for k in range(5) for event in (step(k, us * k, us), op("aten::mm", us * k, us))]
            write(tmp_path / name / f"run{run}" / "trace.json", document(steps))
        return str(tmp_path / name)

    verdict = compare_sets(*load_sets([runs("a", 100, 100, 100), runs("b", 100, 190, 200)])).verdict
    assert not verdict.is_of_medians
    assert verdict.difference.endswith("took 63 % longer per step")
