"""`Comparison` → the answer in sentences, the same on every surface: the verdict, why, and what makes it doubtful."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from tracediff.diff.comparison import Comparison
from tracediff.diff.verdict import SAME_SENTENCE
from tracediff.explain.explanation import Cause, Explanation
from tracediff.explain.wording import UNKNOWN
from tracediff.formatting import Unit
from tracediff.present.explanation_lines import is_told, sentence, told, unit_of
from tracediff.present.sections import cautions
from tracediff.present.sentences import asides, facts, headline, interval
from tracediff.present.shorten import shortened_pairs

MOST_OF_IT = 2 / 3
"""Part of what moved in one direction from which the sentence stops to name more causes."""
NAMED = 3
"""Most causes that a sentence names in one direction."""
LONGEST_LABEL = 60
"""Characters of a cause in a sentence."""
UNLIKE, DOUBTFUL = "Not like for like", "Caution"
OF_FACTS = ("operators", "workload")
"""Cautions that are facts of the explanation, which has the figures."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer in sentences; parts that do not apply are empty."""

    verdict: Annotated[str, Meta(description="how the step differs, and whether that is significant")]
    because: Annotated[str, Meta(description="the causes that are most of the change")] = ""
    offset_by: Annotated[str, Meta(description="the causes against the change")] = ""
    not_explained: Annotated[str, Meta(description="what is in no line of the explanation")] = ""
    code: Annotated[str, Meta(description="the changed lines that the changed work runs for")] = ""
    unlike: Annotated[tuple[str, ...], Meta(description="facts and cautions to read the comparison with")] = ()
    notes: Annotated[tuple[str, ...], Meta(description="further sentences on the verdict")] = ()
    interval: Annotated[str, Meta(description="the 95 % interval of the change of the median step")] = ""
    setting: Annotated[str, Meta(description="what was compared: devices, runs, ranks, steps")]

    @property
    def below(self) -> tuple[str, ...]:
        """The sentences below the verdict, in their order."""
        return tuple(filter(None, (self.why, self.code, *self.unlike, *self.notes)))

    @property
    def why(self) -> str:
        """Because and offset by in one sentence, to paste."""
        return f"{'; '.join(filter(None, (self.because, self.offset_by)))}." if self.because else ""


def answer_of(comparison: Comparison, remedy: str = " (--force compares anyway)") -> Answer:
    """The answer; ``remedy`` follows the reasons of a refused comparison."""
    found = comparison.explanation
    because, offset, rest = _causes(comparison, found) if found is not None else ("", "", "")
    return Answer(
        verdict=headline(comparison, remedy),
        because=because,
        offset_by=offset,
        not_explained=rest,
        code=_code(comparison),
        unlike=_unlike(comparison),
        notes=tuple(map(sentence, asides(comparison))),
        interval=interval(comparison.verdict),
        setting=facts(comparison),
    )


def _causes(comparison: Comparison, found: Explanation) -> tuple[str, str, str]:
    """(because, offset by, not explained)."""
    unit = unit_of(found)
    sign = 1 if found.change_us >= 0 else -1
    along = [cause for cause in told(found) if sign * cause.delta_us > 0]
    against = sorted((c for c in told(found) if sign * c.delta_us < 0), key=lambda c: sign * c.delta_us)
    if not along:
        return "", "", ""
    because = f"{'Because of' if _has_changed(comparison) else 'Largest changes:'} {_list(along, unit)}"
    offset = f"offset by {_list(against, unit)}" if against else ""
    rest = f"{unit.signed(found.rest_us)} {unit.name} in no line" if is_told(found.rest_us, unit) else ""
    return because, offset, rest


def _code(comparison: Comparison) -> str:
    if comparison.changed_code is None:
        return ""
    from tracediff.present.changed_code import changed_code_sentence

    return sentence(changed_code_sentence(comparison))


def _has_changed(comparison: Comparison) -> bool:
    """Whether the step is longer or shorter, and not tested to be within the spread of the runs."""
    verdict = comparison.verdict
    if verdict.result in ("faster", "slower"):
        return True
    return verdict.ci95_us is None and abs(verdict.delta_us) >= SAME_SENTENCE * verdict.control_us


def _list(causes: Sequence[Cause], unit: Unit) -> str:
    """The first causes until they are most of ``causes``, and how many more there are."""
    whole, named = sum(cause.delta_us for cause in causes), 1
    while named < min(NAMED, len(causes)) and abs(sum(c.delta_us for c in causes[:named])) < MOST_OF_IT * abs(whole):
        named += 1
    labels = shortened_pairs([cause.label for cause in causes], LONGEST_LABEL)
    texts = [_part(label, cause, unit) for label, cause in zip(labels, causes[:named], strict=False)]
    if more := causes[named:]:
        texts.append(f"{len(more)} more ({unit.signed(sum(c.delta_us for c in more))} {unit.name})")
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def _part(label: str, cause: Cause, unit: Unit) -> str:
    what = "" if cause.what == UNKNOWN else cause.what
    return f"{label} ({': '.join(filter(None, (f'{unit.signed(cause.delta_us)} {unit.name}', what)))})"


def _unlike(comparison: Comparison) -> tuple[str, ...]:
    """Facts of the explanation, then the cautions that no fact states, in a line."""
    found = comparison.explanation
    stated = [sentence(fact.text) for fact in found.facts] if found is not None else []
    short = dict.fromkeys(reason.short for reason in cautions(comparison) if not stated or reason.code not in OF_FACTS)
    name = UNLIKE if any(reason.is_unlike for reason in cautions(comparison)) else DOUBTFUL
    return (*stated, *([f"{name}: {'; '.join(short)}"] if short else []))
