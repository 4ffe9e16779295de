"""The sections of the report that need no script: what a reader sees first, prints, and finds in the file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from tracediff.errors import printable
from tracediff.formatting import counts, signed_time, time_unit
from tracediff.report import sections
from tracediff.report.text import evidence_figures, facts, headline, unprofiled

if TYPE_CHECKING:
    from tracediff.aggregate.side import Side
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.findings.finding import Evidence, Finding
    from tracediff.report.sections import Row

SECTIONS = {
    "step": "Where the step went",
    "changes": "Largest changes",
    "findings": "Findings",
    "work": "Matched work",
    "tree": "Call tree",
    "timeline": "Timeline",
    "distributions": "Steps and runs",
    "ranks": "Ranks",
    "tables": "Further tables",
    "preflight": "Preflight and health",
    "health": "Health of the traces",
    "made": "How this was made",
}
"""Id of a section of a comparison's report → its title."""
WHAT_THAT_MEANS = ' (<a href="#preflight">what that means</a>)'
LONGEST = 400
"""Characters of a name in a sentence."""
MOST_ITEMS = 50
"""Lines of a list."""


def text(value: str, longest: int = LONGEST) -> str:
    """``value`` so that HTML shows it letter by letter, on one line, in its own direction."""
    if len(value) > longest:
        value = f"{value[: longest // 2]} … {value[-longest // 2 :]}"
    return escape(printable(value))


def name(value: str) -> str:
    """A name out of a trace: it does not turn the text around it."""
    return f"<bdi>{text(value)}</bdi>"


def find(value: str) -> str:
    """The attribute by which a link looks ``value`` up in a table: its beginning is enough."""
    return escape(printable(value[:200]))


def answer(comparison: Comparison) -> str:
    """The verdict with its interval, what was compared, and the cautions."""
    c, t, verdict = comparison.control, comparison.test, comparison.verdict
    lines = [f"<h1>{name(c.label)} <span aria-label='to'>→</span> {name(t.label)}</h1>"]
    lines.append(
        f'<p class="verdict {"refused" if comparison.was_refused else verdict.result}">{text(headline(comparison))}</p>'
    )
    lines += [f"<p>{text(said)}</p>" for said in (interval(comparison), unprofiled(comparison)) if said]
    lines.append(f'<p class="facts">{text(facts(comparison), 2000)}</p>')
    if comparison.findings:
        lines.append(
            f'<p class="first">First finding: <a href="#findings">{name(comparison.findings[0].title)}</a>.</p>'
        )
    cautions = sections.caution_lines(comparison)
    if cautions:
        what = "Compared with caution" if comparison.comparability.level == "caution" else "Not comparable"
        lines.append(f'<div class="caution"><p><strong>{what}</strong>{WHAT_THAT_MEANS}</p>{items(cautions)}</div>')
    return "\n".join(lines)


def interval(comparison: Comparison) -> str | None:
    """What is known of the change of the median step, None where nothing is."""
    verdict = comparison.verdict
    if verdict.ci95_us is None:
        if verdict.within_runs_us is None:
            return None
        low, high = verdict.within_runs_us
        unit = time_unit([low, high])
        return (
            f"Within these two runs the median step changed by {unit.signed(low)} to {unit.signed(high)} "
            f"{unit.name} (95 %); other runs may differ."
        )
    low, high = verdict.ci95_us
    unit = time_unit([low, high])
    of = f"95 % interval of the change of the median step: {unit.signed(low)} to {unit.signed(high)} {unit.name}"
    if verdict.min_detectable_us is not None:
        of += (
            f"; from these runs a change of {unit.plain(verdict.min_detectable_us)} {unit.name} is found four "
            f"times in five"
        )
    return f"{of}."


def items(lines: Sequence[str]) -> str:
    """A list of plain texts, the first MOST_ITEMS."""
    shown = [text(line, 1000) for line in lines[:MOST_ITEMS]]
    shown += [f"and {len(lines) - MOST_ITEMS:,} more: --json has all"] if len(lines) > MOST_ITEMS else []
    return "<ul>" + "".join(f"<li>{line}</li>" for line in shown) + "</ul>"


