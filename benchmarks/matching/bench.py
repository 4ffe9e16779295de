"""Measures the share of work that is matched, per pair of traces, and writes the table to README.md.

python benchmarks/matching/bench.py
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group
from tracediff.diff.matching.cascade import cascade
from tracediff.diff.matching.items import Origins, items_of
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.profile.kernels.families import DEFAULT
from tracediff.structs import Pair

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TRACES = Path(os.environ.get("TRACEDIFF_TRACES") or ROOT.parent / "shared" / "traces")
OTHER_PAIRS = Path(os.environ.get("TRACEDIFF_PAIRS") or TRACES.with_name("pairs"))
SAMPLES = ROOT / "sample_traces"

COUNTED = ("exact", "op", "module", "fusion", "sequence")
APART = ("sequence~family", "family", "same module", "same family")

PAIRS: tuple[tuple[str, Path, Path, int | None], ...] = (
    ("bertsmall h100 → mi300", TRACES / "bertsmall_h100", TRACES / "bertsmall_mi300", 95),
    ("falconsai h100 → mi300", TRACES / "falconsai_h100", TRACES / "falconsai_mi300", 95),
    ("timesformer h100 → mi300", TRACES / "timesformer_h100", TRACES / "timesformer_mi300", 95),
    ("tinylm compile → cudagraph", TRACES / "tinylm_compile", TRACES / "tinylm_cudagraph", 95),
    ("resnet50 workers0 → workers4", TRACES / "resnet50_workers0", TRACES / "resnet50_workers4", None),
    ("resnet50 workers0 → repeat", TRACES / "resnet50_workers0", TRACES / "resnet50_workers0_repeat", None),
    ("transformer run1 → run2", TRACES / "transformer_h100_run1", TRACES / "transformer_h100_run2", None),
    ("deepseek decode b300 → mi300", *(OTHER_PAIRS / "deepseek_decode" / side for side in ("b300", "mi300")), None),
    ("hta control → test", TRACES / "hta_control", TRACES / "hta_test", None),
    ("vit eager → compile (CPU)", SAMPLES / "vit" / "eager", SAMPLES / "vit" / "compile", 90),
    (
        "graph-breaks eager → compile (CPU)",
        SAMPLES / "graph-breaks" / "eager",
        SAMPLES / "graph-breaks" / "compile",
        90,
    ),
    ("ensemble loop → vmap (CPU)", SAMPLES / "ensemble" / "loop", SAMPLES / "ensemble" / "vmap", None),
)
"""(name, control, test, required share in %)."""

HTA_PAIR = "hta control → test"
"""The pair whose share by name is also computed from HTA's own frame."""

COLUMNS = (
    "pair",
    "required",
    "measured",
    *COUNTED,
    *APART,
    "one-sided",
    "same name",
    "groups",
    "largest",
    "widest",
    "over modules",
)
BEGIN, END = "<!-- measured: written by bench.py -->", "<!-- end of measured -->"


def main() -> None:
    rows, missing, found = [], [], {}
    for name, control, test, required in PAIRS:
        if not control.exists() or not test.exists():
            missing.append(name)
            continue
        sets = load_sets([str(control), str(test)])
        found[name] = compare_sets(*sets, force=True)
        rows.append(line(row(name, found[name], required, over_modules(found[name], sets))))
        print(rows[-1])
    text = "\n".join([BEGIN, line(COLUMNS), "|" + "---|" * len(COLUMNS), *rows, "", *notes(found, missing), END])
    page = HERE / "README.md"
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(before + text + rest.partition(END)[2])


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def row(name: str, comparison: Comparison, required: int | None, wide: str) -> list[str]:
    """One row of the table."""
    groups = groups_of(comparison)
    share = shares(groups)
    counted = [g for g in groups if g.level in COUNTED]
    measured = sum(share[level] for level in COUNTED)
    largest = max((time(g) for g in counted), default=0) / time(*groups)
    widest = max((g.count for g in counted), key=max, default=(0, 0))
    return [
        name,
        f"≥ {required} %" if required else "",
        f"**{percent(measured)}**" + ((" ✓" if measured >= required / 100 else " ✗") if required else ""),
        *(percent(share[level]) for level in (*COUNTED, *APART)),
        percent(share["added"] + share["removed"]),
        percent(share_by_name(groups)),
        f"{len(groups):,}",
        percent(largest),
        " : ".join(f"{comparison.number(n):.3g}" for n in widest),
        wide,
    ]


