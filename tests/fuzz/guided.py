"""``python -m fuzz.guided TARGET [OPTION…]``: atheris chooses among spoiled inputs by the lines that they reach.

The options are those of libFuzzer. Needs ``pip install atheris``. What it found interesting is kept in
``fuzz-corpus/TARGET``, an input that is a fault in ``crash-*``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from random import Random

import atheris  # type: ignore[import-not-found]
from odd_values import text

from fuzz import mutate

with atheris.instrument_imports(include=["tracediff"]):
    from fuzz.targets import TARGETS, try_input

SEEDS = 50


def mutated(data: bytes, most: int, seed: int) -> bytes:
    """``data`` spoiled as JSON, if it is that; otherwise damaged."""
    random = Random(seed)
    try:
        found = text(mutate.spoil(random, json.loads(data)))
    except (ValueError, RecursionError):
        found = b""
    return found if 0 < len(found) <= most else mutate.damage(random, data)[:most]


def main() -> None:
    """Run until libFuzzer's options end it."""
    name, *options = sys.argv[1:]
    corpus = Path("fuzz-corpus") / name
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in range(SEEDS):
        (corpus / f"seed-{seed}").write_bytes(TARGETS[name].make(Random(seed)))
    with tempfile.TemporaryDirectory() as scratch:

        def one(data: bytes) -> None:
            try_input(TARGETS[name], data, Path(scratch), Random(data))

        atheris.Setup(
            [sys.argv[0], *options, "-max_len=20000", "-timeout=20", str(corpus)], one, custom_mutator=mutated
        )
        atheris.Fuzz()


if __name__ == "__main__":
    main()
