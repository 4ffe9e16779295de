"""The reference of the command line, generated from its own help: one section per command, one table per group."""

import argparse
import inspect
from collections.abc import Iterator
from html import escape

import click
from mkdocs.structure.pages import Page
from tracediff_cli.group import COMMANDS, cli
from tracediff_cli.options.groups import OTHER

from tracediff.collect.options import parser

PAGE = "reference/command-line.md"
Groups = dict[str, list[tuple[str, str]]]
"""Heading of a group → the spelling and the help of each of its options."""


def on_page_markdown(markdown: str, page: Page, **_: object) -> str | None:
    """Add the commands to their page."""
    return "\n\n".join([markdown, *map(_section, COMMANDS)]) if page.file.src_uri == PAGE else None


def _section(name: str) -> str:
    """The Markdown of a command."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    if name == "collect":  # its options are argparse's: a GPU host may lack click
        collector = parser()
        usage = f"Usage: {collector.prog} [OPTIONS] [FILE.py:make_step]"
        text = f"{collector.description}\n\n\b{collector.epilog}"
        groups = _of_argparse(collector)
    else:
        context = click.Context(command, info_name=f"tracediff {name}")
        usage, text = command.get_usage(context), command.help or ""
        groups = _of_click(command, context)
    return "\n\n".join([f"## tracediff {name}", _fenced(usage), *_paragraphs(text), *_tables(groups)])


def _of_click(command: click.Command, context: click.Context) -> Groups:
    groups: Groups = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            groups.setdefault(getattr(parameter, "group", OTHER), []).append(record)
    return {**{title: rows for title, rows in groups.items() if title != OTHER}, OTHER: groups.get(OTHER, [])}


def _of_argparse(collector: argparse.ArgumentParser) -> Groups:
    def spelling(action: argparse.Action) -> str:
        choices = f"[{'|'.join(map(str, action.choices))}]" if action.choices else (action.dest or "").upper()
        value = "" if action.nargs == 0 else f" {action.metavar or choices}"
        return f"{', '.join(action.option_strings)}{value}".strip()

    return {"Options": [(spelling(action), action.help or "") for action in collector._actions]}


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a help text; those that click must not wrap (after \\b) are shown as they are."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        title, *lines = paragraph.strip("\b\n").splitlines()
        if paragraph.startswith("\b"):
            yield f"{title[:1].upper()}{title[1:]}"
            yield _fenced(inspect.cleandoc("\n".join(["", *lines])))
        else:
            yield escape(" ".join([title, *lines]), quote=False).replace("*", r"\*")


def _fenced(text: str) -> str:
    return f"```text\n{text.strip()}\n```"


def _tables(groups: Groups) -> Iterator[str]:
    for title, options in groups.items():
        rows = "".join(
            f"<tr><td><code>{escape(name)}</code></td><td>{escape(text)}</td></tr>" for name, text in options
        )
        yield f"<table><thead><tr><th>{escape(title)}</th><th></th></tr></thead><tbody>{rows}</tbody></table>"
