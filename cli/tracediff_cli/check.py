"""``tracediff check CONTROL TEST``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from tracediff import thresholds
from tracediff_cli.options.groups import GroupedCommand, Input, command_line, document, former, option, two_sets
from tracediff_cli.options.judging import PairOptions, Source, pair_options, source_options

if TYPE_CHECKING:
    from tracediff.diff.gate.judge import Gate
    from tracediff.diff.gate.limits import GateSettings

LIMITS = "Limits"
CAUTIONS = ("workload", "missing-work", "gpu", "gpu-count", "world-size", "dtype", "single-run")
"""tracediff.diff.gate.limits.STOPPING, which takes longer to import than --help may."""


def _config_here() -> str | None:
    """The configuration file in the current folder, if there is one."""
    from tracediff.diff.gate.limits import FILE

    return FILE if os.path.exists(FILE) else None


@click.command(cls=GroupedCommand)
@two_sets
@option(
    "--max-regression",
    group=LIMITS,
    metavar="PERCENT[,TIME]",
    help="Fail if the step time grows by more than this percentage and this amount, such as 3%,50us "
    f"[default: {100 * thresholds.MAX_REGRESSION:g}%,0us].",
)
@former("--min-delta", "--max-regression PERCENT,TIME")
@option(
    "--limit",
    "limits",
    group=LIMITS,
    multiple=True,
    metavar="SUBJECT=RELATIVE[,ABSOLUTE]",
    help="Limit another subject, such as memory=2%,16MB (repeatable).",
)
@option(
    "--allow",
    group=LIMITS,
    multiple=True,
    metavar="CAUTION",
    help=f"Judge in spite of this caution (repeatable): {', '.join(CAUTIONS)}.",
)
@option(
    "--config",
    group=LIMITS,
    type=Input(),
    default=_config_here,
    metavar="FILE",
    help="Read limits and waivers from this file [default: tracediff.toml in the current folder, if present].",
)
@pair_options(table_help='Add this table to the JSON, such as launches (repeatable; "all" for every table).')
@source_options
@document("json", "the check as JSON")
@document("markdown", "the check as Markdown for a pull-request comment")
@document("html", "the comparison as one HTML report that works offline")
@document("junit", "the check as JUnit XML")
@option("--github", is_flag=True, help="Also print annotations for GitHub Actions.")
def check(
    pair: PairOptions,
    code: Source,
    max_regression: str | None,
    limits: tuple[str, ...],
    allow: tuple[str, ...],
    config: str | None,
    json_file: str | None,
    markdown_file: str | None,
    html_file: str | None,
    junit_file: str | None,
    github: bool,
) -> int:
    """Gate CI: fail if TEST exceeds a limit relative to CONTROL.

    A limit fails if the growth exceeds both its percentage and its absolute amount. For times, the whole 95 %
    confidence interval has to exceed it; counts and memory are compared exactly. SUBJECT is state:NAME, family:NAME,
    op:PATTERN, kernels, memory or graph-breaks.

    Exit code: 0 pass, 1 regression, 2 error, 3 inconclusive or not comparable.

    \b
    Example (docs/ci.md has the whole script, and tracediff.toml):
      tracediff collect bench.py:make_step --variant eager --repeats 5 -o base/
      tracediff snapshot base/eager -o base.tdprof.gz
      # then, for every change:
      tracediff collect bench.py:make_step --variant eager --repeats 5 -o new/
      tracediff check base.tdprof.gz new/eager \\
          --max-regression 3%,50us --limit state:data_loading=10%,1ms \\
          --limit family:gemm=5%,20us --limit 'op:aten::copy_*=5%,20us' \\
          --limit kernels=0 --limit memory=2%,16MB --allow gpu \\
          --markdown comment.md --junit check.xml --json check.json
    """
    from tracediff.diff.gate.judge import check as judge

    settings = _settings(config, max_regression, limits, allow)
    gate = judge(code.explain(pair.compared()), settings, date.today())

    _write_documents(gate, json_file, markdown_file, junit_file, html_file)
    prints = "-" not in (json_file, markdown_file, html_file, junit_file)
    if prints:
        from tracediff.report.check import show
        from tracediff.report.table_terminal import screen_console

        show(gate, screen_console())
    if github:
        from tracediff.report.check import to_github

        click.echo(to_github(gate), nl=False, err=not prints)  # nothing else beside a document on standard output
    return gate.exit_code


def _write_documents(
    gate: Gate, json_file: str | None, markdown_file: str | None, junit_file: str | None, html_file: str | None
) -> None:
    from tracediff.write import write_text

    if json_file:
        from tracediff.report.check import to_json

        write_text(json_file, to_json(gate))
    if markdown_file:
        from tracediff.report.check import to_markdown

        write_text(markdown_file, to_markdown(gate))
    if junit_file:
        from tracediff.report.check import to_junit

        write_text(junit_file, to_junit(gate))
    if html_file:
        from tracediff.report.page.html import to_html

        write_text(html_file, to_html(gate.comparison, command=command_line()))


def _settings(
    config: str | None, max_regression: str | None, limits: Sequence[str], allow: Sequence[str]
) -> GateSettings:
    """The settings of the configuration file, overridden by those of the command line."""
    from tracediff.diff.gate.limits import (
        GateSettings,
        allowed,
        merged,
        parse_absolute,
        parse_limit,
        parse_relative,
        read_settings,
    )

    settings = read_settings(Path(config)) if config else GateSettings()
    if max_regression is not None:
        relative, comma, absolute = max_regression.partition(",")
        settings = replace(settings, max_regression=parse_relative(relative, "--max-regression"))
        if comma:
            settings = replace(settings, min_delta=parse_absolute(absolute, "us", "--max-regression"))
    all_limits = merged([*settings.limits, *map(parse_limit, limits)])
    return replace(settings, limits=all_limits, allow=settings.allow | allowed(allow, "--allow"))
