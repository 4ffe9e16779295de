"""``tracediff mcp FOLDER``."""

import os
import sys
from types import FrameType
from typing import NoReturn

import click

from tracediff.errors import TracediffError
from tracediff.process.ending import handle_endings
from tracediff_cli.analyze import analyze
from tracediff_cli.compare import compare
from tracediff_cli.explain import explain
from tracediff_cli.group import COMMANDS
from tracediff_cli.mcp_server.tools import Tool
from tracediff_cli.options.groups import WholeNumber, grouped_command, option

PACKAGES = ("anyio", "cachetools", "mcp")
LOADING = ("--rank", "--step", "--skip-first", "--step-marker", "--keep-going")
"""Options of loading that read no files and run nothing."""
COMPARING = (*LOADING, "--paired", "--assume-run-cv", "--force")
TOOLS = (
    Tool(
        "compare",
        compare,
        COMMANDS["compare"],
        ("--by", "--depth", "--table", "--top", "--sort", "--device", "--verbose", *COMPARING),
    ),
    Tool("analyze", analyze, COMMANDS["analyze"], ("--table", "--top", *LOADING)),
    Tool("explain", explain, COMMANDS["explain"], ("--top", *COMPARING)),
    Tool("find_events", explain, "", ("--top",), always="--events"),
)


@grouped_command
@click.argument("folder", metavar="FOLDER")
@option("--list", "lists", is_flag=True, help="Print the sets that agents may read, and end.")
@option(
    "--timeout",
    type=WholeNumber(1),
    default=10,
    show_default=True,
    metavar="MINUTES",
    help="End a question that is not answered within this time.",
)
def mcp(folder: str, lists: bool, timeout: int) -> int:
    """Let agents compare the sets in a folder (Model Context Protocol).

    An agent starts this command and asks over standard input and output. Its tools are compare, analyze, explain,
    find_events (explain --events), list_sets and next_page. They read the sets below FOLDER and no other
    files, and write none.

    \b
    Examples:
      tracediff mcp runs/
      tracediff mcp runs/ --list
    """
    from tracediff.set_folder import SetFolder

    if not os.path.isdir(folder):
        raise TracediffError(folder, "not a folder", "give a folder of trace sets")
    sets = SetFolder(folder)
    if lists:
        from tracediff.report.table_terminal import screen_console
        from tracediff_cli.mcp_server.listing import show_sets

        show_sets(sets, screen_console())
        return 0
    try:
        import anyio

        from tracediff_cli.mcp_server.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        raise TracediffError(
            "mcp", f"needs {error.name}, which is not installed", "pip install 'torch-tracediff[mcp]'"
        ) from None
    if sys.stdin.isatty():
        click.echo("waiting for an agent on standard input (docs/agents.md); Ctrl-C ends this", err=True)
    handle_endings(_end)
    anyio.run(serve, sets, timeout * 60.0, TOOLS)
    return 0


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    """End at once: the thread that waits for standard input would not let the process end in order."""
    os.write(2, b"tracediff: interrupted\n")
    os._exit(128 + number)
