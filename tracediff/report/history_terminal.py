"""A history → the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from tracediff.errors import printable
from tracediff.history.bisect import Bisected
from tracediff.history.explain import ExplainedSeries
from tracediff.present.history import (
    ChangeText,
    bisect_command,
    cause_text,
    change_texts,
    commits_table,
    noise_line,
    series_title,
)
from tracediff.report.table_terminal import print_screen, to_rich


def show(
    where: str,
    explained: Sequence[ExplainedSeries],
    unread: Sequence[str],
    console: Console,
    *,
    by: str = "step",
    last: int | None = None,
) -> None:
    """Print every series: its commits, then what explains each change.

    Args:
        where: the history, for the command that looks closer.
        by: what the table of commits shows. last: how many commits it shows; None for all.
    """
    parts: list[RenderableType] = [Text(printable(f"not read: {line}"), style="dim") for line in unread]
    for one in explained:
        parts += [
            Text(printable(series_title(one.series)), style="bold"),
            Padding(Text(noise_line(one.series)), (0, 2)),
            Text(),
            to_rich(commits_table(one.series, by, last)),
        ]
        for text, explanation in zip(change_texts(one.series, one.explanations), one.explanations, strict=True):
            parts += _change(text)
            command = bisect_command(shlex.quote(where), explanation)
            parts += [Padding(Text(printable(f"next: {command}")), (0, 2))] if command else []
            parts.append(Text())
    print_screen(console, Group(*parts))


def _change(text: ChangeText) -> list[RenderableType]:
    lines: list[RenderableType] = [
        Text(printable(text.title), style="bold"),
        Padding(Text(printable(text.significance), style="dim"), (0, 2)),
        Padding(Text(printable(f"commits: {text.commits}")), (0, 2)),
    ]
    lines += [Padding(Text(printable(line)), (0, 2)) for line in (text.cause, text.code) if line]
    lines += [Padding(Text(printable(operator), style="dim"), (0, 4)) for operator in text.operators]
    if text.cautions:
        lines.append(Padding(Text(printable(f"compare with caution: {text.cautions}"), style="dim"), (0, 2)))
    return lines


def show_bisected(found: Bisected, subjects: dict[str, str], console: Console) -> None:
    """Print the first bad commit, what that rests on and what explains it; or the commits that it may be, and why."""
    titles = [printable(f"{commit} {subjects.get(commit, '')}".rstrip()) for commit in found.suspects]
    if found.comparison is None:
        which = "The first bad commit is one of these" if len(titles) > 1 else "The first bad commit may be this one"
        heading = f"inconclusive: {found.inconclusive}" if found.inconclusive else "inconclusive: commits were skipped"
        listed = [Padding(Text(title), (0, 2)) for title in titles]
        print_screen(console, Group(Text(printable(heading), style="bold"), Text(f"{which}:"), *listed))
        return
    parts: list[RenderableType] = [
        Text(f"first bad commit: {titles[0]}", style="bold"),
        Padding(Text(printable(f"against the commit before it: {found.why}")), (0, 2)),
    ]
    explanation = found.comparison.explanation
    parts += (
        [Padding(Text(printable(cause_text(cause))), (0, 2)) for cause in explanation.causes[:1]] if explanation else []
    )
    print_screen(console, Group(*parts))
