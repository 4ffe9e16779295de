"""Answers to questions: what a command prints, kept for their further pages."""

import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import ByteReceiveStream, Process
from cachetools import LRUCache

from tracediff import bounds
from tracediff.errors import TracediffError, printable, quoted
from tracediff.process.child import child_command
from tracediff.set_folder import SetFolder
from tracediff.structs import FrozenStruct
from tracediff_cli.options.groups import PROJECT

MOST_KEPT = 32 << 20
"""Characters of all answers that are kept."""
CURSOR = re.compile(r"(?P<key>[0-9a-f]{16})-(?P<page>[1-9][0-9]{0,5})")


class Question(FrozenStruct):
    """What a tool was asked.

    Attributes:
        command: the command line. sets: names of the sets that it reads; empty for all.
    """

    command: tuple[str, ...]
    sets: tuple[str, ...] = ()


class KeptAnswer(FrozenStruct):
    """The answer to a question, page by page."""

    question: Question
    pages: list[str]


class Answers:
    """Asks the command line, and keeps the answers used last.

    Attributes:
        folder: the sets that may be read. timeout_s: the most seconds that an answer may take.
    """

    def __init__(self, folder: SetFolder, timeout_s: float) -> None:
        self.folder = folder
        self.timeout_s = timeout_s
        self._secret = secrets.token_bytes(16)
        self._kept: LRUCache[str, KeptAnswer] = LRUCache(MOST_KEPT, lambda answer: sum(map(len, answer.pages)))
        self._turn = anyio.Semaphore(bounds.QUESTIONS)
        self._waiting = 0

    async def first_page(self, question: Question) -> str:
        """The first page of the answer; files that did not change since they were asked about are not read again.

        Raises:
            TracediffError: a set is not in the folder, or the command ends with an error.
        """
        key = await self._key(question)
        if key not in self._kept:
            self._kept[key] = KeptAnswer(question, pages(await self._answer_text(question)))
        return _numbered_page(self._kept[key], key, 1)

    async def next_page(self, cursor: str) -> str:
        """The page that an answer's ``cursor`` names.

        Raises:
            TracediffError: it comes from elsewhere, is forgotten, or files have changed since.
        """
        cursor_parts = CURSOR.fullmatch(cursor)
        answer = self._kept.get(cursor_parts["key"]) if cursor_parts else None
        if cursor_parts is None or answer is None or int(cursor_parts["page"]) > len(answer.pages):
            raise TracediffError(f"cursor {quoted(cursor)}", "unknown or forgotten", "ask the first question again")
        if await self._key(answer.question) != cursor_parts["key"]:
            raise TracediffError(f"cursor {quoted(cursor)}", "files have changed since", "ask the first question again")
        return _numbered_page(answer, cursor_parts["key"], int(cursor_parts["page"]))

    async def _key(self, question: Question) -> str:
        """Of the question and the state of the files that answering it reads."""
        files = await anyio.to_thread.run_sync(self._state, question)  # the disk may be slow
        return blake2b(repr((question, files)).encode(), digest_size=8, key=self._secret).hexdigest()

    def _state(self, question: Question) -> object:
        if question.sets:
            return [self.folder.state(name) for name in question.sets]
        return self.folder.files()

    async def _answer_text(self, question: Question) -> str:
        if self._waiting >= bounds.QUESTIONS_WAITING:
            raise TracediffError(
                "tracediff mcp", f"{bounds.QUESTIONS_WAITING} other questions are waiting", "ask again later"
            )
        self._waiting += 1
        try:
            async with self._turn:
                return await output_of(question.command, self.folder.root, self.timeout_s)
        finally:
            self._waiting -= 1


def _numbered_page(answer: KeptAnswer, key: str, number: int) -> str:
    page, count = answer.pages[number - 1], len(answer.pages)
    if count == 1:
        return page
    following = f'; for the next page call next_page with cursor "{key}-{number + 1}"' if number < count else ""
    return f"{page}\n[page {number} of {count}{following}]\n"


ROOM = bounds.ANSWER_TOKENS - bounds.NEXT_PAGE_TOKENS
SPACES = re.compile(r" {2,16}")
BLOCK = re.compile(r"(?<=\n\n)(?=[^\n])")
"""Between a table and the next."""
LINE = re.compile(r"(?<=\n)")


