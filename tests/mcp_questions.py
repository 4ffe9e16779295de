"""Asks `tracediff mcp` by the client of the protocol's own SDK, which each process imports when it asks first."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from pathlib import Path
from unittest.mock import patch

import anyio
from click.testing import CliRunner
from tracediff_cli.group import cli
from tracediff_cli.mcp import TOOLS
from tracediff_cli.mcp_server import answers

from tracediff.set_folder import SetFolder

SAMPLES = Path(__file__).parents[1] / "sample_traces"
PAIR = {"control": "base", "test": "slower"}
CURSOR = re.compile(r'\n\[page \d+ of (\d+)(?:; for the next page call next_page with cursor "([^"]+)")?\]\n\Z')


def asking(folder, ask, timeout_s=120.0):
    """What ``ask(client)`` returns."""
    from mcp import Client
    from tracediff_cli.mcp_server.server import make_server

    async def asked():
        async with Client(make_server(SetFolder(folder), timeout_s, TOOLS)) as client:
            return await ask(client)

    return in_a_loop_of_its_own(asked)


def in_a_loop_of_its_own(ask):
    """What ``ask()`` returns: in a thread, since a browser of other tests may keep a loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, ask).result()


def answer(folder, tool, /, timeout_s=120.0, **arguments):
    """(the text of the whole answer, whether it is an error, its pages as they came)."""

    async def ask(client):
        result = await client.call_tool(tool, arguments)
        pages = [result.content[0].text]
        while (found := CURSOR.search(pages[-1])) and found[2]:
            pages.append((await client.call_tool("next_page", {"cursor": found[2]})).content[0].text)
        return "".join(CURSOR.sub("", page) for page in pages), result.is_error, pages

    return asking(folder, ask, timeout_s)


def refused(folder, tool, /, **arguments):
    """The line with which a question is refused."""
    text, is_error, _ = answer(folder, tool, **arguments)
    assert is_error
    assert "\n" not in text
    return text


def printed(folder, *words):
    """What the command line prints in ``folder``."""
    env = {"COLUMNS": str(answers.WIDTH), "NO_COLOR": "1"}
    with chdir(folder), patch.object(sys, "argv", ["tracediff", *words]):
        return CliRunner().invoke(cli, words, env=env).stdout
