"""Runs a command as its process would, in this one."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from tracediff_cli.main import main

from tracediff.process.ending import ENDING


def run_here(words: Sequence[str], variables: dict[str, str], folder: Path) -> tuple[object, str, str]:
    """(exit code, standard output, standard error) of the command in ``folder``, with these variables of the
    environment.
    """
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    handlers, threshold = [signal.getsignal(ending) for ending in ENDING], gc.get_threshold()
    try:
        with ExitStack() as stack:
            for context in (
                chdir(folder),
                patch.dict(os.environ, variables),
                patch.object(tempfile, "tempdir", None),  # so that TMPDIR is read again
                patch.object(sys, "argv", ["tracediff", *words]),
                redirect_stdout(streams[0]),
                redirect_stderr(streams[1]),
            ):
                stack.enter_context(context)
            main()
    except SystemExit as ended:
        output, errors = (stream.buffer.getvalue().decode() for stream in streams)
        return ended.code, output, errors
    finally:
        gc.set_threshold(*threshold)
        for ending, handler in zip(ENDING, handlers, strict=True):
            signal.signal(ending, handler)
    raise AssertionError("the command did not end")
