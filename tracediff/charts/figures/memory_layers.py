"""Memory snapshots: allocated memory over the recording, stacked by call site."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracediff.charts.labels import SIDES, full_name, label
from tracediff.charts.marks import hovers
from tracediff.charts.rows import panels
from tracediff.charts.theme import finish, palette
from tracediff.formatting import byte_unit, size, sizes, time
from tracediff.memory.timeline import BEFORE_RECORDING, MOST_SITES, OTHER_SITES, MemoryTimeline, largest_sites, timeline

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.charts.theme import Palette
    from tracediff.formatting import Unit
    from tracediff.memory.account import Account, SnapshotAccount

MOST_PANELS = 8
PANEL = 240
"""Pixels of a panel."""


def memory_layers(accounts: Sequence[SnapshotAccount], *, theme: str = "light") -> go.Figure:
    """One panel per device and snapshot (control above test), with the same axes and colours; a mark at the peak."""
    shown = _panels(accounts)
    colours = _colours([account for _, account in shown], palette(theme))
    unit = byte_unit(account.peak for _, account in shown)
    figure = panels([title for title, _ in shown], 0.3 / len(shown))
    named: set[str] = set()
    for row, (_, account) in enumerate(shown, start=1):
        found = timeline(account, [name for name in colours if name not in (BEFORE_RECORDING, OTHER_SITES)])
        _layers(figure, row, found, account, unit=unit, colours=colours, named=named)
        _peak(figure, row, account, unit, palette(theme))
    figure.update_yaxes(title_text=unit.name, range=[0, 1.08 * unit.scaled(max(a.peak for _, a in shown))])
    figure.update_xaxes(range=[0, max(len(account.levels) for _, account in shown) - 1])
    figure.update_xaxes(title_text="events of the allocator", row=len(shown), col=1)
    return finish(figure, theme, _title(accounts), SUBTITLE, 60 + PANEL * len(shown))


SUBTITLE = "Memory of torch's caching allocator by the line that allocated it; dots mark the peaks."


def _panels(accounts: Sequence[SnapshotAccount]) -> list[tuple[str, Account]]:
    """(title, account) of up to `MOST_PANELS` panels: device by device, control before test."""
    found = []
    for device in sorted({account.device for side in accounts for account in side.devices}):
        for k, side in enumerate(accounts):
            which = f"{SIDES[k]}: " if len(accounts) > 1 else ""
            found += [
                (f"{which}{label(side.name, 60)}, device {device}", a) for a in side.devices if a.device == device
            ]
    return found[:MOST_PANELS]


def _colours(accounts: Sequence[Account], theme_colours: Palette) -> dict[str, str]:
    """Layer → colour, the same in all panels, from the bottom up."""
    most: dict[str, int] = {}
    for account in accounts:
        for rank, name in enumerate(largest_sites(account)):
            most[name] = min(most.get(name, rank), rank)
    sites = sorted(most, key=lambda name: (most[name], name))[:MOST_SITES]
    parts = dict(zip(sites, theme_colours.parts, strict=False))
    return {BEFORE_RECORDING: theme_colours.control, **parts, OTHER_SITES: theme_colours.neutral}


def _layers(
    figure: go.Figure,
    row: int,
    found: MemoryTimeline,
    account: Account,
    *,
    unit: Unit,
    colours: dict[str, str],
    named: set[str],
) -> None:
    for name, colour in colours.items():
        amounts = found.layers.get(name)
        if amounts is None:
            continue
        figure.add_scatter(
            name=label(name, 40),
            legendgroup=name,
            showlegend=name not in named,
            x=found.levels,
            y=[unit.scaled(amount) for amount in amounts],
            stackgroup=str(row),
            mode="lines",
            line={"shape": "hv", "width": 0, "color": colour},
            fillcolor=colour,
            **hovers(
                f"{full_name(name)}: {size(amount)}{_when(account, level)}"
                for level, amount in zip(found.levels, amounts, strict=True)
            ),
            row=row,
            col=1,
        )
        named.add(name)


def _peak(figure: go.Figure, row: int, account: Account, unit: Unit, theme_colours: Palette) -> None:
    figure.add_scatter(
        x=[account.peak_level],
        y=[unit.scaled(account.peak)],
        mode="markers",
        showlegend=False,
        marker={"size": 8, "color": theme_colours.text},
        **hovers([f"peak: {size(account.peak)}{_when(account, account.peak_level)}"]),
        row=row,
        col=1,
    )


def _when(account: Account, level: int) -> str:
    return f" at {time(account.times[level])}" if account.times else ""


def _title(accounts: Sequence[SnapshotAccount]) -> str:
    peaks = [max((account.peak for account in side.devices), default=0) for side in accounts]
    return f"Peak memory allocated: {sizes(*peaks) if len(peaks) == 2 else size(peaks[0])}"
