"""``python -m tracediff.collect``: the same as ``tracediff collect``, with torch and the standard library only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec

from tracediff.collect.options import ShowRequest, request_of
from tracediff.errors import TracediffError

COMMAND_LINE = "tracediff_cli"
NEEDED = (COMMAND_LINE, "msgspec", "numpy", "rich")
"""What the table of results needs besides torch and the standard library."""


def main(arguments: Sequence[str] | None = None, show: Callable[[ShowRequest], int] | None = None) -> int:
    """Collect, or show what was collected; returns the exit code: 0, 1 if a variant failed, 2 for a request that cannot
    be served, 130 if interrupted.

    Args:
        arguments: of the command line, by default this process's.
        show: prints the table of a collection; None if only the collector is installed.
    """
    try:
        request = request_of(sys.argv[1:] if arguments is None else arguments)
        if request is None:
            return 0
        if isinstance(request, ShowRequest):
            return show(request) if show else _show_elsewhere(request)
        code = request.collect()
    except TracediffError as error:
        print(f"tracediff: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tracediff: interrupted", file=sys.stderr)
        return 130
    if not request.rank:
        _show_in_a_process(ShowRequest(request.out))
    return code


def _show_in_a_process(request: ShowRequest) -> None:
    """Show the table in a process of its own: reading traces forks, and torch's threads do not survive that."""
    sys.stdout.flush()
    if all(find_spec(name) for name in NEEDED):
        subprocess.run([sys.executable, "-m", COMMAND_LINE, "collect", f"--show={request.out}"], check=False)
    else:
        _show_elsewhere(request)


def _show_elsewhere(request: ShowRequest) -> int:
    print(
        f"table not shown: tracediff is not installed here; run `tracediff collect --show {request.out}` where it is",
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    sys.exit(main())
