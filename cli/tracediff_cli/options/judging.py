"""The options of every command that compares sets: how the significance of a difference is decided."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracediff import thresholds
from tracediff.errors import quoted
from tracediff.patterns import late
from tracediff.structs import FrozenStruct
from tracediff_cli.options.groups import SETS, Decorator, gathered, option, together
from tracediff_cli.options.loading import SIDES, LoadArguments, load_options

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.verdict import Judging


PERCENT = late(r"(\d{1,6}(?:\.\d{0,15})?|\.\d{1,15})\s*(%?)", re.ASCII)


def percent(value: str | float) -> float:
    """The fraction that ``3%`` or ``0.03`` means.

    Raises:
        click.BadParameter: any other text.
    """
    if isinstance(value, float):
        return value
    written = PERCENT.fullmatch(value.strip())
    fraction = float(written[1]) / (100 if written[2] else 1) if written else 0.0
    if written is None or fraction >= (10 if written[2] else 1):
        raise click.BadParameter(f"{quoted(value.strip())} is not a percentage: write 3% or 0.03")
    return fraction


def _judging(**settings: Any) -> Judging:
    from tracediff.diff.verdict import Judging

    return Judging(**settings)


judging_option = partial(option, group="Statistics and comparability")
judging_options = together(
    judging_option(
        "--paired",
        is_flag=True,
        help=f"Pair run k of control with run k of test (needs {thresholds.RANKED_RUNS} pairs or more).",
    ),
    judging_option(
        "--assume-run-cv",
        metavar="PERCENT",
        type=percent,
        help="Assume that runs vary by this, as with one run per side, instead of measuring it.",
    ),
    option("--equivalence-band", hidden=True, type=percent, default=thresholds.EQUIVALENCE_BAND),
    option("--noise-floor", hidden=True, type=percent, default=thresholds.NOISE_FLOOR),
    judging_option(
        "--force",
        is_flag=True,
        help="Compare sets that are judged not comparable (exit code 3 otherwise).",
    ),
    gathered("judging", _judging, "paired", "assume_run_cv", "equivalence_band", "noise_floor"),
)
"""The options of every command that compares sets, which gets them as ``judging`` and ``force``; hidden are those that
a project sets once.
"""


class PairOptions(FrozenStruct):
    """The sets CONTROL and TEST of a command, how they are read and judged, and what names their changed lines.

    Attributes:
        source: a folder in a repository; None if nobody asked. commits: of both sides, with their prefixes; empty for
            those recorded.
    """

    control: str
    test: str
    loading: LoadArguments
    judging: Judging
    force: bool
    source: Path | None = None
    commits: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.commits and not self.source:
            raise click.UsageError("--commit needs --source REPO")
        if self.commits and (self.by_side.keys() != set(SIDES) or len(self.commits) != len(SIDES)):
            raise click.UsageError("--commit needs both sides: --commit ctrl=BEFORE --commit test=AFTER")

    @property
    def by_side(self) -> dict[str, str]:
        """Side → its commit."""
        return {side: name for side, _, name in (commit.partition("=") for commit in self.commits)}

    def compared(self, *, timelines: bool = False) -> Comparison:
        """Read and compare them; with ``timelines`` to draw them.

        Raises:
            TracediffError: as for `LoadArguments.load` and `with_changed_code`.
        """
        from tracediff.explain.compare import compare_sets

        control, test = self.loading.load([self.control, self.test], timelines=timelines)
        comparison = compare_sets(control, test, self.force, self.judging)
        if self.source is None:
            return comparison
        from tracediff.source.changed_code import with_changed_code

        commits = self.by_side
        return with_changed_code(comparison, self.source, (commits["ctrl"], commits["test"]) if commits else None)


def pair_options(*, table_help: str | None, table_group: str = SETS) -> Decorator:
    """`load_options` and `judging_options` of a command of `two_sets`, which gets all of them as ``pair``."""
    return together(
        load_options(sides=SIDES, table_help=table_help, table_group=table_group),
        judging_options,
        gathered("pair", PairOptions, *PairOptions.__struct_fields__),
    )


source_options = together(
    option(
        "--source",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        metavar="REPO",
        help="Say which changed lines, between both sides' commits in this repository, the changed work runs for.",
    ),
    option(
        "--commit",
        "commits",
        multiple=True,
        metavar="ctrl=NAME|test=NAME",
        help="With --source: the commit of a side, given for both [default: those recorded].",
    ),
)
"""``--source`` and ``--commit`` of a command with `pair_options`, which has them in ``pair``."""
