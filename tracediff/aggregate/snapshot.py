"""Snapshots: a `TraceSet` as one file of KB, to be compared with instead of its traces (docs/snapshots.md)."""

import gzip
import os
import re
from collections.abc import Sequence
from typing import Annotated

import msgspec
import numpy as np

from tracediff import bounds
from tracediff.aggregate.assemble import CODES, complete, of_ranks
from tracediff.aggregate.snapshot_columns import (
    SharedColumns,
    accounts_of,
    as_column,
    profile_of,
    require,
)
from tracediff.aggregate.traceset import Recorded, Run, TraceSet
from tracediff.errors import TracediffError
from tracediff.ingest.files.source import TraceFile, open_trace
from tracediff.ingest.manifest import Manifest, RunFacts, TorchLog
from tracediff.ingest.model.health import Note, Notes, less
from tracediff.profile.kernels.families import DEFAULT, Families
from tracediff.profile.model.profile import Accounts, Profile
from tracediff.profile.model.selection import Selection
from tracediff.structs import FrozenStruct
from tracediff.write import StrPath, write_bytes

VERSION = 5
SCHEMA = f"tracediff.snapshot/{VERSION}"
OF_VERSION = re.compile(r"tracediff\.snapshot/(\d{1,9})")
MOST_BYTES = 256 << 20
"""A snapshot that unpacks to more is refused; a set of eight ranks takes half a MB."""
AGAIN = "create it again with `tracediff snapshot`"


Rank = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


class Header(FrozenStruct):
    """What every version of a snapshot has."""

    schema: str


class Snapshot(Header, omit_defaults=True):
    """What the file holds.

    Attributes:
        label: the set's own. notes: those of the set that are no file's. runs: run → rank → its files in order.
            manifest: without what only its machine concerns. selection: the steps that are used where nothing else is
            asked for, None for the default ones. recorded: of what, in a history. torch_log: what logs of torch.compile
            say.
    """

    label: str
    notes: list[Note]
    runs: dict[str, dict[Rank, list[Accounts]]]
    manifest: Manifest | None = None
    selection: Selection | None = None
    recorded: Recorded | None = None
    torch_log: TorchLog | None = None


def to_bytes(traces: TraceSet) -> bytes:
    """The snapshot of ``traces``: all steps of its files, and which are used. The same set gives the same bytes, and
    what is returned was read back.

    Raises:
        TracediffError: the set is too large, a file name is not valid UTF-8, or an account of a file does not close.
    """
    written = Snapshot(
        SCHEMA,
        traces.label,
        _own_notes(traces),
        runs={r.name: {rank: [*map(accounts_of, files)] for rank, files in r.ranks.items()} for r in traces.runs},
        manifest=_without_machine(traces.manifest),
        selection=traces.selection if traces.selection != Selection() else None,
        recorded=traces.recorded,
        torch_log=traces.torch_log,
    )
    try:
        data = msgspec.json.encode(written, enc_hook=np.ndarray.tolist)
    except UnicodeEncodeError:
        raise TracediffError(traces.label, "its name or the name of a file is not valid UTF-8", "rename it") from None
    packed = gzip.compress(data, 7, mtime=0)  # 9 takes six times as long for 6 % less
    if len(data) > (most := _most_bytes(len(packed))):
        raise TracediffError(
            traces.label,
            f"too large for a snapshot ({len(data) >> 20} MB, at most {most >> 20} MB)",
            "give fewer files, or select ranks with --rank",
        )
    try:
        _runs(_of_json(data), TraceFile(traces.label))
    except (msgspec.DecodeError, ValueError) as error:
        reason = f"cannot be written as a snapshot: its accounts do not close ({error})"
        raise TracediffError(traces.label, reason, "keep the traces instead, and report this") from None
    return packed


def write_snapshot(traces: TraceSet, path: StrPath) -> int:
    """Write the snapshot of ``traces`` to ``path``, whole or not at all (``-`` is standard output); its size in bytes.

    Raises:
        TracediffError: as for `to_bytes`, or the folder is missing, not writable or full.
    """
    data = to_bytes(traces)
    write_bytes(path, data)
    return len(data)


def read_snapshot(
    files: TraceFile | Sequence[TraceFile],
    selection: Selection | None = None,
    ranks: frozenset[int] | None = None,
    families: Families = DEFAULT,
) -> TraceSet:
    """The set that a file is a snapshot of, under the label that it has there; of several files, each of which has
    other ranks or runs, the set of all of them.

    Args:
        selection: which steps are used; by default those chosen when it was made.
        ranks: keep only these.
        families: rules for names; the states of a set without a GPU are named by those of the time of the snapshot.

    Raises:
        TracediffError: one cannot be read, is not a snapshot, is damaged or of another version; two have the same rank
            of a run, or other steps chosen; or no rank or step is left.
    """
    files = [files] if isinstance(files, TraceFile) else list(files)
    shared = SharedColumns()
    parts = [_part(file, shared) for file in files]
    first = parts[0][0]
    used = selection or Selection()
    is_asked = used != Selection()
    if not is_asked and first.selection:
        used = first.selection
    runs, notes = _joined(files, parts, is_asked), Notes()
    traces = TraceSet(
        label=first.label,
        runs=of_ranks(runs, ranks),
        selection=used,
        notes=(),
        manifest=first.manifest,
        torch_log=first.torch_log,
        families=families,
        recorded=first.recorded,
    )
    for snapshot, _ in parts:
        notes.update(snapshot.notes)
    complete(traces, ranks, {rank for run in runs for rank in run.ranks}, notes)
    return traces


