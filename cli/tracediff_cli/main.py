"""The entry point of ``tracediff``: it imports everything else while errors and signals are handled."""

from __future__ import annotations

import gc
import os
import sys

from tracediff.ending import end

COMPLETION = "_TRACEDIFF_COMPLETE"


def main() -> None:
    """Run the command line and end the process; see `tracediff.ending.end`."""
    end(_run)


def _run() -> int:
    gc.set_threshold(200_000, 50, 1000)  # millions of rows stay until the answer, and none of them is in a cycle
    import click

    from tracediff_cli.group import cli

    if "collect" not in sys.argv:  # whose steps use BLAS, while no other command does: its threads take 32 MB each
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if COMPLETION in os.environ:
        cli.main(prog_name="tracediff")  # writes what the shell asks for, and exits
    try:
        with cli.make_context("tracediff", sys.argv[1:]) as context:  # cli.main() would exit with 1 at a closed pipe
            code = cli.invoke(context)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.exceptions.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        error.show()
        return 2
    return code if isinstance(code, int) else 0
