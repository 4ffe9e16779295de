"""Profiles → `TraceSet`: which file is whose run and rank, whether they are of one program or of several that share a
folder, and what is missing: ranks, steps and GPU events are reported in health, and the rest is analysed.
"""

import os
from collections.abc import Iterable
from itertools import count
from statistics import median_low

import numpy as np
from msgspec.structs import replace

from tracediff import bounds, thresholds
from tracediff.aggregate.traceset import Run, TraceSet, in_steps
from tracediff.arrays import distinct, group_by
from tracediff.errors import TracediffError
from tracediff.formatting import percent, plural, ranges
from tracediff.ingest.discover import RUN, Where, rank_in_name, run_in_path, worker_of
from tracediff.ingest.model.health import Note, Notes, less
from tracediff.profile.model.profile import Profile
from tracediff.profile.model.selection import Selection

CODES = frozenset(("missing-ranks", "unequal-steps", "unequal-runs", "rank-without-gpu"))
"""Codes of the notes that depend on the selected ranks and steps."""


def _leave_out_stepless(traces: TraceSet, notes: Notes) -> None:
    """Leave out the files that have no used step, if others remain, so that one damaged file does not stop the
    analysis. A file without steps is not one step if other files have steps.
    """
    files = traces.profiles
    stepped = any(not p.whole_file for p in files)
    good = {id(p) for p in files if traces.selection.used(p).any() and not (stepped and p.whole_file)}
    if not good or len(good) == len(files):
        return
    notes.add(
        "without-steps",
        "files have none of the used steps, though other files of the set do, and were left out",
        len(files) - len(good),
    )
    for run in traces.runs:
        run.ranks = {
            rank: remaining for rank, files in run.ranks.items() if (remaining := [p for p in files if id(p) in good])
        }
    traces.runs = [run for run in traces.runs if run.ranks]


def _odd_runs(traces: TraceSet) -> int:
    """The number of runs whose work per used step differs in count from the median run's."""
    counts = [_work_per_step(run, traces.selection) for run in traces.runs]
    middle = median_low(counts) if counts else 0.0
    return sum(abs(count - middle) > thresholds.OTHER_RUN * middle for count in counts)


def _work_per_step(run: Run, selection: Selection) -> float:
    """GPU events (without a GPU: operators) per used step and file."""
    count = steps = 0
    for profile in run.profiles:
        used = np.flatnonzero(selection.used(profile))
        table = profile.kernels if profile.has_gpu else profile.host_work
        count += int(table.count[in_steps(profile, table.step, used)].sum())
        steps += len(used)
    return count / max(steps, 1)


def _missing(run: Run, everywhere: frozenset[int], ranks: frozenset[int] | None) -> int:
    """The number of ranks without a file in ``run``: of those requested, else of its world size, else of the ranks of
    other runs.
    """
    if ranks is not None:
        return len(ranks - run.ranks.keys())
    world = run.world_size
    return max(world - sum(rank < world for rank in run.ranks), 0) if world else len(everywhere - run.ranks.keys())


def _unequal(run: Run, selection: Selection) -> int:
    """The number of used steps that some rank of ``run`` does not have."""
    by_rank = [{int(n) for p in files for n in p.step_numbers[selection.used(p)]} for files in run.ranks.values()]
    return len(by_rank[0].union(*by_rank) - by_rank[0].intersection(*by_rank))


ANNOTATIONS = ("user_annotation", "gpu_user_annotation")


def check_one_program(traces: TraceSet, where: Where) -> None:
    """Check that the files of ``traces``, found at ``where``, may be averaged. A pattern, or a list of files, states
    that they are one set, whatever their folders.

    Raises:
        TracediffError: they are of several programs; or ``where`` is a folder whose subfolders may be sets.
    """
    if len(traces.profiles) == 1:
        return
    path = os.fspath(where).rstrip("/") if isinstance(where, str | os.PathLike) and os.path.exists(where) else None
    by_rank = {rank: [p for run in traces.runs for p in run.ranks.get(rank, ())] for rank in traces.ranks}
    sizes = _world_sizes(traces.profiles)
    different_sizes = f"world sizes {', '.join(map(str, sizes))}" if len(sizes) > 1 else None
    differences = (different_sizes, *(_difference(rank, files) for rank, files in by_rank.items()))
    difference = next(filter(None, differences), None)
    several = path is not None and any(len({_folder(p) for p in files}) > 1 for files in by_rank.values())
    if difference is None and not several:
        return
    reason = f"files of different programs ({difference})" if difference else "several folders that may each be a set"
    contents, example = _contents(traces.profiles, path or "")
    remedy = f"give one of them, such as {example}"
    if path is not None and os.path.isfile(path):
        remedy = "unpack the archive, and give one folder or file of it"
    elif difference is None:
        remedy += f", or, if they are runs of one program, all of them as '{path}/*' in quotes"
    subject = os.fspath(where) if isinstance(where, str | os.PathLike) else traces.label
    raise TracediffError(subject, f"holds {reason}: {contents}", remedy)


