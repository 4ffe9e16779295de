"""`Comparison` → the answer in sentences, the same on every surface: the verdict, why, and what makes it doubtful."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from tracediff import bounds, thresholds
from tracediff.diff.comparison import Comparison
from tracediff.diff.verdict import change_text
from tracediff.explain.called import class_in
from tracediff.explain.facts import (
    AS_OFTEN,
    CHANGED_MODULES,
    FIRST_DIMENSION,
    HIDDEN_HOST,
    HOST_SPEED,
    NEW_WAIT,
    ONE_SIDED_CALLS,
    OTHER_PROGRAM,
    REPEATED,
    Fact,
    as_wait,
)
from tracediff.explain.leaves import OTHER_CALLERS
from tracediff.formatting import change, joined, percent, plural, time_unit, with_digits
from tracediff.present.causes import added_share, by_chance, by_options, causes_of, profiled_steps
from tracediff.present.explanation_lines import sentence
from tracediff.present.limits import limits_sentence
from tracediff.present.path import BOTH, unit_of
from tracediff.present.sections import cautions
from tracediff.present.setting import facts, may_be_chance, other_software, spread
from tracediff.structs import FrozenStruct

if TYPE_CHECKING:  # source imports git
    from tracediff.source.changed_code import ChangedCode, Touching

UNLIKE, DOUBTFUL = "Not like for like", "Caution"
OF_FACTS = ("operators", "workload")
"""Cautions that may be facts of the explanation, of the same values."""


class Answer(FrozenStruct, kw_only=True):
    """The answer in sentences; parts that do not apply are empty."""

    verdict: Annotated[str, Meta(description="how the step differs, and in what the sides differ")]
    evidence: Annotated[str, Meta(description="whether that is significant, and how much steps and runs vary")] = ""
    because: Annotated[str, Meta(description="the causes that are most of the change")] = ""
    offset_by: Annotated[str, Meta(description="the causes against the change")] = ""
    not_explained: Annotated[str, Meta(description="what of the change neither names")] = ""
    code: Annotated[str, Meta(description="the changed lines that the changed work runs for")] = ""
    unlike: Annotated[tuple[str, ...], Meta(description="facts and cautions to read the comparison with")] = ()
    notes: Annotated[tuple[str, ...], Meta(description="further sentences on the verdict")] = ()
    limits: Annotated[str, Meta(description="what of the critical path and of the step the GPU and the host are")] = ""
    interval: Annotated[str, Meta(description="the 95 % interval of the change of the median step")] = ""
    setting: Annotated[str, Meta(description="what was compared: devices, runs, ranks, steps")]

    @property
    def below(self) -> tuple[str, ...]:
        """The sentences below the verdict, in their order."""
        return (*self.lead, *filter(None, (self.limits, self.code, *self.unlike, *self.notes)))

    @property
    def lead(self) -> tuple[str, ...]:
        """Those of them that stand before why, where that is a table."""
        return tuple(filter(None, (self.evidence, self.why)))

    @property
    def why(self) -> str:
        """Because, offset by and what neither names in one sentence, to paste: its times add up to the change."""
        return f"{joined(self.because, self.offset_by, self.not_explained, by='; ')}." if self.because else ""


def answer_of(comparison: Comparison, remedy: str = " (--force compares anyway)") -> Answer:
    """The answer; ``remedy`` follows the reasons of a refused comparison."""
    explanation = comparison.explanation
    because, offset, rest = causes_of(comparison, explanation) if explanation is not None else ("", "", "")
    return Answer(
        verdict=headline(comparison, remedy),
        evidence=evidence(comparison),
        because=because,
        offset_by=offset,
        not_explained=rest,
        code=sentence(changed_code_sentence(comparison)) if comparison.changed_code is not None else "",
        unlike=_unlike(comparison, f"{because}; {offset}"),
        notes=tuple(map(sentence, asides(comparison, because))),
        limits=limits_sentence(comparison),
        interval=interval(comparison),
        setting=facts(comparison),
    )


def _is_said(fact: Fact, comparison: Comparison, why: str) -> bool:
    """Whether the verdict says of which batch it is, and all that is called on one side only, or more often, ``why``
    what is waited for, also of the host, or another fact of which modules, or calls in them, there are more.
    """
    if fact.code in (AS_OFTEN, CHANGED_MODULES):
        return any(other.code == REPEATED for other in comparison.facts)
    if fact.code == NEW_WAIT:
        return as_wait(fact) in why
    if fact.code == FIRST_DIMENSION:
        return fact.setting in comparison.verdict.settings
    if fact.code == HIDDEN_HOST:
        return BOTH in why
    if fact.code == REPEATED:
        causes = (cause.label for cause in comparison.causes if OTHER_CALLERS in cause.chain and cause.label in why)
        is_cause = any(f": {name} " in fact.text for name in causes)
        return is_cause or (bool(fact.setting) and fact.setting in comparison.verdict.settings)
    names = [name for names in (fact.control, fact.test) for name in names.split(", ") if name]
    says_all = all(name in why or class_in(name) in comparison.verdict.settings for name in names)
    return fact.code == ONE_SIDED_CALLS and says_all


def _unlike(comparison: Comparison, why: str) -> tuple[str, ...]:
    """Facts of the explanation, a line each, then the cautions that no fact states, a line for each kind."""
    stated = [sentence(fact.text) for fact in comparison.facts if not _is_said(fact, comparison, why)]
    values = [(fact.control, fact.test) for fact in comparison.facts]
    reasons = [r for r in cautions(comparison) if r.code not in OF_FACTS or (r.control, r.test) not in values]
    if any(fact.code in (OTHER_PROGRAM, REPEATED) for fact in comparison.facts):
        reasons = [reason for reason in reasons if reason.code != "missing-work"]  # which say what is there instead
    of_kind: dict[str, dict[str, None]] = {UNLIKE: {}, DOUBTFUL: {}}
    for reason in reasons:
        of_kind[UNLIKE if reason.is_unlike else DOUBTFUL][reason.in_short(comparison.labels)] = None
    return (*stated, *(f"{kind}: {'; '.join(texts)}" for kind, texts in of_kind.items() if texts))


def other_step_time(comparison: Comparison) -> str | None:
    """The step times that the verdict does not state: those without the profiler, or where it states these, those with
    it; None where the collector did not measure both.
    """
    unprofiled, verdict = comparison.unprofiled, comparison.verdict
    if unprofiled is None:
        return None
    if not unprofiled.believed:
        how = change_text(unprofiled.change) if abs(unprofiled.change) >= thresholds.NO_DIFFERENCE else "as long"
        return f"without the profiler: median {change(*unprofiled.medians)} per step ({how})"
    if profiled := profiled_steps(comparison):
        return f"tables of {profiled}"
    added = f"the profiler adds {added_share(comparison, verdict.medians)}, all of it on the host"
    return f"profiled steps take {change(*verdict.medians)}: {added}"


def asides(comparison: Comparison, because: str) -> list[str]:
    """The sentences below the verdict, without what ``because`` says, which is empty without causes."""
    other = None if because and profiled_steps(comparison) else other_step_time(comparison)
    return [text for text in (draining(comparison), by_options(comparison), other) if text]


def draining(comparison: Comparison) -> str | None:
    """What the GPU ran before the first steps, if that would have changed the step time that is stated."""
    step, us = comparison.step_time, comparison.us
    if all(
        us(ns) < thresholds.NO_DIFFERENCE * us(period) for ns, period in zip(step.draining, step.period, strict=True)
    ):
        return None
    drained = change(*map(us, step.draining))
    return f"plus {drained} before the first step, in which the GPU drains earlier work: not compared"


def headline(comparison: Comparison, remedy: str = " (--force compares anyway)") -> str:
    """The difference with its step times, whether that may be chance if nothing was tested, and in what the sides
    differ; if refused, the reasons and ``remedy``.
    """
    verdict = comparison.verdict
    if comparison.was_refused:
        reasons = [r.message for r in comparison.comparability.reasons if r.level == "refused"]
        return f"{verdict.difference}: {'; '.join(reasons)}{remedy}"
    figures = _as_below(comparison, (verdict.control_us, verdict.test_us))
    if comparison.believed_unprofiled:
        figures = f"median {change(*comparison.tested.medians)}"
    elif verdict.is_of_medians:
        figures = f"{_figures(*verdict.medians)} (mean {figures})"
    is_doubtful = verdict.result == "untested" and verdict.way and may_be_chance(comparison)
    return joined(f"{verdict.difference}: {figures}", "perhaps by chance" if is_doubtful else "", verdict.settings)


def evidence(comparison: Comparison) -> str:
    """Whether the difference is significant; without a test that decides it how much steps vary, and that the same work
    may take another time by chance. Empty if refused.
    """
    verdict = comparison.verdict
    if not verdict.conclusion:
        return ""
    says, times = spread(comparison)
    if comparison.believed_unprofiled or verdict.result in ("faster", "slower", "same"):
        says, times = "", ""
    says_pace = any(fact.code == HOST_SPEED for fact in comparison.facts)  # and of what
    chance = "" if says_pace or by_options(comparison) else by_chance(comparison)
    conclusion = verdict.conclusion
    if verdict.result == "untested" and says:
        conclusion = f"{says if verdict.way else 'no difference seen'} ({conclusion})"
    return f"Evidence: {joined(conclusion, times, chance, by='; ')}"


def _as_below(comparison: Comparison, us: tuple[float, float]) -> str:
    """``42.65 → 40.77 ms``: the step as the table of causes has it, if there is one."""
    explanation = comparison.explanation
    if explanation is None or not explanation.profiled:
        return _figures(*us)
    return unit_of(explanation).change(*us)


def _figures(control: float, test: float) -> str:
    """``25.05 → 23.55 ms``: times in µs, with a digit more of their change than its percentage has."""
    if not control or abs(test / control - 1) < thresholds.NO_DIFFERENCE:
        return change(control, test)
    unit = with_digits(time_unit([control, test]), [(test - control) / 10])
    return unit.change(control, test)


def interval(comparison: Comparison) -> str:
    """The confidence interval of the change of the median step as a sentence; may be empty."""
    tested, within_us = comparison.tested, comparison.verdict.within_runs_us
    low, high = tested.ci95_us or within_us or (0.0, 0.0)
    unit = with_digits(time_unit(tested.medians), (low, high))
    moved = f"{unit.signed(low)} to {unit.signed_text(high)}"
    if tested.ci95_us is None:
        within = f"Within these two runs the median step changed by {moved} (95 %); other runs may differ."
        return within if within_us else ""
    without = " without the profiler" if comparison.believed_unprofiled else ""
    text = f"95 % interval of the change of the median step{without}: {moved}"
    if not without and comparison.verdict.min_detectable_us is not None:
        base = tested.medians.control
        longer = 1 + comparison.verdict.min_detectable_us / base
        detectable = base * (longer - 1 if low + high > 0 else 1 - 1 / longer)  # in its direction
        text += f"; detectable change (in 80 % of cases): {unit.text(detectable)}"
    return f"{text}."


def changed_code_sentence(comparison: Comparison) -> str:
    """Which changed lines the changed work runs for, without a full stop."""
    code = comparison.changed_code
    assert code is not None
    if code.note:
        return f"changed lines: unknown, {code.note}"
    if code.commits[0] == code.commits[1]:
        return "; ".join(("both sides are of one commit", *other_software(comparison)))
    if not code.touching:
        return "; ".join((_nothing(code), *other_software(comparison)))
    first, *more = code.touching
    places = [first, *(place for place in more if place.part >= thresholds.CHANGED_LINES)][: bounds.EXAMPLES]
    parts = "; ".join(f"{where(place)} holds {percent(place.part)} of the changed work" for place in places)
    return f"changed code: {parts}{_unplaced(code, '; ')}"


def where(place: Touching) -> str:
    """``model.py:120–131 in Block.__init__ (3 lines changed in 9f2c1ab)``."""
    lines = f"{place.first}" if place.first == place.last else f"{place.first}–{place.last}"
    name = "" if place.name.startswith("<") else f" in {place.name}"
    what = f"{plural(place.lines, 'line')} changed" if place.lines else "lines taken out"
    return f"{place.file}:{lines}{name} ({what}{f' in {place.commit}' if place.commit else ''})"


def _nothing(code: ChangedCode) -> str:
    also_changed = [plural(code.untouched, "changed definition")] if code.untouched else []
    if code.other_files:
        also_changed.append(f"{plural(len(code.other_files), 'changed file')} without Python code")
    others = f" ({', '.join(also_changed)})" if also_changed else ""
    if not code.changed_work:
        return f"no changed line touches changed work: none is tested to have changed{others}"
    unplaced = _unplaced(code, ", of which ")
    return f"no changed line touches the changed work{unplaced}{others}"


def _unplaced(code: ChangedCode, lead: str) -> str:
    """How much of the changed work has no known line, where that is worth a word."""
    return f"{lead}{percent(code.unplaced)} has no known line" if code.unplaced >= thresholds.CHANGED_LINES else ""
