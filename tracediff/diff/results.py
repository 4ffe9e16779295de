"""Whether two variants of a collection computed the same: their results, as far as their manifests have them."""

from __future__ import annotations

from dataclasses import dataclass

from tracediff.ingest.manifest import Computed, Manifest, Results

TOLERANCE = {"float64": 1e-6, "float32": 1e-3, "tf32": 2e-2, "float16": 2e-2, "bfloat16": 5e-2}
"""Relative difference of the first step's results that rounding explains, by the least exact dtype of both sides."""
LATER = 10
"""How much more of it there may be in the fourth step: training steps add up their differences."""


@dataclass(frozen=True)
class OtherResult:
    """What both sides computed otherwise: ``norm of the gradients 0.31 → none (first step)``."""

    what: str
    step: str
    control: str
    test: str

    def __str__(self) -> str:
        return f"{self.what} {self.control} → {self.test} ({self.step} step)"


def different_results(control: Manifest | None, test: Manifest | None) -> OtherResult | None:
    """The first result that differs by more than rounding; None where all are the same, or unknown: not recorded, or of
    steps that draw random numbers.
    """
    a, b = _results(control), _results(test)
    if a is None or b is None or a.is_random or b.is_random:
        return None
    tolerance = max(TOLERANCE.get(results.dtype, 0.0) for results in (a, b)) or TOLERANCE["float32"]
    steps = ("first", a.first, b.first, tolerance), ("fourth", a.later, b.later, LATER * tolerance)
    for step, x, y, allowed in steps:
        for what, norms in (("the result", (x.value, y.value)), ("the gradients", (x.gradients, y.gradients))):
            if not _is_same(*norms, allowed) or x.finite != y.finite:
                texts = (_text(norm, side) for norm, side in zip(norms, (x, y), strict=True))
                return OtherResult(f"norm of {what}", step, *texts)
    return None


def not_finite(manifest: Manifest) -> str | None:
    """The step whose result or gradients are not all numbers; None if they are, or if that is unknown."""
    found = _results(manifest)
    if found is None:
        return None
    return "first" if not found.first.finite else "fourth" if not found.later.finite else None


def _results(manifest: Manifest | None) -> Results | None:
    return next((run.results for run in manifest.runs if run.results), None) if manifest else None


def _is_same(x: float | None, y: float | None, allowed: float) -> bool:
    if x is None or y is None:
        return x is y
    return abs(x - y) <= allowed * max(x, y)


def _text(norm: float | None, computed: Computed) -> str:
    return "not finite" if not computed.finite else "none" if norm is None else f"{norm:.5g}"
