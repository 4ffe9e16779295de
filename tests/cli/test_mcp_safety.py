"""``tracediff mcp`` reads nothing outside its folder, runs nothing in it, and ends what takes too long."""

import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import takewhile
from pathlib import Path
from time import monotonic, sleep

import anyio
import pytest
from build_trace import document, kernel, op, step, write
from dashboard_runs import events, make_runs
from hypothesis import example, given, strategies as st
from mcp_questions import PAIR, answer, asking, refused
from properties import examples
from tracediff_cli.mcp import TOOLS
from tracediff_cli.mcp_server import answers

from tracediff import bounds
from tracediff.set_folder import SetFolder

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.fixture
def runs(tmp_path):
    return make_runs(tmp_path / "runs")


@pytest.fixture(scope="module")
def small_runs(tmp_path_factory):
    return make_runs(tmp_path_factory.mktemp("runs"))


NO_SETS = [
    "../outside",
    "/etc",
    "..",
    "",
    "base\0",
    "linked",
    "~",
    ".git",
    "base/../base",
    "http://a/b",
    "*",
    "base*",
    "-v",
]


@pytest.mark.parametrize("name", NO_SETS)
def test_no_path_outside_the_folder_is_read(runs, name):
    write(runs.parent / "outside" / "secret.json", document(events(names=("secret",))))
    write(runs / ".git" / "s.json", document(events()))
    (runs / "linked").mkdir()
    (runs / "linked" / "s.json").symlink_to(runs.parent / "outside" / "secret.json")
    for tool, arguments in (
        ("compare", {"control": "base", "test": name}),
        ("explain", {"control": name, "test": "base", "name": "mm"}),
        ("find_events", {"control": name, "test": "base", "name": "secret"}),
        ("analyze", {"set": name}),
    ):
        line = refused(runs, tool, **arguments)
        assert len(line) < 300
        assert str(runs.parent) not in line
    assert "linked: contains a link to a file outside the folder" in answer(runs, "list_sets")[0]


@pytest.mark.slow
def test_nothing_in_the_folder_is_imported_and_nothing_written(runs):
    shutil.copytree(runs / "base", runs / "--html=out")
    for name in ("sitecustomize", "tracediff", "tracediff_cli", "numpy", "msgspec", "click"):
        (runs / f"{name}.py").write_text("open('imported', 'w')")
    before = sorted(runs.rglob("*"))
    texts = ("--json=out", "mm --html out", "$(touch out)", "; touch out", "\u202e\x1b[31m", "x" * 900)
    for text in texts:
        answer(runs, "compare", **PAIR, table=[text], step_marker=text)
        answer(runs, "compare", **PAIR, rank=[text])
        answer(runs, "find_events", **PAIR, name=text)
    assert answer(runs, "analyze", set="--html=out")[0].startswith("--html=out\n")
    assert sorted(runs.rglob("*")) == before


ARGUMENTS = ["set", "control", "test", "name", "cursor", "top", "table", "verbose", "step", "html", "\x1b"]
TEXTS = st.sampled_from(["base", "../base", "-v", "\0", "\ud800", "\x1b"]) | st.text()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.just(9**999) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


@examples(300)
@given(
    st.sampled_from(["list_sets", "compare", "analyze", "explain", "find_events", "next_page", "no\x1bthing", ""]),
    st.dictionaries(st.sampled_from(ARGUMENTS), VALUES),
)
@example("compare", {"control": "base", "test": "base", "table": ["\ud800"]})
def test_arguments_of_any_type_are_a_command_line_or_refused_in_a_line(small_runs, name, arguments):
    commands = []

    async def output_of(command, *_):
        commands.append([os.fsencode(word) for word in command])
        return "answered\n"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "output_of", output_of)
        result = asking(small_runs, lambda client: client.call_tool(name, arguments))
    text = result.content[0].text
    assert result.is_error != bool(commands)
    assert text == "answered\n" if commands else text.isprintable() and len(text) < 3000
    assert not any(b"\0" in word for command in commands for word in command)
    assert all(
        word in (b"base", b".", b"--list") or word.startswith(b"--")
        for command in commands
        for word in takewhile(lambda word: word != b"--", command[1:])
    )


@pytest.mark.slow
def test_names_in_traces_are_text_on_one_line(runs):
    for tool in ("compare", "explain"):
        text = answer(
            runs, tool, control="hostile-a", test="hostile-b", **({"name": "kernel"} if tool == "explain" else {})
        )[0]
        assert all(c.isprintable() or c == "\n" for c in text)
    assert "alert(1)" in text  # the name is part of the answer


