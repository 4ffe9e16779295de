"""One set in depth: the same numbers as in a comparison, in every format."""

import json
from io import StringIO

import pytest
import traces
from build_trace import call, document, kernel, op, step, write
from click.testing import CliRunner
from inert_markdown import parsed
from rich.console import Console
from tracediff_cli.group import cli
from traces import needs_traces

import tracediff
from tracediff import charts
from tracediff.analysis import analyze_set
from tracediff.engine import LoadOptions, load_sets
from tracediff.explain.compare import compare_sets
from tracediff.profile.tables import NAMES, OF_FILES, table_schema
from tracediff.report.analysis import show, tables_of, to_html, to_markdown
from tracediff.report.analysis_json import document as json_document, to_json
from tracediff.report.to_json import document as diff_document, plain

SETS = ("hta_control", "timesformer_h100", "resnet50_workers0", "tinylm_compile", "dlrm_8ranks", "bertsmall_mi300")
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\x07"


def loaded(where, tables=("all",)):
    return load_sets([str(where)], LoadOptions(tables=tables))[0]


@needs_traces
@pytest.mark.parametrize("name", SETS)
def test_an_analysis_says_what_a_comparison_says_of_that_side(name):
    traces_of_side = loaded(traces.FOLDER / name)
    analysis, diff = (
        plain(json_document(analyze_set(traces_of_side))),
        plain(diff_document(compare_sets(traces_of_side, traces_of_side))),
    )
    assert analysis["step_time"]["us"] == diff["step_time"]["control_us"]
    assert {s["name"]: s["us"] for s in analysis["step_time"]["states"]} == {
        s["name"]: s["control_us"] for s in diff["step_time"]["states"]
    }
    assert analysis["step_time"]["residual_us"] == 0
    assert analysis["gpu_time"]["us"] == diff["gpu_time"]["control_us"]
    assert analysis["gpu_time"]["busy_us"] == diff["gpu_time"]["busy_control_us"]
    ours = {
        (o["category"], o["raw_name"]): (o["count"], o["self_us"], o["total_us"])
        for o in (*analysis["ops"], *analysis["kernels"])
    }
    theirs = {
        (o["category"], o["raw_name"]): (o["control_count"], o["control_self_us"], o["control_total_us"])
        for o in diff["ops"]
    }
    assert ours
    assert all(theirs[key] == values for key, values in ours.items())
    assert (
        analysis["tables"].keys() == diff["tables"].keys() == set(NAMES if len(traces_of_side.ranks) > 1 else OF_FILES)
    )
    for table in diff["tables"].values():
        for row in table:
            assert all(
                row[key] == row[f"test_{key.removeprefix('control_')}"] for key in row if key.startswith("control_")
            )


@needs_traces
@pytest.mark.parametrize("name", SETS)
def test_every_view_adds_up_to_the_work(name):
    analysis = analyze_set(loaded(traces.FOLDER / name, ()))
    for lines in analysis.views.values():
        assert sum(s.ns for s in lines) + analysis.unattributed == analysis.work
    assert sum(s.ns for s in analysis.states) == analysis.period


@needs_traces
def test_tables_of_two_sets_turn_round_with_the_sides():
    a, b = (loaded(traces.FOLDER / name) for name in ("hta_control", "hta_test"))
    forward, backward = (diff_document(compare_sets(*pair)).tables for pair in ((a, b), (b, a)))
    for name in OF_FILES:
        swapped = [
            {
                key.replace("control_", "~").replace("test_", "control_").replace("~", "test_"): v
                for key, v in row.items()
            }
            for row in backward[name]
        ]
        key = lambda row: json.dumps(row, sort_keys=True)  # noqa: E731
        assert sorted(swapped, key=key) == sorted(forward[name], key=key)