def step_table(comparison: Comparison) -> str:
    """State by state, adding up."""
    step, us = comparison.step_time, comparison.us
    rows = sections.step_rows(comparison)
    unit = time_unit([us(step.control), us(step.test)])
    largest = max((abs(r.delta_us) for r in rows), default=0.0)
    lines = [f"<table class='sums'><caption>Where the step went, {unit.name} per step</caption>"]
    lines.append(
        "<thead><tr><th scope='col'>state</th><th scope='col'>control</th><th scope='col'>test</th><th "
        "scope='col'>change</th><th></th></tr></thead>"
    )
    lines.append("<tbody>")
    for row in rows:
        numbers = "".join(
            f"<td>{n}</td>" for n in (unit.plain(row.control_us), unit.plain(row.test_us), unit.signed(row.delta_us))
        )
        lines.append(
            f"<tr><th scope='row'>{name(row.name)}</th>{numbers}<td class='bar'>{_bar(row.delta_us, largest)}</td></tr>"
        )
    total = (unit.plain(us(step.control)), unit.plain(us(step.test)), unit.signed(us(step.delta)))
    lines.append(
        f"</tbody><tfoot><tr><th scope='row'>step</th>{''.join(f'<td>{n}</td>' for n in total)}"
        f"<td class='bar'></td></tr></tfoot></table>"
    )
    lines.append(f"<p class='facts'>Adds up: {step.residual / comparison.scale:g} ns left over.</p>")
    return "".join(lines)


def _bar(delta_us: float, largest: float) -> str:
    if not delta_us:
        return ""
    part = 100 * abs(delta_us) / largest
    return f'<span class="{"slower" if delta_us > 0 else "faster"}" style="width:{part:.1f}%"></span>'


def largest_changes(comparison: Comparison, device: str, top: int = 10) -> str:
    """The ``top`` changes on one device as a table that also prints."""
    rows, _ = sections.change_rows(comparison, device, "change", top)
    if not rows:
        return ""
    unit = time_unit([v for r in rows for v in (r.control_us, r.test_us)])
    where = "on the GPU" if device == "gpu" else "on the host, self time"
    head = "".join(f"<th scope='col'>{h}</th>" for h in ("name", "count", "control", "test", "change", ""))
    largest = max(abs(r.delta_us) for r in rows)
    body = "".join(
        _change(
            row,
            unit.plain(row.control_us),
            unit.plain(row.test_us),
            unit.signed(row.delta_us),
            _bar(row.delta_us, largest),
        )
        for row in rows
    )
    caption = f"<caption>Largest changes {where}, {unit.name} per step</caption>"
    return f"<table class='sums changes'>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _change(row: Row, control: str, test: str, change: str, bar: str) -> str:
    link = f"<a href='#ops' data-table='ops' data-find='{find(row.name)}'>{name(row.name)}</a>"
    word = f" <small>{text(row.word)}</small>" if row.word else ""
    cells = "".join(f"<td>{n}</td>" for n in (counts(row.control_count, row.test_count), control, test, change))
    return f"<tr><th scope='row'>{link}{word}</th>{cells}<td class='bar'>{bar}</td></tr>"


def findings(comparison: Comparison) -> str:
    """Each finding with its evidence; what the evidence names is a link to its work."""
    if not comparison.findings:
        return "<p>No rule found a reason that stands out.</p>"
    calls = sorted({g.call for g in comparison.work.groups if g.call}, key=len, reverse=True)
    ops = {known for op in comparison.ops for known in (op.name, op.raw_name)}
    return "".join(_finding(f, calls, ops) for f in comparison.findings)