def processes_below(pid):
    """Process ids of the live descendants of a process."""
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(") ")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            children.setdefault(int(parent), []).append(int(stat.parent.name))
    found, upcoming = [], [pid]
    while upcoming:
        found += (below := children.get(upcoming.pop(), []))
        upcoming += below
    return found


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A pair of sets that takes a second or more to read."""
    folder = tmp_path_factory.mktemp("slow")
    many = [
        e for k in range(1, 30_000) for e in (step(k, 10 * k, 9), op("a", 10 * k + 1, 2), kernel("b", 10 * k + 4, 2))
    ]
    write(folder / "a" / "rank0.json", document(many))
    shutil.copytree(folder / "a", folder / "b")
    return folder


@linux
@pytest.mark.slow
def test_a_question_that_takes_too_long_or_is_cancelled_leaves_no_process(slow):
    before = set(processes_below(os.getpid()))

    def await_end():  # a killed process takes a moment to end, longer under load
        last = monotonic() + 20
        while left := set(processes_below(os.getpid())) - before:
            assert monotonic() < last, left
            sleep(0.05)

    text, is_error, _ = answer(slow, "compare", timeout_s=0.6, control="a", test="b")
    assert is_error
    assert text == "compare: took longer than 0.01 minutes; choose ranks, or restart with --timeout"
    await_end()

    async def cancelled(client):
        with anyio.move_on_after(0.6) as scope:
            await client.call_tool("compare", {"control": "a", "test": "b"})
        assert scope.cancelled_caught
        await anyio.to_thread.run_sync(await_end)
        return (await client.list_tools()).tools

    assert asking(slow, cancelled)


@pytest.mark.slow
def test_other_questions_wait_and_too_many_are_refused(runs, monkeypatch):
    monkeypatch.setattr(bounds, "QUESTIONS_WAITING", 3)
    results = []

    async def ask(client):
        async def one(k):
            result = await client.call_tool("compare", {**PAIR, "top": k})
            results.append((result.is_error, result.content[0].text))

        async with anyio.create_task_group() as tasks:
            for k in range(5):
                tasks.start_soon(one, k)
            assert (await client.list_tools()).tools  # it answers meanwhile

    asking(runs, ask)
    refusals = [text for is_error, text in results if is_error]
    assert refusals == ["tracediff mcp: 3 other questions are waiting; ask again later"] * 2


def test_an_answer_that_is_too_large_is_refused(runs, monkeypatch):
    monkeypatch.setattr(answers, "MOST_BYTES", 500)
    assert refused(runs, "compare", **PAIR) == "compare: prints more than 0 MB; ask for fewer rows (top)"


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
PARSE, REQUEST, METHOD, PARAMS = -32700, -32600, -32601, -32602
MALFORMED = [
    (b"hello", PARSE, None),
    (b'{"jsonrpc":"2.0","id":1', PARSE, None),
    (b"\xff\xfe", PARSE, None),
    (b"[" * 100_000, PARSE, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}', PARSE, None),
    (b"5", REQUEST, None),
    (b"null", REQUEST, None),
    (b"[]", REQUEST, None),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', REQUEST, None),
    (b'{"id":1,"method":"ping"}', REQUEST, None),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', REQUEST, None),
    (b'{"jsonrpc":"2.0","id":1}', REQUEST, None),
    (b'{"jsonrpc":"2.0","id":1,"method":5}', REQUEST, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', REQUEST, None),
    (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', REQUEST, None),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', REQUEST, None),
    (b'{"jsonrpc":"2.0","method":"ping"}', REQUEST, None),
    (b'{"jsonrpc":"2.0","method":7}', REQUEST, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"nothing"}', METHOD, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', PARAMS, 1),
]


@pytest.mark.parametrize(("line", "code", "number"), MALFORMED)
def test_a_line_that_is_no_message_is_answered_and_the_next_ones_too(runs, monkeypatch, line, code, number):
    first = json.dumps(INITIALIZE).encode()
    quiet = b'\n   \n{"jsonrpc":"2.0","method":"notifications/initialized"}\n{"jsonrpc":"2.0","id":7,"result":{}}'
    ping = b'{"jsonrpc":"2.0","id":99,"method":"ping"}'
    early = [line] if number is None else []
    found = served(runs, monkeypatch, [*early, first, quiet, line, ping], len(early) + 3)
    assert sorted(str(one["id"]) for one in found) == sorted(map(str, [*(number for _ in early), 0, number, 99]))
    for refusal in (one["error"] for one in found if one["id"] == number):
        assert refusal["code"] == code
        assert refusal["message"].isprintable()
        assert len(refusal["message"]) < 100


def served(folder, monkeypatch, lines, count):
    """The ``count`` answers of the server to lines on its standard input, which then ends."""
    from mcp.server.stdio import stdio_server
    from tracediff_cli.mcp_server import server

    (reading, asked), (answered, writing) = os.pipe(), os.pipe()
    with (
        open(reading, encoding="utf-8", errors="replace") as stdin,
        open(writing, "w", encoding="utf-8") as stdout,
        open(answered, "rb") as answers,
        ThreadPoolExecutor(1) as thread,
    ):
        streams = partial(stdio_server, anyio.wrap_file(stdin), anyio.wrap_file(stdout))
        monkeypatch.setattr(server, "stdio_server", streams)
        ended = thread.submit(anyio.run, server.serve, SetFolder(folder), 60.0, TOOLS)
        with open(asked, "wb") as questions:
            questions.write(b"\n".join([*lines, b""]))
            questions.flush()
            found = [json.loads(answers.readline()) for _ in range(count)]
        ended.result()
    return found
