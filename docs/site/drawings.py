"""The drawings of docs/concepts, as SVG for light and dark pages: what the product computes from small examples.

They are tracked, so that the repository shows them, too: the build compares, `make outputs` writes them.
"""

import logging
import math
from collections.abc import Iterator, Mapping
from html import escape
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from examples import EFFECT_STEPS, Part, runs, write_traces

from tracediff.charts.theme import FONT, PALETTES
from tracediff.diff.statistics.runs import estimate
from tracediff.engine import read_context
from tracediff.explain.tree import Node, split
from tracediff.formatting import signed_percent, time
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.events.context import Context
from tracediff.profile.events.step_states import state_label
from tracediff.profile.timeline import KINDS, build_timeline

FOLDER = Path(__file__).parents[1] / "images" / "concepts"
WIDTH, ROW, BAR, CHARACTER = 360, 34, 17, 6
"""Pixels: a drawing fits a phone, and is scaled up on wider screens."""
LIGHT, DARK = PALETTES["light"], PALETTES["dark"]
COLOURS = dict(zip(KINDS, (*LIGHT.parts, LIGHT.control), strict=True))
STYLE = f"""<style>
text {{ font: 10px {FONT}; fill: {LIGHT.text} }}
.muted {{ fill: {LIGHT.muted} }} .line {{ stroke: {LIGHT.muted} }} .sure {{ stroke: {LIGHT.slower} }}
@media (prefers-color-scheme: dark) {{
text {{ fill: {DARK.text} }} .muted {{ fill: {DARK.muted} }} .line {{ stroke: {DARK.muted} }}
.sure {{ stroke: {DARK.slower} }} .in {{ fill: {LIGHT.text} }} }}
</style>"""
log = logging.getLogger("mkdocs.hooks.drawings")


def on_pre_build(**_: object) -> None:
    """Compare the drawings with those that the product gives now."""
    for name, svg in drawings():
        path = FOLDER / f"{name}.svg"
        if not path.exists() or path.read_text() != svg:
            log.warning("%s is not what its example gives now; run make outputs", path.name)


def drawings() -> Iterator[tuple[str, str]]:
    """Name and SVG of every drawing."""
    with TemporaryDirectory() as folder:
        for name, path in write_traces(Path(folder)).items():
            yield name, _lanes(read_context(TraceFile(str(path))))
    cases = {
        "5 runs": (0.08, 0.02, 5),
        "5 equal runs": (0, 0.02, 5),
        "5 noisy runs": (0.08, 0.08, 5),
        "2 runs": (0.08, 0.02, 2),
    }
    yield "verdict", _intervals([(label, *runs(*case, seed=4)) for label, case in cases.items()], band=0.05)
    for name, sides in EFFECT_STEPS.items():
        yield f"effect-{name}", _effects(sides)
    yield "calibration", _intervals([("", *runs(0, 0.02, 5, seed)) for seed in range(40)], band=0)


