"""A drop-in for the TraceDiff of Holistic Trace Analysis (HTA): the same four calls, arguments and frames, over
tracediff's profiles.

    from tracediff.hta import TraceDiff          # was: from hta.trace_diff import TraceDiff
    frame = TraceDiff.compare_traces("before/", "after/")

Times in frames are microseconds. Where it differs from HTA it does so on purpose: docs/hta.md lists each point.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import chain
from numbers import Integral
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tracediff import bounds
from tracediff.aggregate.assemble import arrange
from tracediff.aggregate.traceset import TraceSet
from tracediff.arrays import Bools, Int64, tuples
from tracediff.engine import load_sets
from tracediff.errors import TracediffError
from tracediff.ingest.discover import Where
from tracediff.ingest.model import categories as cat
from tracediff.profile.kernels.match_names import ADDRESS, STEP
from tracediff.profile.model.profile import Profile
from tracediff.profile.model.selection import Selection
from tracediff.write import write_text

if TYPE_CHECKING:
    import pandas as pd


OUTSIDE = -1
"""The iteration of what lies outside every step: also GPU events that were launched before the recording began."""

STEPS_FOLDED = "ProfilerStep"
"""The name of all steps' annotations where the two sides' step numbers differ."""

MOST_BARS = 40
"""Names in a figure by default."""

MEMORY = re.compile(r"(hip)?Mem(cpy|set)|dma")
PYTHON_FUNCTION = re.compile(r"\(\d+\): ")
CLONE = re.compile(r"(?<!\s)\s*\[clone [^\][]*\]\s*$")
INNERMOST_BRACKETS = re.compile(r"<[^<>]*>|\([^()]*\)")

Numbers = int | Sequence[int] | None


class BadArgument(TracediffError, ValueError):
    """An argument that is not supported; a ValueError as well, since that is what HTA raises."""


class DeviceType(Enum):
    """Which events to compare. GPU: kernels, copies, memsets. CPU: every other. HTA's own DeviceType is taken, too."""

    CPU = 1
    GPU = 2
    ALL = 3


