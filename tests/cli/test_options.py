"""The options that commands share, their groups in ``--help``, and the errors of wrong ones."""

import json
import sys
from pathlib import Path

import click
import pytest
from build_trace import call, document, kernel, op, step, write
from click.testing import CliRunner
from tracediff_cli.group import COMMANDS, cli
from tracediff_cli.options.judging import judging_options
from tracediff_cli.options.loading import load_options

import tracediff
from tracediff.collect.__main__ import main as collect
from tracediff.collect.options import parser
from tracediff.errors import TracediffError
from tracediff.profile.tables import NAMES

SAMPLES = Path(__file__).parents[2] / "sample_traces"
EAGER, COMPILED = str(SAMPLES / "vit/eager"), str(SAMPLES / "vit/compile")
LOADING = ("compare", "analyze", "matrix", "check", "export", "snapshot", "dashboard")
COMPARING = ("compare", "matrix", "check", "export", "dashboard")


def added_by(options):
    """The options that a decorator of commands adds."""
    return {name for param in click.command()(options(lambda: None)).params for name in param.opts}


LOAD_OPTIONS = added_by(load_options(table_help=""))
JUDGING_OPTIONS = added_by(judging_options)


def run(*args):
    return CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(cli, list(map(str, args)))


def options_of(command):
    return {name: param for param in cli.get_command(None, command).params for name in param.opts}


def error_of(*args):
    result = run(*args)
    assert isinstance(result.exception, TracediffError), result.output
    return str(result.exception)


def test_every_command_is_covered():
    assert {*LOADING, "collect", "history", "mcp", "memory", "open", "doctor", "explain"} == set(COMMANDS)


@pytest.mark.parametrize("command", LOADING)
def test_every_command_that_loads_takes_the_same_options(command):
    compare_options, command_options = options_of("compare"), options_of(command)
    assert command_options.keys() >= LOAD_OPTIONS
    sides = command in ("compare", "check", "export", "dashboard")
    for name in LOAD_OPTIONS:
        assert (command_options[name].name, command_options[name].multiple) == (
            compare_options[name].name,
            compare_options[name].multiple,
        )
        if name in ("--label", "--rank", "--step", "--skip-first"):
            assert command_options[name].metavar.startswith("[ctrl=|test=]") == sides


@pytest.mark.parametrize("command", LOADING)
def test_commands_that_compare_and_no_others_take_the_judging_options(command):
    assert options_of(command).keys() & JUDGING_OPTIONS == (JUDGING_OPTIONS if command in COMPARING else set())


def test_what_replaces_the_usual_output_has_a_section_of_its_own():
    text = run("compare", "--help").output
    section = text[text.index("Instead of the usual output:") : text.index("Trace selection:")]
    assert all(name in section for name in ("--by", "--table"))
    assert "--json" not in section
    assert "--json" in text[text.index("\nOutput:") :]


def numbered(folder):
    events = [e for k in range(1, 7) for e in (step(k, 10 * k, 10), op("a", 10 * k + 1, 2))]
    return write(folder / "a.json", document(events))


@pytest.mark.parametrize("command", ["analyze", "matrix", "check", "compare"])
def test_steps_are_chosen_by_every_command(command, tmp_path):
    path, out = numbered(tmp_path), tmp_path / "out.json"
    sets = [path] if command == "analyze" else [path, path]
    result = run(command, *sets, "--step", "2..3", "--label", "one", "--json", out)
    assert result.exception is None, result.output
    found = json.loads(out.read_text())
    if command in ("analyze", "compare"):
        side = found["set" if command == "analyze" else "control"]
        assert (side["steps_used"], side["label"]) == ([2, 3], "one")
    missing = error_of(command, *sets, "--step", "9")
    assert missing.endswith("steps in this file: 1–6")


def test_a_snapshot_is_compared_by_the_steps_it_was_made_with(tmp_path):
    path, base = numbered(tmp_path), tmp_path / "base.tdprof.gz"
    assert run("snapshot", path, "--step", "2..3", "-o", base).exception is None
    assert tracediff.load(base).steps_used == [2, 3]
    assert tracediff.load(base, steps=(4, 6)).steps_used == [4, 5, 6]


def test_a_prefix_limits_an_option_to_one_side(tmp_path):
    path, out = numbered(tmp_path), tmp_path / "out.json"
    sides = ("--step", "ctrl=2", "--step", "test=4..5", "--label", "test=new", "--label", "old")
    assert run("compare", path, path, *sides, "--json", out).exception is None
    found = json.loads(out.read_text())
    assert [(found[s]["label"], found[s]["steps_used"]) for s in ("control", "test")] == [("old", [2]), ("new", [4, 5])]
    assert "write ctrl=… or test=…" in error_of("compare", path, path, "--step", "contrl=2")
    assert "3 labels for 2 sets" in error_of("matrix", path, path, *["--label", "x"] * 3)
    assert "names one side of a pair" in error_of("dashboard", tmp_path, "--rank", "ctrl=0")


