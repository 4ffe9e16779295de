"""Families of work, tested over runs."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.aggregate.samples import Samples
from tracediff.diff.ops import compare_samples


@dataclass(frozen=True, kw_only=True)
class TestedFamily:
    """One family; times are medians over steps, means over runs, in µs per step.

    Attributes:
        time_change: faster, slower, same, unclear or untested. p_value, q_value: None where untested.
        relative: change beyond what all families have in common, None where untested.
        interval: 95 % interval of the relative change, None where untested.
    """

    name: str
    control_us: float
    test_us: float
    time_change: str
    p_value: float | None
    q_value: float | None
    relative: float | None
    interval: tuple[float, float] | None = None


def compare_families(samples: tuple[Samples, Samples], noise_floor: float) -> tuple[TestedFamily, ...]:
    """All families of either side, the largest change first."""
    names = sorted({str(key) for side in samples for key in side.values})
    tested = compare_samples(names, samples, noise_floor)
    means = [(float(samples[0].values_of(name).mean()), float(samples[1].values_of(name).mean())) for name in names]
    rows = []
    for k, name in enumerate(names):
        word, p, q, relative = tested.line(k)
        rows.append(
            TestedFamily(
                name=name,
                control_us=means[k][0],
                test_us=means[k][1],
                time_change=word,
                p_value=p,
                q_value=q,
                relative=relative,
                interval=tested.interval(k),
            )
        )
    return tuple(sorted(rows, key=lambda r: (-abs(r.test_us - r.control_us), r.name)))
