"""What an entry states: the commit, machine and configuration of a set."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.aggregate.recorded import LONGEST_NAME, Recorded
from tracediff.aggregate.traceset import TraceSet
from tracediff.errors import TracediffError, printable, quoted
from tracediff.formatting import plural
from tracediff.git import CHANGES, Commit, Repository


@dataclass(frozen=True)
class Given:
    """What the user states of a set; None for what the set and the repository say.

    Attributes:
        commit: a hash, branch or tag. committed: its time in s since 1970, for commits that the repository lacks.
    """

    commit: str | None = None
    committed: int | None = None
    machine: str | None = None
    configuration: str | None = None


def recorded_of(traces: TraceSet, given: Given, repository: Repository) -> Recorded:
    """Of what ``traces`` were recorded: as ``given``, else as the collector wrote it, else as ``repository`` is.

    Raises:
        TracediffError: the commit, its time, the machine or the configuration is unknown, or files were modified.
    """
    for option, name in (
        ("--commit", given.commit),
        ("--machine", given.machine),
        ("--configuration", given.configuration),
    ):
        if name is not None and not (0 < len(name) <= LONGEST_NAME and name == printable(name)):
            reason = f"{quoted(name)} is not a name of 1 to {LONGEST_NAME} characters without control characters"
            raise TracediffError(option, reason, "give another name")
    commit = _commit(traces, given, repository)
    machine = given.machine or _machine(traces)
    if machine is None:
        raise TracediffError(
            traces.label, "its machine is unknown (no name of a GPU, no manifest)", "give --machine NAME"
        )
    configuration = given.configuration or _configuration(traces)
    if configuration is None:
        reason = "its configuration is unknown (no manifest of `tracediff collect`)"
        raise TracediffError(traces.label, reason, "give --configuration NAME")
    return Recorded(printable(commit.name)[:LONGEST_NAME], commit.time, printable(machine), printable(configuration))


def _commit(traces: TraceSet, given: Given, repository: Repository) -> Commit:
    recorded = traces.manifest.git_commit if traces.manifest else None
    if given.commit is None and recorded is None and repository.is_changed:
        raise TracediffError(
            traces.label,
            "its commit is unknown, and files of the repository here are modified",
            "commit them, or give --commit NAME",
        )
    if given.commit is None and recorded is not None and recorded.endswith(CHANGES):
        reason = "was recorded with modified files, so it belongs to no commit"
        raise TracediffError(traces.label, reason, "commit them and record again, or give --commit NAME")
    name = given.commit or recorded or "HEAD"
    found = repository.commit(name)
    if found is None and name == "HEAD":
        reason = "its commit is unknown, and the working directory is in no git repository"
        raise TracediffError(traces.label, reason, "give --commit NAME")
    if given.committed is not None:
        return Commit(found.name if found else name, given.committed)
    if found is None:
        reason = f"{quoted(name)} is no commit of the repository in the working directory, so its time is unknown"
        raise TracediffError("--commit", reason, "run this in the repository, or give --commit-time TIME")
    return found


def _machine(traces: TraceSet) -> str | None:
    gpus = sorted({gpu for p in traces.profiles for gpu in p.origin.gpus}) if traces.has_gpu else []
    if gpus:
        return " + ".join(gpus)[:LONGEST_NAME]
    facts = traces.manifest.environment if traces.manifest else {}
    kind, cpus = facts.get("machine"), facts.get("cpu_count")
    return f"{kind}, {plural(cpus, 'CPU')}" if isinstance(kind, str) and isinstance(cpus, int) else None


def _configuration(traces: TraceSet) -> str | None:
    """What was collected; versions are no part of it, since a change of them should be seen."""
    manifest = traces.manifest
    if manifest is None:
        return None
    ranks = plural(manifest.world_size, "rank") if manifest.world_size > 1 else None
    settings = manifest.settings
    device = settings.device if settings.device != "cpu" else f"cpu, {plural(settings.threads, 'thread')}"
    what = (manifest.workload or manifest.target, manifest.size, manifest.variant, device, ranks)
    return " ".join(printable(part) for part in what if part)[:LONGEST_NAME]