def test_the_error_of_a_missing_rank_lists_the_ranks(tmp_path):
    write_ranks(tmp_path)
    assert error_of("analyze", tmp_path, "--rank", "7").endswith("no file of rank 7; ranks in this set: 0–1")


def test_the_error_of_a_wrong_command_or_option_suggests_the_nearest():
    assert "did you mean compare?" in run("comparr", "a", "b").output
    assert all(name in run("frobnicate").output for name in COMMANDS)
    assert "--table" in run("compare", "a", "b", "--tabel", "x").output.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (["compare", "a", "b", "--by", "modul"], "module"),
        (["compare", "a", "b", "--sort", "slowr"], "slower"),
        (["export", "a", "b", "--charts", "c", "--images", "png", "--images", "pgn"], "png"),
        (["compare", "a", "b", "--device", "disk"], ""),
    ],
)
def test_the_error_of_a_wrong_choice_suggests_the_nearest(arguments, nearest):
    line = run(*arguments).output.splitlines()[-1]
    assert "is not one of" in line
    assert line.endswith(f"Did you mean {nearest}?") if nearest else line.endswith("'all'.")


@pytest.mark.parametrize(
    "arguments",
    [["--list"], ["--workload", "mlp", "-o", "out"], ["train.py:make_step", "--device", "cpu", "-o", "out"]],
)
def test_without_torch_collect_names_what_to_install(arguments, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TracediffError, match=r"torch is not installed; pip install 'torch-tracediff\[collect\]'$"):
        collect(arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_tables_are_in_every_json_and_csv(tmp_path):
    out = tmp_path / "out.json"
    for command in ("check", "matrix"):
        run(command, EAGER, COMPILED, "--table", "python", "--json", out)
        found = json.loads(out.read_text())
        assert list((found if command == "check" else found["comparisons"][0])["tables"]) == ["python"]
        run(command, EAGER, COMPILED, "--json", out)
        assert "tables" not in out.read_text()
    run("export", EAGER, COMPILED, "--csv", tmp_path / "csv", "--table", "launches")
    assert (tmp_path / "csv" / "table_launches.csv").read_text().startswith("call,")


# two ranks; the second comes 40 µs late to the collective of each step
def write_ranks(folder, late=(0, 40)):
    for rank, later in enumerate(late):
        events = []
        for k in range(1, 4):
            start = 1000 * k
            events += [step(k, start, 1000), op("aten::mm", start + 1, 2), call("cudaLaunchKernel", start + 5, 1, k)]
            length = 120 - later
            events.append(kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start + 300 + later, length, k))
        write(folder / f"rank{rank}.json", document(events, distributedInfo={"rank": rank, "world_size": len(late)}))
    return folder


def test_a_table_over_ranks_is_a_table_like_others(tmp_path):
    ranks, out = write_ranks(tmp_path / "ranks"), tmp_path / "out.json"
    shown = run("analyze", ranks, "--table", "stragglers").output
    assert "Stragglers" in shown
    assert "Collectives\n" not in shown
    run("compare", ranks, ranks, "--table", "stragglers", "--json", out)
    assert list(json.loads(out.read_text())["tables"]) == ["stragglers"]
    diff = tracediff.compare(ranks, ranks, tables=["stragglers"])
    frame = diff.table("stragglers").set_index("rank")
    assert frame.loc["1", "control_held_up_us"] == frame.loc["1", "test_held_up_us"] == 40
    assert tracediff.analyze(ranks, tables=["stragglers"]).table("stragglers").shape[0] == 2
    everything = tracediff.analyze(ranks, tables=["all"])
    assert list(everything.analysis.side.notes) == list(diff.comparison.control.notes)
    assert [table.schema.name for table in everything.analysis.tables] == list(NAMES)


def test_a_table_that_cannot_be_made_is_reported(tmp_path):
    ranks, base = write_ranks(tmp_path / "ranks"), tmp_path / "base.tdprof.gz"
    assert "which a snapshot cannot contain" in error_of("snapshot", ranks, "--table", "stragglers", "-o", base)
    written = run("snapshot", ranks, "--table", "all", "-o", base).output
    assert "without collective_waits, stragglers" in written
    both = tracediff.compare(base, ranks, tables=["stragglers", "launches"])
    notes = {
        side.label: {n.code: n.message for n in side.notes} for side in (both.comparison.control, both.comparison.test)
    }
    assert "table stragglers is missing" in notes["base"]["missing-table"]
    assert "missing-table" not in notes["ranks"]
    assert len(both.table("launches")) == 1
    with pytest.raises(TracediffError, match="table stragglers: was not loaded"):
        both.table("stragglers")
    with pytest.raises(TracediffError, match=r"did you mean stragglers\? tables: launches"):
        both.table("straggler")
    alone = tracediff.analyze(ranks / "rank0.json", tables=["all"])
    assert "stragglers" not in alone.to_json()


