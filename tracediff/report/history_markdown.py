"""A history → Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from tracediff.history.explain import ExplainedSeries
from tracediff.present.history import ChangeText, change_texts, commits_table, noise_line, series_title
from tracediff.report.escape import escaped
from tracediff.report.table_markdown import to_markdown as table_lines


def to_markdown(
    explained: Sequence[ExplainedSeries], unread: Sequence[str], *, by: str = "step", last: int | None = None
) -> str:
    """All series as GitHub-flavoured Markdown; the arguments are those of `tracediff.report.history_terminal.show`."""
    lines = [f"- not read: {escaped(line)}" for line in unread] + ([""] if unread else [])
    for one in explained:
        lines += [f"## {escaped(series_title(one.series))}", "", escaped(noise_line(one.series)), ""]
        for text in change_texts(one.series, one.explanations):
            lines += _change(text)
        lines += table_lines(commits_table(one.series, by, last))
    return "\n".join(lines).rstrip() + "\n"


def _change(text: ChangeText) -> list[str]:
    lines = [f"**{escaped(text.title)}** ({escaped(text.significance)})", "", f"- commits: {escaped(text.commits)}"]
    lines += [f"- {escaped(line)}" for line in (text.cause, text.code) if line]
    lines += [f"- {escaped(operator)}" for operator in text.operators]
    lines += [f"- compare with caution: {escaped(text.cautions)}"] if text.cautions else []
    return [*lines, ""]
