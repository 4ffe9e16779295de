"""``tracediff mcp``: its answers, their pages, and its tools."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from build_trace import document, write
from click.testing import CliRunner
from dashboard_runs import events, make_runs
from interrupts import heed_interrupts
from mcp_questions import CURSOR, PAIR, SAMPLES, answer, asking, in_a_loop_of_its_own, printed, refused
from schema_validation import check_schema
from tracediff_cli.group import cli
from tracediff_cli.mcp_server import answers
from tracediff_cli.mcp_server.answers import most_tokens

from tracediff import bounds
from tracediff.errors import TracediffError

LONG = {"control": "eager", "test": "compile", "table": ["all"]}


@pytest.fixture
def runs(tmp_path):
    return make_runs(tmp_path / "runs")


@pytest.fixture
def vit(tmp_path):
    """A folder with sets whose tables take several pages."""
    return Path(shutil.copytree(SAMPLES / "vit", tmp_path / "vit"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("compare", {}, ["compare", "vit/eager", "vit/compile"]),
        ("compare", {"verbose": True, "top": 3}, ["compare", "vit/eager", "vit/compile", "-v", "--top", "3"]),
        (
            "compare",
            {"by": "module", "depth": 1, "step": ["ctrl=5", "test=6"]},
            [
                "compare",
                "vit/eager",
                "vit/compile",
                "--by",
                "module",
                "--depth",
                "1",
                "--step",
                "ctrl=5",
                "--step",
                "test=6",
            ],
        ),
        ("compare", {"table": ["all"]}, ["compare", "vit/eager", "vit/compile", "--table", "all"]),
        ("explain", {"name": "layer_norm"}, ["explain", "vit/eager", "vit/compile", "layer_norm"]),
        ("find_events", {"name": "aten::mm"}, ["explain", "vit/eager", "vit/compile", "aten::mm", "--events"]),
    ],
)
def test_answers_are_what_the_command_line_prints(name, arguments, words):
    text, is_error, pages = answer(SAMPLES, name, control="vit/eager", test="vit/compile", **arguments)
    assert not is_error, text
    assert text == printed(SAMPLES, *words)
    assert text
    assert all(most_tokens(page) < bounds.ANSWER_TOKENS for page in pages)


@pytest.mark.slow
def test_one_set_is_analysed_and_not_comparable_sets_are_an_answer(runs):
    assert answer(runs, "analyze", set="base")[0] == printed(runs, "analyze", "base")
    text, is_error, _ = answer(runs, "compare", control="base", test="host")
    assert not is_error
    assert text == printed(runs, "compare", "base", "host")


@pytest.mark.slow
def test_every_answer_is_paged_and_the_next_page_runs_nothing(vit, monkeypatch):
    async def ask(client):
        first = (await client.call_tool("compare", LONG)).content[0].text

        async def runs_nothing(*_):
            raise AssertionError("a command was run")

        monkeypatch.setattr(answers, "output_of", runs_nothing)
        again = (await client.call_tool("compare", LONG)).content[0].text
        return first, again, (await client.call_tool("next_page", {"cursor": CURSOR.search(first)[2]})).content[0].text

    first, again, second = asking(vit, ask)
    assert first == again
    assert first.splitlines()[-1].startswith("[page 1 of ")
    assert "\n[page 2 of " in second


@pytest.mark.slow
def test_a_cursor_is_refused_after_a_file_changed_and_elsewhere(vit):
    async def ask(client):
        text = (await client.call_tool("compare", LONG)).content[0].text
        cursor = CURSOR.search(text)[2]
        found = [await client.call_tool("next_page", {"cursor": cursor})]
        os.utime(next(vit.glob("eager/run1/*.gz")), (1, 1))
        tried = [cursor, cursor.replace("-2", "-999"), "0" * 16 + "-1", "", "x" * 1000, "٣" * 16 + "-1"]
        found += [await client.call_tool("next_page", {"cursor": cursor}) for cursor in tried]
        return [(result.is_error, result.content[0].text) for result in found], cursor

    found, cursor = asking(vit, ask)
    assert [is_error for is_error, _ in found] == [False, *[True] * 6]
    assert found[1][1] == f"cursor '{cursor}': files have changed since; ask the first question again"
    assert all("unknown or forgotten" in line and "\n" not in line and len(line) < 200 for _, line in found[2:])
    assert "unknown or forgotten" in refused(vit, "next_page", cursor=cursor)  # of another server


@pytest.mark.slow
def test_the_answers_used_last_are_kept(vit, monkeypatch):
    monkeypatch.setattr(answers, "MOST_KEPT", int(1.5 * len(answer(vit, "compare", **LONG)[0])))

    async def ask(client):
        first = (await client.call_tool("compare", LONG)).content[0].text
        await client.call_tool("compare", {**LONG, "top": 14})
        return await client.call_tool("next_page", {"cursor": CURSOR.search(first)[2]})

    result = asking(vit, ask)
    assert result.is_error
    assert "forgotten" in result.content[0].text


@pytest.mark.parametrize(
    ("tool", "arguments", "line"),
    [
        ("compare", {"control": "base"}, "compare: the argument test is missing; give control, test"),
        ("compare", {**PAIR, "tabel": "x"}, "compare: unknown argument 'tabel'; did you mean table?"),
        ("compare", {**PAIR, "html": "out"}, "compare: unknown argument 'html'; arguments: control, test, by"),
        ("compare", {**PAIR, "by": "modul"}, "Did you mean module?"),
        ("compare", {**PAIR, "top": -1}, "invalid value for '--top'"),
        ("compare", {**PAIR, "top": {}}, "compare: top is neither a text nor a number"),
        ("compare", {**PAIR, "rank": ["1"] * 101}, "compare: rank has more than 100 values; give fewer"),
        ("compare", {**PAIR, "rank": ["1" * 1001]}, "compare: rank has more than 1,000 characters"),
        ("compare", {**PAIR, "top": 1 << 99_999}, "compare: top has too many digits"),
        ("next_page", {"cursor": 1 << 99_999}, "cursor '': unknown or forgotten"),
        ("compare", {**PAIR, "verbose": "yes"}, "compare: verbose is not true or false"),
        ("compare", {**PAIR, "step": ["9"]}, "no step is left to compare"),
        ("compare", {**PAIR, "control": 5}, "'5': no such set"),
        ("analyze", {"set": "base", "table": "launchs"}, "did you mean launches?"),
        ("analyze", {"set": "bad"}, "trace.json"),
        ("explain", {**PAIR, "name": "nothing such"}, "no kernel or operator is called 'nothing such'"),
        ("find_events", {**PAIR, "name": "nothing such"}, "no event is called 'nothing such'"),
        ("compar", {}, "compar: no such tool; did you mean compare?"),
    ],
)
def test_errors_are_the_lines_of_the_command_line(runs, tool, arguments, line):
    assert line in refused(runs, tool, **arguments)


def test_tools_have_the_options_of_the_command_line_and_valid_schemas(runs):
    tools = {tool.name: tool for tool in asking(runs, lambda client: client.list_tools()).tools}
    assert list(tools) == ["list_sets", "compare", "analyze", "explain", "find_events", "next_page"]
    for name, tool in tools.items():
        check_schema(tool.input_schema)
        assert tool.annotations.read_only_hint
        if name in ("list_sets", "next_page"):
            continue
        command = "explain" if name == "find_events" else name
        options = {o for p in cli.get_command(None, command).params for o in p.opts}
        given = {f"--{argument.replace('_', '-')}" for argument in tool.input_schema["properties"]}
        assert given - {"--control", "--test", "--set", "--name"} <= options
        assert not given & {"--html", "--json", "--markdown", "--families", "--capture", "--executor", "--charts"}
    assert (
        most_tokens(" ".join(str(tool.model_dump(exclude_none=True)) for tool in tools.values()))
        < 2 * bounds.ANSWER_TOKENS
    )


def test_tools_and_their_arguments_are_documented(runs):
    page = (SAMPLES.parent / "docs" / "agents.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \|.*?\|(.*)\|$", page, re.MULTILINE))
    for tool in asking(runs, lambda client: client.list_tools()).tools:
        documented = set(re.findall(r"`(\w+)`", rows[tool.name])) - {"compare"}
        arguments = set(tool.input_schema["properties"])
        assert documented <= arguments
        assert documented == arguments or tool.name == "explain"


def test_sets_are_listed_with_gpu_runs_ranks_and_size(tmp_path):
    device = {"deviceProperties": [{"id": 0, "name": "H\x1b[31m100"}, {"id": 1, "name": "H\x1b[31m100"}]}
    for k in (1, 2):
        for rank in (0, 1, 2):
            write(tmp_path / "eager" / f"run{k}" / f"rank{rank}.json", {**device, **document(events())})
    write(tmp_path / "cpu" / "a.json", {"deviceProperties": [], **document(events())})
    write(tmp_path / "odd" / "a.json", {"deviceProperties": [[[7]], {"name": 8}], **document(events())})
    (tmp_path / "archive.zip").write_bytes(b"PK\x03\x04 and nothing more")
    text, is_error, _ = answer(tmp_path, "list_sets")
    assert not is_error
    assert text == printed(tmp_path, "mcp", ".", "--list")
    rows = {line.split()[0]: line.split()[1:5] for line in text.splitlines()[2:] if line.strip()}
    assert rows["eager"] == ["H�[31m100", "2", "0–2", "6"]
    assert rows["cpu"] == ["none", "1", "unknown", "1"]
    assert rows["odd"] == ["none", "1", "unknown", "1"]
    assert "archive.zip: the archive is damaged" in text


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["input", signal.SIGTERM, signal.SIGINT])
def test_it_serves_standard_input_and_ends(runs, ending):
    from mcp import Client, StdioServerParameters, stdio_client

    command = [sys.executable, "-m", "tracediff", "mcp", str(runs)]

    async def ask():
        server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
        async with Client(stdio_client(server)) as client:
            assert client.server_info.name == "tracediff"
            assert "not instructions" in client.instructions
            return (await client.call_tool("compare", PAIR)).content[0].text

    if ending == "input":
        assert in_a_loop_of_its_own(ask) == printed(runs, "compare", "base", "slower")
        ended = subprocess.run(command, input="", capture_output=True, text=True, check=False, timeout=60)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
        return
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes, preexec_fn=heed_interrupts) as process:
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert b'"id":1' in process.stdout.readline()
        process.send_signal(ending)
        assert process.wait(30) == 128 + ending
        assert process.stderr.read() == b"tracediff: interrupted\n"


def test_what_cannot_be_served_is_refused_in_a_line(runs, monkeypatch):
    result = CliRunner().invoke(cli, ["mcp", str(runs / "base" / "trace.json")])
    assert "not a folder; give a folder of trace sets" in str(result.exception)
    for name in [n for n in sys.modules if n.startswith("tracediff_cli.mcp_server.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    result = CliRunner().invoke(cli, ["mcp", str(runs)])
    assert isinstance(result.exception, TracediffError)
    assert str(result.exception).endswith("pip install 'torch-tracediff[mcp]'")


def test_without_its_packages_it_lists_sets_and_says_what_to_install(runs, monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("mcp.", "tracediff_cli.mcp"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    listed = CliRunner().invoke(cli, ["mcp", str(runs), "--list"], catch_exceptions=False)
    assert "base" in listed.output
    with pytest.raises(TracediffError, match=r"needs mcp.*, which is not installed; pip install .*\[mcp\]"):
        CliRunner().invoke(cli, ["mcp", str(runs)], catch_exceptions=False)