class LabeledTrace:
    """A set of traces with the label that its columns carry.

    Attributes:
        label: the label, by default the set's own.
        t: the set.
    """

    def __init__(self, label: str | None = None, t: Any = None, trace_dir: Where | None = None) -> None:
        """Take the set ``t`` (a `TraceSet`, or HTA's Trace, whose files are read again), else load ``trace_dir`` (any
        place a set can be loaded from).

        Raises:
            BadArgument: neither is given, or ``t`` is something else.
            TracediffError: nothing to read there.
        """
        if t is None and trace_dir is None:
            raise BadArgument("LabeledTrace", "neither t nor trace_dir is given", "give a trace set or the path of one")
        self.t: TraceSet = load_sets([trace_dir])[0] if t is None and trace_dir is not None else _trace_set(t)
        self.label: str = label or self.t.label

    def ranks(self) -> list[int]:
        """All ranks, ascending."""
        return self.t.ranks

    def iterations(self) -> list[int]:
        """All step numbers over all ranks, ascending; [0] where a trace has no ProfilerStep and counts as one step."""
        return self.t.steps_recorded

    def extract_ops(
        self, rank: Numbers = None, iteration: Numbers = None, device_type: DeviceType = DeviceType.ALL
    ) -> pd.DataFrame:
        """The ops and kernels of some ranks and iterations, by default of the lowest of each.

        Returns:
            A row for each (rank, iteration, cat, name), with counts, and total_duration in µs (its children's time
            included).

        Raises:
            BadArgument: a rank, iteration or device type that the set does not have.
        """
        frame = self.occurrences(rank, iteration, device_type)
        frame["total_duration"] = frame.pop("total_ns") / 1000
        return frame

    def occurrences(self, rank: Numbers, iteration: Numbers, device_type: DeviceType) -> pd.DataFrame:
        """What `extract_ops` returns, with ``total_ns`` in place of the duration: integers, but for means over runs.

        Raises:
            BadArgument: as `extract_ops`.
        """
        import pandas as pd

        ranks = self._select("rank", rank, self.ranks())
        numbers = sorted({int(n) for _, r, p in self.t.files if r in ranks for n in p.step_numbers})
        iterations = self._select("iteration", iteration, numbers, [OUTSIDE])
        device = _device(device_type)
        rows = [(r, i, *row) for r in ranks for i in iterations for row in self._cell(r, i, device)]
        frame = pd.DataFrame(rows, columns=["rank", "iteration", "cat", "name", "counts", "total_ns"])
        return frame if rows else frame.astype({"counts": "int64", "total_ns": "int64"})

    def _select(self, what: str, requested: Numbers, available: list[int], extra: Iterable[int] = ()) -> list[int]:
        if requested is None:
            return available[:1]
        selected = (
            [int(requested)]
            if isinstance(requested, Integral)
            else list(dict.fromkeys(map(int, cast("Sequence[int]", requested))))
        )
        missing = [n for n in selected if n not in available and n not in extra]
        if missing or not selected:
            reason = f"no such {what}: {', '.join(map(str, missing))}" if missing else f"an empty list of {what}s"
            raise BadArgument(self.label, reason, f"choose from {', '.join(map(str, available))}")
        return selected

    def _cell(self, rank: int, iteration: int, device: DeviceType) -> Iterator[tuple[str, str, float, float]]:
        """(category, name, count, total ns) of one rank's iteration: sums over the files of a run, means over the runs
        that contain it.
        """
        runs = [
            files
            for run in self.t.runs
            if (files := [p for p in run.ranks.get(rank, ()) if iteration in (OUTSIDE, *p.step_numbers)])
        ]
        sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
        for profile in chain.from_iterable(runs):
            for category, name, count, total_ns in _occurrences(profile, iteration, device):
                total = sums[category, name]
                total[0] += count
                total[1] += total_ns
        for (category, name), (count, total_ns) in sums.items():
            yield category, name, *((count, total_ns) if len(runs) == 1 else (count / len(runs), total_ns / len(runs)))


