"""The library as its users call it: every public name, what its functions return, and how its objects print."""

import importlib
import json
import math
import pydoc

import pytest
from build_trace import document, op, step, write
from click.testing import CliRunner
from tracediff_cli.group import cli
from traces import FOLDER, needs_traces

import tracediff

LOOP, VMAP = "sample_traces/ensemble/loop", "sample_traces/ensemble/vmap"


@pytest.fixture(scope="module")
def samples(request):
    root = request.config.rootpath
    return str(root / LOOP), str(root / VMAP)


@pytest.fixture(scope="module")
def diff(samples):
    return tracediff.compare(*samples)


@pytest.mark.parametrize("name", tracediff.__all__)
def test_every_public_name_is_there(name):
    assert getattr(tracediff, name) is not None
    assert name in dir(tracediff)


def test_help_on_the_package_has_each_public_name():
    text = pydoc.plain(pydoc.render_doc(tracediff))
    assert [name for name in tracediff.__all__ if name not in text] == ["__version__"]


@pytest.mark.parametrize("name", [name for name in tracediff.__all__ if name != "__version__"])
def test_help_is_written_for_each_public_name(name):
    assert name in pydoc.plain(pydoc.render_doc(getattr(tracediff, name)))


def test_help_is_written_for_what_results_contain(samples, diff):
    results = [diff, tracediff.analyze(samples[0]), tracediff.check(*samples), tracediff.matrix(*samples)]
    for result in [*results, diff.explanation]:
        for name in dir(result):
            if not name.startswith("_"):
                value = getattr(result, name)
                pydoc.render_doc(value if callable(value) else type(value))
    for part in (*diff.explanation.causes, *diff.explanation.facts, *results[1].findings):
        pydoc.render_doc(type(part))


def test_help_on_a_chart_has_its_arguments(diff):
    for name in dir(diff.charts):
        text = pydoc.plain(pydoc.render_doc(getattr(diff.charts, name)))
        assert f"{name}(" in text.splitlines()[2]
        assert "theme" in text.splitlines()[2]
        assert "comparison:" not in text.splitlines()[2]


def test_the_names_are_the_documented_ones():
    assert {n for n in tracediff.__all__ if n[0].islower() and n != "__version__"} == {
        "analyze", "check", "collect", "compare", "load", "matrix", "on_trace_ready", "record_steps", "snapshot",
    }  # fmt: skip


def test_objects_print_in_a_line_or_two(samples, diff):
    printed = [tracediff.load(samples[0]), diff, diff.verdict, tracediff.analyze(samples[0])]
    printed += [tracediff.check(*samples, allow=["single-run"]), tracediff.matrix(*samples)]
    printed += diff.explanation.causes
    for value in printed:
        assert len(repr(value)) < 500, type(value)
        assert "\n" not in repr(value)


def shown(*command):
    """What the command prints, without the next one."""
    text = CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(cli, command).stdout
    return text.partition("\nNext: ")[0].rstrip()


