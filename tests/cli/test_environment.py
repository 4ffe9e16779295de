"""The environment is input that nobody checks: whatever it holds, a command answers or ends with one line."""

import os
import subprocess
import sys

import pytest
from build_trace import document, op, step, write
from command_here import run_here

from tracediff.bounds import SCREEN
from tracediff.errors import TracediffError, number_of

HOSTILE = [
    {"COLUMNS": "0"},
    {"COLUMNS": "-5"},
    {"COLUMNS": "99999999"},
    {"COLUMNS": "9" * 5000},
    {"COLUMNS": "²"},
    {"COLUMNS": "", "LINES": "²", "JUPYTER_LINES": "x"},
    {"LINES": "0", "TERM": "dumb", "NO_COLOR": ""},
    {"TERM": "\x1b[31m", "COLORTERM": "\udcff", "UNICODE_VERSION": "x"},
    {"TMPDIR": "/nonexistent", "HOME": "", "XDG_CACHE_HOME": "\udcff"},
    {"TRACEDIFF_NATIVE": "é", "TRACEDIFF_DEBUG": "0", "TRACEDIFF_TOKEN": "x", "_TRACEDIFF_COMPLETE": ""},
    {"OMP_NUM_THREADS": "x", "OPENBLAS_NUM_THREADS": "-1", "RANK": "x"},
]
AT_THE_START = {
    "LC_ALL": "xx_YY.nonsense",
    "PLOTLY_RENDERER": "nonsense",
    "PYTHONIOENCODING": "ascii:strict",
    "PYTHONOPTIMIZE": "2",
    "PYTHONUTF8": "0",
    "PYTHONWARNINGS": "error",
    "COLUMNS": "0",
}
"""What takes effect when a process starts, or imports a library."""


@pytest.fixture
def here(tmp_path):
    write(tmp_path / "a.json", document([step(1, 0, 10), op("aten::mm", 1, 2)]))
    return tmp_path


@pytest.mark.parametrize("variables", HOSTILE)
def test_hostile_variables_change_nothing(here, variables):
    words = ["analyze", "a.json", "--top", "5"]
    code, printed, errors = run_here(words, variables, here)
    assert (code, printed, errors) == run_here(words, {}, here)
    assert (code, "aten::mm" in printed) == (0, True)
    assert run_here(["--help"], variables, here)[0] == 0


@pytest.mark.parametrize(
    "variables",
    [
        {"_TRACEDIFF_COMPLETE": "1"},
        {"_TRACEDIFF_COMPLETE": "bash_complete"},
        {"_TRACEDIFF_COMPLETE": "bash_complete", "COMP_WORDS": "tracediff c", "COMP_CWORD": "x"},
        {"_TRACEDIFF_COMPLETE": "\udcff\n\x1b"},
    ],
)
def test_a_completion_that_no_shell_asks_for_is_refused_in_a_line(here, variables):
    code, printed, errors = run_here(["analyze", "a.json"], variables, here)
    assert (code, printed, errors.count("\n")) == (2, "", 1)
    assert errors.startswith("tracediff: error: environment variable _TRACEDIFF_COMPLETE: ")


def test_a_shell_completes_commands(here):
    variables = {"_TRACEDIFF_COMPLETE": "bash_complete", "COMP_WORDS": "tracediff comp", "COMP_CWORD": "1"}
    assert run_here([], variables, here) == (0, "plain,compare\n", "")


@pytest.mark.slow
def test_variables_that_take_effect_at_the_start_change_no_answer(here):
    command = [sys.executable, "-m", "tracediff", "analyze", "a.json", "--html", "page.html"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)), **AT_THE_START}
    result = subprocess.run(command, env=environment, cwd=here, capture_output=True, check=False)
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"aten::mm" in result.stdout
    assert (here / "page.html").exists()


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1_0", "٣", " 1", "9" * 19])
def test_a_number_that_is_none_is_an_error(monkeypatch, text):
    monkeypatch.setenv("RANK", text)
    with pytest.raises(TracediffError, match=r"environment variable RANK: .* is not a whole number; unset it"):
        number_of("RANK", 0)


def test_a_screen_of_the_largest_size_is_one(monkeypatch):
    monkeypatch.setenv("RANK", str(SCREEN))
    assert number_of("RANK", 0) == SCREEN
    monkeypatch.delenv("RANK")
    assert number_of("RANK", 7) == 7