class TraceDiff:
    """HTA's TraceDiff: the same four calls."""

    @classmethod
    def compare_traces(
        cls,
        control: Any,
        test: Any,
        control_rank: Numbers = None,
        test_rank: Numbers = None,
        control_iteration: Numbers = None,
        test_iteration: Numbers = None,
        device_type: DeviceType = DeviceType.ALL,
        use_short_name: bool = False,
    ) -> pd.DataFrame:
        """Counts and total durations of ops and kernels on both sides, by name.

        Args:
            control, test: a folder, file, glob, archive, URL or list of these; a `LabeledTrace`; a `TraceSet`; HTA's
                Trace or LabeledTrace.
            control_rank, test_rank: ranks, summed; by default the lowest.
            control_iteration, test_iteration: step numbers, summed; by default the lowest; `OUTSIDE` for what lies
                outside every step.
            device_type: CPU, GPU or ALL.
            use_short_name: group by names without return types, template arguments and parameters.

        Returns:
            Index ``name`` or ``short_name``: control's names sorted, then those of test alone. With C and T the labels
            (Control and Test where none is given), columns C_counts, C_total_duration, T_counts, T_total_duration,
            diff_counts, diff_duration (test − control, µs), counts_change_categories ("+", "-", "=").
            ``attrs["notes"]`` holds each side's health notes.

        Raises:
            BadArgument: a rank, iteration, device type or kind of input that is not supported.
            TracediffError: a trace that cannot be read.
        """
        sides = _labeled_pair(control, test)
        selections = ((control_rank, control_iteration), (test_rank, test_iteration))
        occurrences = [side.occurrences(*where, device_type) for side, where in zip(sides, selections, strict=True)]
        steps = [{name for name in frame["name"] if STEP.match(name)} for frame in occurrences]

        def display_name(name: str) -> str:
            """The name under which ``name`` is compared; steps are one row where the two sides have others."""
            if steps[0] != steps[1] and STEP.match(name):
                return STEPS_FOLDED
            return short_name(name) if use_short_name else name

        index = "short_name" if use_short_name else "name"
        totals = [
            frame.assign(**{index: frame["name"].map(display_name)}).groupby(index)[["counts", "total_ns"]].sum()
            for frame in occurrences
        ]
        return _frame(sides, totals)

    @classmethod
    def ops_diff(
        cls,
        control: Any,
        test: Any,
        control_rank: Numbers = None,
        test_rank: Numbers = None,
        control_iteration: Numbers = None,
        test_iteration: Numbers = None,
        device_type: DeviceType = DeviceType.ALL,
    ) -> dict[str, list[str]]:
        """The names that were added, deleted, increased, decreased and unchanged, on counts only. Arguments as
        `compare_traces`.
        """
        frame = cls.compare_traces(
            control, test, control_rank, test_rank, control_iteration, test_iteration, device_type
        )
        before, after = frame.iloc[:, 0], frame.iloc[:, 2]
        classes = {
            "added": (before == 0) & (after > 0),
            "deleted": (before > 0) & (after == 0),
            "increased": (before > 0) & (after > before),
            "decreased": (after > 0) & (after < before),
            "unchanged": (after > 0) & (after == before),
        }
        return {name: frame.index[mask].tolist() for name, mask in classes.items()}

    @classmethod
    def visualize_counts_diff(
        cls,
        df: pd.DataFrame,
        show_image: bool = True,
        export_image_path: str | None = None,
        top: int | None = MOST_BARS,
    ) -> None:
        """Draw the counts of ``df``, a frame of `compare_traces`.

        Args:
            show_image: open it in the notebook or browser.
            export_image_path: write it there; ``.html`` needs nothing else, images need kaleido.
            top: draw the names that changed most; None draws all.
        """
        from tracediff.charts.figures.operation_bars import frame_counts_diff

        _deliver(frame_counts_diff(df, top), show_image, export_image_path)

    @classmethod
    def visualize_duration_diff(
        cls,
        df: pd.DataFrame,
        show_image: bool = True,
        export_image_path: str | None = None,
        top: int | None = MOST_BARS,
    ) -> None:
        """Draw the total durations of ``df``. Arguments as `visualize_counts_diff`."""
        from tracediff.charts.figures.operation_bars import frame_duration_diff

        _deliver(frame_duration_diff(df, top), show_image, export_image_path)


def short_name(name: str) -> str:
    """``name`` without return type, template arguments and parameters; copies, memsets and Python functions stay as
    they are. Never empty.
    """
    if MEMORY.match(name) or PYTHON_FUNCTION.search(name) or not ("<" in name or "(" in name):
        return name
    text = CLONE.sub("", name).replace("->", "")
    for _ in range(bounds.BRACKETS):
        text = INNERMOST_BRACKETS.sub("", text)
    return text.split()[-1] if text.strip() else name


def _labeled_pair(control: Any, test: Any) -> list[LabeledTrace]:
    """Both sides as labelled sets, files read in parallel; labels differ."""
    requested = (control, test)
    paths = [argument for argument in requested if isinstance(argument, str | os.PathLike | list | tuple)]
    loaded = iter(load_sets(paths) if paths else ())
    sides = [
        _labeled(next(loaded) if any(argument is p for p in paths) else argument, label)
        for argument, label in zip(requested, ("Control", "Test"), strict=True)
    ]
    if sides[0].label == sides[1].label:
        sides[1] = LabeledTrace(f"{sides[1].label}_test", sides[1].t)
    for side in sides:
        if side.label == "diff":
            raise BadArgument(
                "diff", "the label would clash with the columns diff_counts and diff_duration", "choose another label"
            )
    return sides


def _labeled(traces: Any, label: str) -> LabeledTrace:
    if isinstance(traces, LabeledTrace):
        return traces
    if isinstance(getattr(traces, "label", None), str) and hasattr(traces, "t"):  # HTA's LabeledTrace
        return LabeledTrace(traces.label, traces.t)
    return LabeledTrace(label, traces)