def _finding(finding: Finding, calls: Sequence[str], ops: set[str]) -> str:
    change = ""
    if finding.delta_us:
        way = "slower" if finding.delta_us > 0 else "faster"
        change = f"<span class='{way}'>{signed_time(finding.delta_us)}</span>"
    title = SECTIONS[finding.kind.section]
    link = f"<a href='#{finding.kind.section}'>{title[0].lower()}{title[1:]}</a>"
    evidence = "".join(f"<li>{_evidence(e, calls, ops)}</li>" for e in finding.evidence)
    return (
        (
            f"<article class='finding' data-code='{text(finding.code)}'><h3>{name(finding.title)} {change}</h3><p>"
            f"{text(finding.detail, 4000)}</p>"
        )
        + (f"<ul>{evidence}</ul>" if evidence else "")
        + f"<p class='see'><code>{text(finding.code)}</code> · see {link}</p></article>"
    )


def _evidence(evidence: Evidence, calls: Sequence[str], ops: set[str]) -> str:
    figures = evidence_figures(evidence)
    beside = f": {text(figures)}" if figures else ""
    if evidence.name in ops:
        return f"<a href='#ops' data-table='ops' data-find='{find(evidence.name)}'>{name(evidence.name)}</a>{beside}"
    call = next((c for c in calls if evidence.name == c or evidence.name.startswith(f"{c}:")), None)
    return (
        f"<a href='#groups' data-table='groups' data-find='{find(call)}'>{name(evidence.name)}</a>{beside}"
        if call
        else f"{name(evidence.name)}{beside}"
    )


def preflight(comparison: Comparison) -> str:
    """What differs between the sides beside what was meant to."""
    reasons = comparison.comparability.reasons
    if not reasons:
        return "<p>Nothing was found that would make the comparison unfair.</p>"
    rows = "".join(
        (
            f"<tr><th scope='row'><code>{text(r.code)}</code></th><td>{text(r.message, 2000)}</td><td>"
            f"{name(r.control)}</td><td>{name(r.test)}</td></tr>"
        )
        for r in reasons
    )
    head = "".join(f"<th scope='col'>{h}</th>" for h in ("code", "what it means", "control", "test"))
    return f"<table class='words'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def health(comparison: Comparison) -> str:
    """What was wrong with the traces, and what was done about it."""
    lines = sections.health_lines(comparison)
    return items(lines) if lines else "<p>Every event was read; nothing was repaired or left out.</p>"


def made(comparison: Comparison, command: str | None, versions: Sequence[tuple[str, str]]) -> str:
    """How the report came to be: command, versions, files."""
    lines = [f"<p>Made by</p><pre><code>{text(command, 4000)}</code></pre>"] if command else []
    rows = [(what, value, "") for what, value in versions]
    c, t = comparison.control, comparison.test
    rows += [
        ("torch in the traces", c.torch or "not recorded", t.torch or "not recorded"),
        ("devices", _devices(c), _devices(t)),
    ]
    rows += [("runs", str(c.runs), str(t.runs)), ("files", _files(c), _files(t))]
    body = "".join(
        f"<tr><th scope='row'>{text(what)}</th><td>{text(a, 2000)}</td><td>{text(b, 2000)}</td></tr>"
        for what, a, b in rows
    )
    head = "<thead><tr><th></th><th scope='col'>control</th><th scope='col'>test</th></tr></thead>"
    return "".join(lines) + f"<table class='words'>{head}<tbody>{body}</tbody></table>"


def made_of(command: str | None, rows: Sequence[tuple[str, str]]) -> str:
    """How a page on one set came to be."""
    lines = f"<p>Made by</p><pre><code>{text(command, 4000)}</code></pre>" if command else ""
    body = "".join(f"<tr><th scope='row'>{text(what)}</th><td>{text(value, 2000)}</td></tr>" for what, value in rows)
    return f"{lines}<table class='words'><tbody>{body}</tbody></table>"


def of_set(side: Side) -> list[tuple[str, str]]:
    """What is told of a set at the end of a page."""
    return [
        ("torch in the traces", side.torch or "not recorded"),
        ("devices", _devices(side)),
        ("runs", str(side.runs)),
        ("files", _files(side)),
    ]


def _devices(side: Side) -> str:
    return ", ".join(side.gpu) or ("not recorded" if side.has_gpu else "CPU")


def _files(side: Side) -> str:
    shown = ", ".join(side.files[:8])
    return shown if len(side.files) <= 8 else f"{shown} and {len(side.files) - 8:,} more"
