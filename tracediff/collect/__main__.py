"""``python -m tracediff.collect``: what ``tracediff collect`` does, with torch and the standard library only."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tracediff.collect.options import collection_of
from tracediff.errors import TracediffError


def main(arguments: Sequence[str] | None = None) -> int:
    """Collect; returns the exit code: 0, 1 where a variant failed, 2 for a request that cannot be served, 130 interrupted."""
    try:
        collection = collection_of(sys.argv[1:] if arguments is None else arguments)
        if collection is None:
            return 0
        code = collection.collect()
    except TracediffError as error:
        print(f"tracediff: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tracediff: interrupted", file=sys.stderr)
        return 130
    if not collection.rank:
        _show_table(str(collection.out))
    return code


def _show_table(out: str) -> None:
    """The table of the collection, where the library is installed."""
    try:
        from tracediff_cli.table import show
    except ImportError:
        print(f"`tracediff table {out}` shows the results where tracediff is installed", file=sys.stderr)
        return
    show(out)


if __name__ == "__main__":
    sys.exit(main())