def _world_sizes(profiles: list[Profile]) -> list[int]:
    return sorted({p.origin.world_size for p in profiles if p.origin.world_size is not None})


def _difference(rank: int, profiles: list[Profile]) -> str | None:
    """What shows that the files of one rank are of different programs."""
    if len({p.origin.gpus for p in profiles if p.has_gpu and any(p.origin.gpus)}) > 1:
        return f"different GPUs of rank {rank}"
    if len(profiles) == 1:
        return None
    first, *others = (_calls(p) for p in profiles)
    in_common = min((len(first & other) / max(len(first | other), 1) for other in others), default=1.0)
    return f"rank {rank}: {percent(in_common)} of the calls in common" if in_common < thresholds.SAME_FILES else None


def _calls(profile: Profile, only: str | None = None) -> set[str]:
    """Names of operators, kernels, functions and runtime calls, or of one category; not of annotations, which may
    contain numbers of requests.
    """
    is_counted = np.array([name == only or not (only or name in ANNOTATIONS) for name in profile.categories], bool)
    return {profile.names[i] for i in distinct(profile.ops.name[is_counted[profile.ops.category]]).tolist()}


def _folder(profile: Profile) -> str:
    """The folder that would be the set of this file: the one around its ``run<k>``, if it is in one."""
    path = os.path.dirname(str(profile.origin.file))
    parts = path.split("/")
    runs = [i for i, part in enumerate(parts) if RUN.match(part)]
    return "/".join(parts[: runs[-1]]) if runs else path


def _contents(profiles: list[Profile], path: str) -> tuple[str, str]:
    """(what there is, by the folders that may be sets or, within one, by file; the path of the first)."""
    places = group_by(profiles, _folder)
    if len(places) == 1:
        places = group_by(profiles, lambda profile: str(profile.origin.file))
    descriptions = [
        f"{os.path.relpath(place, path or None) if place != path else 'the folder itself'} ({_facts(members)})"
        for place, members in sorted(places.items())
    ]
    more = f" and {len(descriptions) - bounds.SETS_DESCRIBED} more" if len(descriptions) > bounds.SETS_DESCRIBED else ""
    return ", ".join(descriptions[: bounds.SETS_DESCRIBED]) + more, min(place for place in places if place != path)


def _facts(profiles: list[Profile]) -> str:
    """``8 files, world size 8, Tesla V100, 252 operators``."""
    gpus = sorted({gpu for p in profiles if p.has_gpu for gpu in p.origin.gpus if gpu})
    facts = [plural(len(profiles), "file")] if len(profiles) > 1 else []
    facts += [f"world size {size}" for size in _world_sizes(profiles)]
    facts += gpus or (["GPU unknown"] if any(p.has_gpu for p in profiles) else ["no GPU"])
    return ", ".join([*facts, plural(max(len(_calls(p, "cpu_op")) for p in profiles), "operator")])


def arrange(
    label: str,
    profiles: Iterable[Profile],
    selection: Selection,
    ranks: frozenset[int] | None = None,
    notes: Iterable[Note] = (),
) -> TraceSet:
    """The set made of ``profiles``, given in order of file name.

    A rank comes from distributedInfo, else from the file's or folder's name, else it is 0. A ``run<k>`` folder names
    the run; else the k-th file of each rank is run k. Files of one worker with disjoint step numbers are one run. What
    is missing from the set is reported in its notes.

    Args:
        ranks: keep only these.

    Raises:
        TracediffError: no file of the ranks asked for, or no step left to use.
    """
    profiles = list(profiles)
    collected = Notes.of(notes)
    runs: dict[str, Run] = {}
    recorded = set()
    for profile in profiles:
        rank = _rank_of(profile, collected, alone=len(profiles) == 1)
        recorded.add(rank)
        if ranks is None or rank in ranks:
            _place(runs, profile, rank)
    arranged = TraceSet(label=label, runs=list(runs.values()), selection=selection, notes=())
    complete(arranged, ranks, recorded, collected)
    return arranged


