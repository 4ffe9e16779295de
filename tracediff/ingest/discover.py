"""The trace files of a set, and the rank and run that their names give."""

from __future__ import annotations

import glob
import os
import re
import zipfile
from collections.abc import Iterable, Sequence

from tracediff.errors import TracediffError
from tracediff.ingest.readers import trace_suffixes
from tracediff.ingest.source import TraceFile, unreadable

NOT_TRACES = ("manifest.json", "collection.json", ".onnxruntime.json")
"""Name endings of files in a folder that are not read as traces. onnxruntime's profile is a trace of the same run: it
is read only if named.
"""
RANK = re.compile(r"(?:^|[^a-zA-Z])(?:rank|worker|tp|kineto)[-_. ]?(\d{1,18})(?!\d)", re.IGNORECASE)
RUN = re.compile(r"^run[-_]?(\d{1,18})$", re.IGNORECASE)
STAMP = re.compile(r"(\.\d{9,})?(\.pt)?(\.trace)?$")


def find_traces(where: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[TraceFile]:
    """The files of a set in order of name: a folder (searched below too), file, glob, zip archive, URL, or a list of
    these.

    Raises:
        TracediffError: the path does not exist, or contains no file that could be a trace.
    """
    if not isinstance(where, str | os.PathLike):
        if not where:
            raise TracediffError("traces", "none given", "give a folder, a file, a pattern, an archive or a URL")
        return list(dict.fromkeys(file for source in where for file in find_traces(source)))
    path = os.fspath(where)
    if "://" in path:
        return [TraceFile(path)]
    if os.path.isdir(path):
        return _in_folder(path)
    if os.path.isfile(path):
        return _members(path) if _is_zip(path) else [TraceFile(path)]
    if glob.has_magic(path):
        found = [file for name in sorted(glob.glob(path, recursive=True)) for file in find_traces(name)]
        if found:
            return found
        raise TracediffError(path, "no file matches", "check the pattern, and quote it for the shell")
    return _member_of_archive(path)


def _in_folder(folder: str) -> list[TraceFile]:
    found: list[TraceFile] = []
    for parent, folders, names in os.walk(folder, onerror=_walk_failed):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(names):
            path = os.path.join(parent, name)
            if name.startswith(".") or name.endswith(NOT_TRACES) or not os.path.isfile(path):
                continue
            if name.endswith(trace_suffixes()):
                found.append(TraceFile(path))
            elif name.endswith(".zip") and _is_zip(path):
                found += _members(path)
    if not found:
        reason = "the folder is empty" if not os.listdir(folder) else "no trace in the folder"
        raise TracediffError(folder, reason, f"give a folder with {', '.join(trace_suffixes())} or .zip files")
    return found


def _walk_failed(error: OSError) -> None:
    raise unreadable(str(error.filename), error)


def _is_zip(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")  # the latter is an empty archive
    except OSError as error:
        raise unreadable(path, error) from None


def _members(path: str) -> list[TraceFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(
                n
                for n in archive.namelist()
                if n.endswith(trace_suffixes()) and not n.endswith(NOT_TRACES) and not _is_hidden(n)
            )
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise TracediffError(path, f"the archive is damaged ({error})", "copy it again") from None
    if not names:
        raise TracediffError(
            path, "no trace in the archive", f"give an archive with {', '.join(trace_suffixes())} files"
        )
    return [TraceFile(path, name) for name in names]


def _is_hidden(member: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in member.split("/"))


def _member_of_archive(path: str) -> list[TraceFile]:
    """``archive.zip/member.json``, or the error for a path that does not exist."""
    archive, mark, member = path.partition(".zip/")
    if mark and os.path.isfile(archive + ".zip"):
        for file in _members(archive + ".zip"):
            if file.member == member:
                return [file]
        raise TracediffError(path, "no such member in the archive", "list the archive with `unzip -l`")
    raise TracediffError(path, *_no_regular_file(path))


def _no_regular_file(path: str) -> tuple[str, str]:
    """(reason, remedy) for a path that is neither a file nor a folder."""
    if os.path.exists(path):
        return "is a pipe, socket or device", "give a file or folder, which can be read more than once"
    if os.path.islink(path):
        return "is a link that leads nowhere", "check where it leads"
    return "no such file or folder", "check the path"


def rank_in_name(file: TraceFile) -> int | None:
    """The number after rank, worker, TP or kineto in the file's name, else in the name of the nearest folder."""
    for name in (file.name, *reversed(file.folders)):
        match = RANK.search(name)
        if match:
            return int(match[1])
    return None


def run_in_path(file: TraceFile) -> int | None:
    """The k of the nearest folder called ``run<k>``."""
    return next((int(m[1]) for name in reversed(file.folders) if (m := RUN.match(name))), None)


def worker_of(file: TraceFile) -> str:
    """The path without the time stamp that `tensorboard_trace_handler` appends to the worker's name."""
    return _without_stamp(str(file))


def _without_stamp(name: str) -> str:
    """``name`` without its suffix and the time stamp before it."""
    suffix = max((s for s in trace_suffixes() if name.endswith(s)), key=len, default="")
    return STAMP.sub("", name.removesuffix(suffix)) if suffix else name


def labels_for(wheres: Sequence[str | os.PathLike[str] | Sequence[str | os.PathLike[str]]]) -> list[str]:
    """Short names for sets: the last part of each path, with as many folders before it as make the names distinct."""
    paths = [_parts(where) for where in wheres]
    labels = [parts[-1] for parts in paths]
    for depth in range(2, max(map(len, paths)) + 1):
        if len(set(labels)) == len(labels):
            break
        labels = ["/".join(parts[-depth:]) for parts in paths]
    if len(set(labels)) < len(labels):  # one set twice: two of its steps or ranks
        return [parts[-1] for parts in paths]
    return labels


def _parts(where: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    first = os.fspath(where) if isinstance(where, str | os.PathLike) else os.fspath(next(iter(where), ""))
    parts = [p for p in os.path.abspath(first).split("/") if p] if "://" not in first else first.split("/")
    parts[-1:] = [_without_stamp(parts[-1]) or parts[-1]] if parts else ["traces"]
    return parts
