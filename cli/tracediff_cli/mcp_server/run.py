"""Runs a command of the command line in a process of its own, which can be stopped and cannot take the server down."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream, Process

from tracediff.errors import TracediffError, printable
from tracediff.process.child import child_command
from tracediff_cli.options.project_settings import PROJECT

WIDTH = 160
"""Columns of tables."""
MOST_BYTES = 4 << 20
"""Largest output, in bytes."""
PREFIX = re.compile(r"(?:tracediff: )?(?:error: |Error: )?")
"""What stands before the line of an error."""
ANSWERED = (0, 3)
"""Exit codes of a command that answered; 3 if the sides are not comparable."""


class CommandError(Exception):
    """The line in which a command ended with an error."""


async def output_of(command: Sequence[str], folder: Path, timeout_s: float) -> str:
    """What ``tracediff COMMAND`` prints in ``folder``, without colours, in tables of WIDTH columns.

    Raises:
        CommandError: it ends with an error.
        TracediffError: it is killed, takes longer than ``timeout_s``, or prints more than MOST_BYTES.
    """
    process = await anyio.open_process(
        child_command("tracediff", *command),
        stdin=subprocess.DEVNULL,
        cwd=folder,
        env=_environment(),
        start_new_session=True,
    )
    try:
        with anyio.fail_after(timeout_s):
            output, errors = await _read(process)
            code = await process.wait()
    except TimeoutError:
        raise TracediffError(
            command[0], f"took longer than {timeout_s / 60:g} minutes", "choose ranks, or restart with --timeout"
        ) from None
    finally:
        with anyio.CancelScope(shield=True):
            _kill(process)
            await process.aclose()
    if len(output) > MOST_BYTES:
        raise TracediffError(command[0], f"prints more than {MOST_BYTES >> 20} MB", "ask for fewer rows (top)")
    if code in ANSWERED:
        return output.decode(errors="replace").replace("\r\n", "\n")
    lines = [line for line in errors.decode(errors="replace").splitlines() if line.strip()]
    if code < 0 or not lines:
        raise TracediffError(command[0], "its process was killed", "it may have run out of memory: choose fewer ranks")
    raise CommandError(printable(PREFIX.sub("", lines[-1], count=1)))


async def _read(process: Process) -> tuple[bytes, bytes]:
    """All of both outputs, up to MOST_BYTES and a little."""
    outputs = [bytearray(), bytearray()]

    async def drain(stream: ByteReceiveStream | None, output: bytearray) -> None:
        assert stream is not None
        async for part in stream:
            output += part
            if len(output) > MOST_BYTES:
                _kill(process)
                return

    async with anyio.create_task_group() as tasks:
        for stream, output in zip((process.stdout, process.stderr), outputs, strict=True):
            tasks.start_soon(drain, stream, output)
    return bytes(outputs[0]), bytes(outputs[1])


def _environment() -> dict[str, str]:
    """Of the process: it imports what this one does, and nothing that lies in the folder."""
    return {
        **{name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "TRACEDIFF_DEBUG")},
        "COLUMNS": str(WIDTH),
        "NO_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        "PYTHONSAFEPATH": "1",
        PROJECT: os.getcwd(),  # not the folder, whose files are no settings
    }


def _kill(process: Process) -> None:
    """Kill the process and its children, unless it has ended; they have nothing to clean up."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
