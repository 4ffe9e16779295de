"""How commands end: exit codes and one line, whatever happens; and no process outlives the one that started it."""

import os
import re
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from build_trace import document, op, step, write
from interrupts import heed_interrupts, of_session, wait_until

from tracediff.engine import LoadOptions, load_sets
from tracediff.errors import TracediffError
from tracediff.process.ending import end

ROOT = Path(__file__).resolve().parents[1]
ENV = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}"}
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and PR_SET_PDEATHSIG")
ENDS = """
import os, signal, sys
from tracediff.process.ending import end
from tracediff.errors import TracediffError
def ends():
    {body}
end(ends)
"""
"""A command with this body."""


def fails(error):
    raise error


def ending(capsys, command):
    """The exit code of ``command``, and what it writes to standard error."""
    handlers, hook = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)], sys.unraisablehook
    with pytest.raises(SystemExit) as ended:
        end(command)
    for number, handler in zip((signal.SIGINT, signal.SIGTERM), handlers, strict=True):
        signal.signal(number, handler)
    sys.unraisablehook = hook
    return ended.value.code, capsys.readouterr().err


def test_any_error_is_one_line_and_exit_code_2(capsys):
    for error, said in (
        (ValueError("odd\nname \x1b[31m"), "unexpected ValueError at test_ending.py:"),
        (RecursionError("too deep"), "unexpected RecursionError"),
        (MemoryError(), "out of memory"),
        (ImportError("libfoo.so: failed to map segment from shared object"), "out of memory"),
        (TracediffError("a", "is wrong", "mend it"), "error: a: is wrong; mend it"),
        (OSError(28, "No space left on device"), "standard output: cannot be written (no space left on device)"),
        (SystemExit("why"), "tracediff: why"),
    ):
        code, line = ending(capsys, lambda error=error: fails(error))
        assert code == 2
        assert said in line
        assert line.count("\n") == 1
        assert "\x1b" not in line


SWALLOWED = """
    import time
    class Late:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
    late = Late()
    del late
    time.sleep(30)
    return 0"""
"""A signal arrives while Python calls back, which swallows what is raised."""


def test_a_signal_in_a_callback_ends_the_command_too():
    script = ENDS.format(body=SWALLOWED.strip())
    ended = subprocess.run([sys.executable, "-c", script], env=ENV, capture_output=True, text=True, timeout=25)
    assert (ended.returncode, ended.stderr) == (143, "tracediff: interrupted\n")


def test_a_signal_in_a_callback_ends_the_command_on_a_busy_machine():
    """Time passes within the hook before the end of the process comes again."""
    slow = """
    import time
    def once(*args, arm=signal.setitimer):
        signal.setitimer = arm
        arm(*args)
        time.sleep(0.05)
    signal.setitimer = once
"""
    script = ENDS.format(body=slow.strip() + SWALLOWED.replace("import time", "pass"))
    ended = subprocess.run([sys.executable, "-c", script], env=ENV, capture_output=True, text=True, timeout=25)
    assert (ended.returncode, ended.stderr) == (143, "tracediff: interrupted\n")


def test_other_exit_codes_are_kept(capsys):
    for code in (0, 1, 3):
        assert ending(capsys, lambda code=code: code) == (code, "")
    assert ending(capsys, lambda: sys.exit(143)) == (143, "")
    assert ending(capsys, lambda: fails(BrokenPipeError())) == (141, "")
    assert ending(capsys, lambda: fails(KeyboardInterrupt())) == (130, "tracediff: interrupted\n")


def test_the_environment_asks_for_the_traceback_too(capsys, monkeypatch):
    monkeypatch.setenv("TRACEDIFF_DEBUG", "1")
    code, said = ending(capsys, lambda: fails(ValueError("odd")))
    assert code == 2
    assert "Traceback" in said


def test_a_signal_ends_it_in_one_line_even_if_a_library_makes_an_error_of_it():
    body = "try: exec('os.kill(os.getpid(), signal.{name})')\n    except KeyboardInterrupt: raise ImportError('numpy')"
    for name, code in (("SIGTERM", 143), ("SIGINT", 130)):
        command = [sys.executable, "-c", ENDS.format(body=body.format(name=name))]
        done = subprocess.run(command, env=ENV, capture_output=True, text=True, preexec_fn=heed_interrupts, check=False)
        assert (done.returncode, done.stderr) == (code, "tracediff: interrupted\n")


