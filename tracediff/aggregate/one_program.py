"""Whether the files of a set are runs and ranks of one program, or of several programs that share a folder."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from tracediff.aggregate.traceset import TraceSet
from tracediff.errors import TracediffError
from tracediff.formatting import percent, plural
from tracediff.ingest.discover import RUN
from tracediff.profile.model import Profile

IN_COMMON = 0.5
"""Part of the distinct calls of two files that both have, below which they are of different programs. In the traces
used in development it is 0.8 or more for runs of one program, and 0.4 for eager and compiled code.
"""
ANNOTATIONS = ("user_annotation", "gpu_user_annotation")
SHOWN = 6
"""Folders, or files, that the error describes."""


def check_one_program(traces: TraceSet, where: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> None:
    """Check that the files of ``traces``, found at ``where``, may be averaged. A pattern, or a list of files, states
    that they are one set, whatever their folders.

    Raises:
        TracediffError: they are of several programs; or ``where`` is a folder whose subfolders may be sets.
    """
    if len(traces.profiles) == 1:
        return
    path = os.fspath(where).rstrip("/") if isinstance(where, str | os.PathLike) and os.path.exists(where) else None
    by_rank = {rank: [p for run in traces.runs for p in run.ranks.get(rank, ())] for rank in traces.ranks}
    differences = (_world_sizes(traces.profiles), *(_difference(rank, files) for rank, files in by_rank.items()))
    difference = next(filter(None, differences), None)
    several = path is not None and any(len({_folder(p) for p in files}) > 1 for files in by_rank.values())
    if difference is None and not several:
        return
    reason = f"files of different programs ({difference})" if difference else "several folders that may each be a set"
    found, example = _found(traces.profiles, path or "")
    remedy = f"give one of them, such as {example}"
    if path is not None and os.path.isfile(path):
        remedy = "unpack the archive, and give one folder or file of it"
    elif difference is None:
        remedy += f", or, if they are runs of one program, all of them as '{path}/*' in quotes"
    subject = os.fspath(where) if isinstance(where, str | os.PathLike) else traces.label
    raise TracediffError(subject, f"holds {reason}: {found}", remedy)


def _world_sizes(profiles: list[Profile]) -> str | None:
    sizes = sorted({p.origin.world_size for p in profiles if p.origin.world_size is not None})
    return f"world sizes {', '.join(map(str, sizes))}" if len(sizes) > 1 else None


def _difference(rank: int, profiles: list[Profile]) -> str | None:
    """What tells that the files of one rank are of different programs."""
    if len({p.origin.gpus for p in profiles if p.has_gpu and any(p.origin.gpus)}) > 1:
        return f"different GPUs of rank {rank}"
    if len(profiles) == 1:
        return None
    first, *others = (_calls(p) for p in profiles)
    in_common = min((len(first & other) / max(len(first | other), 1) for other in others), default=1.0)
    return f"rank {rank}: {percent(in_common)} of the calls in common" if in_common < IN_COMMON else None


def _calls(profile: Profile, only: str | None = None) -> set[str]:
    """Names of operators, kernels, functions and runtime calls, or of one category; not of annotations, which may
    contain numbers of requests.
    """
    codes = [i for i, name in enumerate(profile.categories) if name == only or not (only or name in ANNOTATIONS)]
    return {profile.names[i] for i in np.unique(profile.ops.name[np.isin(profile.ops.category, codes)]).tolist()}


def _folder(profile: Profile) -> str:
    """The folder that would be the set of this file: the one around its ``run<k>``, if it is in one."""
    path = os.path.dirname(str(profile.origin.file))
    parts = path.split("/")
    runs = [i for i, part in enumerate(parts) if RUN.match(part)]
    return "/".join(parts[: runs[-1]]) if runs else path


def _found(profiles: list[Profile], path: str) -> tuple[str, str]:
    """(what there is, by the folders that may be sets or, within one, by file; the path of the first)."""
    places: dict[str, list[Profile]] = defaultdict(list)
    for profile in profiles:
        places[_folder(profile)].append(profile)
    if len(places) == 1:
        places = {str(p.origin.file): [p] for p in profiles}
    shown = [
        f"{os.path.relpath(place, path or None) if place != path else 'the folder itself'} ({_facts(held)})"
        for place, held in sorted(places.items())
    ]
    more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    return ", ".join(shown[:SHOWN]) + more, min(place for place in places if place != path)


def _facts(profiles: list[Profile]) -> str:
    """``8 files, world size 8, Tesla V100, 252 operators``."""
    sizes = sorted({p.origin.world_size for p in profiles if p.origin.world_size is not None})
    gpus = sorted({gpu for p in profiles if p.has_gpu for gpu in p.origin.gpus if gpu})
    facts = [plural(len(profiles), "file")] if len(profiles) > 1 else []
    facts += [f"world size {size}" for size in sizes]
    facts += gpus or (["GPU unknown"] if any(p.has_gpu for p in profiles) else ["no GPU"])
    return ", ".join([*facts, plural(max(len(_calls(p, "cpu_op")) for p in profiles), "operator")])