def test_printed_results_are_what_the_commands_print(samples, diff, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert str(diff) == shown("compare", *samples)
    assert str(diff.explanation).splitlines()[-1] in str(diff)
    assert str(tracediff.analyze(samples[0])) == shown("analyze", samples[0])
    assert str(tracediff.check(*samples)) == shown("check", *samples)
    assert str(tracediff.matrix(*samples)) == shown("matrix", *samples)


def test_findings_are_objects(samples):
    for finding in tracediff.analyze(samples[0]).findings:
        assert isinstance(finding, tracediff.Finding)
        assert finding.code
        assert finding.title


def test_the_explanation_is_that_of_the_document(diff):
    expected = json.loads(diff.to_json())["explanation"]
    found = diff.explanation
    assert [line["label"] for line in expected["lines"]] == [cause.label for cause in found.causes]
    assert (expected["rest_us"], expected["change_us"]) == (found.rest_us, found.change_us)
    assert found.to_dict() == expected
    lines = str(found).splitlines()
    assert [line for line in lines if line.startswith("  ")][: len(found.causes)]
    assert lines[-1].startswith("step ")


def test_the_lines_of_the_explanation_are_a_frame_that_adds_up(diff):
    frame = diff.explanation.to_frame()
    *rows, step = frame.itertuples()
    assert (step.label, step.effect_us) == ("step", pytest.approx(step.test_us - step.control_us))
    assert sum(row.effect_us for row in rows if row.level == 0) == pytest.approx(step.effect_us)
    printed = str(diff.explanation)
    assert all(row.label in printed for row in rows)
    tree = diff.explanation.to_dict()["tree"]
    assert sum(tree["effects"].values()) == pytest.approx(tree["delta_us"])
    assert sum(part["delta_us"] for part in tree["children"]) == pytest.approx(diff.explanation.change_us)


def test_what_is_not_tested_is_no_number(tmp_path):
    write(tmp_path / "a" / "trace.json", document([step(1, 0, 100), op("aten::mm", 1, 20)]))
    write(tmp_path / "b" / "trace.json", document([step(1, 0, 50), op("aten::mm", 1, 20)]))
    diff = tracediff.compare(tmp_path / "a", tmp_path / "b")
    assert diff.verdict.result == "untested"
    assert math.isnan(diff.verdict.p_value)
    assert all(map(math.isnan, diff.verdict.ci95_us))
    corrected = tracediff.matrix(tmp_path / "a", tmp_path / "b").to_frame()[["p_value", "p_adjusted"]]
    for frame in (diff.ops[["p_value", "q_value"]], diff.step_time[["p_value", "q_value"]], corrected):
        assert frame.dtypes.eq(float).all()
        assert frame.isna().all(axis=None)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda here: tracediff.load(here, tables=["lauches"]),
            "tables: unknown table 'lauches'; did you mean launches?",
        ),
        (lambda here: tracediff.load(here, step_marker="("), "step_marker: '(' is not a regular expression"),
        (lambda here: tracediff.load(here, steps=(7, 9)), "select others with steps or skip_first; steps in this file"),
        (lambda here: tracediff.compare(here, here).explain("none"), "name: no kernel or operator is called 'none'"),
        (
            lambda here: tracediff.compare(here, here, source=here),
            "is not in a git repository, or git is not installed; give source=REPO",
        ),
        (lambda here: tracediff.check(here, here, allow=["gpuu"]), "allow: 'gpuu' never stops a check"),
        (lambda here: tracediff.collect(out=here), "needs either a target or a workload; give one of them"),
        (lambda here: tracediff.collect(out=here, workload="mlpp"), "workload mlpp: unknown workload"),
        (lambda here: tracediff.collect("none.py", out=here / "out"), "none.py: no such file; give FILE.py:make_step"),
    ],
)
def test_errors_name_the_arguments_of_python(tmp_path, call, message):
    write(tmp_path / "trace.json", document([step(1, 0, 100), op("aten::mm", 1, 20)]))
    with pytest.raises(tracediff.TracediffError) as raised:
        call(tmp_path)
    assert message in str(raised.value)
    assert "--" not in str(raised.value)


def test_groups_name_operators_shapes_and_kernels_of_both_sides(diff):
    groups = diff.groups
    assert {"operator", "shapes", "control_kernels", "test_kernels", "control_us", "test_us", "delta_us"} <= {*groups}
    both = groups[(groups["control_us"] > 0) & (groups["test_us"] > 0)]
    assert all(both["control_kernels"].map(len))
    assert all(both["test_kernels"].map(len))


@needs_traces
def test_shapes_of_groups_stand_beside_their_operator():
    groups = tracediff.compare(FOLDER / "bertsmall_h100", FOLDER / "bertsmall_mi300", force=True).groups
    products = groups[groups["operator"] == "aten::addmm"]
    assert len(products)
    assert products["shapes"].str.startswith("(").all()


