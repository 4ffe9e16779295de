"""The options of every command that loads traces: which files, ranks and steps are read, and how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tracediff.errors import TracediffError, quoted, whole_number
from tracediff.structs import FrozenStruct
from tracediff_cli.options.groups import (
    READING,
    SETS,
    Decorator,
    Input,
    Size,
    WholeNumber,
    gathered,
    option,
    show_reading,
    together,
)
from tracediff_cli.progress import reading_progress

if TYPE_CHECKING:
    from tracediff.aggregate.traceset import TraceSet
    from tracediff.engine import LoadOptions
    from tracediff.profile.model.selection import Selection

reading_option = partial(option, group=READING)
SIDES = ("ctrl", "test")
"""Prefixes, followed by ``=``, that limit an option's value to one side."""
OF_SETS = ("label", "rank", "step", "skip_first", "capture", "torch_trace")
AS_WRITTEN = ("step_marker", "jobs", "max_memory", "keep_going")
"""Options that are fields of `LoadOptions` as they are."""


class LoadArguments(FrozenStruct):
    """The loading options as they were written on the command line.

    Attributes:
        sides: allowed prefixes of values; empty if the command has no control and test.
        of_sets: OF_SETS → values in the order given, with their prefixes.
        reading: AS_WRITTEN → value. families, executor: None for the default.
        tables: names, or ``all``.
    """

    sides: tuple[str, ...]
    of_sets: dict[str, tuple[str, ...]]
    reading: dict[str, Any]
    families: str | None
    executor: str | None
    tables: tuple[str, ...] = ()

    def load(self, wheres: Sequence[str], *, timelines: bool = False) -> list[TraceSet]:
        """Load the sets at the paths ``wheres``, with progress on a terminal; with ``timelines`` to draw them.

        Raises:
            TracediffError: as for `options` and `tracediff.engine.load_sets`.
        """
        from tracediff.engine import load_sets

        options = self.options(len(wheres))
        with _executor(self.executor) as executor, reading_progress() as on_progress:
            return load_sets(wheres, options.replace(executor=executor), timelines=timelines, progress=on_progress)

    def options(self, count: int) -> LoadOptions:
        """The load options of ``count`` sets.

        Raises:
            TracediffError: a value, a side, a table or the families file is invalid.
        """
        from tracediff.engine import LoadOptions, SetOptions
        from tracediff.profile.kernels.families import DEFAULT, read_rules
        from tracediff.profile.tables import table_names

        table_names(self.tables)  # reject unknown names before reading anything
        values = zip(*(self._by_set(name, count) for name in OF_SETS[1:]), self._labels(count), strict=True)
        sets = tuple(
            SetOptions(
                label,
                frozenset(_number("--rank", rank) for rank in ranks) or None,
                _selection(steps, skips),
                tuple(captures),
                logs[-1] if logs else None,
            )
            for ranks, steps, skips, captures, logs, label in values
        )
        families = read_rules(self.families) if self.families is not None else DEFAULT
        return LoadOptions(sets, families=families, tables=self.tables, **self.reading)

    def _by_set(self, argument: str, count: int) -> list[list[str]]:
        """The values of each set; a value without a prefix applies to every set."""
        name = f"--{argument.replace('_', '-')}"
        sets: list[list[str]] = [[] for _ in range(count)]
        for value in self.of_sets[argument]:
            side, mark, rest = value.partition("=")
            if not (mark and self.sides):
                for set_values in sets:
                    set_values.append(value)
                continue
            if side not in self.sides:
                raise TracediffError(
                    name, f"unknown side {quoted(side)}", "write ctrl=… or test=…, or no prefix for both sides"
                )
            self._check_sides(name, value, count)
            sets[self.sides.index(side)].append(rest)
        return sets

    def _labels(self, count: int) -> list[str | None]:
        """The label of each set, None for the default; labels without a prefix apply to the sets in order."""
        prefixes = tuple(f"{side}=" for side in self.sides)
        plain = [label for label in self.of_sets["label"] if not label.startswith(prefixes)]
        if len(plain) > count:
            raise TracediffError("--label", f"{len(plain)} labels for {count} sets", "give at most one per set")
        labels: list[str | None] = [*plain, *[None] * (count - len(plain))]
        for label in self.of_sets["label"]:
            side, mark, rest = label.partition("=")
            if mark and side in self.sides:
                self._check_sides("--label", label, count)
                labels[self.sides.index(side)] = rest
        return labels

    def _check_sides(self, name: str, value: str, count: int) -> None:
        if count != len(self.sides):
            raise TracediffError(
                name, f"{quoted(value)} names one side of a pair", "give CONTROL and TEST, or leave out the prefix"
            )


