"""The entry point of ``tracediff``: it imports everything else while errors and signals are handled."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

from tracediff.process.ending import end

if TYPE_CHECKING:  # click is imported while errors and signals are handled
    import click

COMPLETION = "_TRACEDIFF_COMPLETE"


def main() -> None:
    """Run the command line and end the process; see `tracediff.process.ending.end`."""
    end(_run)


def _run() -> int:
    gc.set_threshold(200_000, 50, 1000)  # millions of rows stay until the answer, and none of them is in a cycle
    import click

    from tracediff_cli.group import cli

    if "collect" not in sys.argv:  # whose steps use BLAS, while no other command does: its threads take 32 MB each
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if os.environ.get(COMPLETION):
        return _complete(cli, os.environ[COMPLETION])
    try:
        with cli.make_context("tracediff", sys.argv[1:]) as context:  # cli.main() would exit with 1 at a closed pipe
            code: int = cli.invoke(context)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.exceptions.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        raise _in_one_line(error) from None
    return code


def _in_one_line(error: click.ClickException) -> Exception:
    """What click would tell in several lines."""
    from click import NoSuchOption

    from tracediff.errors import TracediffError, did_you_mean

    context = getattr(error, "ctx", None)
    path = context.command_path if context else "tracediff"
    message, remedy = error.format_message().rstrip("."), f"see {path} --help"
    if isinstance(error, NoSuchOption) and context:
        message = f"no such option '{error.option_name}'"
        remedy = did_you_mean(error.option_name, [name for p in context.command.params for name in p.opts], remedy)
    subject = path.partition(" ")[2] or "command line"
    return TracediffError(subject, message[:1].lower() + message[1:], remedy)


def _complete(cli: click.Command, instruction: str) -> int:
    """Write what a shell asks for to complete a command line."""
    from click.shell_completion import shell_complete

    from tracediff.errors import TracediffError, quoted

    try:
        code = shell_complete(cli, {}, "tracediff", COMPLETION, instruction)
    except (KeyError, ValueError):  # the shell's words are missing, or the number of one is none
        code = 1
    if code:
        reason = f"{quoted(instruction)} is not what a shell sets it to"
        raise TracediffError(f"environment variable {COMPLETION}", reason, "unset it")
    return 0


if __name__ == "__main__":
    main()