@pytest.mark.parametrize("ask", [lambda d: d.by("flavour"), lambda d: d.table("lanches")])
def test_an_unknown_view_or_table_names_the_valid_ones(diff, ask):
    with pytest.raises(tracediff.TracediffError) as error:
        ask(diff)
    assert "family" in str(error.value) or "launches" in str(error.value)


@pytest.mark.parametrize(
    "ask",
    [
        lambda given: tracediff.analyze(given, tables=["loading", "gaps"]),
        lambda given: tracediff.compare(given, given, tables=["gaps"]),
        lambda given: tracediff.snapshot(given, "never.tdprof.gz", tables=["all"]),
    ],
)
def test_a_table_that_a_set_was_loaded_without_is_an_error(samples, ask):
    given = tracediff.load(samples[0], tables=["loading"])
    with pytest.raises(tracediff.TracediffError) as error:
        ask(given)
    assert "the set loop was loaded without" in str(error.value)
    assert "gaps" in str(error.value)
    assert "load(…, tables=[" in str(error.value)


def test_a_table_that_a_set_was_loaded_with_can_be_named_again(samples):
    given = tracediff.load(samples[0], tables=["all"])
    assert not tracediff.analyze(given, tables=["critical"]).table("critical").empty


def test_a_table_that_a_snapshot_lacks_is_in_the_health_notes(samples, tmp_path):
    tracediff.snapshot(samples[0], tmp_path / "base.tdprof.gz", tables=["loading"])
    analysis = tracediff.analyze(tracediff.load(tmp_path / "base.tdprof.gz"), tables=["gaps"])
    assert [n.code for n in analysis.analysis.side.notes] == ["missing-table"]
    with pytest.raises(tracediff.TracediffError, match="health"):
        analysis.table("gaps")


def test_the_error_of_a_missing_table_says_how_to_load_it(samples):
    with pytest.raises(tracediff.TracediffError) as error:
        tracediff.analyze(tracediff.load(samples[0])).table("gaps")
    assert "give tables=['gaps'] to compare, analyze or load" in str(error.value)


def test_one_name_needs_no_list(samples):
    assert not tracediff.analyze(samples[0], tables="critical").table("critical").empty
    assert tracediff.load(samples[0], tables="critical").tables == ("critical",)
    checked = tracediff.check(*samples, limits="family:gemm=5%", allow="single-run")
    assert list(checked.limits["subject"]) == ["step", "family:gemm"]


def test_a_matrix_of_a_list_says_how_sets_are_given(samples):
    with pytest.raises(tracediff.TracediffError, match=r"give each set by itself: matrix\(control, a, b\)"):
        tracediff.matrix([*samples])


def test_options_of_the_command_line_name_the_arguments_of_load(samples):
    with pytest.raises(TypeError, match=r"compare\(load\(path, ranks=…\), …\)"):
        tracediff.compare(*samples, rank=0)


@pytest.mark.parametrize("argument", ["ranks", "steps", "skip_first", "label", "step_marker", "captures", "families"])
@pytest.mark.parametrize(
    "function", [tracediff.compare, tracediff.analyze, tracediff.check, tracediff.matrix, tracediff.snapshot]
)
def test_an_argument_that_only_load_takes_names_load(samples, function, argument):
    with pytest.raises(TypeError, match=rf"{function.__name__}\(load\(path, {argument}=…\), …\)"):
        function(*samples, **{argument: 0})


def test_pairs_of_too_few_runs_are_an_error(samples):
    with pytest.raises(tracediff.TracediffError, match="loop has 2 runs and vmap has 2 runs; record 5 runs or more"):
        tracediff.compare(*samples, paired=True)


def test_steps_by_number_leave_out_no_first_steps(samples):
    with pytest.raises(tracediff.TracediffError, match="so skip_first has no effect; give one of them"):
        tracediff.load(samples[0], steps=(4, 5), skip_first=1)


