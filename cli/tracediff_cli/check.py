"""``tracediff check CONTROL TEST``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracediff import thresholds
from tracediff_cli.compare import page
from tracediff_cli.options.groups import Documents, Input, documents, grouped_command, option, two_sets
from tracediff_cli.options.judging import PairOptions, pair_options, source_options

if TYPE_CHECKING:
    from tracediff.diff.gate.limits import GateSettings

limit_option = partial(option, group="Limits")
CAUTIONS = ("workload", "missing-work", "gpu", "gpu-count", "world-size", "dtype", "single-run")
"""tracediff.diff.gate.limits.STOPPING, which takes longer to import than --help may."""


def _config_here() -> str | None:
    """The configuration file in the current folder, if there is one."""
    from tracediff.diff.gate.limits import FILE

    return FILE if os.path.exists(FILE) else None


@grouped_command
@two_sets
@limit_option(
    "--max-regression",
    metavar="PERCENT[,TIME]",
    help="Fail if the step time grows by more than this percentage and this amount, such as 3%,50us "
    f"[default: {100 * thresholds.MAX_REGRESSION:g}%,0us].",
)
@limit_option(
    "--limit",
    "limits",
    multiple=True,
    metavar="SUBJECT=RELATIVE[,ABSOLUTE]",
    help="Limit another subject, such as memory=2%,16MB (repeatable).",
)
@limit_option(
    "--allow",
    multiple=True,
    metavar="CAUTION",
    help=f"Judge in spite of this caution (repeatable): {', '.join(CAUTIONS)}.",
)
@limit_option(
    "--config",
    type=Input(),
    default=_config_here,
    help="Read limits and waivers from this file [default: tracediff.toml in the current folder, if present].",
)
@pair_options(table_help='Add this table to the JSON, such as launches (repeatable; "all" for every table).')
@source_options
@documents(
    json="Write the check as JSON (- is standard output).",
    markdown="Write the check as Markdown for a pull-request comment (- is standard output).",
    html="Write the comparison as one HTML report that works offline (- is standard output).",
    junit="Write the check as JUnit XML (- is standard output).",
)
@option("--github", is_flag=True, help="Also print annotations for GitHub Actions.")
def check(
    pair: PairOptions,
    max_regression: str | None,
    limits: tuple[str, ...],
    allow: tuple[str, ...],
    config: str | None,
    documents: Documents,
    github: bool,
) -> int:
    """Gate CI: fail if TEST exceeds a limit relative to CONTROL.

    A limit fails if the growth exceeds both its percentage and its absolute amount. For times, the whole 95 %
    confidence interval has to exceed it; counts and memory are compared exactly. SUBJECT is state:NAME, family:NAME,
    op:PATTERN (self time of kernels, or of operators on the host), gpu-below:PATTERN (GPU time of what operators
    launch), kernels, memory or graph-breaks.

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
    from tracediff.report import check as report

    settings = _settings(config, max_regression, limits, allow)
    gate = judge(pair.compared(), settings, date.today())
    console = documents.write(
        json=lambda: report.to_json(gate),
        markdown=lambda: report.to_markdown(gate),
        junit=lambda: report.to_junit(gate),
        html=lambda: page(gate.comparison),
    )
    if console:
        report.show(gate, console)
    if github:  # nothing else beside a document on standard output
        click.echo(report.to_github(gate), nl=False, err=console is None)
    return gate.exit_code


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
    step = settings.limits[0]
    if max_regression is not None:
        relative, comma, absolute = max_regression.partition(",")
        step = step.replace(relative=parse_relative(relative, "--max-regression"))
        if comma:
            step = step.replace(absolute=parse_absolute(absolute, "us", "--max-regression"))
    all_limits = merged([*settings.limits, step, *map(parse_limit, limits)])
    return settings.replace(limits=all_limits, allow=settings.allow | allowed(allow, "--allow"))