def load_options(*, table_help: str | None, table_group: str = SETS, sides: tuple[str, ...] = ()) -> Decorator:
    """The options of every command that loads sets; the command gets them as ``loading``.

    Args:
        table_help: help text of ``--table``; None for a command that prints no tables.
        table_group: section of the help that lists ``--table``.
        sides: prefixes that limit a value to one side.
    """
    prefix = f"[{'|'.join(f'{side}=' for side in sides)}]" if sides else ""
    label_help = "Label a side (control first)" if sides else "Label the set"

    def loading(**arguments: Any) -> LoadArguments:
        of_sets, reading = ({name: arguments.pop(name) for name in names} for names in (OF_SETS, AS_WRITTEN))
        return LoadArguments(sides, of_sets, reading, **arguments)

    def of_set(name: str, value: str, text: str, group: str = SETS, **attributes: Any) -> Decorator:
        return option(name, group=group, multiple=True, metavar=f"{prefix}{value}", help=text, **attributes)

    return together(
        click.option(
            "--help-reading",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=show_reading,
            help="Show how files are read, and end: step marker, processes, memory, captures, logs, families.",
        ),
        of_set("--label", "NAME", f"{label_help} [default: the last part of its path]."),
        of_set("--rank", "N", "Use only this rank (repeatable)."),
        of_set("--step", "A..B", "Use only steps A to B, by number."),
        of_set("--skip-first", "N", "Leave out the first N steps of each file [default: 1 if there are 3 or more]."),
        of_set(
            "--capture",
            "FILE",
            "Take the operators of graph replays from this trace of the graphs' capture [default: those in "
            "capture_traces/ beside a trace].",
            READING,
            type=Input(sides),
        ),
        of_set(
            "--torch-trace",
            "DIR|FILE",
            "Name the lines of code of compiled kernels by this log of torch.compile, such as a folder that "
            "TORCH_TRACE named [default: torch_trace/ beside a trace].",
            READING,
            type=Input(sides),
        ),
        reading_option(
            "--step-marker",
            metavar="REGEX",
            help="Use the annotations that match as steps [default: ProfilerStep#N].",
        ),
        reading_option(
            "--families",
            type=Input(),
            help="Classify kernels and operators by the rules of this TOML file before the built-in ones.",
        ),
        *(
            [option("--table", "tables", group=table_group, multiple=True, metavar="NAME", help=table_help)]
            if table_help is not None
            else []
        ),
        reading_option(
            "--jobs",
            type=WholeNumber(1),
            help="Read files in N processes [default: one per core; 1 for less than 4 MiB].",
        ),
        reading_option(
            "--max-memory",
            type=Size(),
            help="Read as many files at a time as fit, such as 8GB [default: no limit].",
        ),
        reading_option(
            "--executor",
            metavar="dask[://HOST:PORT]",
            help="Read files on the workers of a Dask cluster, which see the same paths or URLs; without an address "
            "the one that Dask is configured for, or on this machine.",
        ),
        reading_option(
            "--keep-going",
            is_flag=True,
            help="Leave out files that cannot be read, and count them in the health of the traces.",
        ),
        gathered("loading", loading, *OF_SETS, *AS_WRITTEN, "families", "executor", "tables"),
    )


@contextmanager
def _executor(name: str | None) -> Iterator[Any]:
    """The executor of this name, announced on standard error; None without one."""
    if name is None:
        yield None
        return
    from tracediff.errors import log_line
    from tracediff.process.workers import described, executor_of

    with executor_of(name) as executor:
        click.echo(log_line(f"Reading with {described(executor)}"), err=True)
        yield executor


def _selection(steps: Sequence[str], skips: Sequence[str]) -> Selection:
    """The steps to use: of repeated options the last counts."""
    from tracediff.profile.model.selection import Selection

    skip_first = _number("--skip-first", skips[-1]) if skips else None
    return Selection.parse(steps[-1], skip_first) if steps else Selection(skip_first)


def _number(name: str, text: str) -> int:
    number = whole_number(text)
    if number is None:
        raise TracediffError(name, f"not a whole number: {quoted(text)}", "give 0 or more, in up to 18 digits")
    return number