def most_tokens(text: str) -> int:
    """The most tokens that ``text`` can have."""
    return len(SPACES.sub(" ", text).encode())


def pages(text: str) -> list[str]:
    """``text`` in pages, which joined are ``text``; at least one, which may be empty.

    A page ends after a table; inside a table that is longer than a page, after a line; inside a line only if that is.
    """
    complete, page, size = [], "", 0
    for piece in _pieces(text):
        piece_size = most_tokens(piece)
        if page and size + piece_size > ROOM:
            complete.append(page)
            page, size = "", 0
        page += piece
        size += piece_size
    return [*complete, page]


def _pieces(text: str) -> Iterator[str]:
    """``text`` in parts that each fit a page."""
    for block in BLOCK.split(text):
        for line in [block] if most_tokens(block) <= ROOM else LINE.split(block):
            if most_tokens(line) <= ROOM:
                yield line
            else:  # of at most four bytes per character
                yield from (line[k : k + ROOM // 4] for k in range(0, len(line), ROOM // 4))


WIDTH = 160
"""Columns of tables."""
MOST_BYTES = 4 << 20
"""Largest output, in bytes."""
PREFIX = re.compile(r"(?:tracediff: )?(?:error: |Error: )?")
"""The beginning of the line of an error."""
ANSWERED = (0, 3)
"""Exit codes of a command that answered; 3 if the sides are not comparable."""


class CommandError(Exception):
    """The line in which a command ended with an error."""


async def output_of(command: Sequence[str], folder: Path, timeout_s: float) -> str:
    """What ``tracediff COMMAND`` prints in ``folder``, without colours, in tables of WIDTH columns.

    Raises:
        CommandError: it ends with an error.
        TracediffError: it is killed, takes longer than ``timeout_s``, or prints more than MOST_BYTES.
    """
    process = await anyio.open_process(
        child_command("tracediff", *command),
        stdin=subprocess.DEVNULL,
        cwd=folder,
        env=_environment(),
        start_new_session=True,
    )
    try:
        with anyio.fail_after(timeout_s):
            output, errors = await _read(process)
            code = await process.wait()
    except TimeoutError:
        raise TracediffError(
            command[0], f"took longer than {timeout_s / 60:g} minutes", "choose ranks, or restart with --timeout"
        ) from None
    finally:
        with anyio.CancelScope(shield=True):
            _kill(process)
            await process.aclose()
    if len(output) > MOST_BYTES:
        raise TracediffError(command[0], f"prints more than {MOST_BYTES >> 20} MB", "ask for fewer rows (top)")
    if code in ANSWERED:
        return output.decode(errors="replace").replace("\r\n", "\n")
    lines = [line for line in errors.decode(errors="replace").splitlines() if line.strip()]
    if code < 0 or not lines:
        raise TracediffError(command[0], "its process was killed", "it may have run out of memory: choose fewer ranks")
    raise CommandError(printable(PREFIX.sub("", lines[-1], count=1)))


async def _read(process: Process) -> tuple[bytes, bytes]:
    """All of both outputs, up to MOST_BYTES and a little."""
    outputs = [bytearray(), bytearray()]

    async def drain(stream: ByteReceiveStream | None, output: bytearray) -> None:
        assert stream is not None
        async for part in stream:
            output += part
            if len(output) > MOST_BYTES:
                _kill(process)
                return

    async with anyio.create_task_group() as tasks:
        for stream, output in zip((process.stdout, process.stderr), outputs, strict=True):
            tasks.start_soon(drain, stream, output)
    return bytes(outputs[0]), bytes(outputs[1])


def _environment() -> dict[str, str]:
    """Of the process: it imports what this one does, and nothing that lies in the folder."""
    return {
        **{name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "TRACEDIFF_DEBUG")},
        "COLUMNS": str(WIDTH),
        "NO_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        "PYTHONSAFEPATH": "1",
        PROJECT: os.getcwd(),  # not the folder, whose files are not settings
    }


def _kill(process: Process) -> None:
    """Kill the process and its children, unless it has ended; they have nothing to clean up."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
