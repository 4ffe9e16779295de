"""A history → its tables, and sentences about its changes, the same for every output."""

from __future__ import annotations

import math

from tracediff import bounds, thresholds
from tracediff.diff.comparison import Comparison
from tracediff.diff.verdict import change_text
from tracediff.errors import printable
from tracediff.explain.explanation import Cause
from tracediff.formatting import (
    PERCENT,
    byte_unit,
    change,
    p_value,
    plural,
    signed_percent,
    signed_time,
    time_unit,
)
from tracediff.git import HASH
from tracediff.history.series import ExplainedChange, Series
from tracediff.present.answer import changed_code_sentence
from tracediff.present.explanation_lines import because
from tracediff.present.plain_text import Table
from tracediff.structs import FrozenStruct

BY = ("step", "family", "memory")
"""What a table of commits shows."""
TITLES = {"step": "Step time by commit", "family": "Families by commit", "memory": "Peak memory by commit"}


class ChangeText(FrozenStruct):
    """One change point.

    Attributes:
        title: how much, and where. significance: how sure that is. commits: which it may have come with.
        cause: the line that explains most of it; empty without one.
        code: the changed lines that the changed work runs for; empty where none is known.
        operators: which work changed. cautions: what else differs between the sides.
    """

    title: str
    significance: str
    commits: str
    cause: str
    code: str
    operators: tuple[str, ...]
    cautions: str


def series_title(series: Series) -> str:
    """``mlp tiny eager cpu · x86_64, 2 CPUs · 12 commits, 36 runs``."""
    runs = sum(len(point.runs_us) for point in series.points)
    order = "" if series.is_of_git else ", by commit time"
    counts = f"{plural(len(series.points), 'commit')}{order}, {plural(runs, 'run')}"
    return f"{series.configuration} · {series.machine} · {counts}"


def noise_line(series: Series) -> str:
    """How much the runs vary, and how many changes there are."""
    if series.noise is None:
        return "one run: the noise is unknown"
    if series.is_too_short:
        return f"too few runs to tell a change: {thresholds.LEVEL_RUNS} before it and after it are needed"
    changes = plural(len(series.changes), "change point") if series.changes else "no change beyond the noise"
    return f"{changes}; runs vary by {PERCENT.text(series.noise.sd)} (standard deviation around the level)"


def commits_table(series: Series, view: str, last: int | None) -> Table:
    """The last ``last`` commits, all if None, by step, family or memory."""
    positions = range(max(len(series.points) - last, 0) if last else 0, len(series.points))
    makers = {"step": _steps, "family": _families, "memory": _memory}
    heads, rows = makers[view](series, positions)
    more = "" if not positions.start else f", the last {len(positions)} (--last)"
    return Table(
        title=f"{TITLES[view]}{more}",
        heads=("commit", "message", *heads),
        texts=2,
        rows=tuple((short(series.points[k].commit), series.points[k].subject, *rows[k]) for k in positions),
        together=3 if view == "step" else 1,
    )


def short(commit: str) -> str:
    """A hash by its first characters, any other name whole."""
    return commit[: bounds.SHORT_HASH] if HASH.fullmatch(commit) else printable(commit)


def _steps(series: Series, _positions: range) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    points = series.points
    unit = time_unit([point.step_us for point in points])
    changes = {change.first: math.expm1(change.estimate.effect) for change in series.changes}
    rows: list[tuple[str, ...]] = []
    for k, point in enumerate(points):
        interval = series.interval_us(point)
        rows.append(
            (
                unit.plain(point.step_us),
                f"{unit.plain(interval[0])} … {unit.plain(interval[1])}" if interval else "–",
                change_text(changes[k]) if k in changes else "",
                PERCENT.signed_text(point.step_us / points[k - 1].step_us - 1) if k else "–",
                str(len(point.runs_us)),
            )
        )
    return (f"step {unit.name}", "95 % interval", "change point", "to previous", "runs"), rows


def _families(series: Series, positions: range) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    names = series.families[: bounds.HISTORY_FAMILIES]
    unit = time_unit([series.points[k].families.get(name, 0.0) for k in positions for name in names])
    rows = [tuple(unit.plain(point.families.get(name, 0.0)) for name in names) for point in series.points]
    return tuple(f"{name} {unit.name}" if k == 0 else name for k, name in enumerate(names)), rows


def _memory(series: Series, _positions: range) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    amounts = [point.memory for point in series.points]
    unit = byte_unit([amount for amount in amounts if amount])
    rows: list[tuple[str, ...]] = []
    for k, amount in enumerate(amounts):
        before = amounts[k - 1] if k else None
        change = PERCENT.signed_text(amount / before - 1) if amount and before else "–"
        rows.append(("unknown" if amount is None else unit.plain(amount), change))
    return (f"peak {unit.name}", "change"), rows


def change_texts(series: Series) -> list[ChangeText]:
    """The sentences about each change, in order."""
    return [_change_text(series, explanation) for explanation in series.explanations]


def _change_text(series: Series, explained: ExplainedChange) -> ChangeText:
    point = explained.change
    estimate = point.estimate
    spans = (point.start, point.first), (point.first, point.end)
    runs = [sum(len(p.runs_us) for p in series.points[begin:end]) for begin, end in spans]
    ends = [signed_percent(math.expm1(log)) for log in estimate.interval or ()]
    return ChangeText(
        title=f"{change_text(math.expm1(estimate.effect))} from {short(series.points[point.first].commit)} on",
        significance=f"95 % interval {' to '.join(ends) or 'unknown'}; p {p_value(point.p)}, corrected for the search; "
        f"{runs[0]} runs before, {runs[1]} after",
        commits=_commits(explained),
        cause=cause_text(explained.cause) if explained.cause else "",
        code=_code(explained.comparison),
        operators=tuple(
            f"{signed_time(explained.comparison.us(row.delta))}  {row.name or row.family}"
            for row in explained.operators
        ),
        cautions=", ".join(
            dict.fromkeys(
                f"{reason.code} ({reason.control} → {reason.test})"
                for reason in explained.comparison.comparability.reasons
            )
        ),
    )


def _code(comparison: Comparison) -> str:
    """The changed lines, unless no work has a known line, as most recordings have none."""
    code = comparison.changed_code
    return changed_code_sentence(comparison) if code and not code.note and code.unplaced < 1 else ""


def cause_text(cause: Cause) -> str:
    """``gemm kernels: 12.0 → 15.0 ms; as much work in 1.25 × the time``."""
    why = because(cause)
    return f"{cause.label}: {change(cause.control_us, cause.test_us)}" + (f"; {why}" if why else "")


def _commits(explained: ExplainedChange) -> str:
    """``a1..b2: 1 commit, Use another layout``; of several commits how many of them were recorded."""
    before, after = explained.before, explained.after
    recorded = explained.change.latest - explained.change.earliest + 1
    span = f"{short(before.commit)}..{short(after.commit)}"
    if explained.commits == 1:
        return f"{span}: 1 commit" + (f", {after.subject}" if after.subject else "")
    number = plural(explained.commits, "commit") if explained.commits else "unknown number of commits"
    return f"{span}: {number}, {recorded} recorded"


def bisect_command(where: str, explained: ExplainedChange) -> str | None:
    """The command that finds the commit where several are possible; None where it is known."""
    if explained.commits is None or explained.commits < 2:
        return None
    before, after = short(explained.before.commit), short(explained.after.commit)
    return f"tracediff history bisect {where} --good {before} --bad {after} -- CMD"