def _part(file: TraceFile, shared: SharedColumns) -> tuple[Snapshot, list[Run]]:
    """(what ``file`` holds but for its runs, its runs)."""
    snapshot = _decoded(file, _bytes(file))
    try:
        _check_selection(snapshot.selection)
        runs = _runs(snapshot, file)
        for run in runs:
            run.ranks = {rank: [shared.of(profile) for profile in files] for rank, files in run.ranks.items()}
        return msgspec.structs.replace(snapshot, runs={}), runs
    except ValueError as error:
        raise _damaged(file, error) from None


def _joined(files: Sequence[TraceFile], parts: Sequence[tuple[Snapshot, list[Run]]], is_asked: bool) -> list[Run]:
    """The runs of all parts, by name.

    Args:
        is_asked: whether steps are asked for, so that those chosen in the parts do not matter.
    """
    joined: dict[str, Run] = {}
    for file, (snapshot, runs) in zip(files, parts, strict=True):
        if not is_asked and snapshot.selection != parts[0][0].selection:
            reason = f"its steps are chosen in another way than those of {files[0].name}"
            raise TracediffError(file, reason, "choose them with --skip-first or --step")
        for run in runs:
            mine = joined.setdefault(run.name, Run(run.name)).ranks
            if shared := mine.keys() & run.ranks.keys():
                reason = f"another snapshot has rank {min(shared)} of {run.name}, too"
                raise TracediffError(file, reason, "give snapshots of other ranks, or of folders run1, run2, …")
            mine.update(run.ranks)
    return [Run(run.name, dict(sorted(run.ranks.items()))) for run in joined.values()]


def _own_notes(traces: TraceSet) -> list[Note]:
    """The notes of the set less those of its files and those that are made again for the ranks and steps that are
    chosen then.
    """
    return less((n for n in traces.notes if n.code not in CODES), (n for p in traces.profiles for n in p.notes))


def _without_machine(manifest: Manifest | None) -> Manifest | None:
    """The manifest without the environment, the commit and any folder of a file."""
    if manifest is None:
        return None
    target = os.path.basename(manifest.target) if manifest.target else manifest.target
    return msgspec.structs.replace(
        manifest, environment={}, git_commit=None, target=target, runs=[_run_without_machine(r) for r in manifest.runs]
    )


def _run_without_machine(run: RunFacts) -> RunFacts:
    if run.compile is None:
        return run
    breaks = [msgspec.structs.replace(b, file=os.path.basename(b.file)) for b in run.compile.graph_breaks]
    return msgspec.structs.replace(run, compile=msgspec.structs.replace(run.compile, graph_breaks=breaks))


def _most_bytes(packed_size: int) -> int:
    """The largest unpacked size of a snapshot that is stored in ``packed_size`` bytes, 0 if unknown."""
    usual = max(bounds.SMALL_SNAPSHOT, bounds.SNAPSHOT_RATIO * packed_size)
    return min(MOST_BYTES, usual) if packed_size else MOST_BYTES


def _bytes(file: TraceFile) -> bytes:
    with open_trace(file) as stream:
        most = _most_bytes(stream.packed_size)
        try:
            data = stream.read(most + 1)
        except TracediffError as error:
            raise TracediffError(error.subject, error.reason, f"copy it again, or {AGAIN}") from None
    if len(data) > most:
        reason = f"unpacks to more than {most >> 20} MB, the largest size of a snapshot stored in so many bytes"
        raise TracediffError(file, reason, AGAIN)
    return data


def _decoded(file: TraceFile, data: bytes) -> Snapshot:
    try:
        schema = OF_VERSION.fullmatch(msgspec.json.decode(data, type=Header).schema)
        if not schema:
            raise TracediffError(file, "not a snapshot", "give the file that `tracediff snapshot -o` wrote")
        if int(schema[1]) != VERSION:
            reason = f"a snapshot of version {schema[1]}; this tracediff reads version {VERSION}"
            raise TracediffError(file, reason, f"use the tracediff that wrote it, or {AGAIN}")
        return _of_json(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(file, error) from None


def _of_json(data: bytes) -> Snapshot:
    return msgspec.json.decode(data, type=Snapshot, dec_hook=as_column)


def _damaged(file: TraceFile, error: Exception) -> TracediffError:
    reason = f"not a snapshot, or a damaged one ({str(error)[: bounds.LONG_REASON]})"
    return TracediffError(file, reason, f"copy it again, or {AGAIN}")


def _check_selection(selection: Selection | None) -> None:
    if selection:
        numbers = [n for n in (selection.skip_first, selection.first, selection.last) if n is not None]
        require(all(0 <= n < 1 << 63 for n in numbers), "selection: a number of a step that is negative or too large")


def _runs(snapshot: Snapshot, file: TraceFile) -> list[Run]:
    """The runs of ``snapshot``, which is read from ``file``.

    Raises:
        ValueError: the place and what is wrong there.
    """
    require(snapshot.runs, "no runs")
    runs = []
    for name, ranks in snapshot.runs.items():
        require(ranks and all(ranks.values()), f"{name} has no ranks, or a rank without files")
        runs.append(Run(name, {rank: [_profile(name, rank, a, file) for a in files] for rank, files in ranks.items()}))
    return runs


def _profile(run: str, rank: int, accounts: Accounts, file: TraceFile) -> Profile:
    try:
        return profile_of(accounts, file)
    except ValueError as error:
        raise ValueError(f"{run}, rank {rank}, {accounts.origin.file.name}: {error}") from None
