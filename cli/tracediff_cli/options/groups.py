"""Options in groups, so that ``--help`` shows related options together; their types; what a project sets once
(``[tool.tracediff]``); and checks of outputs before anything is read.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import reduce, wraps
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracediff.errors import TracediffError, check_choice, did_you_mean, quoted, whole_number
from tracediff.patterns import late
from tracediff.structs import FrozenStruct

if TYPE_CHECKING:
    from rich.console import Console

Decorator = Callable[[Callable[..., Any]], Any]
"""Of the function that is a command."""

SETS, READING = "Trace selection", "How traces are read (most can be set in [tool.tracediff] of pyproject.toml)"
INSTEAD = "Instead of the usual output"
OUTPUT = "Output"
OTHER = "Other"


SIZE = late(r"(?P<number>[0-9]{1,6}(?:\.[0-9]{1,3})?) ?(?P<unit>[MGT])B?", re.IGNORECASE)
UNITS = {"M": 10**6, "G": 10**9, "T": 10**12}


class WholeNumber(click.IntRange):
    """A whole number in digits 0–9: neither other scripts' digits, signs nor underscores."""

    metavar = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, within the range."""
        if isinstance(value, str):
            number = whole_number(value)
            if number is None:
                self.fail(f"{quoted(value)} is not a whole number from {self.min or 0} on", param, ctx)
            value = number
        return super().convert(value, param, ctx)


class Size(click.ParamType[int]):
    """A number of bytes such as ``500MB`` or ``8G``; units are powers of 1,000."""

    name, metavar = "size", "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The bytes."""
        if isinstance(value, int):
            return value
        written = SIZE.fullmatch(value.strip())
        if written is None or float(written["number"]) == 0:
            self.fail(f"{quoted(value)} is not a size; write 8GB or 500MB", param, ctx)
        return int(float(written["number"]) * UNITS[written["unit"].upper()])


class Input(click.ParamType[str]):
    """What a command reads: a file, a folder, a pattern or a URL; with ``sides``, behind a prefix such as ``ctrl=``."""

    name, metavar = "input", "FILE"

    def __init__(self, sides: tuple[str, ...] = ()) -> None:
        self.sides = sides

    def paths(self, value: str) -> list[str]:
        """The paths that are read."""
        side, mark, path = value.partition("=")
        return [path if mark and side in self.sides else value]


class SetInput(Input):
    """A set, with the captures of graphs beside a trace."""

    def paths(self, value: str) -> list[str]:
        """The set, and the folder of captures."""
        from tracediff.ingest.discover import FOLDER

        return [value, os.path.join(os.path.dirname(value), FOLDER)]


class OutputFile(click.ParamType[str]):
    """A file that a command writes; ``-`` is standard output."""

    name, metavar = "output", "FILE"

    def paths(self, value: str) -> list[str]:
        """The paths that are written."""
        return [value]


class OutputFolder(OutputFile):
    """A folder into which a command writes files that no command reads."""

    metavar = "DIR"


class ChartFolder(OutputFolder):
    """A folder into which a command writes charts."""

    def paths(self, value: str) -> list[str]:
        """A page and a document for each chart."""
        from tracediff.charts import NAMES, OF_SET

        charts = dict.fromkeys((*NAMES, *OF_SET, "memory_layers"))
        return [os.path.join(value, f"{chart}.{suffix}") for chart in charts for suffix in ("html", "json")]


