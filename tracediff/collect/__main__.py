"""``python -m tracediff.collect``: what ``tracediff collect`` does, with torch and the standard library only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from tracediff.collect.options import ShowRequest, request_of
from tracediff.errors import TracediffError

NEEDED = ("tracediff_cli", "tracediff_cli.show_collection", "msgspec", "numpy", "rich")
"""What showing a table takes beside torch and the standard library."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Collect, or show what was collected; returns the exit code: 0, 1 where a variant failed, 2 for a request that
    cannot be served, 130 interrupted.
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
        sys.stdout.flush()  # a process of its own: reading traces forks, which threads of torch would not outlive
        subprocess.run([sys.executable, "-m", "tracediff.collect", f"--show={request.out}"], check=False)
    return code


def _show(request: ShowRequest) -> int:
    """Show the table where the rest of tracediff is installed; else say where, with exit code 2."""
    if all(find_spec(name) for name in NEEDED):
        show = import_module("tracediff_cli.show_collection").show_collection
        return int(show(request.out, request.json_file, request.markdown_file))
    print(f"`tracediff collect --show {request.out}` shows the results where tracediff is installed", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
