"""Memory allocated: over the step, and in snapshots over the recording, stacked by call site."""

from collections.abc import Sequence

import plotly.graph_objects as go

from tracediff import bounds
from tracediff.aggregate.averages import TypicalStep
from tracediff.charts.labels import full_name, in_set, label, side_names
from tracediff.charts.marks import Panel, hovers, once_in_legend, panels
from tracediff.charts.theme import Palette, empty, finish, palette
from tracediff.diff.comparison import Scaled
from tracediff.formatting import Unit, byte_unit, size, sizes, time, time_unit
from tracediff.memory.account import (
    BEFORE_RECORDING,
    OTHER_SITES,
    Account,
    SnapshotAccount,
    largest_sites,
    timeline,
)
from tracediff.profile.model.profile import Memory
from tracediff.structs import SIDES

Curve = tuple[int, TypicalStep, Memory]
"""(0 for control or 1 for test, its step, a device's memory in it)."""


def memory(subject: Scaled, *, theme: str = "light") -> go.Figure:
    """Bytes allocated on each device over the typical step of both sides (or of one set), beginning at 0."""
    curves = [
        (which, side.typical, curve)
        for which, side in enumerate(subject.sides)
        if side.typical
        for curve in side.typical.timeline.memory
    ]
    if not curves:
        return empty(theme, "No memory events: record the traces with profile_memory=True. Snapshots contain none.")
    colours = palette(theme)
    devices = _devices(curves)
    lengths = [step.period_us for _, step, _ in curves]
    unit = time_unit(lengths)
    rows = panels([label(device) for device in devices], 0.3 / len(devices))
    for panel, device in zip(rows, devices, strict=True):
        _curves(panel, _of_device(curves, device), unit, colours, side_names(subject))
    panel.figure.update_xaxes(range=[0, unit.scaled(max(lengths))])
    panel.update_xaxes(title_text=f"time ({unit.name})")
    return finish(panel.figure, theme, _title(subject, curves, devices[0]), _subtitle(curves), 60 + 210 * len(devices))


def _of_device(curves: list[Curve], device: str) -> list[Curve]:
    return [curve for curve in curves if curve[-1].device == device]


def _curves(panel: Panel, curves: list[Curve], unit: Unit, theme_colours: Palette, names: tuple[str, ...]) -> None:
    """The curves of one device."""
    byte = byte_unit(int(m.allocated.max()) for _, _, m in curves)
    for which, step, curve in curves:
        times = [*(curve.time / 1000).tolist(), step.period_us]
        amounts = [*curve.allocated.tolist(), int(curve.allocated[-1])]
        panel.add_scatter(
            name=names[which],
            **once_in_legend(panel.figure, str(which)),
            x=[unit.scaled(t) for t in times],
            y=[byte.scaled(a) for a in amounts],
            mode="lines",
            line={"shape": "hv", "width": 2, "color": theme_colours.sides[which]},
            **hovers(f"{names[which]}<br>{size(a)} at {time(t)}" for a, t in zip(amounts, times, strict=True)),
        )
    panel.update_yaxes(title_text=byte.name)


def _devices(curves: list[Curve]) -> list[str]:
    """Those with a curve on any side: GPUs first, by number; the host last."""
    by_size = sorted((-int(curve.allocated.max()), curve.device) for _, _, curve in curves)
    devices = list(dict.fromkeys(device for _, device in by_size))[: bounds.PANELS]
    return sorted(devices, key=lambda d: (d == "host", len(d), d))


def _title(subject: Scaled, curves: list[Curve], device: str) -> str:
    peaks = [(which, size(int(curve.allocated.max()))) for which, _, curve in _of_device(curves, device)]
    texts = [f"{peak}{in_set(which, subject.sides)}" for which, peak in peaks]
    if len({peak for _, peak in peaks}) < len(peaks):
        texts = [f"{peaks[0][1]} on both sides"]
    where = "" if subject.is_whole_file else " in a typical step"
    return f"Peak memory allocated{where} ({device}): {', '.join(texts)}"


