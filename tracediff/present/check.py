"""Sentences about a check, the same for every output format."""

from __future__ import annotations

from tracediff import bounds
from tracediff.diff.gate.judge import INCONCLUSIVE, PASS, REGRESSION, UNTESTED, WAIVED, Gate, Judged
from tracediff.formatting import PERCENT, Unit, byte_unit, count, joined, plural, signed_count, time_unit
from tracediff.present.tables import from_to


def sentence(gate: Gate) -> str:
    """The result and its reasons in one sentence."""
    if gate.stopping:
        result = gate.result.replace("-", " ")
        return f"{result}: {'; '.join(f'{r.message} ({r.code}: {r.control} → {r.test})' for r in gate.stopping)}"
    return f"{_decision(gate)}{_untested(gate)}"


def _untested(gate: Gate) -> str:
    """How many limits were decided without a test; empty if none was."""
    untested = sum(j.why == UNTESTED for j in gate.judged)
    if not untested:
        return ""
    return f"; {UNTESTED}" if untested == len(gate.judged) else f"; {untested} {UNTESTED}"


def _decision(gate: Gate) -> str:
    if gate.result == PASS:
        waived = len(gate.with_result(WAIVED))
        sentence = "the limit is met" if len(gate.judged) == 1 else f"all {len(gate.judged)} limits are met"
        return f"pass: {sentence}" + (f", {waived} by a waiver" if waived else "")
    reported = gate.with_result(gate.result)
    what = "exceeded" if gate.result == REGRESSION else "undecided"
    more = f" and {len(reported) - bounds.EXAMPLES} more" if len(reported) > bounds.EXAMPLES else ""
    verb = "is" if len(reported) == 1 else "are"
    return (
        f"{gate.result}: {len(reported)} of {plural(len(gate.judged), 'limit')} {verb} {what}: "
        f"{', '.join(map(_changed, reported[: bounds.EXAMPLES]))}{more}"
    )


def _changed(judged: Judged) -> str:
    """What is limited, with the change that is judged: ``step (median +5.2 %)``."""
    return f"{subject(judged)} ({_statistic(judged)}{change(judged)})"


def _statistic(judged: Judged) -> str:
    return f"{judged.figure.statistic} " if judged.figure.statistic else ""


def subject(judged: Judged) -> str:
    """The subject of the limit, cut if it is very long."""
    return cut(judged.figure.subject)


def row_subject(judged: Judged) -> str:
    """`subject` in a table beside its figures, with what these are: ``step (median)``."""
    return f"{subject(judged)} ({judged.figure.statistic})" if judged.figure.statistic else subject(judged)


def cut(name: str) -> str:
    """``name``, cut at the end if it is very long."""
    return name if len(name) <= bounds.ROW_NAME else f"{name[: bounds.ROW_NAME - 1]}…"


def figures(judged: Judged) -> tuple[str, str]:
    """Control and test in one unit: ``1.07 ms`` and ``0.48 ms``, ``3`` and ``5``; ``?`` where unknown."""
    control, test = judged.figure.control, judged.figure.test
    unit = _unit(judged, *(value for value in (control, test) if value is not None))
    return _amount(control, unit), _amount(test, unit)


def _unit(judged: Judged, *values: float) -> Unit | None:
    """The unit of ``values`` together; None for counts."""
    units = {"us": time_unit, "bytes": byte_unit}
    return units[judged.limit.unit](values) if judged.limit.unit in units else None


def _amount(value: float | None, unit: Unit | None) -> str:
    if value is None:
        return "?"
    return unit.text(value) if unit else count(value)


def change(judged: Judged) -> str:
    """``+5.2 %``; of a count the difference; ``new`` where control has nothing."""
    figure = judged.figure
    if figure.change is None:
        return "?"
    if judged.limit.unit == "count":
        return signed_count(figure.change)
    if figure.ratio is None:
        return "new" if figure.test else "none"
    return PERCENT.signed_text(figure.ratio - 1)


def interval(judged: Judged) -> str:
    """``+4.1 to +6.3 %``, empty where there is none."""
    ends = judged.figure.interval
    return f"{PERCENT.signed(ends[0])} to {PERCENT.signed_text(ends[1])}" if ends else ""


def bound(judged: Judged) -> str:
    """``5 %``, ``5 % and 50.0 µs``, ``0``."""
    limit = judged.limit
    if not limit.absolute:
        return f"{100 * limit.relative:g} %" if limit.relative else "0"
    absolute = _amount(limit.absolute, _unit(judged, limit.absolute))
    return f"{100 * limit.relative:g} % and {absolute}" if limit.relative else absolute


def explanation(judged: Judged) -> str:
    """The figure, its limit, the reason for the result, and what would resolve it."""
    both = from_to(*figures(judged))
    figure = f"{_statistic(judged)}{both}, {change(judged)}"
    if judged.figure.interval:
        figure += f" (95 % interval {interval(judged)})"
    return joined(figure, f"limit {bound(judged)}", reason(judged), by="; ")


def reason(judged: Judged) -> str:
    """The reason for the result and what would resolve it, beside a row of figures; empty if these say all."""
    figure = judged.figure
    parts = [part for part in (judged.why, judged.settle) if part]
    if judged.result == REGRESSION and figure.control is not None and judged.bound is not None:
        most = figure.control + judged.bound
        parts.append(f"the limit allows up to {_amount(most, _unit(judged, most))}")
    if judged.waiver:
        how = "its waiver expired on" if judged.result == REGRESSION else "waived until"
        parts.append(f"{how} {judged.waiver.expires.isoformat()}: {judged.waiver.reason}")
    return "; ".join(parts)


def reasons(gate: Gate) -> list[tuple[Judged, str]]:
    """The limits that did not pass and have a `reason`; none where the sentence has it, as no limit was decided."""
    return [] if gate.stopping else [(judged, text) for judged in not_passed(gate) if (text := reason(judged))]


def result(gate: Gate, judged: Judged) -> str:
    """The result of a limit, in words."""
    return "not judged" if gate.stopping else judged.result


def not_passed(gate: Gate) -> list[Judged]:
    """The limits that did not pass, the worst first."""
    order = {REGRESSION: 0, INCONCLUSIVE: 1, WAIVED: 2}
    return sorted((j for j in gate.judged if j.result != PASS), key=lambda j: order[j.result])