class GroupedOption(click.Option):
    """An option that ``--help`` lists in the section of its group.

    Attributes:
        group: heading of the section. metavar: its value in words, by default that of its type.
    """

    def __init__(self, *args: Any, group: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group, self.metavar = group, self.metavar or getattr(self.type, "metavar", None)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Cast as click does; an empty value is an error, and that of a name that is none of the choices suggests the
        nearest.
        """
        if value == "" or (self.multiple and value and "" in value):
            raise TracediffError(max(self.opts, key=len), "is empty", "give a value, or leave the option out")
        try:
            return super().type_cast_value(ctx, value)
        except click.BadParameter as error:
            if not isinstance(self.type, click.Choice):
                raise
            choices = [str(choice) for choice in self.type.choices]
            names = [value] if isinstance(value, str) else value
            hint = next(did_you_mean(name, choices, "") for name in names if name not in choices)
            raise click.BadParameter(f"{error.message} {hint.capitalize()}".rstrip(), ctx, self) from None


class GroupedCommand(click.Command):
    """A command whose ``--help`` has one section per group of options, and that writes over nothing that it reads."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command.

        Raises:
            TracediffError: an output is an input, or another output; or what the command raises.
        """
        outputs: list[Output] = []
        inputs: list[str] = []
        for param in self.params:
            value = ctx.params.get(param.name or "")
            values = [] if value is None else [value] if isinstance(value, str) else value
            if isinstance(param.type, OutputFile):
                outputs += ((max(param.opts, key=len), path) for file in values for path in param.type.paths(file))
            elif isinstance(param.type, Input):
                inputs += (path for file in values for path in param.type.paths(file))
        check_outputs(outputs, inputs)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections in the order of their first options, with --help last and without that of reading."""
        sections = self.sections(ctx)
        sections.pop(READING, None)
        write_sections(sections, formatter)

    def sections(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Section → (option, help) of its options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in sorted(self.get_params(ctx), key=lambda param: not isinstance(param, GroupedOption)):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                groups.setdefault(getattr(param, "group", OTHER), []).append(record)
        return groups


def grouped_command(function: Callable[..., Any]) -> GroupedCommand:
    """``function`` as a command."""
    return click.command(cls=GroupedCommand)(function)


def write_sections(sections: dict[str, list[tuple[str, str]]], formatter: click.HelpFormatter) -> None:
    """Write ``sections`` of options."""
    for title, records in sections.items():
        with formatter.section(title):
            formatter.write_dl(records)


def show_reading(context: click.Context, _option: click.Parameter, is_asked: bool) -> None:
    """``--help-reading``: show the options of how traces are read, and end."""
    if is_asked and isinstance(context.command, GroupedCommand):
        formatter = context.make_formatter()
        write_sections({READING: context.command.sections(context)[READING]}, formatter)
        click.echo(formatter.getvalue(), nl=False)
        context.exit()


def option(*names: str, group: str = OUTPUT, **attributes: Any) -> Decorator:
    """`click.option` in a group."""
    return click.option(*names, cls=GroupedOption, group=group, **attributes)


def together(*decorators: Decorator) -> Decorator:
    """``decorators`` as one, the first of them the outermost."""
    return lambda command: reduce(lambda decorated, decorate: decorate(decorated), reversed(decorators), command)


def gathered(name: str, make: Callable[..., Any], *arguments: str) -> Decorator:
    """Give a command ``name``, which ``make`` makes of its ``arguments``, in their place."""

    def decorate(command: Callable[..., Any]) -> Any:
        @wraps(command)
        def with_one(**values: Any) -> Any:
            parts = {argument: values.pop(argument) for argument in arguments if argument in values}
            return command(**{name: make(**parts)}, **values)

        return with_one

    return decorate


class Documents(FrozenStruct):
    """The documents that a command was asked for: kind → the file to write, None for those that it was not."""

    files: dict[str, str | None]

    def write(self, **texts: Callable[[], str]) -> Console | None:
        """Write them, each the text of its kind; the screen, unless one of them is on standard output."""
        for kind, text in texts.items():
            if file := self.files[kind]:
                from tracediff.write import write_text

                write_text(file, text())
        if "-" in self.files.values():
            return None
        from tracediff.report.table_terminal import screen_console

        return screen_console()


def documents(**texts: str) -> Decorator:
    """An option ``--KIND FILE`` with its help text for each kind; the command gets them as ``documents``."""
    options = (option(f"--{kind}", type=OutputFile(), help=text) for kind, text in texts.items())
    return together(*options, gathered("documents", lambda **files: Documents(files), *texts))


one_set = click.argument("where", metavar="SET", type=SetInput())
"""The argument SET; the command gets its path as ``where``."""
two_sets = together(
    click.argument("control", metavar="CONTROL", type=SetInput()),
    click.argument("test", metavar="TEST", type=SetInput()),
)
"""The arguments CONTROL and TEST; the command gets their paths as ``control`` and ``test``."""
chart_folder = option(
    "--charts",
    "chart_folder",
    type=ChartFolder(),
    help="Write each chart as HTML that works offline, and as JSON.",
)
"""The option ``--charts DIR``; the command gets the folder as ``chart_folder``."""


def browser_option(*, default: bool, group: str = OUTPUT) -> Decorator:
    """The option ``--browser/--no-browser``; the command gets it as ``browser``."""
    text = f"Open the browser, or only print the address [default: {'--browser' if default else '--no-browser'}]."
    return option("--browser/--no-browser", group=group, default=default, help=text)


def command_line() -> str:
    """The command as it was called, for pages that name it."""
    return shlex.join(["tracediff", *sys.argv[1:]])


LOCAL = ("file://", "local://")
"""URLs of files on this machine."""
STANDARD_OUTPUT = "-"
Identity = tuple[int, int]
"""Device and inode."""


Output = tuple[str, str]
"""The option that names what a command writes, such as ``--json``, and the path of that; ``-`` is standard output."""


def check_outputs(outputs: Iterable[Output], inputs: Iterable[str]) -> None:
    """Check that no output is an input, lies in a folder that is read, or is another output.

    Args:
        inputs: files, folders, globs, archives, members of archives and URLs that are read; those that do not exist are
            left to the reader.

    Raises:
        TracediffError: one of ``outputs`` does.
    """
    written = [(option, _local(path)) for option, path in outputs]
    written = [(option, path) for option, path in written if "://" not in path and not _is_stream(path)]
    read, patterns = _read(inputs) if written else ([], [])
    files = {_file(path): path for path in chain(*map(_below, read))} if any(_file(path) for _, path in written) else {}
    folders = {_identity(path): path for path in read if os.path.isdir(path)}
    earlier: dict[str | Identity, str] = {}
    for option, path in written:
        where, file = os.path.realpath(path), _file(path)
        if file and file in files:
            raise TracediffError(f"{option} {path}", f"is the input {files[file]}", "write to another file")
        if path != STANDARD_OUTPUT:
            around = (_identity(str(folder)) for folder in (where, *Path(where).parents))
            for folder in (folders[identity] for identity in around if identity and identity in folders):
                raise TracediffError(f"{option} {path}", f"lies in {folder}, which is read", "write to another folder")
            for pattern in (p for p in patterns if _would_match(where, p, read)):
                raise TracediffError(f"{option} {path}", f"matches {pattern}, which is read", "write to another folder")
        for key in (where, file or where):
            if earlier.setdefault(key, option) != option:
                raise TracediffError(
                    f"{option} {path}", f"is also the output of {earlier[key]}", "write to another file"
                )


def _read(inputs: Iterable[str]) -> tuple[list[str], list[str]]:
    """(the files and folders that are read, the patterns among ``inputs``)."""
    read, patterns = [], []
    for path in map(_local, inputs):
        archive, mark, _ = path.partition(".zip/")
        if os.path.lexists(path) or "://" in path:
            read.append(path)
        elif mark:
            read.append(f"{archive}.zip")
        else:
            read += glob.glob(path, recursive=True)
            patterns.append(path)
    return read, patterns


def _local(path: str) -> str:
    """The path of a URL of this machine."""
    return next((path.removeprefix(scheme) for scheme in LOCAL if path.startswith(scheme)), path)


def _below(path: str) -> Iterator[str]:
    """``path`` and the files below it; links to folders are not followed, as when a set is read."""
    return chain([path], (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names))


def _file(path: str) -> Identity | None:
    """The identity of the regular file that ``path`` leads to, if there is one."""
    return _identity(path) if path != STANDARD_OUTPUT and os.path.isfile(path) else None


def _identity(path: str) -> Identity | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _is_stream(path: str) -> bool:
    """Whether ``path`` is a device or a pipe, which several outputs may share."""
    return path != STANDARD_OUTPUT and os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def _would_match(where: str, pattern: str, read: Iterable[str]) -> bool:
    """Whether ``pattern`` matches the file ``where`` once it exists; its folders are those of what is ``read``."""
    folder, name = os.path.split(where)
    is_beside = any(os.path.realpath(os.path.dirname(path) or os.curdir) == folder for path in read)
    return is_beside and fnmatchcase(name, os.path.basename(pattern))


FILE, TABLE = "pyproject.toml", "[tool.tracediff]"
PROJECT = "TRACEDIFF_PROJECT"
"""The environment variable that names the folder to begin at, if it is not the current one."""
KEYS = ("step-marker", "families", "jobs", "max-memory", "keep-going", "equivalence-band", "noise-floor")
"""Options that hold for every set of a project. None that starts something or reaches another machine."""


def project_settings() -> dict[str, Any]:
    """Parameter of commands → its value, from the nearest pyproject.toml of the current folder and those above.

    Empty if that has no such table.

    Raises:
        TracediffError: a key is unknown, or a value is neither a text, a number, true nor false.
    """
    folder = Path(os.environ.get(PROJECT) or os.curdir).absolute()
    path = next((file for parent in (folder, *folder.parents) if (file := parent / FILE).is_file()), None)
    if path is None or TABLE not in path.read_text(encoding="utf-8", errors="replace"):
        return {}
    from tracediff.ingest.files.documents import read_toml

    settings = read_toml(path, f"correct {FILE}").get("tool", {}).get("tracediff", {})
    where = f"{path}, {TABLE}"
    parameters = {}
    for key, value in settings.items():
        check_choice(key, KEYS, where, f"unknown key {quoted(key)}", f"keys: {', '.join(KEYS)}")
        if not isinstance(value, str | int | float):
            raise TracediffError(where, f"{key} is not one value", "write a text, a number, true or false")
        parameters[key.replace("-", "_")] = str(path.parent / str(value)) if key == "families" else value
    return parameters
