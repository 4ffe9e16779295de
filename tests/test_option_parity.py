"""`LoadOptions`, `SetOptions` and `Judging` are the list of options: the command line, the Python functions and the
agents' tools offer each under its name and with its default, but for those that `LEFT_OUT` gives a reason for.
"""

import inspect
from pathlib import Path

import click
import pytest
from msgspec.structs import replace
from tracediff_cli.mcp import TOOLS
from tracediff_cli.options.judging import judging_options
from tracediff_cli.options.loading import load_options

import tracediff
from tracediff.api import functions
from tracediff.diff.gate.limits import GateSettings
from tracediff.diff.verdict import Judging
from tracediff.engine import LoadOptions, SetOptions
from tracediff.profile.kernels.families import read_rules
from tracediff.profile.model.selection import Selection

OF_SETS = {"label", "ranks", "captures", "torch_trace", "skip_first", "steps", "step_marker", "families"}
READING = {*OF_SETS, "tables", "jobs", "executor", "keep_going", "max_memory"}
JUDGING = {"paired", "assume_run_cv", "equivalence_band", "noise_floor", "force"}
EXAMPLES = {
    "label": (("--label", "new"), "new", SetOptions(label="new")),
    "ranks": (("--rank", "3", "--rank", "5"), [3, 5], SetOptions(ranks=frozenset({3, 5}))),
    "captures": (("--capture", "graph.json"), [Path("graph.json")], SetOptions(captures=("graph.json",))),
    "torch_trace": (("--torch-trace", "log"), Path("log"), SetOptions(torch_trace="log")),
    "skip_first": (("--skip-first", "2"), 2, SetOptions(selection=Selection(skip_first=2))),
    "steps": (("--step", "4..6"), (4, 6), SetOptions(selection=Selection(first=4, last=6))),
    "step_marker": (("--step-marker", "^iter"), "^iter", {"step_marker": "^iter"}),
    "families": (("--families", "own.toml"), Path("own.toml"), {"families": "own.toml"}),
    "tables": (("--table", "copies"), ["copies"], {"tables": ("copies",)}),
    "jobs": (("--jobs", "3"), 3, {"jobs": 3}),
    "keep_going": (("--keep-going",), True, {"keep_going": True}),
    "max_memory": (("--max-memory", "8GB"), 8 * 10**9, {"max_memory": 8 * 10**9}),
    "paired": (("--paired",), True, {"paired": True}),
    "assume_run_cv": (("--assume-run-cv", "2%"), 0.02, {"assume_run_cv": 0.02}),
    "equivalence_band": (("--equivalence-band", "3%"), 0.03, {"equivalence_band": 0.03}),
    "noise_floor": (("--noise-floor", "2%"), 0.02, {"noise_floor": 0.02}),
    "force": (("--force",), True, {}),
}
"""Option → (words of the command line, the argument in Python, what both mean)."""
ARGUMENTS = {
    *("path", "traces", "control", "test", "others", "pairwise", "source", "commits", "max_regression", "min_delta"),
    *GateSettings.__struct_fields__,
}
"""Arguments of functions that are no options of reading or judging."""

LOAD_IT = "a set that needs it is loaded with it first"
NOT_COMPARED = "it compares nothing"
SERVER = "whoever starts the server decides what it may read and take"
LEFT_OUT = {
    "load": dict.fromkeys(JUDGING, NOT_COMPARED),
    "analyze": dict.fromkeys(OF_SETS, LOAD_IT) | dict.fromkeys(JUDGING, NOT_COMPARED),
    "snapshot": dict.fromkeys(READING - {"tables"}, LOAD_IT) | dict.fromkeys(JUDGING, NOT_COMPARED),
    "compare": dict.fromkeys(OF_SETS, LOAD_IT),
    "matrix": dict.fromkeys(OF_SETS, LOAD_IT),
    "check": dict.fromkeys(READING, LOAD_IT) | {"force": "a comparison that is refused is never judged"},
}
FILES_OR_LOAD = dict.fromkeys(("captures", "torch_trace", "families", "jobs", "executor", "max_memory"), SERVER)
NAMED = {"label": "agents know sets by the names of list_sets"}
OF_PROJECT = dict.fromkeys(("equivalence_band", "noise_floor"), "a project sets them once, in pyproject.toml")
LEFT_OUT_OF_TOOLS = {
    "compare": FILES_OR_LOAD | NAMED | OF_PROJECT,
    "analyze": FILES_OR_LOAD | NAMED | dict.fromkeys(JUDGING, NOT_COMPARED),
    "explain": FILES_OR_LOAD | NAMED | OF_PROJECT | {"tables": "it prints no table"},
    "find_events": dict.fromkeys(READING | JUDGING, "it searches all events, and compares nothing"),
}


