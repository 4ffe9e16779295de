"""``python -m tracediff.collect``: what ``tracediff collect`` does, with torch and the standard library only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from tracediff.collect.options import collection_of
from tracediff.errors import TracediffError


def main(arguments: Sequence[str] | None = None) -> int:
    """Collect; returns the exit code: 0, 1 where a variant failed, 2 for a request that cannot be served, 130
    interrupted.
    """
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
    """The table of the collection, where the rest of tracediff is installed: a program of its own, since this one has
    only torch.
    """
    sys.stdout.flush()
    if find_spec("tracediff_cli") and find_spec("msgspec") and find_spec("rich"):
        subprocess.run([sys.executable, "-m", "tracediff_cli", "table", out], check=False)
    else:
        print(f"`tracediff table {out}` shows the results where tracediff is installed", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