def small(folder, name="gemm"):
    events = []
    for k in range(6):
        start = 100 * k
        events += [
            step(k, start, 95),
            op(f"aten::{name}", start + 5, 30),
            call("cudaLaunchKernel", start + 8, 4, correlation=k),
            kernel(name, start + 20, 10, correlation=k),
        ]
    return write(folder / "trace.json", document(events))


@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_terminal_of_any_width_shows_every_number_it_shows_whole(tmp_path, width):
    screen = StringIO()
    show(analyze_set(loaded(small(tmp_path, "n" * 300 + HOSTILE))), Console(file=screen, width=width), NAMES)
    lines = screen.getvalue().split("\n")
    assert max(map(len, lines)) <= width
    assert "\x07" not in screen.getvalue()
    assert "\u202e" not in screen.getvalue()
    assert any("cudaLaunchKernel" in line and "4.0" in line for line in lines)


def test_no_row_is_asked_for_and_the_number_of_rows_is_shown(tmp_path):
    analysis = analyze_set(loaded(small(tmp_path)))
    screen = StringIO()
    show(analysis, Console(file=screen, width=80), ("gpu", "launches", "memory"), top=0)
    assert "Work on the GPU: 1 row (--top)" in screen.getvalue()
    assert "Launches: 1 row (--top)" in screen.getvalue()
    assert "Memory: nothing recorded" in screen.getvalue()
    markdown = to_markdown(analysis, ("launches", "memory"), top=0)
    assert "### Launches\n\n1 row (--top)." in markdown
    assert "Memory" not in markdown


def test_what_stands_out_is_said(tmp_path):
    analysis = analyze_set(loaded(small(tmp_path)))
    assert [f.code for f in analysis.findings] == ["host-bound"]
    assert "idle for 90 % of the step" in analysis.findings[0].title


@pytest.mark.parametrize(("releases", "is_steady"), [(0, False), (1, True)])
def test_first_calls_are_no_steady_state_and_hold_back_advice_on_the_host(tmp_path, releases, is_steady):
    events = []
    for k in range(1, 4):
        start = 1000 * k
        events += [step(k, start, 900), call("cudaMalloc", start + 10, 20, 10 * k)]
        events += [call("cudaLaunchKernel", start + 50, 600, k), kernel("k", start + 660, 10, correlation=k)]
        events += [call("cudaFree", start + 700, 1, 10 * k + 1)] * releases
    findings = {f.code: f for f in analyze_set(loaded(write(tmp_path / "t.json", document(events)))).findings}
    assert ("first-calls" in findings) != is_steady
    for code, advice in (("launch-bound", "Launch fewer, larger kernels"), ("host-bound", "Speed up the host")):
        assert (advice if is_steady else "judge this in steady state") in findings[code].detail
    if not is_steady:
        title = "not steady state: memory is got from the driver in 1 call of cudaMalloc per step"
        assert findings["first-calls"].title == title


def test_names_are_text_in_every_format(tmp_path):
    analysis = analyze_set(loaded(small(tmp_path, HOSTILE)))
    page, markdown = to_html(analysis, "tracediff analyze x"), to_markdown(analysis)
    assert "<img" not in page
    assert "&lt;/script&gt;&lt;img" in page
    assert any("<img src=x onerror=alert(1)>" in text for text in parsed(markdown))
    assert "\u202e" not in page + markdown
    assert json.loads(to_json(analysis))["schema"] == "tracediff.profile/1"
    assert set(OF_FILES) <= set(tables_of(analysis))


def test_the_command_writes_each_format(tmp_path):
    path = small(tmp_path)
    done = CliRunner().invoke(
        cli,
        [
            "analyze",
            str(path),
            "--json",
            str(tmp_path / "a.json"),
            "--html",
            str(tmp_path / "a.html"),
            "--markdown",
            "-",
        ],
    )
    assert done.exit_code == 0, done.output
    assert "Launches" in done.output
    assert json.loads((tmp_path / "a.json").read_text())["tables"]["launches"][0]["host_us"] == 4.0
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")
    shown = CliRunner().invoke(cli, ["analyze", str(path), "--table", "launches"]).output
    assert "Launches" in shown
    assert not [other for other in ("Where the step goes", "Findings", "Health") if other in shown]
    wrong = CliRunner().invoke(cli, ["analyze", str(path), "--table", "lanches"])
    assert "unknown table 'lanches'" in str(wrong.exception)
    both = CliRunner().invoke(cli, ["compare", str(path), str(path), "--table", "all"]).output
    assert "Launches" in both
    assert "Largest changes" not in both