def over_modules(comparison: Comparison, sets: list[TraceSet]) -> str:
    """Number of counted groups with work of several module instances on one side; – if the traces have no modules."""
    known = [s.manifest for s in sets if s.manifest]
    names = {k: v for m in known for k, v in m.modules.items()} if any(m.provenance for m in known) else {}
    trees = comparison.trees
    sides = [items_of(tree, DEFAULT.of_kernel, Origins(s.manifest), names) for tree, s in zip(trees, sets, strict=True)]
    if not all(any(item.module for item in items) for items in sides):
        return "–"
    groups = [match for match in cascade(Pair(*sides), trees, comparison.pairing) if match[0] in COUNTED]
    return str(sum(max(len({i.module for i in items} - {None}) for items in match.items) > 1 for match in groups))


def groups_of(comparison: Comparison) -> tuple[Group, ...]:
    """Groups of the GPU time, or without a GPU of the self time of operators."""
    return comparison.gpu_time.groups or comparison.host_time.groups


def time(*groups: Group) -> int:
    """Time of both sides together, in ns."""
    return sum(sum(g.time) for g in groups)


def shares(groups: tuple[Group, ...]) -> dict[str, float]:
    """Level → its share of the time of both sides."""
    share_by_level: dict[str, float] = defaultdict(float)
    for group in groups:
        share_by_level[group.level] += time(group) / time(*groups)
    return share_by_level


def share_by_name(groups: tuple[Group, ...]) -> float:
    """The share of both sides' time under raw names that occur on both sides: what a comparison by name can match."""
    times: list[dict[str, int]] = [defaultdict(int), defaultdict(int)]
    for group in groups:
        for side, members in zip(times, group.members, strict=True):
            for member in members:
                side[member.name] += member.ns
    both = times[0].keys() & times[1].keys()
    return sum(ns for side in times for name, ns in side.items() if name in both) / time(*groups)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share else "0"


def notes(found: dict[str, Comparison], missing: list[str]) -> list[str]:
    """Notes below the table."""
    lines = [f"{name}: not measured, because its traces are missing.\n" for name in missing]
    if HTA_PAIR in found:
        lines.append(hta_check(found[HTA_PAIR]))
    return lines


def hta_check(comparison: Comparison) -> str:
    """The share by name, computed from the frame of HTA's own TraceDiff for the same files and steps."""
    try:
        from hta.trace_diff import TraceDiff
    except ImportError:
        return "HTA (`traceinsight`) is not installed here: the shares by name are not checked against its frame."
    control, test = next((c, t) for name, c, t, _ in PAIRS if name == HTA_PAIR)
    try:
        frame = hta_frame(TraceDiff, comparison, control, test)
    except Exception as error:  # some releases of HTA fail on some traces or pandas versions
        return (
            f"HTA (`traceinsight`) failed on {HTA_PAIR} ({type(error).__name__}): the shares by name are not "
            f"checked against its frame."
        )
    both = frame[(frame.control_counts > 0) & (frame.test_counts > 0)]
    columns = ["control_total_duration", "test_total_duration"]
    share = both[columns].to_numpy().sum() / frame[columns].to_numpy().sum()
    ours = share_by_name(groups_of(comparison))
    return (
        f"Share by name in HTA's own frame (`TraceDiff.compare_traces`, GPU, the same step) on {HTA_PAIR}: "
        f"{percent(share)}; by tracediff's count: {percent(ours)}."
    )


def hta_frame(trace_diff: Any, comparison: Comparison, control: Path, test: Path) -> Any:
    """HTA's frame of GPU events of the used steps."""
    from hta.trace_diff import DeviceType, LabeledTrace

    logging.disable(logging.CRITICAL)
    with (
        tempfile.TemporaryDirectory() as scratch,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        labelled = []
        for side, folder in (("control", control), ("test", test)):
            (Path(scratch) / side).symlink_to(folder)
            labelled.append(LabeledTrace(side, trace_dir=str(Path(scratch) / side)))
        steps = comparison.control.steps_used, comparison.test.steps_used
        return trace_diff.compare_traces(
            *labelled,
            control_iteration=[int(n) for n in steps[0]],
            test_iteration=[int(n) for n in steps[1]],
            device_type=DeviceType.GPU,
            use_short_name=False,
        )


if __name__ == "__main__":
    main()