def _trace_set(traces: Any) -> TraceSet:
    """``traces`` as a set: a `TraceSet`, or HTA's Trace, known by its dictionary ``trace_files`` from rank to path."""
    if isinstance(traces, TraceSet):
        return traces
    files = getattr(traces, "trace_files", None)
    if not isinstance(files, dict) or not files:
        raise BadArgument(
            f"a {type(traces).__name__}", "not a trace set", "give a path, a LabeledTrace, a TraceSet or HTA's Trace"
        )
    loaded = load_sets([list(files.values())])[0]
    profiles = {p.origin.file.path: p for p in loaded.profiles}
    ranked = [
        profiles[path].replace(origin=profiles[path].origin.replace(rank=int(rank))) for rank, path in files.items()
    ]
    return arrange(loaded.label, ranked, Selection())


def _device(device: Any) -> DeviceType:
    try:
        return DeviceType[device.name]
    except (AttributeError, KeyError):
        raise BadArgument(
            device, "not a device type", "give DeviceType.CPU, DeviceType.GPU or DeviceType.ALL"
        ) from None


def _occurrences(profile: Profile, iteration: int, device: DeviceType) -> Iterator[tuple[str, str, int, int]]:
    """(category, name, count, total ns) of the iteration's events on the device in one file."""
    ops = profile.ops
    numbers = np.append(profile.step_numbers, OUTSIDE)  # step −1 is the last
    rows = np.flatnonzero((numbers[ops.step] == iteration) & _are_on_device(device, ops.category))
    columns = (ops.category[rows], ops.name[rows], ops.count[rows], ops.total_ns[rows])
    for category, name, count, total_ns in tuples(*columns):
        yield (  # the address of a Python function's object is another in every process
            profile.categories[category],
            ADDRESS.sub("0x…", profile.names[name]) if category == cat.PYTHON else profile.names[name],
            count,
            total_ns,
        )


def _are_on_device(device: DeviceType, category: Int64) -> Bools:
    """bool[n]: which events of int64[n] categories belong to the device. GPU annotations belong to none: they frame
    kernels that are counted themselves.
    """
    counts: Bools = category != cat.GPU_ANNOTATION
    return counts if device == DeviceType.ALL else counts & (np.isin(category, cat.GPU) == (device == DeviceType.GPU))


def _frame(sides: Sequence[LabeledTrace], totals: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The frame of `compare_traces` from each side's counts and ns by name."""
    import pandas as pd

    names = totals[0].index.append(totals[1].index.difference(totals[0].index))
    both = [total.reindex(names, fill_value=0) for total in totals]
    columns: dict[str, Any] = {}
    for side, total in zip(sides, both, strict=True):
        columns |= {f"{side.label}_counts": total["counts"], f"{side.label}_total_duration": total["total_ns"] / 1000}
    more = both[1] - both[0]
    columns |= {"diff_counts": more["counts"], "diff_duration": more["total_ns"] / 1000}
    columns["counts_change_categories"] = ["+" if n > 0 else "-" if n < 0 else "=" for n in more["counts"]]
    frame = pd.DataFrame(columns, index=names)
    frame.attrs["notes"] = {side.label: [f"{n.message} ({n.count})" for n in side.t.notes] for side in sides}
    return frame


def _deliver(figure: Any, show: bool, path: str | None) -> None:
    """Show the figure, write it, or both.

    Raises:
        BadArgument: an image is asked for and cannot be made here.
        TracediffError: the page cannot be written there.
    """
    if show:
        figure.show()
    if path and path.endswith(".html"):
        write_text(path, figure.to_html())
    elif path:
        try:
            figure.write_image(path)
        except (ImportError, ValueError, RuntimeError, OSError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            remedy = "pip install 'torch-tracediff[images]', or give a path that ends in .html"
            raise BadArgument(path, f"the image cannot be drawn ({reason})", remedy) from None