@pytest.mark.parametrize("command", ["analyze", "compare"])
def test_a_table_that_a_snapshot_lacks_is_reported_where_only_tables_are_shown(command, tmp_path):
    path, base = str(small(tmp_path)), str(tmp_path / "base.tdprof.gz")
    assert CliRunner().invoke(cli, ["snapshot", path, "-o", base]).exit_code == 0
    sets = [base] if command == "analyze" else [base, path]
    shown = CliRunner().invoke(cli, [command, *sets, "--table", "launches"]).output
    assert "table launches is missing: the snapshot was made without it" in " ".join(shown.split())
    assert "Findings" not in shown


@pytest.mark.hta
@needs_traces
def test_analyses_of_hta_stand_beside_ours():
    done = CliRunner().invoke(
        cli,
        ["analyze", str(traces.FOLDER / "hta_tiny" / "base.json.gz"), "--hta", "breakdowns, launch", "--markdown", "-"],
    )
    assert done.exit_code == 0, done.output
    assert "HTA, Launches" in done.output
    assert "| mean |" in done.output
    wrong = CliRunner().invoke(cli, ["analyze", str(traces.FOLDER / "hta_tiny" / "base.json.gz"), "--hta", "brakdowns"])
    assert "breakdowns" in str(wrong.exception)


def test_charts_of_one_set_are_drawn(tmp_path):
    path = small(tmp_path, HOSTILE)
    analysis = tracediff.analyze(path)
    assert dir(analysis.charts) == sorted(charts.OF_SET)
    bars = analysis.charts.step_parts().data[0]
    assert sum(bars.x) == pytest.approx(analysis.states.sum())
    assert sum(analysis.charts.work_parts(by="kernel").data[0].x) == pytest.approx(analysis.by("kernel")["us"].sum())
    for name in charts.OF_SET:
        for theme in ("light", "dark"):
            text = getattr(analysis.charts, name)(theme=theme).to_json()
            assert "<img" not in text
            assert "control" not in json.loads(text)["layout"].get("title", {}).get("text", "")
    done = CliRunner().invoke(cli, ["analyze", str(path), "--charts", str(tmp_path / "charts")])
    assert done.exit_code == 0
    assert {p.stem for p in (tmp_path / "charts").glob("*.html")} == set(charts.OF_SET)


@needs_traces
def test_frames_of_one_set_say_what_the_document_says():
    analysis = tracediff.analyze(traces.FOLDER / "hta_control", tables=["all"])
    assert analysis.states.sum() == pytest.approx(analysis.analysis.us(analysis.analysis.period))
    assert analysis.operations["self_us"].is_monotonic_decreasing
    for name in OF_FILES:
        assert set(analysis.table(name)) >= set(table_schema(name).keys)
    with pytest.raises(tracediff.TracediffError, match="table launches: was not loaded"):
        tracediff.analyze(traces.FOLDER / "hta_control").table("launches")


def test_the_page_has_no_complaint(visit, tmp_path):
    path = tmp_path / "a.html"
    path.write_text(to_html(analyze_set(loaded(small(tmp_path, HOSTILE)))), encoding="utf-8")
    visited = visit(path)
    for width in (1280, 390):
        visited.page.set_viewport_size({"width": width, "height": 900})
        visited.turn(path)
        assert visited.page.evaluate("document.documentElement.scrollWidth") <= width
        assert visited.page.inner_text("h1") == "trace"
        assert not visited.complaints