def _subtitle(curves: list[Curve]) -> str:
    text = "Memory allocated by torch's allocator, without what it only reserves."
    if all(curve.from_zero for _, _, curve in curves):
        return text
    return f"{text} Where a trace records only changes, the amount at its start is assumed to be 0."


PANEL = 240
"""Pixels of a panel."""


def memory_layers(accounts: Sequence[SnapshotAccount], *, theme: str = "light") -> go.Figure:
    """One panel per device and snapshot (control above test), with the same axes and colours; a mark at the peak."""
    account_panels = _panels(accounts)
    colours = _colours([account for _, account in account_panels], palette(theme))
    unit = byte_unit(account.peak for _, account in account_panels)
    rows = panels([title for title, _ in account_panels], 0.3 / len(account_panels))
    for panel, (_, account) in zip(rows, account_panels, strict=True):
        _layers(panel, account, unit, colours)
        panel.add_scatter(
            x=[account.peak_level],
            y=[unit.scaled(account.peak)],
            mode="markers",
            showlegend=False,
            marker={"size": 8, "color": palette(theme).text},
            **hovers([f"peak: {size(account.peak)}{_when(account, account.peak_level)}"]),
        )
    figure = panel.figure
    figure.update_yaxes(title_text=unit.name, range=[0, 1.08 * unit.scaled(max(a.peak for _, a in account_panels))])
    figure.update_xaxes(range=[0, max(len(account.levels) for _, account in account_panels) - 1])
    panel.update_xaxes(title_text="events of the allocator")
    return finish(figure, theme, _layers_title(accounts), SUBTITLE, 60 + PANEL * len(account_panels))


SUBTITLE = "Memory of torch's caching allocator by the line that allocated it; dots mark the peaks."


def _panels(accounts: Sequence[SnapshotAccount]) -> list[tuple[str, Account]]:
    """(title, account) of up to PANELS panels: device by device, control before test."""
    account_panels = []
    for device in sorted({account.device for side in accounts for account in side.devices}):
        for k, side in enumerate(accounts):
            which = f"{SIDES[k]}: " if len(accounts) > 1 else ""
            account_panels += [
                (f"{which}{label(side.name, 60)}, device {device}", a) for a in side.devices if a.device == device
            ]
    return account_panels[: bounds.PANELS]


def _colours(accounts: Sequence[Account], theme_colours: Palette) -> dict[str, str]:
    """Layer → colour, the same in all panels, from the bottom up."""
    ranked = sorted((rank, name) for account in accounts for rank, name in enumerate(largest_sites(account)))
    sites = list(dict.fromkeys(name for _, name in ranked))[: bounds.MEMORY_SITES]
    parts = dict(zip(sites, theme_colours.parts, strict=False))
    return {BEFORE_RECORDING: theme_colours.control, **parts, OTHER_SITES: theme_colours.neutral}


def _layers(panel: Panel, account: Account, unit: Unit, colours: dict[str, str]) -> None:
    levels, layers = timeline(account, [name for name in colours if name not in (BEFORE_RECORDING, OTHER_SITES)])
    for name, colour in colours.items():
        amounts = layers.get(name)
        if amounts is None:
            continue
        panel.add_scatter(
            name=label(name, 40),
            **once_in_legend(panel.figure, name),
            x=levels,
            y=[unit.scaled(amount) for amount in amounts],
            stackgroup=str(panel.row),
            mode="lines",
            line={"shape": "hv", "width": 0, "color": colour},
            fillcolor=colour,
            **hovers(
                f"{full_name(name)}: {size(amount)}{_when(account, level)}"
                for level, amount in zip(levels, amounts, strict=True)
            ),
        )


def _when(account: Account, level: int) -> str:
    return f" at {time(account.times[level])}" if account.times else ""


def _layers_title(accounts: Sequence[SnapshotAccount]) -> str:
    peaks = [max((account.peak for account in side.devices), default=0) for side in accounts]
    return f"Peak memory allocated: {sizes(*peaks) if len(peaks) == 2 else size(peaks[0])}"
