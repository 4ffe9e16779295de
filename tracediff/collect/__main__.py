"""``python -m tracediff.collect``: the same as ``tracediff collect``, with torch and the standard library only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from tracediff.collect.options import ShowRequest, request_of
from tracediff.errors import TracediffError

NEEDED = ("tracediff_cli", "tracediff_cli.show_collection", "msgspec", "numpy", "rich")
"""Modules that the table of a collection needs in addition to torch and the standard library."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Collect trace sets, or show the table of a collection.

    Returns:
        The exit code: 0, 1 if a variant failed, 2 for invalid arguments, 130 if interrupted.
    """
    try:
        request = request_of(sys.argv[1:] if arguments is None else arguments)
        if request is None:
            return 0
        if isinstance(request, ShowRequest):
            return _show(request)
        code = request.collect()
    except TracediffError as error:
        print(f"tracediff: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tracediff: interrupted", file=sys.stderr)
        return 130
    if not request.rank:
        sys.stdout.flush()  # a new process: reading traces forks, which is not safe with the threads of torch
        subprocess.run([sys.executable, "-m", "tracediff.collect", f"--show={request.out}"], check=False)
    return code


def _show(request: ShowRequest) -> int:
    """Print the table if the rest of tracediff is installed, else how to get it; returns the exit code."""
    if all(find_spec(name) for name in NEEDED):
        show = import_module("tracediff_cli.show_collection").show_collection
        return int(show(request.out, request.json_file, request.markdown_file))
    print(
        f"table not shown: tracediff is not installed here; run `tracediff collect --show {request.out}` where it is",
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    sys.exit(main())
