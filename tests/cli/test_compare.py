"""`tracediff compare` and `tracediff export` as a user runs them."""

import csv
import json
import re
from pathlib import Path

import click
import pytest
import traces
from build_trace import call, document, kernel, op, step, write
from click.testing import CliRunner
from tracediff_cli.group import cli

SAMPLE = Path(__file__).resolve().parents[2] / "sample_traces" / "vit"
EAGER, COMPILED = str(SAMPLE / "eager"), str(SAMPLE / "compile")


def run(*args, width=80):
    return CliRunner(env={"COLUMNS": str(width), "NO_COLOR": "1"}).invoke(
        cli, args, catch_exceptions=False, standalone_mode=False
    )


def output(*args, width=80):
    result = run(*args, width=width)
    assert result.return_value == 0
    return result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 120, 160])
def test_the_answer_fits_the_terminal_and_one_screen(width):
    lines = output("compare", EAGER, COMPILED, width=width).splitlines()
    assert max(map(len, lines[:-1])) <= width  # the command to copy is never wrapped
    assert len(lines) <= (30 if width >= 100 else 34)
    assert lines[0].startswith("eager → compile · CPU")
    assert any("per step" in line for line in lines)
    (step, *_) = [line for line in lines if line.startswith("mean step ")]
    assert width < 100 or "0 ns unexplained" in step


@pytest.mark.slow
def test_a_pipe_gets_plain_text():
    assert "\x1b" not in output("compare", EAGER, COMPILED)


@traces.needs_traces
@pytest.mark.parametrize("width", [80, 160])
def test_long_names_and_many_cautions_do_not_wrap_tables(width):
    text = output("compare", str(traces.FOLDER / "bertsmall_h100"), str(traces.FOLDER / "bertsmall_mi300"), width=width)
    assert max(map(len, text.splitlines()[:-1])) <= width
    tables = text[text.index("Why ") :]
    assert all(
        re.search(r"\S\s+[\d,.]+\s+[\d,.]+\s+[+−]?[\d,.]+", line)
        for line in tables.splitlines()
        if line.startswith("  aten::")
    )


@pytest.mark.slow
def test_json_on_standard_output_is_the_document_alone():
    found = json.loads(output("compare", EAGER, COMPILED, "--json", "-"))
    assert found["schema"] == "tracediff.diff/1"
    keys = (
        "schema control test comparability verdict answer unprofiled step_time gpu_time host_time ops common_change "
        "families tables changed_code explanation health"
    )
    assert list(found) == keys.split()
    assert found["verdict"]["result"] == "inconclusive"
    assert found["verdict"]["p_value"] > 0.05
    assert found["step_time"]["residual_us"] == found["gpu_time"]["residual_us"] == 0
    assert [s["name"] for s in found["step_time"]["states"]][:9] == [
        "gpu_compute",
        "gpu_comm",
        "gpu_copy",
        "gpu_queued",
        "data_loading",
        "synchronising",
        "launching",
        "op",
        "python",
    ]
    assert found["control"]["runs"] == 2
    assert found["control"]["torch"].startswith("2.13")


@pytest.mark.slow
def test_several_outputs_at_once(tmp_path):
    files = ["--json", str(tmp_path / "d.json"), "--markdown", str(tmp_path / "d.md")]
    text = output("compare", EAGER, COMPILED, *files, "--label", "before", "--label", "test=after")
    assert text.startswith("before → after")
    assert json.loads((tmp_path / "d.json").read_text())["test"]["label"] == "after"
    assert (tmp_path / "d.md").read_text().startswith("## before → after\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.json", "d.md"]


def test_top_sort_and_device_choose_the_rows(tmp_path):
    events = [
        step(1, 0, 100),
        op("short", 0, 5),
        op("long", 10, 30),
        call("cudaLaunchKernel", 50, 1, correlation=1),
        kernel("gemm", 60, 9, correlation=1),
    ]
    path = str(write(tmp_path / "a.json", document(events)))
    text = output("compare", path, path, "--sort", "control", "--device", "cpu", "--top", "2")
    rows = [line.split()[0] for line in text.splitlines() if line.startswith("  ")]
    position = rows.index("long")
    assert rows[position : position + 2] == ["long", "short"]
    assert "gemm" in output("compare", path, path, "--sort", "name", "--device", "gpu")


