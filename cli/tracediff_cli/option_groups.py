"""Options in groups, so that ``--help`` shows related options together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

SETS = "Trace selection"
INSTEAD = "Instead of the usual output"
JUDGING = "Statistics and comparability"
OUTPUT = "Output"
OTHER = "Other"


class GroupedOption(click.Option):
    """An option that ``--help`` lists in the section of its group.

    Attributes:
        group: heading of the section.
    """

    def __init__(self, *args: Any, group: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose ``--help`` has one section per group of options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections in the order of their first options, with --help last."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in sorted(self.get_params(ctx), key=lambda param: not isinstance(param, GroupedOption)):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                groups.setdefault(getattr(param, "group", OTHER), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def option(*names: str, group: str = OUTPUT, **attributes: Any) -> Callable[[Command], Command]:
    """`click.option` in a group."""
    return click.option(*names, cls=GroupedOption, group=group, **attributes)