STREAMS = (
    ('print("x" * {n}); return 0', ">/dev/full", 2, "standard output: cannot be written (no space left on device)"),
    ('print("x" * {n}); return 0', ">&-", 2, "standard output: cannot be written (bad file descriptor)"),
    ('print("x" * {n}); return 0', "| true", 141, ""),
    ('print("x" * {n}, file=sys.stderr); return 0', ">&- 2>&-", 0, ""),
    ("raise ValueError", "2>/dev/full", 2, ""),
    ("return 0 if os.open(os.devnull, os.O_RDONLY) > 2 else 1", "<&- >&- 2>&-", 0, ""),
)
"""What a command does, redirection, exit code and the beginning of the line."""


def test_streams_that_take_nothing_are_one_line_or_silent():
    lines = [
        f'"$0" -c \'{ENDS.format(body=body.format(n=n))}\' {to}; echo "= ${{PIPESTATUS[0]}}"'
        for body, to, _, _ in STREAMS
        for n in (10, 100_000)
    ]
    script = "\n".join(["exec 2>&1", *lines])
    done = subprocess.run(["bash", "-c", script, sys.executable], env=ENV, capture_output=True, text=True, check=True)
    expected = [(code, line) for _, _, code, line in STREAMS for _ in range(2)]
    endings = re.findall(r"((?:.*\n)*?)= (\d+)\n", done.stdout)
    assert [int(code) for _, code in endings] == [code for code, _ in expected]
    for (text, _), (_, line) in zip(endings, expected, strict=True):
        assert line in text
        assert text.count("\n") == bool(line)


@linux
def test_too_little_address_space_is_a_line():
    script = 'ulimit -v 100000; exec "$0" -m tracediff compare a b'
    done = subprocess.run(["bash", "-c", script, sys.executable], env=ENV, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "ulimit -v" in line


def test_numpy_starts_no_threads_in_the_commands_that_use_none(tmp_path):
    trace = write(tmp_path / "t.json", document([step(1, 0, 10), op("a", 1, 2)]))
    code = (
        "import sys, threading; from tracediff_cli import main; import tracediff.process.ending as e;"
        f"sys.argv = ['t', 'analyze', {str(trace)!r}];"
        "main._run(); import os; print(len(os.listdir('/proc/self/task')))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=ENV, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "1"


@linux
def test_processes_end_with_the_one_that_started_them(tmp_path):
    code = (
        "import subprocess, sys, time; from tracediff.process.child import child_command\n"
        "if len(sys.argv) > 1: time.sleep(60)\n"
        "subprocess.run(child_command('sleeps', 'now'))"
    )
    (tmp_path / "sleeps.py").write_text(code)
    env = {**ENV, "PYTHONPATH": f"{ENV['PYTHONPATH']}{os.pathsep}{tmp_path}"}
    process = subprocess.Popen([sys.executable, "-m", "sleeps"], env=env, start_new_session=True)
    wait_until(lambda: len(of_session(process.pid)) == 2, "the child")
    process.kill()
    process.wait()
    wait_until(lambda: not of_session(process.pid), "end of the child")


@linux
@pytest.mark.parametrize("sent", [b"", b"\x00\x00\x10\x00only the beginning of a result"])
def test_a_reading_process_that_is_killed_is_an_error(tmp_path, monkeypatch, sent):
    for name in ("a", "b"):
        write(tmp_path / f"{name}.json", document([step(1, 0, 10), op("a", 1, 2)]))
    parent = os.getpid()

    def is_killed(*_):
        assert os.getpid() != parent
        for descriptor in map(int, os.listdir("/proc/self/fd")):
            with suppress(OSError):
                if sent and stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                    os.write(descriptor, sent)
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr("tracediff.engine.profile_ranks", lambda *_, **__: is_killed())
    with pytest.raises(TracediffError, match="was killed"):
        load_sets([tmp_path / "a.json", tmp_path / "b.json"], LoadOptions(jobs=2))