@pytest.mark.slow
def test_judging_options_reach_the_verdict(samples):
    strict = tracediff.compare(*samples, equivalence_band=0.5)
    assert strict.verdict.result in ("same", "inconclusive", "faster", "slower")
    assumed = tracediff.compare(samples[0], samples[1], assume_run_cv=0.02)
    assert assumed.verdict.method in ("assumed", "t", "ranks")


def test_check_judges_as_the_command_does(samples, tmp_path):
    same = tracediff.check(samples[0], samples[0], allow=["single-run"])
    assert same.exit_code in (0, 3)
    assert list(same.limits["subject"]) == ["step"]
    assert "tracediff.check/1" in same.to_json(tmp_path / "check.json")
    assert tracediff.check(*samples, max_regression=0.03).limits.equals(
        tracediff.check(*samples, max_regression="3%").limits
    )
    with pytest.raises(tracediff.TracediffError, match="allow"):
        tracediff.check(*samples, allow=["nonsense"])


def test_one_step_and_one_rank_need_no_sequence(samples):
    first = tracediff.load(samples[0]).steps_used[0]
    one = tracediff.load(samples[0], steps=first, ranks=0)
    assert (one.steps_used, one.ranks) == ([first], [0])
    with pytest.raises(tracediff.TracediffError, match="are not the first and the last step"):
        tracediff.load(samples[0], steps="6..7")


@pytest.mark.slow
def test_matrix_has_a_row_per_set(samples):
    found = tracediff.matrix(samples[0], samples[1], samples[0])
    assert list(found.to_frame()["test"]) == [d.comparison.test.label for d in found.diffs]
    assert len(tracediff.matrix(*samples, samples[1], pairwise=True).to_frame()) == 3


def test_a_snapshot_compares_like_its_traces(samples, diff, tmp_path):
    size = tracediff.snapshot(samples[0], tmp_path / "base.tdprof.gz")
    assert size == (tmp_path / "base.tdprof.gz").stat().st_size
    assert tracediff.compare(tmp_path / "base.tdprof.gz", samples[1]).verdict.delta_us == diff.verdict.delta_us


def test_collect_is_a_function_and_a_package():
    assert callable(tracediff.collect)
    assert importlib.import_module("tracediff.collect.record") is not None
    with pytest.raises(tracediff.TracediffError, match="give one of them"):
        tracediff.collect(out="nowhere")


def test_an_analysis_shows_its_states_in_a_notebook(samples):
    html = tracediff.analyze(samples[0])._repr_html_()
    assert "<table" in html
    assert "python" in html


def test_a_chart_as_a_fragment(diff):
    html = diff.chart_fragment("step_waterfall", theme="dark")
    assert html.startswith("<div")
    assert 'id="step_waterfall"' in html


def test_the_three_questions_take_a_line_each(diff):
    top = diff.top(5)
    assert len(top) == 5
    assert list(top["delta_us"].abs()) == sorted(top["delta_us"].abs(), reverse=True)
    assert list(diff.top(5, slower=True)["delta_us"]) == sorted(diff.top(1000)["delta_us"], reverse=True)[:5]
    merged, spread = diff.by("module"), diff.by("module", instances=True)
    assert len(merged) <= len(spread)
    assert merged["delta_us"].sum() == pytest.approx(spread["delta_us"].sum())
    name = diff.by("op").index[0]
    assert diff.explain(name).startswith(f"{name}: ")


@pytest.mark.parametrize("argument", ["assume_run_cv", "equivalence_band", "noise_floor"])
@pytest.mark.parametrize("value", [-0.02, float("nan")])
def test_parts_are_not_negative(samples, argument, value):
    with pytest.raises(tracediff.TracediffError, match="is negative, or no number"):
        tracediff.compare(samples[0], samples[1], **{argument: value})