def name_of(option):
    """The name of an option in Python: a repeatable one is a sequence."""
    name = option.opts[-1].removeprefix("--").replace("-", "_")
    return f"{name}s" if option.multiple and f"{name}s" in READING else name


@click.command()
@load_options(table_help="")
@judging_options
@click.pass_context
def command(_context, **options):
    return options


def by_command_line(*words):
    """(the load options of one set, the judging options, force) of a command line."""
    found = command.main(words, standalone_mode=False)
    return found["loading"].options(1), found["judging"], found["force"]


def by_python(monkeypatch, **arguments):
    """The same of a call of the library."""
    seen = []

    def read(paths, options):
        seen.append(options)
        return [None for _ in paths]

    def compare_sets(_control, _test, force, judging):
        seen.extend([judging, force])

    monkeypatch.setattr(functions, "load_sets", read)
    monkeypatch.setattr(functions, "compare_sets", compare_sets)
    monkeypatch.setattr(functions, "Diff", lambda comparison: comparison)
    of_set = {name: value for name, value in arguments.items() if name in OF_SETS}
    if of_set:
        tracediff.load("a", **arguments)
        return seen[0], Judging(), False
    tracediff.compare("a", "b", **arguments)
    return replace(seen[0], sets=(SetOptions(),)), seen[1], seen[2]


def test_every_field_is_an_option_and_every_option_an_example():
    of_fields = {name for kind in (LoadOptions, SetOptions, Judging) for name in kind.__struct_fields__}
    of_fields |= {*Selection.__struct_fields__}
    of_fields -= {"sets", "selection", "first", "last"}  # which contain the others; --step is of two
    assert of_fields | {"steps", "force"} == READING | JUDGING
    assert EXAMPLES.keys() == (READING | JUDGING) - {"executor"}  # which the command line starts, by its name


def test_the_command_line_has_every_option():
    assert {name_of(option) for option in command.params} - {"help_reading"} == READING | JUDGING


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_option_means_the_same_on_the_command_line_and_in_python(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text('[[family]]\nname = "gemm"\npatterns = ["^my_"]\n')
    words, value, meant = EXAMPLES[name]
    options, judging, force = LoadOptions((SetOptions(),)), Judging(), name == "force"
    if isinstance(meant, SetOptions):
        options = replace(options, sets=(meant,))
    elif name in READING:
        options = replace(options, **(meant if name != "families" else {name: read_rules(meant[name])}))
    else:
        judging = replace(judging, **meant)
    assert by_command_line(*words) == (options, judging, force)
    assert by_python(monkeypatch, **{name: value}) == (options, judging, force)


def test_defaults_are_those_of_the_fields(monkeypatch):
    usual = LoadOptions((SetOptions(),)), Judging(), False
    assert by_command_line() == usual
    assert by_python(monkeypatch) == usual
    assert by_python(monkeypatch, label=None) == usual  # by load


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_function_takes_every_option_but_those_left_out(name):
    given = inspect.signature(getattr(tracediff, name)).parameters
    assert given.keys() - ARGUMENTS == (READING | JUDGING) - LEFT_OUT[name].keys()
    usual = inspect.signature(tracediff.load).parameters | inspect.signature(tracediff.compare).parameters
    for option in given.keys() - ARGUMENTS:
        assert given[option].default == usual[option].default, option
        assert given[option].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_takes_every_option_but_those_left_out(tool):
    offered = {name_of(option) for option in tool._options.values()} & (READING | JUDGING)
    assert offered == (READING | JUDGING) - LEFT_OUT_OF_TOOLS[tool.name].keys()
    needed = dict.fromkeys(tool.arguments, "x")
    given = [word for word in tool.words(needed)[1] if word not in ("--", tool.always)]
    assert given == [tool.command.name, *needed.values()]  # what is not given is left to the command's defaults


def test_functions_and_tools_are_all_there():
    public = {name: getattr(tracediff, name) for name in tracediff.__all__}
    taking = {name for name, value in public.items() if getattr(value, "__module__", "") == functions.__name__}
    assert taking == LEFT_OUT.keys()
    assert {tool.name for tool in TOOLS} == LEFT_OUT_OF_TOOLS.keys()
