"""The trace files of a set, and the rank and run that their names give; and the traces that serving engines write
beside them while they capture CUDA or HIP graphs; and logs of torch.compile.
"""

import glob
import os
import re
import stat
from collections.abc import Iterable, Sequence

from tracediff.arrays import group_by
from tracediff.errors import TracediffError
from tracediff.ingest.files.source import TraceFile, display_path, kind_of_file, open_file, opens_with, unreadable
from tracediff.ingest.model.health import Notes
from tracediff.ingest.read import trace_suffixes
from tracediff.patterns import late

NOT_TRACES = ("manifest.json", "collection.json", ".onnxruntime.json")
"""Name endings of files in a folder that are not read as traces. onnxruntime's profile is a trace of the same run: it
is read only if named.
"""
RANK = late(r"(?:^|[^a-zA-Z])(?:rank|worker|tp|kineto)[-_. ]?(\d{1,18})(?!\d)", re.IGNORECASE)
RUN = late(r"^run[-_]?(\d{1,18})$", re.IGNORECASE)
SNAPSHOT_SUFFIX = ".tdprof.gz"
SNAPSHOT_OPENING = late(rb'\s*\{\s*"schema"\s*:\s*"tracediff\.snapshot/')
STAMP = late(r"(\.\d{9,})?(\.pt)?(\.trace)?$")


Where = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""Of a set: a folder, file, glob, archive or URL, or a list of these."""


def find_traces(where: Where, notes: Notes | None = None) -> list[TraceFile]:
    """The files of a set in order of name: a folder (searched below too), file, glob, zip archive, URL, or a list of
    these.

    Args:
        notes: receives what lies in a folder and is not read.

    Raises:
        TracediffError: the path does not exist, or contains no file that could be a trace.
    """
    notes = Notes() if notes is None else notes
    if not isinstance(where, str | os.PathLike):
        if not where:
            raise TracediffError("traces", "none given", "give a folder, a file, a pattern, an archive or a URL")
        return list(dict.fromkeys(file for source in where for file in find_traces(source, notes)))
    path = os.fspath(where)
    if "://" in path:
        return [TraceFile(path)]
    if os.path.isdir(path):
        return _in_folder(path, notes)
    if os.path.isfile(path):
        return _members(path) if _is_zip(path) else [TraceFile(path)]
    if os.path.lexists(path):
        raise TracediffError(
            display_path(path),
            f"{_kind(path)}, not a file or folder",
            "give a file; write the output of a command to one",
        )
    if glob.has_magic(path):
        matches = sorted(glob.glob(path, recursive=True))
        usable = [match for match in matches if os.path.isdir(match) or os.path.isfile(match)]
        _note_unread(notes, sorted(set(matches) - set(usable)))
        files = [file for match in usable for file in find_traces(match, notes)]
        if files:
            return files
        raise TracediffError(path, "no file matches", "check the pattern, and quote it for the shell")
    return _member_of_archive(path)


def _in_folder(folder: str, notes: Notes) -> list[TraceFile]:
    files: list[TraceFile] = []
    unread: list[str] = []
    empty = True
    folders = [folder]
    while folders:  # a stack, since folders may be nested deeper than functions
        names, inside = _entries(folders.pop())
        empty &= not names and not inside
        folders += (entry.path for entry in reversed(inside) if not entry.is_symlink())
        unread += (entry.path for entry in inside if entry.is_symlink())
        for path in names:
            if not os.path.isfile(path):
                unread.append(path)
            elif path.endswith(trace_suffixes()):
                files.append(TraceFile(path))
            elif path.endswith(".zip") and _is_zip(path):
                files += _members(path)
    _note_unread(notes, unread)
    if not files:
        reason = "the folder is empty" if empty else "no trace in the folder"
        if unread:
            reason += f" ({os.path.basename(unread[0])} is {_kind(unread[0])})"
        raise TracediffError(
            display_path(folder), reason, f"give a folder with {', '.join(trace_suffixes())} or .zip files"
        )
    return files


def _entries(folder: str) -> tuple[list[str], list[os.DirEntry[str]]]:
    """(the paths that may be traces, the folders) in a folder, in order of name."""
    try:
        with os.scandir(folder) as listing:
            entries = sorted((e for e in listing if not e.name.startswith(".")), key=lambda e: e.name)
            folders = [e for e in entries if (os.path.isdir(e.path) if e.is_symlink() else e.is_dir())]
    except OSError as error:
        raise unreadable(folder, error) from None
    inside = {e.name for e in folders}
    return [e.path for e in entries if e.name not in inside and not e.name.endswith(NOT_TRACES)], folders


def _kind(path: str) -> str:
    """What there is at ``path``, in words, where it is neither a file nor a folder of its own."""
    try:
        mode = os.stat(path).st_mode
        return "a symlink to a folder" if stat.S_ISDIR(mode) else kind_of_file(mode)
    except OSError:
        return "a symlink to nothing" if os.path.islink(path) else "a file that vanished"


def _note_unread(notes: Notes, paths: list[str]) -> None:
    for kind, such in group_by(paths, _kind).items():
        notes.add("not-read", f"not read: {kind}, such as {display_path(os.path.basename(such[0]))}", len(such))


def _is_zip(path: str) -> bool:
    try:
        with open_file(path) as file:
            return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")  # the latter is an empty archive
    except OSError as error:
        raise unreadable(path, error) from None


def _members(path: str) -> list[TraceFile]:
    from tracediff.ingest.files.archive import open_archive

    names = sorted(
        {
            n
            for n in open_archive(path).namelist()
            if n.endswith(trace_suffixes()) and not n.endswith(NOT_TRACES) and not _is_hidden(n)
        }
    )
    if not names:
        raise TracediffError(
            display_path(path), "no trace in the archive", f"give an archive with {', '.join(trace_suffixes())} files"
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
        raise TracediffError(display_path(path), "no such member in the archive", "list the archive with `unzip -l`")
    raise TracediffError(display_path(path), "no such file or folder", "check the path")


def rank_in_name(file: TraceFile) -> int | None:
    """The number after rank, worker, TP or kineto in the file's name, else in the name of the nearest folder."""
    for name in (file.part, file.name, *reversed(file.folders)):
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


