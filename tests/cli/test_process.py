"""The command as a process: exit codes, one-line errors, interrupts, and what it imports."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from build_trace import document, op, step, write
from interrupts import heed_interrupts, reads, wait_until

ROOT = Path(__file__).resolve().parents[2]
MOST_MODULES = 132
"""Modules of tracediff that a comparison of small files imports: each takes a hundredth of what numpy does."""
ENV = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}"}


def tracediff(*args, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "tracediff", *map(str, args)],
        capture_output=True,
        text=True,
        env=ENV,
        check=False,
        **kwargs,
    )


def good(folder):
    return write(folder / "good.json", document([step(1, 0, 10), op("a", 1, 2)]))


def bad_inputs(folder):
    (folder / "empty").mkdir()
    (folder / "other").mkdir()
    (folder / "other" / "notes.txt").write_text("hello")
    (folder / "text.json").write_text("hello")
    (folder / "plain.json").write_text('{"a": 1}')
    (folder / "chakra.json").write_text(
        '{"schema": "1.1.0-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1, "ctrl_deps": 0}]}'
    )
    (folder / "proto.json").write_bytes(bytes(range(256)) * 4)
    packed = write(
        folder / "whole.json.gz", document([step(1, 0, 10), *(op(f"op{i}", 1, 2) for i in range(2000))])
    ).read_bytes()
    (folder / "cut.json.gz").write_bytes(packed[: len(packed) // 2])
    (folder / "nothing.json").write_bytes(b"")
    return {
        "missing.json": "no such file",
        "empty": "the folder is empty",
        "other": "no trace in the folder",
        "text.json": "text, not Kineto JSON",
        "plain.json": "JSON without traceEvents",
        "chakra.json": "an execution trace",
        "proto.json": "binary (a protobuf trace?), not Kineto JSON",
        "cut.json.gz": "cut off",
        "nothing.json": "the file is empty",
    }


@pytest.mark.slow
def test_every_bad_input_is_one_line_with_file_reason_and_remedy(tmp_path):
    fine = good(tmp_path)
    for name, reason in bad_inputs(tmp_path).items():
        result = tracediff("compare", fine, tmp_path / name)
        assert result.returncode == 2, name
        assert result.stdout == ""
        (line,) = result.stderr.splitlines()
        assert line.startswith(f"tracediff: error: {tmp_path / name}: ")
        assert reason in line
        assert "; " in line.partition(reason)[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("compare",), "compare: missing argument 'CONTROL'; see tracediff compare --help"),
        (("compare", "a", "b", "--tpo", "3"), "compare: no such option '--tpo'; did you mean --top or --step?"),
        (("compare", "a", "b", "--csv", "c"), "compare: no such option '--csv'; see tracediff compare --help"),
        (("comp",), "command line: unknown command 'comp'; did you mean compare?; see tracediff --help"),
    ],
)
def test_every_wrong_argument_is_one_line(arguments, said):
    result = tracediff(*arguments)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"tracediff: error: {said}\n")


def test_debug_shows_the_traceback(tmp_path):
    result = tracediff("--debug", "compare", good(tmp_path), tmp_path / "missing.json")
    assert "Traceback" in result.stderr


def test_an_output_that_cannot_be_written_is_an_error(tmp_path):
    result = tracediff("compare", good(tmp_path), good(tmp_path), "--json", tmp_path / "no" / "folder" / "d.json")
    assert result.returncode == 2
    assert "cannot be written" in result.stderr


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    fine = good(tmp_path)
    command = f"{sys.executable} -m tracediff compare {fine} {fine} --json - | head -c 10"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=ENV, check=False)
    assert result.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_ends_at_once_and_leaves_no_file(tmp_path, jobs):
    small = write(
        tmp_path / "small.json",
        document([step(1, 0, 10_000_000), *(op(f"op{i % 50}", i, 1) for i in range(10_000))]),
        layout="compact",
    )
    body = small.read_text().removesuffix("]}")
    large, other = tmp_path / "large.json", tmp_path / "other.json"
    large.write_text(
        ",".join([body] + [body[body.index("[") + 1 :]] * 150) + "]}"
    )  # seconds of work, so that the interrupt meets it
    os.link(large, other)
    out = tmp_path / "out"
    out.mkdir()
    command = [sys.executable, "-m", "tracediff", "compare", large, other, "--jobs", jobs, "--json", out / "d.json"]
    process = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENV,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    wait_until(lambda: reads(process.pid, large), "reading")
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err.strip() == "tracediff: interrupted"
    assert list(out.iterdir()) == []


def test_help_and_import_load_nothing_heavy():
    heavy = "('torch', 'pandas', 'plotly', 'numpy', 'scipy', 'rich', 'jinja2')"
    code = (
        f"import sys, tracediff; from tracediff_cli.group import cli; cli(['--help'], standalone_mode=False); "
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENV, check=True)
    assert result.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_the_terminal_answer_of_runs_imports_little():
    sides = [str(ROOT / "sample_traces" / "ensemble" / side) for side in ("loop", "vmap")]
    heavy = (
        "('jinja2', 'jsonschema', 'pandas', 'plotly', 'scipy', 'torch', 'numpy.f2py', 'numpy.testing', "
        "'rich.progress', 'tracediff.present.tables', 'tracediff.profile.analyses.collective_ops')"
    )
    code = (
        f"import sys; from tracediff_cli.group import cli; cli(['compare', *{sides!r}], standalone_mode=False); "
        f"print([m for m in {heavy} if m in sys.modules]); "
        "print(sum(m.partition('.')[0] in ('tracediff', 'tracediff_cli') for m in sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENV, check=True)
    imported, count = result.stdout.splitlines()[-2:]
    assert "2 runs per side" in result.stdout  # whose interval needs a quantile
    assert imported == "[]"
    assert int(count) <= MOST_MODULES
