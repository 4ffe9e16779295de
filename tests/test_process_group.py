"""A command in a group of its own: its exit code, and that nothing of it is left."""

import os
import signal
import subprocess
import sys

import pytest
from interrupts import wait_until

from tracediff.process import group
from tracediff.process.group import NOT_STARTED, run_group

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def run(tmp_path, *command):
    """(the exit code, what it wrote)."""
    with (tmp_path / "log").open("wb") as log:
        code = run_group(command, tmp_path, dict(os.environ), log)
    return code, (tmp_path / "log").read_text()


def is_gone(process):
    try:
        with open(f"/proc/{process}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_the_exit_code_and_all_output_are_those_of_the_command(tmp_path):
    assert run(tmp_path, "sh", "-c", "pwd; echo error >&2; exit 3") == (3, f"{tmp_path}\nerror\n")
    assert run(tmp_path, "sh", "-c", "kill -9 $$") == (-signal.SIGKILL, "")
    assert run(tmp_path, "sh", "-c", "cat") == (0, "")  # without input
    assert run(tmp_path, "nothing") == (NOT_STARTED, "nothing: No such file or directory\n")


def test_the_command_does_not_inherit_how_signals_are_handled(tmp_path):
    assert run(tmp_path, "sh", "-c", "kill $$; exit 3") == (-signal.SIGTERM, "")


@linux
def test_what_the_command_leaves_running_ends_with_it(tmp_path):
    code, left = run(tmp_path, "sh", "-c", "sleep 600 & echo $!")
    assert code == 0
    wait_until(lambda: is_gone(left.strip()), "end of what it left")


@linux
def test_the_command_may_end_other_groups_before_it_is_killed(tmp_path):
    """As launchers of several processes do, which have groups of their own."""
    launcher = "setsid sleep 600 & echo $! >> log; trap 'kill $!; exit' TERM; wait"
    code = (
        "import os, sys; from pathlib import Path; from tracediff.process.group import run_group\n"
        f"run_group(['sh', '-c', {launcher!r}], Path('.'), dict(os.environ), sys.stderr.buffer)"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(group.__file__)))
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": root})
    wait_until(lambda: (tmp_path / "log").exists() and (tmp_path / "log").read_text(), "start")
    process.kill()
    process.wait()
    wait_until(lambda: is_gone((tmp_path / "log").read_text().strip()), "end of the other group")
