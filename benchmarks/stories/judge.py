"""Whether the lines of an explanation are true, given what was planted."""

from __future__ import annotations

from dataclasses import dataclass

from plant import Truth

from tracediff.diff.comparison import Comparison
from tracediff.explain.explanation import Cause
from tracediff.explain.leaves import CODE, GPU, HOST, MIXED, NOT_RECORDED, OUTSIDE, PYTHON, STRETCH
from tracediff.explain.tree import REPLACED, SINGLE
from tracediff.profile.analyses.leaf_keys import callee_label
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import match_name
from tracediff.runtimes import call_role

CLAIMS = 0.05
"""Part of the step's change from which a line claims something."""
SMALL = 0.001
"""Part of the step below which no line claims anything."""
MOSTLY = 0.5
"""Part of a line's change that must have been planted."""
FOUND = 1 / 3
"""Part of what was planted that a line must be, to name it."""
MATTERS = 0.01
"""Part of the step from which a change of it has a cause."""
NOISE = 0.01
"""Part of the step that noise of 2 % in each event can be."""


@dataclass
class Verdict:
    """What an explanation is worth.

    Attributes:
        matters: whether what was planted changes the step, or is a fact. first, second: whether the first line, or one
            of the first two, is the cause. false: lines that claim what was not planted. effects: lines with a wrong
            effect.
    """

    matters: bool
    first: bool
    second: bool
    false: list[Cause]
    effects: list[Cause]


def judge(comparison: Comparison, truth: Truth, sign: int = 1) -> Verdict:
    """The verdict; ``sign`` is −1 where the sides are turned."""
    explanation = comparison.explanation
    assert explanation is not None
    step = max(float(explanation.root.path.max()) / 1000, 1e-9)
    change = explanation.change_us
    lines = list(explanation.causes)
    if truth.is_noise:
        false = [line for line in lines if abs(line.delta_us) > NOISE * step]
        return Verdict(True, not false, not false, false, [])
    claiming = [line for line in lines if abs(line.delta_us) >= max(CLAIMS * abs(change), SMALL * step)]
    planted = {id(line): sign * planted_in(line, comparison, truth) for line in lines}
    true = [id(line) for line in claiming if _mostly(line, planted[id(line)])]
    false = [line for line in claiming if id(line) not in true]
    effects = [line for line in claiming if id(line) in true and truth.effects and line.effect not in truth.effects
               and line.trail[:1] == (GPU,)]  # fmt: skip
    whole = abs(truth.operators) or max([abs(us) for us in (sum(truth.gpu.values()), *(us for _, us in truth.host))])
    named = [
        id(line) in true and (truth.operators != 0 or abs(planted[id(line)]) >= FOUND * min(whole, abs(change)))
        for line in lines
    ]
    if truth.fact:
        facts = {fact.code: fact for fact in explanation.facts}
        has_fact = truth.fact in facts or (truth.fact == "other-program" and "rewritten" in facts)  # by what it does
        if has_fact and truth.ratio != 1:
            ratio = facts[truth.fact].ratio
            has_fact = 0.5 <= abs(ratio - 1) / abs(truth.ratio - 1) <= 1.5
        return Verdict(True, has_fact, has_fact, false, effects)
    matters = abs(change) >= MATTERS * step
    return Verdict(matters, any(named[:1]), any(named[:2]), false, effects)


def _mostly(line: Cause, planted: float) -> bool:
    change = line.test_us - line.control_us
    return planted * change > 0 and abs(planted) >= MOSTLY * abs(change)


def planted_in(line: Cause, comparison: Comparison, truth: Truth) -> float:
    """µs per step planted into what ``line`` names."""
    path = (*line.trail, line.node.label)
    if path[0] == GPU or (path[0] == MIXED and not path[-1].endswith("on the host")):
        return sum(truth.gpu.get(name, 0.0) for name in _events(line, comparison))
    if path[0] != HOST:
        return 0.0
    if truth.operators and (len(path) == 1 or path[1] not in ("Python", "loading data", "compiling")):
        return truth.operators
    labels = {node.label for node in line.node.walk()}
    return sum(us for names, us in truth.host if any(_is_in(label, names) for label in labels)) or sum(
        us for names, us in truth.host if len(path) == 1
    )


def _is_in(label: str, names: frozenset[str]) -> bool:
    """Whether a label of the host says something that happened within ``names``."""
    shown = {
        text
        for name in names
        for text in (name, name.split("/")[-1], match_name(name), display_name(match_name(name)), call_role(name))
    }
    shown |= set(filter(None, map(callee_label, names)))
    label = NOT_RECORDED if label in (PYTHON, CODE, STRETCH) else label
    parts = label.split(" in ") if " in " in label else [label]
    return all(part in shown for part in parts) or any(part in shown for part in label.split(" → "))


def _events(line: Cause, comparison: Comparison) -> set[str]:
    """Raw names of the GPU events of a line."""
    groups = comparison.work.groups
    positions = {key for node in line.node.walk() for key in node.children if isinstance(key, int)}
    if line.node.note == SINGLE:
        shown = line.node.label.removeprefix("one ")
        return {m.name for g in groups for side in g.members for m in side if display_name(match_name(m.name)) in shown}
    for node in line.node.walk():
        if node.note == REPLACED:
            family = (*line.trail, line.node.label)[1] if len(line.trail) else ""
            positions |= {g for g, group in enumerate(groups) if group.family == family and not all(group.members)}
    names = {m.name for g in positions for side in groups[g].members for m in side}
    if OUTSIDE in (*line.trail, line.node.label):
        names |= {
            m.name
            for g in groups
            for side in g.members
            for m in side
            if display_name(match_name(m.name)) == line.node.label
        }
    return names