def labels_for(wheres: Sequence[Where]) -> list[str]:
    """Short names for sets: the last part of each path, with as many folders before it as make the names of different
    paths distinct.
    """
    paths = [[display_path(part) for part in _parts(where)] for where in wheres]
    labels = [parts[-1] for parts in paths]
    for depth in range(2, max(map(len, paths)) + 1):
        if len(set(labels)) == len(set(map(tuple, paths))):
            break
        labels = ["/".join(parts[-depth:]) for parts in paths]
    return labels


def _parts(where: Where) -> list[str]:
    first = os.fspath(where if isinstance(where, str | os.PathLike) else next(iter(where), ""))
    parts = [p for p in os.path.abspath(first).split("/") if p] if "://" not in first else first.split("/")
    while len(parts) > 1 and _matches_all(parts[-1]):
        parts.pop()
    parts[-1:] = [_without_stamp(parts[-1]) or parts[-1]] if parts else ["traces"]
    return parts


def _matches_all(part: str) -> bool:
    """Whether a part of a glob is all files, or all of a suffix: the folder says more."""
    rest = part.lstrip("*?")
    return rest != part and rest[:1] in ("", ".")


FOLDER = "capture_traces"
"""Name of the folder, beside the traces, in which engines write them."""


def is_snapshot(file: TraceFile) -> bool:
    """Whether ``file`` is a snapshot, by its name or its first bytes; of a URL by its name alone. Files that cannot be
    read are none.
    """
    suffixes = SNAPSHOT_SUFFIX, SNAPSHOT_SUFFIX.removesuffix(".gz")
    return file.name.partition("?")[0].endswith(suffixes) or opens_with(file, SNAPSHOT_OPENING.match)


def check_events(files: Iterable[TraceFile]) -> None:
    """Check that ``files`` contain events.

    Raises:
        TracediffError: one is a snapshot.
    """
    for file in files:
        if is_snapshot(TraceFile(file.path)):
            raise TracediffError(file.path, "is a snapshot, which contains no events", "give the traces instead")


def is_capture(file: TraceFile) -> bool:
    """Whether ``file`` is one by its folder."""
    return FOLDER in file.folders[-1:]


def captures_beside(file: TraceFile) -> tuple[TraceFile, ...]:
    """The capture traces in the folder beside ``file``: of its rank, where their names have ranks."""
    folder = os.path.join(os.path.dirname(file.path), FOLDER)
    if file.member or "://" in file.path or is_capture(file) or not os.path.isdir(folder):
        return ()
    try:
        captures = find_traces(folder)
    except TracediffError:  # none in it
        return ()
    ranks = [rank_in_name(TraceFile(os.path.basename(capture.path))) for capture in captures]
    mine = rank_in_name(file)
    return tuple(c for c, rank in zip(captures, ranks, strict=True) if rank is None or mine is None or rank == mine)


LOGS = "torch_trace"
"""Name of the folder beside the traces whose logs of torch.compile are read unasked."""
LOG_NAME = late(r"\.(?:log|txt)(?:\.gz|\.zst)?$")
CODE_NAME = late(r"\boutput_code\.py$")


def find_logs(path: str) -> list[TraceFile]:
    """The file at ``path``, or the logs and the output code of inductor in that folder and below it.

    Raises:
        TracediffError: there is none.
    """
    files = [TraceFile(path)] if os.path.isfile(path) else _logs_in(path, (LOG_NAME, CODE_NAME))
    if not files:
        raise TracediffError(path, "no log of torch.compile there", "give the folder that TORCH_TRACE named")
    return files


def logs_beside(files: Iterable[TraceFile]) -> list[TraceFile]:
    """The logs in the folders ``torch_trace`` beside local traces."""
    folders = {os.path.dirname(file.path) for file in files if "://" not in file.path and not file.member}
    return [log for folder in sorted(folders) for log in _logs_in(os.path.join(folder, LOGS), (LOG_NAME,))]


def _logs_in(folder: str, names: Iterable[re.Pattern[str]]) -> list[TraceFile]:
    paths = (os.path.join(inside, name) for inside, _, files in os.walk(folder) for name in files)
    return sorted(TraceFile(path) for path in paths if any(name.search(path) for name in names))
