"""Answers to questions: what a command prints, kept for their further pages."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from hashlib import blake2b

import anyio
import anyio.to_thread
from cachetools import LRUCache

from tracediff.errors import TracediffError, quoted
from tracediff.set_folder import SetFolder
from tracediff_cli.mcp_server.pages import pages
from tracediff_cli.mcp_server.run import output_of

AT_ONCE = 2
"""Questions that are answered at the same time; each may use all cores."""
MOST_WAITING = 16
MOST_KEPT = 32 << 20
"""Characters of all answers that are kept."""
CURSOR = re.compile(r"(?P<key>[0-9a-f]{16})-(?P<page>[1-9][0-9]{0,5})")


@dataclass(frozen=True)
class Question:
    """What a tool was asked.

    Attributes:
        command: the command line. sets: names of the sets that it reads; empty for all.
    """

    command: tuple[str, ...]
    sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
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
        self._kept: LRUCache[str, Answer] = LRUCache(MOST_KEPT, lambda answer: sum(map(len, answer.pages)))
        self._turn = anyio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def first_page(self, question: Question) -> str:
        """The first page of the answer; files that did not change since they were asked about are not read again.

        Raises:
            TracediffError: a set is not in the folder, or the command ends with an error.
        """
        key = await self._key(question)
        if key not in self._kept:
            self._kept[key] = Answer(question, pages(await self._asked(question)))
        return _shown(self._kept[key], key, 1)

    async def next_page(self, cursor: str) -> str:
        """The page that an answer's ``cursor`` names.

        Raises:
            TracediffError: it comes from elsewhere, is forgotten, or files have changed since.
        """
        found = CURSOR.fullmatch(cursor)
        answer = self._kept.get(found["key"]) if found else None
        if found is None or answer is None or int(found["page"]) > len(answer.pages):
            raise TracediffError(f"cursor {quoted(cursor)}", "unknown or forgotten", "ask the first question again")
        if await self._key(answer.question) != found["key"]:
            raise TracediffError(f"cursor {quoted(cursor)}", "files have changed since", "ask the first question again")
        return _shown(answer, found["key"], int(found["page"]))

    async def _key(self, question: Question) -> str:
        """Of the question and the state of the files that answering it reads."""
        files = await anyio.to_thread.run_sync(self._state, question)  # the disk may be slow
        return blake2b(repr((question, files)).encode(), digest_size=8, key=self._secret).hexdigest()

    def _state(self, question: Question) -> object:
        if question.sets:
            return [self.folder.state(name) for name in question.sets]
        return self.folder.files()

    async def _asked(self, question: Question) -> str:
        if self._waiting >= MOST_WAITING:
            raise TracediffError("tracediff mcp", f"{MOST_WAITING} other questions are waiting", "ask again later")
        self._waiting += 1
        try:
            async with self._turn:
                return await output_of(question.command, self.folder.root, self.timeout_s)
        finally:
            self._waiting -= 1


def _shown(answer: Answer, key: str, number: int) -> str:
    page, count = answer.pages[number - 1], len(answer.pages)
    if count == 1:
        return page
    following = f'; for the next page call next_page with cursor "{key}-{number + 1}"' if number < count else ""
    return f"{page}\n[page {number} of {count}{following}]\n"
