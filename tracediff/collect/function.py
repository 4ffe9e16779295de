"""`collect` as a function: what ``tracediff collect`` does, called from Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tracediff.collect.driver import Collection
from tracediff.collect.options import request_of
from tracediff.errors import TracediffError


def collect(
    target: str | None = None,
    *,
    out: str | os.PathLike[str],
    workload: str | None = None,
    variants: Sequence[str] = (),
    size: str = "small",
    repeats: int = 5,
    device: str | None = None,
    active: int = 5,
    timed: int = 10,
    detail: str = "timing",
    overwrite: bool = False,
    arguments: Sequence[str] = (),
) -> list[Path]:
    """Record variants of a training step, every run in a process of its own; returns the folder of each variant, so
    that ``tracediff.compare(*tracediff.collect(…))`` compares two of them.

    Args:
        target: ``FILE.py:make_step`` of your own (docs/collect.md). workload: a built-in workload instead.
        out: folder of the collection.
        variants: such as "eager", "compile", "compile+amp"; by default eager, or those of the workload.
        size: of the workload: tiny, small or full. device: cpu or cuda, by default cuda if there is one.
        repeats: runs of each variant. active: steps recorded per run. timed: steps timed without the profiler.
        detail: timing, structure (stacks and modules) or all (memory as well).
        overwrite: replace what is in ``out``. arguments: for your ``make_step``.

    Raises:
        TracediffError: the request makes no sense, or a variant failed.
    """
    options = {"--workload": workload, "--size": size if workload else None, "--device": device, "--detail": detail}
    words = [target] if target else []
    words += [f"--variant={variant}" for variant in variants]
    words += [f"{name}={value}" for name, value in options.items() if value is not None]
    words += [f"--repeats={repeats}", f"--active={active}", f"--timed={timed}", f"--out={os.fspath(out)}"]
    words += ["--overwrite"] if overwrite else []
    request = request_of([*words, *(["--", *arguments] if arguments else [])])
    if not isinstance(request, Collection):
        raise TracediffError("tracediff.collect", "nothing to collect", "give a target or a workload")
    request.collect()
    for variant, reason in request.failed.items():
        raise TracediffError(variant, f"failed: {reason}", "run it with `tracediff collect` to see its output")
    return [Path(out) / variant.folder for variant in request.variants]