def test_a_table_over_ranks_of_one_rank_says_what_to_read(tmp_path):
    ranks = write_ranks(tmp_path / "ranks")
    shown = run("compare", ranks, ranks, "--rank", 1, "--table", "stragglers").output
    missing = "table stragglers is missing: it compares ranks, and only rank 1 is read; "
    assert missing + "give the traces of several ranks, and no --rank" in " ".join(shown.split())


@pytest.mark.slow
def test_the_table_of_a_collection():
    shown = run("collect", "--show", SAMPLES / "vit")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("vit · tiny")
    assert shown.stderr == ""
    assert run("table", SAMPLES / "vit").exit_code == 2  # no command
    assert run("collect", "--show", SAMPLES / "vit", "--markdown", "-").stdout == (
        run("collect", "--show", SAMPLES / "vit", "--markdown=-").stdout
    )


@pytest.mark.parametrize("command", ["compare", "matrix", "check"])
def test_pairs_of_too_few_runs_are_an_error(command):
    message = error_of(command, EAGER, COMPILED, "--paired")
    assert message.endswith("runs; record 5 runs or more of each, or leave out --paired")


def test_a_spread_that_pairs_measure_is_not_assumed():
    message = error_of("check", EAGER, COMPILED, "--paired", "--assume-run-cv", "2%")
    assert message.startswith("--paired and --assume-run-cv: ")
    assert message.endswith("; give one of them")


def test_steps_by_number_leave_out_no_first_steps():
    message = error_of("compare", EAGER, COMPILED, "--step", "5..6", "--skip-first", "1")
    assert message == "--step: chooses steps by number, so --skip-first has no effect; give one of them"


ODD_NUMBERS = ["", "²", "٣", "1_000", "nan", "inf", "-1", "1e400", "0x10", "9" * 5000, "\u202e1", "1..²"]


@pytest.mark.parametrize("command", ["compare", "analyze", "matrix", "check", "export", "snapshot"])
def test_odd_numbers_are_one_line_in_every_command(command, tmp_path):
    path = numbered(tmp_path)
    sets = [path] if command in ("analyze", "snapshot") else [path, path]
    needed = {"export": ["--folded", tmp_path / "f"], "snapshot": ["-o", tmp_path / "s"]}.get(command, [])
    numeric = (
        "--rank",
        "--step",
        "--skip-first",
        "--jobs",
        "--max-memory",
        "--top",
        "--depth",
        "--max-regression",
    )
    judged = ("--assume-run-cv", "--equivalence-band", "--noise-floor")
    amounts = (("--limit", "kernels=1%,"), ("--max-regression", "3%,"))
    for name, before in (*((name, "") for name in (*numeric, *judged)), *amounts):
        if name not in options_of(command):
            continue
        for value in ODD_NUMBERS:
            result = run(command, *sets, *needed, name, f"{before}{value or 'x'}" if before else value)
            assert isinstance(result.exception, TracediffError | SystemExit), (name, value[:20])
            assert result.exit_code, (name, value[:20])
            assert len(str(result.exception)) < 400
    assert not list(tmp_path.glob("[fs]"))


@pytest.mark.parametrize("name", ["--seed", "--wait", "--warmup", "--active", "--timed", "--repeats", "--threads"])
def test_odd_numbers_are_one_line_in_collect(name):
    for value in ODD_NUMBERS:
        with pytest.raises(TracediffError) as caught:
            parser().parse_args([f"{name}={value}"])
        assert len(str(caught.value)) < 400


def test_a_mistyped_option_is_likened_to_present_ones():
    output = run("compare", EAGER, COMPILED, "--steps", "6").output
    assert "'--step'" in output
    assert "--instances" not in output


def test_a_view_of_the_work_has_no_device():
    assert "leave out --device" in run("compare", EAGER, COMPILED, "--by", "op", "--device", "cpu").output


@pytest.mark.parametrize(
    ("options", "title"),
    [
        (["--step", "ctrl=2", "--step", "test=3"], "t step 2 → t step 3"),
        ([], "control: t → test: t"),
    ],
)
def test_sets_of_one_name_are_told_apart_by_what_is_compared_of_them(tmp_path, options, title):
    events = [event for k in (1, 2, 3) for event in (step(k, 100 * k, 90), op("aten::mm", 100 * k + 10, 50))]
    path = write(tmp_path / "t.json", document(events))
    assert run("compare", path, path, *options).output.startswith(title)
