"""Memory snapshots → one HTML file that works from disk, without a network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from tracediff.charts.figures.memory_layers import memory_layers
from tracediff.report.page.figures import chart, charts_within
from tracediff.report.page.flame import FlameGraph
from tracediff.report.page.html import page, versions

if TYPE_CHECKING:
    from tracediff.memory.account import SnapshotAccount
    from tracediff.present.memory import MemoryText

NO_FLAME = FlameGraph("", "")


def to_html(text: MemoryText, accounts: Sequence[SnapshotAccount], command: str | None = None) -> str:
    """One snapshot or two as one page.

    Args:
        text: its sentences and tables. accounts: of one snapshot, or of control and test.
        command: the command line that creates it, shown at its end.
    """
    return page(
        "memory.html.jinja",
        f"{text.title} · tracediff",
        charts_within([chart("memory_layers", partial(memory_layers, accounts))]),
        {},
        flame=NO_FLAME,
        text=text,
        command=command,
        origin=versions(),
    )