def complete(traces: TraceSet, ranks: frozenset[int] | None, recorded: Iterable[int], notes: Notes) -> None:
    """Leave the files without used steps out of ``traces``, and give it ``notes`` with those of its files and on what
    is missing.

    Args:
        ranks: those requested, None for all. recorded: those with files.

    Raises:
        TracediffError: no file of the requested ranks, or no step left.
    """
    for profile in traces.profiles:
        notes.update(profile.notes)
    everywhere = frozenset(traces.ranks)
    notes.add(
        "missing-ranks",
        "ranks have no file: the step time is that of the slowest rank present",
        sum(_missing(run, everywhere, ranks) for run in traces.runs),
    )
    _leave_out_stepless(traces, notes)
    notes.add(
        "unequal-steps",
        "steps are missing from the files of some ranks: their times come from the ranks that have them",
        sum(_unequal(run, traces.selection) for run in traces.runs),
    )
    notes.add(
        "unequal-runs",
        "runs do another amount of work per step than most runs of the set: they are not runs of the same program and "
        "inputs",
        _odd_runs(traces),
    )
    lacks_gpu = [not p.has_gpu for p in traces.profiles]
    if not all(lacks_gpu):
        notes.add("rank-without-gpu", "files have no GPU events, though other files of the set do", sum(lacks_gpu))
    _check_usable(traces, ranks, recorded)
    traces.notes = tuple(notes.list())


def _rank_of(profile: Profile, notes: Notes, alone: bool) -> int:
    if profile.origin.rank is not None:
        return profile.origin.rank
    rank = rank_in_name(profile.origin.file)
    if rank is None and not alone:
        notes.add("rank-guessed", "neither the trace nor its file name contains the rank: rank 0 is assumed")
    return rank or 0


def _place(runs: dict[str, Run], profile: Profile, rank: int) -> None:
    """Put a file into the first run that has room for it: no file of its rank yet, or other cycles of the same
    worker.
    """
    numbered = run_in_path(profile.origin.file)
    for k in count(1):
        name = f"run {k}" if numbered is None else f"run {numbered}" + (f" ({k})" if k > 1 else "")
        present = runs.setdefault(name, Run(name)).ranks.setdefault(rank, [])
        if not present or all(_other_cycle(profile, p) for p in present):
            present.append(profile)
            return


def _other_cycle(a: Profile, b: Profile) -> bool:
    same_worker = worker_of(a.origin.file) == worker_of(b.origin.file) and a.origin.file != b.origin.file
    return (
        same_worker and not (a.whole_file or b.whole_file) and not np.intersect1d(a.step_numbers, b.step_numbers).size
    )


def narrowed(traces: TraceSet, selection: Selection, ranks: frozenset[int] | None = None) -> TraceSet:
    """The same set with other steps, or fewer ranks: no file is read again. Notes of files that are left out go; those
    of the set as a whole stay.

    Raises:
        TracediffError: no file of the ranks asked for, or no step left to use.
    """
    subset = replace(traces, runs=of_ranks(traces.runs, ranks), selection=selection)
    kept_ids = {id(profile) for profile in subset.profiles}
    subset.notes = tuple(
        less(
            traces.notes, (note for profile in traces.profiles if id(profile) not in kept_ids for note in profile.notes)
        )
    )
    _check_usable(subset, ranks, traces.ranks)
    return subset


def of_ranks(runs: Iterable[Run], ranks: frozenset[int] | None) -> list[Run]:
    """``runs`` with only ``ranks``, and without those that have none of them."""
    subsets = (
        Run(run.name, {r: files for r, files in run.ranks.items() if ranks is None or r in ranks}) for run in runs
    )
    return [run for run in subsets if run.ranks]


def _check_usable(arranged: TraceSet, ranks: frozenset[int] | None, recorded: Iterable[int]) -> None:
    """Check that there is something to compare.

    Args:
        ranks: those requested, None for all. recorded: those with files in the set.

    Raises:
        TracediffError: no file of the requested ranks, or no step left.
    """
    if not arranged.runs:
        raise TracediffError(
            arranged.label,
            f"no file of rank {ranges(sorted(ranks or ()))}",
            f"ranks in this set: {ranges(sorted(recorded))}",
        )
    empty = [p for p in arranged.profiles if not arranged.selection.used(p).any()]
    if empty:
        numbers = ranges(empty[0].step_numbers.tolist()) or "none"
        remedy = f"select others with --step or --skip-first; steps in this file: {numbers}"
        raise TracediffError(empty[0].origin.file, "no step is left to compare", remedy)
