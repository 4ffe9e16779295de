"""``tracediff``: the group of commands."""

from importlib import import_module

import click

import tracediff
from tracediff.errors import did_you_mean, quoted
from tracediff_cli.options.groups import project_settings, write_sections

COMMANDS = {
    "collect": "Run steps under torch.profiler and write trace sets.",
    "compare": "Compare two sets of traces: why did the step get faster or slower?",
    "analyze": "Analyse one set of traces.",
    "explain": "Show how and why the work of a kernel or operator was matched, or its events.",
    "matrix": "Compare many sets with one control, in one table.",
    "check": "Gate CI: exit with 1 if a limit on time, counts or memory is exceeded.",
    "export": "Write a comparison's tables, charts and a merged trace to files.",
    "history": "Keep the step time of every commit, and find what changed it.",
    "memory": "Show what holds the peak of GPU memory, or what changed between two memory snapshots.",
    "snapshot": "Write a set as one small file, to keep as a baseline.",
    "dashboard": "Explore a comparison in the browser.",
    "mcp": "Let agents compare the sets in a folder (Model Context Protocol).",
    "open": "Open a trace in Perfetto.",
    "doctor": "Show what is installed, and how to get what is missing.",
}
MODULES = {"matrix": "compare", "snapshot": "analyze"}
"""Commands in the module of another; each other command has a module of its name."""


class LazyGroup(click.Group):
    """A group that imports a command's module only when the command runs, so that ``tracediff --help`` is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"tracediff_cli.{MODULES.get(cmd_name, cmd_name)}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does; the error of an unknown command suggests the nearest name."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            hint = did_you_mean(name, COMMANDS, f"available commands: {', '.join(COMMANDS)}")
            raise click.UsageError(f"unknown command {quoted(name)}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's signature
        write_sections({"Commands": list(COMMANDS.items())}, formatter)


def _show_version(context: click.Context, _option: click.Parameter, is_asked: bool) -> None:
    if is_asked and not context.resilient_parsing:
        from tracediff.ingest.json.native import is_used

        click.echo(f"tracediff, version {tracediff.__version__} ({'native' if is_used() else 'Python'} reader)")
        context.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version, and which reader of traces is in use.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error (as TRACEDIFF_DEBUG=1 does).")
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:  # noqa: ARG001  # tracediff.process.ending reads it
    """Why did a PyTorch step get faster or slower?

    tracediff compares two sets of torch.profiler traces and accounts for every
    microsecond of the difference.

    \b
    Examples:
      tracediff collect --workload vit --variant eager --variant compile -o out/
      tracediff compare out/eager out/compile
      tracediff compare before.pt.trace.json.gz after.pt.trace.json.gz --json diff.json
      tracediff export eager/ compiled/ --csv tables/
    """
    settings = project_settings()
    context.default_map = {name: {**settings, "add": settings} for name in COMMANDS}  # history add reads traces