def _lanes(context: Context) -> str:
    """Streams and threads of a trace over all of its steps, with the states, and the period of each step."""
    low, high = int(context.steps.start[0]), int(context.completions[-1])
    shown = build_timeline(context, 0, (low, high))
    scale, height = WIDTH / (high - low), 30 + len(shown.rows) * ROW
    parts = []
    for start, end in pairwise((context.completions - low).tolist()):
        parts.append(_text((start + end) / 2 * scale, 12, f"period {_time(end - start)}", 'text-anchor="middle"'))
    parts.extend(
        f'<path class="line" stroke-dasharray="3 3" d="M{edge * scale:.1f} 16V{height}"/>'
        for edge in (context.completions - low).tolist()
    )
    for row, label in enumerate(shown.rows):
        parts.append(_text(1, 30 + row * ROW, label if row else "state of each instant", 'class="muted"'))
    marks, has_gpu = shown.marks, len(context.gpu.rows) > 0
    for row, kind, start, end, name in zip(
        marks.row.tolist(), marks.kind.tolist(), marks.start.tolist(), marks.end.tolist(), marks.name, strict=True
    ):
        label = name if row else state_label(name, has_gpu).removeprefix("idle: ")
        parts.append(_bar(start * scale, 34 + row * ROW, (end - start) * scale, KINDS[kind], label, _time(end - start)))
    totals = context.account.ns.sum(axis=0).tolist()
    states = [(name, total) for name, total in zip(context.account.names, totals, strict=True) if total]
    for k, (name, total) in enumerate(states):
        x, y = k % 2 * WIDTH / 2, height + 10 + k // 2 * 16
        colour = COLOURS["op" if name.startswith("op:") else name]
        parts.append(f'<rect x="{x}" y="{y}" width="9" height="9" fill="{colour}"/>')
        parts.append(_text(x + 14, y + 8, f"{state_label(name, has_gpu)}: {_time(total)}"))
    return _svg(height + 12 + (len(states) + 1) // 2 * 16, parts)


def _bar(x: float, y: int, width: float, kind: str, name: str, duration: str) -> str:
    """A mark with as much of its name and duration as fits."""
    texts = (f"{name} {duration}", duration, duration.split()[0], "")
    label = next(text for text in texts if len(text) * CHARACTER < width or not text)
    size = f'x="{x:.1f}" y="{y}" width="{max(width - 1, 1):.1f}" height="{BAR}"'
    title = f"<title>{escape(f'{name}: {duration}')}</title>"
    rectangle = f'<rect {size} rx="2" fill="{COLOURS[kind]}">{title}</rect>'
    return rectangle + (_text(x + 3, y + 12, label, 'class="in"') if label else "")


def _time(ns: int) -> str:
    return time(ns / 1000).replace(".0 ", " ")


def _intervals(samples: list[tuple[str, list[float], list[float]]], band: float) -> str:
    """The 95 % interval of the change of each sample, and what it says; ``band`` is that of equivalence, 0 for none."""
    row = 30 if samples[0][0] else 7
    height, middle, scale = 24 + row * len(samples), WIDTH / 2, WIDTH / 0.4
    size = f'x="{middle - band * scale}" y="16" width="{2 * band * scale}" height="{height - 16}"'
    parts = [f'<rect {size} opacity=".2" fill="{LIGHT.faster}"/>', f'<path class="line" d="M{middle} 16V{height}"/>']
    for change in (-0.1, 0, 0.1):
        label = signed_percent(change) if change else "no change"
        parts.append(_text(middle + change * scale, 11, label, 'text-anchor="middle" class="muted"'))
    for k, (label, control, test) in enumerate(samples):
        found, y = estimate(control, test), 24 + row * k + (14 if label else 0)
        assert found.interval is not None
        low, high = map(math.expm1, found.interval)
        result = (
            "slower" if low > 0 else "faster" if high < 0 else "same" if -band < low < high < band else "inconclusive"
        )
        line = "sure" if result in ("slower", "faster") else "line"
        ends = f"M{middle + low * scale:.1f} {y}H{middle + high * scale:.1f}"
        parts.append(f'<path class="{line}" stroke-width="3" d="{ends}"/>')
        if label:
            parts.append(_text(2, y - 6, f"{label}: {signed_percent(low)} to {signed_percent(high)}: {result}"))
    return _svg(height, parts)


def _effects(sides: Mapping[str, list[Part]]) -> str:
    """One step of each side, bright where it waits for a part, and the effects of each as the product splits it."""
    left, lane = 72, BAR + 3
    scale = (WIDTH - left) / max(part.end for side in sides.values() for part in side)
    parts, y = [], 2
    for name, side in sides.items():
        end = max(part.end for part in side)
        parts.append(_text(1, y + 12, name))
        parts.append(_text(1, y + 32, f"step {end} µs", 'class="muted"'))
        parts.append(
            f'<path class="line" stroke-dasharray="3 3" d="M{left + end * scale - 0.5:.1f} {y}V{y + 2 * lane}"/>'
        )
        for part in side:
            row = y + lane * part.kind.startswith("gpu")
            for start, stop, waited in part.pieces():
                size = (
                    f'x="{left + start * scale:.1f}" y="{row}" width="{(stop - start) * scale - 1:.1f}" height="{BAR}"'
                )
                parts.append(f'<rect {size} rx="2" fill="{COLOURS[part.kind]}" opacity="{1 if waited else 0.35}"/>')
            shown = f"{part.label} {part.total} µs"
            shown = shown if len(shown) * CHARACTER < part.total * scale else part.label
            parts.append(_text(left + 3 + part.start * scale, row + 12, shown, 'class="in"' if part.path else ""))
        y += 2 * lane + 10
    for label in dict.fromkeys(part.label for side in sides.values() for part in side):
        found = [next((part for part in side if part.label == label), None) for side in sides.values()]
        path, total = (np.array([[getattr(part, name, 0)] for part in found], float) for name in ("on_path", "total"))
        amounts = [part.amount if part else 0 for part in found]
        ratio = np.array([amounts[1] / amounts[0] if all(amounts) else math.nan])
        (changes,) = split(path, total, ratio, np.array([""], object), np.array([np.nan]), path[:, 0])
        found_us = Node(label, 0, path=path[:, 0], total=total[:, 0], parts=changes).effects
        if any(found_us.values()):
            words = ", ".join(
                f"{name} {us:+.0f} µs".replace("-", "−") for name, us in found_us.items() if abs(us) >= 0.5
            )
            parts.append(_text(1, y + 8, f"{label}: {words}"))
            y += 16
    return _svg(y, parts)


def _text(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y}" {attributes}>{escape(text)}</text>'


def _svg(height: int, parts: list[str]) -> str:
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH * 3 // 2}"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">', STYLE, *parts, "</svg>", ""])


def write_drawings() -> None:
    """Write all drawings."""
    for name, svg in drawings():
        (FOLDER / f"{name}.svg").write_text(svg)
