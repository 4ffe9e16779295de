"""Options that say which traces are compared, shared by the commands that take two sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracediff.errors import TracediffError

if TYPE_CHECKING:
    from tracediff.aggregate.traceset import TraceSet
    from tracediff.diff.comparison import Comparison
    from tracediff.profile.selection import Selection

T = TypeVar("T")
SIDES = ("ctrl", "test")


def percent(value: str | float) -> float:
    """``3%`` or ``0.03`` as a part of the whole.

    Raises:
        click.BadParameter: any other text.
    """
    if isinstance(value, float):
        return value
    text = value.strip()
    try:
        part = float(text.removesuffix("%").strip()) / (100 if text.endswith("%") else 1)
    except ValueError:
        part = -1.0
    if not 0 <= part < 10:
        raise click.BadParameter(f"{text!r} is no part of a whole: write 3% or 0.03")
    return part


def two_sets(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments CONTROL and TEST and the options that select ranks and steps; the command gets ``where`` and
    ``load(tables)``.
    """

    @click.argument("control", metavar="CONTROL")
    @click.argument("test", metavar="TEST")
    @click.option(
        "--label",
        "labels",
        multiple=True,
        metavar="[ctrl=|test=]NAME",
        help="Name a side in the report; without a prefix the first is control's.",
    )
    @click.option("--rank", "ranks", multiple=True, metavar="[ctrl=|test=]N", help="Only this rank (may be repeated).")
    @click.option("--step", "steps", multiple=True, metavar="[ctrl=|test=]A..B", help="Only the steps numbered A to B.")
    @click.option(
        "--skip-first",
        "skips",
        multiple=True,
        metavar="[ctrl=|test=]N",
        help="Leave out the first N steps of each file [default: 1 of 3 or more].",
    )
    @click.option(
        "--step-marker", metavar="REGEX", help="Annotations that match are the steps, instead of ProfilerStep#N."
    )
    @click.option(
        "--families", metavar="FILE", help="TOML file of your own rules that tell what kind of work a name is."
    )
    @click.option(
        "--jobs",
        type=click.IntRange(1),
        metavar="N",
        help="Read files in N processes [default: the cores, for large files].",
    )
    @click.option(
        "--paired", is_flag=True, help="Run k of both sides was taken together: test the pairs (five or more)."
    )
    @click.option(
        "--assume-run-cv",
        metavar="PERCENT",
        type=percent,
        help="Judge single runs, taking it that runs spread by this much.",
    )
    @click.option(
        "--equivalence-band",
        metavar="PERCENT",
        type=percent,
        default="5%",
        show_default=True,
        help="Changes within this are none.",
    )
    @click.option(
        "--noise-floor",
        metavar="PERCENT",
        type=percent,
        default="1%",
        show_default=True,
        help="Operators are not flagged for less.",
    )
    @click.option("--force", is_flag=True, help="Compare even what the preflight refuses.")
    @wraps(command)
    def with_sets(
        control: str,
        test: str,
        labels: tuple[str, ...],
        ranks: tuple[str, ...],
        steps: tuple[str, ...],
        skips: tuple[str, ...],
        step_marker: str | None,
        families: str | None,
        jobs: int | None,
        paired: bool,
        assume_run_cv: float | None,
        equivalence_band: float,
        noise_floor: float,
        force: bool,
        **options: Any,
    ) -> Any:
        def load(tables: Sequence[str] = ()) -> Comparison:
            from tracediff.diff.compare import compare_sets
            from tracediff.diff.verdict import Judging

            a, b = _load(control, test, labels, ranks, steps, skips, step_marker, families, jobs, tables)
            return compare_sets(a, b, force, Judging(paired, assume_run_cv, equivalence_band, noise_floor))

        return command(where=(control, test), load=load, **options)

    return with_sets


def _load(
    control: str,
    test: str,
    labels: Sequence[str],
    ranks: Sequence[str],
    steps: Sequence[str],
    skips: Sequence[str],
    step_marker: str | None,
    families: str | None,
    jobs: int | None,
    tables: Sequence[str],
) -> list[TraceSet]:
    from tracediff.engine import load_sets
    from tracediff.profile.kernels.families import DEFAULT, read_rules
    from tracediff.profile.tables import table_names

    rules = read_rules(families) if families is not None else DEFAULT

    selections = [
        _selection(s, k)
        for s, k in zip(_last(_by_side("--step", steps)), _last(_by_side("--skip-first", skips)), strict=True)
    ]
    wanted = [frozenset(_number("--rank", r) for r in of) or None for of in _by_side("--rank", ranks)]
    with progress() as tell:
        return load_sets(
            [control, test],
            labels=_labels(labels),
            selections=selections,
            ranks=wanted,
            step_marker=step_marker,
            jobs=jobs,
            families=rules,
            tables=table_names(tables),
            progress=tell,
        )


def _selection(steps: str | None, skip: str | None) -> Selection:
    from tracediff.profile.selection import Selection

    if steps is not None:
        return Selection.parse(steps)
    return Selection(skip_first=_number("--skip-first", skip)) if skip is not None else Selection()


def _by_side(option: str, values: Sequence[str]) -> list[list[str]]:
    """Values of control and of test; one without a prefix is for both."""
    sides: list[list[str]] = [[], []]
    for value in values:
        side, mark, rest = value.partition("=")
        if mark and side not in SIDES:
            raise TracediffError(option, f"unknown side {side!r}", "write ctrl=… or test=…, or no side for both")
        for i, name in enumerate(SIDES):
            if not mark or side == name:
                sides[i].append(rest if mark else value)
    return sides


def _labels(values: Sequence[str]) -> list[str | None]:
    """Labels of control and test; of those without a prefix the first is control's, the second test's."""
    out: list[str | None] = [None, None]
    plain = [v for v in values if not v.startswith(tuple(f"{s}=" for s in SIDES))]
    for i, name in enumerate(SIDES):
        named = [v.partition("=")[2] for v in values if v.startswith(f"{name}=")]
        out[i] = named[-1] if named else plain[i] if i < len(plain) else None
    return out


def _last(sides: list[list[str]]) -> list[str | None]:
    return [of[-1] if of else None for of in sides]


def _number(option: str, text: str) -> int:
    if not text.isdigit():
        raise TracediffError(option, f"not a number: {text!r}", "give a whole number, such as 0")
    return int(text)


@contextmanager
def progress() -> Iterator[Callable[[int, int], None] | None]:
    """A bar over files on a terminal, nothing on a pipe."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("reading traces"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task("files", total=None)
        yield lambda done, files: bar.update(task, completed=done, total=files)
