"""No command writes over what it reads, into a set that it reads, or over another of its outputs."""

import os
import re
import shutil
from pathlib import Path

import click
import pytest
from build_trace import document, op, step, write
from click.testing import CliRunner
from tracediff_cli.group import COMMANDS, cli
from tracediff_cli.options.groups import Input, OutputFile, OutputFolder, check_outputs

from tracediff.collect.options import request_of
from tracediff.errors import TracediffError

WRITES = re.compile(r"\b(Write|Add the set to)\b")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working directory: traces a and b, links to a, a set with a link out of it, a pattern's folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "each/c"):
        write(tmp_path / f"{name}.json", document([step(1, 0, 10), op("aten::mm", 1, 2)]))
    Path("link.json").symlink_to("a.json")
    os.link("a.json", "hard.json")
    write(tmp_path / "set" / "run1" / "rank0.json", document([step(1, 0, 10), op("aten::mm", 1, 2)]))
    Path("set/linked.json").symlink_to("../b.json")
    Path("elsewhere").symlink_to("set")
    shutil.make_archive("packed", "zip", "set/run1")
    Path("capture_traces").mkdir()
    Path("rules.toml").write_text("")
    Path("memory.pickle").write_bytes(b"")
    Path("out").mkdir()
    Path("out/collection.json").write_text("{}")
    Path("out/eager").mkdir()
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


INPUT, WITHIN, TWICE = "is the input", "which is read", "is also the output of"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("analyze a.json --json a.json", INPUT),
        ("analyze a.json --json ./set/../a.json", INPUT),
        ("analyze a.json --json link.json", INPUT),
        ("analyze link.json --json a.json", INPUT),
        ("analyze a.json --markdown hard.json", INPUT),
        ("analyze set --html b.json", INPUT),  # through a link in the set
        ("analyze packed.zip/rank0.json --json packed.zip", INPUT),
        ("analyze file://HERE/a.json --json a.json", INPUT),
        ("analyze a.json --families rules.toml --json rules.toml", INPUT),
        ("compare a.json b.json --capture test=hard.json --html hard.json", INPUT),
        ("snapshot a.json -o a.json", INPUT),
        ("matrix a.json b.json hard.json --json b.json", INPUT),
        ("export a.json b.json --perfetto b.json", INPUT),
        ("export a.json b.json --folded b.json", INPUT),
        ("check a.json b.json --junit b.json", INPUT),
        ("check a.json b.json --config rules.toml --json rules.toml", INPUT),
        ("memory memory.pickle --json memory.pickle", INPUT),
        ("collect --show out --json out/collection.json", INPUT),
        ("analyze set --json set/new.json", WITHIN),
        ("analyze set --charts set", WITHIN),
        ("analyze elsewhere --html set/run1/new.html", WITHIN),
        ("analyze set --html elsewhere/new.html", WITHIN),
        ("analyze each/*.json --json each/new.json", WITHIN),
        ("analyze a.json --json capture_traces/new.json", WITHIN),
        ("export a.json set --csv set/tables", WITHIN),
        ("snapshot set -o set/base.tdprof.gz", WITHIN),
        ("history add set -o set/history", WITHIN),
        ("history show set --html set/page.html", WITHIN),
        ("collect --show out --markdown out/eager/table.md", WITHIN),
        ("compare a.json b.json --json new --markdown new", TWICE),
        ("compare a.json b.json --json new --html set/../new", TWICE),
        ("compare a.json b.json --json - --html -", TWICE),
        ("analyze a.json --charts new --html new/timeline.html", TWICE),
        ("collect --show out --json new --markdown new", TWICE),
    ],
)
def test_an_output_that_would_replace_something_is_refused_and_nothing_is_written(here, line, reason):
    before = contents(here)
    error = CliRunner().invoke(cli, line.replace("HERE", str(here)).split()).exception
    assert isinstance(error, TracediffError)
    assert reason in str(error)
    assert contents(here) == before


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "line",
    [
        "compare a.json b.json --json /dev/null --html /dev/null",
        "compare a.json b.json --json new.json",  # beside its inputs
        "analyze each/*.json --json new.json",
        "analyze each/*.json --html each/new.html",
        "export a.json b.json --csv out --charts out --folded out/stacks.txt",
        "snapshot set -o set.tdprof.gz",
    ],
)
def test_other_outputs_are_written(line):
    assert CliRunner().invoke(cli, line.split()).exception is None


@pytest.mark.usefixtures("here")
def test_a_chart_does_not_replace_a_trace_of_its_name():
    shutil.move("a.json", "timeline.json")
    error = CliRunner().invoke(cli, ["analyze", "timeline.json", "--charts", "."]).exception
    assert "--charts ./timeline.json: is the input timeline.json" in str(error)


@pytest.mark.usefixtures("here")
def test_a_url_elsewhere_is_no_file_here():
    check_outputs([("--output", "s3://bucket/a.json")], ["a.json", "http://host/a.json"])


def commands(group=cli, name=""):
    for below in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), below)
        yield from commands(command, f"{below} ") if isinstance(command, click.Group) else [(name + below, command)]


def test_every_option_that_writes_says_so_by_its_type():
    checked = [
        (name, param)
        for name, command in commands()
        for param in command.params
        if isinstance(param, click.Option) and param.metavar in ("FILE", "DIR", "HIST")
    ]
    assert len(checked) > 25
    for name, param in checked:
        written = WRITES.match(param.help or "") is not None
        assert isinstance(param.type, OutputFile if written else Input), (name, param.name)
        assert isinstance(param.type, OutputFolder) == (written and param.metavar != "FILE"), (name, param.name)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("collect", "history", "doctor")])
def test_every_set_is_an_input_by_its_type(name):
    command = cli.get_command(click.Context(cli), name)
    if any(isinstance(param.type, OutputFile) for param in command.params):
        assert all(isinstance(param.type, Input) for param in command.params if isinstance(param, click.Argument))


@pytest.mark.parametrize(
    "line",
    [
        "compare a.json b.json --json=",
        "analyze a.json --charts=",
        "snapshot a.json --output=",
        "check a.json b.json --config=",
        "analyze a.json --hta=",
    ],
)
def test_an_empty_value_is_not_ignored(here, line):
    before = contents(here)
    error = CliRunner().invoke(cli, line.split()).exception
    assert re.fullmatch(r"--\w+: is empty; .+", str(error))
    assert contents(here) == before


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("arguments", [["--show=out", "--json="], ["--workload=mlp", "-o", ""], ["--show="]])
def test_an_empty_value_of_the_collector_is_not_ignored(arguments):
    with pytest.raises(TracediffError, match="is empty"):
        request_of(arguments)


@pytest.mark.usefixtures("here")
@pytest.mark.torch
def test_a_collection_is_not_replaced_that_contains_the_code_to_run():
    Path("out/bench.py").write_text("")
    with pytest.raises(TracediffError, match=r"-o out: contains bench\.py, which is run"):
        request_of(["out/bench.py:make_step", "-o", "out", "--overwrite"])
    assert Path("out/bench.py").exists()
