"""The changed code in sentences."""

from __future__ import annotations

from tracediff.diff.comparison import Comparison
from tracediff.formatting import percent, plural
from tracediff.profile.kernels.match_names import is_generated
from tracediff.source.touching import ChangedCode, Touching

NAMED = 3
"""Most places of changed lines in a sentence."""
LEAST = 0.05
"""Part of the change from which lines are named beside the first."""
SOFTWARE = ("torch", "triton", "cuda", "cudnn", "hip", "python", "driver", "gpu", "threads")
"""What of the environment changes how the same code runs, the likeliest first."""
COMPILERS = ("torch", "triton")


def changed_code_sentence(comparison: Comparison) -> str:
    """Which changed lines the changed work runs for, without a full stop."""
    found = comparison.changed_code
    assert found is not None
    if found.note:
        return f"changed lines: unknown, {found.note}"
    if found.commits[0] == found.commits[1]:
        return "; ".join(("both sides are of one commit", *_otherwise(comparison)))
    if not found.touching:
        return "; ".join((_nothing(found), *_otherwise(comparison)))
    first, *more = found.touching
    named = [first, *(place for place in more if place.part >= LEAST)][:NAMED]
    unplaced = f"; {percent(found.unplaced)} has no known line" if found.unplaced >= LEAST else ""
    parts = "; ".join(f"{where(place)} holds {percent(place.part)} of the changed work" for place in named)
    return f"changed code: {parts}{unplaced}"


def where(place: Touching) -> str:
    """``model.py:120–131 in Block.__init__ (3 lines changed in 9f2c1ab)``."""
    lines = f"{place.first}" if place.first == place.last else f"{place.first}–{place.last}"
    name = "" if place.name.startswith("<") else f" in {place.name}"
    what = f"{plural(place.lines, 'line')} changed" if place.lines else "lines taken out"
    return f"{place.file}:{lines}{name} ({what}{f' in {place.commit}' if place.commit else ''})"


def _nothing(found: ChangedCode) -> str:
    beside = [plural(found.untouched, "changed definition")] if found.untouched else []
    if found.other_files:
        beside.append(f"{plural(len(found.other_files), 'changed file')} without Python code")
    others = f" ({', '.join(beside)})" if beside else ""
    if not found.changed_work:
        return f"no changed line touches changed work: none is tested to have changed{others}"
    unplaced = f", of which {percent(found.unplaced)} has no known line" if found.unplaced >= LEAST else ""
    return f"no changed line touches the changed work{unplaced}{others}"


def _otherwise(comparison: Comparison) -> list[str]:
    """What else differs between the sides, of what is recorded."""
    manifests = comparison.control.manifest, comparison.test.manifest
    before, after = (manifest.environment if manifest else {} for manifest in manifests)
    compiled = sum(is_generated(member.name) for group in comparison.work.groups for member in group.test)
    out = []
    for name in SOFTWARE:
        if name in before and name in after and before[name] != after[name]:
            anew = f", which compiles {plural(compiled, 'kernel')} anew" if compiled and name in COMPILERS else ""
            out.append(f"{name} {before[name]} → {after[name]}{anew}")
    return [f"what else differs: {', '.join(out)}"] if out else ["nothing else that was recorded differs"]