def test_no_row_is_asked_for_and_the_number_of_rows_is_shown(tmp_path):
    events = [step(1, 0, 100), op("short", 0, 5), op("long", 10, 30)]
    path = str(write(tmp_path / "a.json", document(events)))
    shown = output("compare", path, path, "--sort", "name", "--top", "0")
    assert "Work, sorted by name, on the host: 2 rows (--top)" in shown
    assert "Operator self time by operator: 2 rows (--top)" in output("compare", path, path, "--by", "op", "--top", "0")
    assert "all operators              2" in output("compare", path, path, "--top", "0")


@pytest.mark.parametrize("view", ["module", "instance", "line"])
def test_a_view_of_what_was_not_recorded_says_how_it_is(tmp_path, view):
    path = str(write(tmp_path / "a.json", document([step(1, 0, 100), op("aten::mm", 0, 30)])))
    assert "neither side has stacks: record with_stack=True" in output("compare", path, path, "--by", view)
    assert "stacks" not in output("compare", path, path, "--by", view, "--top", "0")
    assert "stacks" not in output("compare", path, path, "--by", "family")


def test_steps_of_one_file_against_each_other(tmp_path):
    path = str(write(tmp_path / "a.json", document([step(1, 0, 10), op("a", 1, 2), step(2, 10, 30), op("a", 11, 2)])))
    text = output("compare", path, path, "--step", "ctrl=1", "--step", "test=2")
    assert "3.00 times as long" in text
    assert "Caution: both sides read the same file" in text


def test_where_lists_the_longest_events(tmp_path):
    events = [step(1, 100, 100), op("aten::mm", 110, 5), op("aten::mm", 150, 25), kernel("aten_like_mm", 160, 99)]
    path = str(write(tmp_path / "a.json", document(events)))
    lines = output("explain", path, path, "aten::mm", "--events", "--top", "1", width=120).splitlines()
    assert lines[2].split() == ["aten::mm", "25.0", "0.050", "thread", "100", "a.json"]
    assert "GPU 0 stream 7" in output("explain", path, path, "LIKE", "--events", width=120)
    with pytest.raises(click.UsageError, match="leave out --rank, --step and --skip-first"):
        run("explain", path, path, "LIKE", "--events", "--step", "1")


def test_events_of_both_sides_have_one_unit(tmp_path):
    for side, us in (("a", 50), ("b", 90_000)):
        write(tmp_path / side / "trace.json", document([step(1, 0, 100_000), op("aten::mm", 1, us)]))
    text = output("explain", str(tmp_path / "a"), str(tmp_path / "b"), "aten::mm", "--events", width=120)
    assert text.count("duration ms") == 2
    assert text.count("longest events called aten::mm of all steps") == 2


def test_refused_is_exit_code_3_and_still_writes_json(tmp_path):
    a = str(write(tmp_path / "a.json", document([step(1, 0, 10), op("a", 1, 2)])))
    b = str(write(tmp_path / "b.json", document([step(1, 0, 10), op("b", 1, 2)])))
    result = run("compare", a, b, "--json", str(tmp_path / "d.json"))
    assert result.return_value == 3
    found = json.loads((tmp_path / "d.json").read_text())
    assert (found["comparability"]["level"], found["verdict"]["result"], found["ops"]) == (
        "refused",
        "refused",
        [],
    )
    assert run("compare", a, b, "--force").return_value == 0


@pytest.mark.slow
def test_export_writes_tables_that_add_up(tmp_path):
    assert "wrote 7 tables" in output("export", EAGER, COMPILED, "--csv", str(tmp_path / "t"))
    with open(tmp_path / "t" / "step_time.csv") as file:
        states = list(csv.DictReader(file))
    document_ = json.loads(output("compare", EAGER, COMPILED, "--json", "-"))
    assert sum(float(s["control_us"]) for s in states) == pytest.approx(document_["step_time"]["control_us"])
    names = ("step_time", "groups", "members", "ops", "tree", "steps", "health")
    assert {p.name for p in (tmp_path / "t").iterdir()} == {f"{name}.csv" for name in names}


@pytest.mark.parametrize("command", [[], ["compare"], ["export"]])
def test_help_has_examples(command):
    text = output(*command, "--help")
    assert "Example" in text
    assert "tracediff " in text


def test_where_passes_over_files_that_are_no_traces(tmp_path):
    write(tmp_path / "trace.json", document([step(1, 0, 100), op("aten::mm", 10, 20)]))
    (tmp_path / "other.json").write_text('{"a": 1}')
    (tmp_path / "et.json").write_text('{"schema": "1.1.1-chakra.0.0.4", "nodes": []}')
    text = output("explain", str(tmp_path), str(tmp_path), "aten::mm", "--events", width=120)
    assert text.count("20.0") == 2
