"""The tools that answer with what a command prints: their arguments, and the command line that they ask for."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from tracediff import bounds
from tracediff.errors import TracediffError, check_choice, quoted
from tracediff.structs import FrozenStruct
from tracediff_cli.options.groups import SetInput


class Tool(FrozenStruct):
    """A tool that answers with what a command prints.

    Attributes:
        name: of the tool. command: what it runs. summary: what that does.
        options: those of the command that may be given. always: a flag that is always given.
    """

    name: str
    command: click.Command
    summary: str
    options: tuple[str, ...]
    always: str = ""

    @property
    def arguments(self) -> dict[str, bool]:
        """Name of each argument that must be given, such as ``control`` for CONTROL → whether it is a set."""
        arguments = (p for p in self.command.params if isinstance(p, click.Argument))
        return {str(p.metavar).lower(): isinstance(p.type, SetInput) for p in arguments}

    @property
    def description(self) -> str:
        """What it answers: the help of the command, or of the flag that is always given."""
        flags = (p.help for p in self.command.params if isinstance(p, click.Option) and self.always in p.opts)
        return next(flags, None) or self.summary

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        arguments = {
            name: {
                "type": "string",
                "description": "A set that list_sets names." if is_set else "A name, or a part of it.",
            }
            for name, is_set in self.arguments.items()
        }
        options = {name: _schema(option) for name, option in self._options.items()}
        return object_schema(arguments | options, arguments)

    def words(self, arguments: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """(the sets, the command line) that ``arguments`` asks for.

        Raises:
            TracediffError: an argument is missing, unknown or of another type. Values are left to the command.
        """
        options = self._options
        required = self.arguments
        valid_names = [*required, *options]
        for name in arguments:
            listed = f"arguments: {', '.join(valid_names)}"
            check_choice(name, valid_names, self.name, f"unknown argument {quoted(name)}", listed)
        for name in required:
            if arguments.get(name) is None:
                raise TracediffError(self.name, f"the argument {name} is missing", f"give {', '.join(required)}")
        sets = [self._text(name, arguments[name]) for name, is_set in required.items() if is_set]
        texts = [self._text(name, arguments[name]) for name, is_set in required.items() if not is_set]
        words = [word for name, option in options.items() for word in self._option(name, option, arguments.get(name))]
        flags = [self.always] if self.always else []
        last = ["--", *texts] if texts else []
        return sets, [str(self.command.name), *map(_positional, sets), *flags, *words, *last]

    def _option(self, name: str, option: click.Option, value: Any) -> list[str]:
        """The words of one option; none if it is not given."""
        if option.is_flag:
            if value not in (None, True, False):
                raise TracediffError(self.name, f"{name} is not true or false", "give one of them")
            return [option.opts[-1]] if value else []
        values = value if isinstance(value, list) and option.multiple else [value]
        if len(values) > bounds.AGENT_TEXTS:
            raise TracediffError(self.name, f"{name} has more than {bounds.AGENT_TEXTS} values", "give fewer")
        return [f"{option.opts[-1]}={self._text(name, one)}" for one in values if one is not None]

    def _text(self, name: str, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise TracediffError(self.name, f"{name} is neither a text nor a number", "give one")
        if isinstance(value, int) and value.bit_length() > bounds.AGENT_TEXT:  # Python does not write some of them
            raise TracediffError(self.name, f"{name} has too many digits", "give another number")
        text = str(value)
        if len(text) > bounds.AGENT_TEXT:
            raise TracediffError(
                self.name, f"{name} has more than {bounds.AGENT_TEXT:,} characters", "give a shorter one"
            )
        if "\0" in text or text.encode(errors="replace").decode() != text:
            raise TracediffError(self.name, f"{name} contains a null byte or half a character", "give another value")
        return text

    @property
    def _options(self) -> dict[str, click.Option]:
        """Name of the argument → the option of the command."""
        by_name = {name: p for p in self.command.params if isinstance(p, click.Option) for name in p.opts}
        return {_name(name): by_name[name] for name in self.options}


def object_schema(properties: dict[str, Any], required: Iterable[str]) -> dict[str, Any]:
    """The JSON Schema of an object with ``properties``, of which those called ``required`` must be given."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _name(option: str) -> str:
    """``step_marker`` for ``--step-marker``."""
    return option.removeprefix("--").replace("-", "_")


def _schema(option: click.Option) -> dict[str, Any]:
    if option.is_flag:
        value: dict[str, Any] = {"type": "boolean"}
    elif isinstance(option.type, click.Choice):
        value = {"type": "string", "enum": list(option.type.choices)}
    elif isinstance(option.type, click.IntRange):
        value = {"type": "integer", "minimum": option.type.min}
    else:
        value = {"type": "string"}
    if option.multiple:
        value = {"type": "array", "items": value}
    metavar = f"{option.metavar}: " if option.metavar and option.metavar not in ("N", "NAME") else ""
    return {**value, "description": f"{metavar}{option.help}"}


def _positional(name: str) -> str:
    """A set's name that is not an option."""
    return f"./{name}" if name.startswith("-") else name
