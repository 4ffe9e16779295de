"""A history is a folder of snapshots, one file for each set that was added, here or in any place of fsspec; each states
its commit, machine and configuration.

The name of a file is the digest of its contents, so that no two writers have the same one, and what is added twice is
there once. There is no other file that writers could contend for.
"""

import hashlib
import os
import re
from pathlib import Path
from statistics import median

from tracediff import bounds
from tracediff.aggregate.averages import used_steps
from tracediff.aggregate.snapshot import read_snapshot, to_bytes
from tracediff.aggregate.traceset import Recorded, TraceSet
from tracediff.errors import TracediffError, printable, quoted
from tracediff.formatting import plural
from tracediff.git import CHANGES, Commit, Repository
from tracediff.ingest.discover import SNAPSHOT_SUFFIX
from tracediff.ingest.files.source import TraceFile, display_path, unreadable, url_errors
from tracediff.write import make_folder, write_bytes


def recorded_of(
    traces: TraceSet,
    repository: Repository,
    commit: str | None = None,
    committed: int | None = None,
    machine: str | None = None,
    configuration: str | None = None,
) -> Recorded:
    """Of what ``traces`` were recorded: as stated, else as the collector wrote it, else as ``repository`` is.

    Args:
        commit: a hash, branch or tag. committed: its time in s since 1970, for commits that the repository lacks.

    Raises:
        TracediffError: the commit, its time, the machine or the configuration is unknown, or files were modified.
    """
    for option, name in (("--commit", commit), ("--machine", machine), ("--configuration", configuration)):
        if name is not None and not (0 < len(name) <= bounds.REASON and name == printable(name)):
            reason = f"{quoted(name)} is not a name of 1 to {bounds.REASON} characters without control characters"
            raise TracediffError(option, reason, "give another name")
    of_code = _commit(traces, repository, commit, committed)
    machine = machine or _machine(traces)
    if machine is None:
        raise TracediffError(
            traces.label, "its machine is unknown (no name of a GPU, no manifest)", "give --machine NAME"
        )
    configuration = configuration or _configuration(traces)
    if configuration is None:
        reason = "its configuration is unknown (no manifest of `tracediff collect`)"
        raise TracediffError(traces.label, reason, "give --configuration NAME")
    return Recorded(
        printable(of_code.name)[: bounds.REASON], of_code.time, printable(machine), printable(configuration)
    )


def _commit(traces: TraceSet, repository: Repository, stated: str | None, committed: int | None) -> Commit:
    recorded = traces.manifest.git_commit if traces.manifest else None
    if stated is None and recorded is None and repository.is_changed:
        raise TracediffError(
            traces.label,
            "its commit is unknown, and files of the repository here are modified",
            "commit them, or give --commit NAME",
        )
    if stated is None and recorded is not None and recorded.endswith(CHANGES):
        reason = "was recorded with modified files, so it belongs to no commit"
        raise TracediffError(traces.label, reason, "commit them and record again, or give --commit NAME")
    name = stated or recorded or "HEAD"
    commit = repository.commit(name)
    if commit is None and name == "HEAD":
        reason = "its commit is unknown, and the working directory is in no git repository"
        raise TracediffError(traces.label, reason, "give --commit NAME")
    if committed is not None:
        return Commit(commit.name if commit else name, committed)
    if commit is None:
        reason = f"{quoted(name)} is not a commit of the repository in the working directory, so its time is unknown"
        raise TracediffError("--commit", reason, "run this in the repository, or give --commit NAME,TIME")
    return commit


def _machine(traces: TraceSet) -> str | None:
    gpus = sorted({gpu for p in traces.profiles for gpu in p.origin.gpus}) if traces.has_gpu else []
    if gpus:
        return " + ".join(gpus)[: bounds.REASON]
    facts = traces.manifest.environment if traces.manifest else {}
    kind, cpus = facts.get("machine"), facts.get("cpu_count")
    return f"{kind}, {plural(cpus, 'CPU')}" if isinstance(kind, str) and isinstance(cpus, int) else None


def _configuration(traces: TraceSet) -> str | None:
    """What was collected; versions are not part of it, since a change of them should be seen."""
    manifest = traces.manifest
    if manifest is None:
        return None
    ranks = plural(manifest.world_size, "rank") if manifest.world_size > 1 else None
    settings = manifest.settings
    device = settings.device if settings.device != "cpu" else f"cpu, {plural(settings.threads, 'thread')}"
    what = (manifest.workload or manifest.target, manifest.size, manifest.variant, device, ranks)
    return " ".join(printable(part) for part in what if part)[: bounds.REASON]


COMMIT = re.compile(r"[0-9a-f]{12}")


def add(traces: TraceSet, recorded: Recorded, where: str) -> tuple[str, int]:
    """Add ``traces`` to the history at ``where``, a folder or URL; (path of the entry, its size in bytes).

    Raises:
        TracediffError: as for `tracediff.aggregate.snapshot.to_bytes`, or it cannot be written.
    """
    traces.recorded = recorded
    data = to_bytes(traces)
    commit = COMMIT.match(recorded.commit)
    name = f"{commit[0] if commit else 'commit'}-{hashlib.sha256(data).hexdigest()[:24]}{SNAPSHOT_SUFFIX}"
    if "://" not in where:
        path = make_folder(where) / name
        write_bytes(path, data)
        return str(path), len(data)
    with url_errors(where):
        import fsspec

        system, folder = fsspec.core.url_to_fs(where)
        system.makedirs(folder, exist_ok=True)
        system.pipe_file(f"{folder.rstrip('/')}/{name}", data)
    return f"{where.rstrip('/')}/{name}", len(data)


def medians_us(traces: TraceSet) -> tuple[float, ...]:
    """The median step of each run, in µs."""
    return tuple(median(step.period_ns for step in used_steps(traces, run)) / 1000 for run in traces.runs)


def read(where: str) -> tuple[list[TraceSet], list[str]]:
    """(the entries at ``where``, a folder or URL, which state of what they were recorded; a line for each that cannot
    be read).

    Raises:
        TracediffError: it cannot be read, or has no entries.
    """
    entries, unread = [], []
    for path in _files(where):
        file = TraceFile(path)
        try:
            traces = read_snapshot(file)
            if traces.recorded is None:
                raise TracediffError(file, "a snapshot without a commit", "add it with `tracediff history add`")
            if not all(medians_us(traces)):
                raise TracediffError(file, "a run whose steps take no time", "record it again")
            entries.append(traces)
        except TracediffError as error:
            unread.append(str(error))
    if not entries:
        reason = f"no entry can be read ({unread[0]})" if unread else "has no entries"
        raise TracediffError(display_path(where), reason, "add sets with `tracediff history add SET --out HIST`")
    return entries, unread


def _files(where: str) -> list[str]:
    """The paths or URLs of all entries, in order."""
    if "://" in where:
        with url_errors(where):
            import fsspec

            system, folder = fsspec.core.url_to_fs(where)
            names = [path.rstrip("/").rpartition("/")[2] for path in system.ls(folder, detail=False)]
        return [f"{where.rstrip('/')}/{name}" for name in sorted(names) if name.endswith(SNAPSHOT_SUFFIX)]
    try:
        names = os.listdir(where)
    except OSError as error:
        raise unreadable(display_path(where), error) from None
    ours = [name for name in sorted(names) if name.endswith(SNAPSHOT_SUFFIX) and not name.startswith(".")]
    return [str(Path(where, name)) for name in ours]
