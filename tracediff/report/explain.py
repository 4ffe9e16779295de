"""``tracediff explain``: how the work of one name was matched, and why."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from glob import escape
from itertools import chain

from msgspec.structs import replace

from tracediff import bounds
from tracediff.arrays import group_by
from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group, Member
from tracediff.diff.views import kernels_of
from tracediff.errors import LIST_NAMES, TracediffError, did_you_mean, log_line, printable, quoted
from tracediff.explain.leaves import NOT_RECORDED, ON_THE_HOST
from tracediff.explain.reasons import changed_input_of
from tracediff.formatting import change, count, counts, plural, time
from tracediff.pair import Pair, total
from tracediff.present.explanation_lines import because
from tracediff.present.path import cause_rows, is_visible, unit_of
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import match_name
from tracediff.runtimes import DEVICE_CATEGORIES

WHY = {
    "exact": "work of the same names below the same call of {call}",
    "op": "other work below the same call of {call}",
    "module": "remaining work of the same module and phase",
    "fusion": "a fused kernel and the operators listed in its name or provenance, between the same neighbouring work",
    "sequence": "not launched by an operator on at least one side: paired in the order in which it runs, by its names",
    "sequence~family": "not launched by an operator on at least one side: same family between the same two neighbours",
    "family": "no closer match: only family and phase are the same",
    "same module": "the same module and phase, but too much other work there to identify the counterpart",
    "same family": "the same family and phase, but too much other work there to identify the counterpart",
    "added": "no counterpart at any level: only {labels.test} has it",
    "removed": "no counterpart at any level: only {labels.control} has it",
}


STACKS = "which Python functions ran was not recorded: with_stack=True records them"


def explain(comparison: Comparison, name: str, most: int = 10) -> str:
    """Text about the groups with work called ``name`` (raw, match or display name, operator, or a part of one; or its
    family, as ``gemm kernels``), the largest first; of a line of Why its parts; of an operation of the host that does
    no such work, its times.

    Raises:
        TracediffError: nothing has that name.
    """
    groups = [g for g in comparison.work.groups if any(_called(m, name) for side in g.members for m in side)]
    if not groups:
        return _text(_line_of_why(comparison, name, most) or _on_host(comparison, name, most))
    times = total(g.time for g in groups).map(comparison.us)
    lines = [f"{name}: {plural(len(groups), 'group')}, {change(*times)} {comparison.basis}"]
    instances = _instances(groups)
    for alike in instances[:most]:
        lines += ["", *_described(comparison, alike)]
    if more := sum(map(len, instances[most:])):
        lines += ["", f"{plural(more, 'more group')} (--top)"]
    return _text(lines)


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{log_line(printable(line))}\n" for line in lines)


def _line_of_why(comparison: Comparison, name: str, most: int) -> list[str]:
    """The line of Why called ``name``, which may be cut as on a screen, and its largest parts; empty if none is."""
    explanation, pattern = comparison.explanation, escape(name).replace("…", "*")
    labels = ((cause, cause.label.removesuffix(ON_THE_HOST)) for cause in comparison.causes)
    cause = next((cause for cause, short in labels if fnmatchcase(cause.label, pattern) or short == name), None)
    if explanation is None or cause is None:
        return []
    unit, node = unit_of(explanation), cause.node
    while len(node.children) == 1:
        (node,) = node.children.values()
    parts = sorted(node.children.items(), key=lambda part: -abs(part[1].change))
    parts = [part for part in parts if is_visible(part[1].change / 1000, unit)]
    delta_us = next(row.times.delta for row in cause_rows(explanation) if row.cause is cause)
    effect = f"effect on the {explanation.period} {unit.signed_text(delta_us)}"
    lines = [f"{cause.label}: {unit.change(cause.control_us, cause.test_us)}, {effect}"]
    lines += filter(None, [because(cause), STACKS if cause.chain[-1] == NOT_RECORDED else ""])
    for step, part in parts[:most]:
        label = comparison.work.groups[step].name if isinstance(step, int) else part.label
        lines.append(f"  {unit.signed(part.change / 1000):>8}  {label}: {unit.change(*part.total / 1000)}")
    return [*lines, *([f"{len(parts) - most:,} more (--top)"] if len(parts) > most else [])]


def _on_host(comparison: Comparison, name: str, most: int) -> list[str]:
    """The times of the host's operations called ``name``."""
    ops = sorted((op for op in comparison.ops if name in op.name or name in op.raw_name), key=lambda op: -sum(op.total))
    if not ops:
        names = {cause.label for cause in comparison.causes}.union(*((op.name, op.raw_name) for op in comparison.ops))
        hint = did_you_mean(name, names, LIST_NAMES)
        raise TracediffError("NAME", f"no kernel or operator is called {quoted(name)}", hint)
    lines = [f"{name}: no work that is matched; on the host, {comparison.basis}:"]
    for op in ops[:most]:
        times = op.total.map(comparison.us), op.self_time.map(comparison.us)
        number = counts(*op.count.map(comparison.number))
        lines.append(f"  {number} × {op.name}, {change(*times[0])}, of which itself {change(*times[1])}")
    return [*lines, *([f"{len(ops) - most:,} more (--top)"] if len(ops) > most else [])]


def _instances(groups: Sequence[Group]) -> list[list[Group]]:
    """``groups`` in lists of the same call and kernels that were matched in one way, the most time first."""

    def key(group: Group) -> tuple[object, ...]:
        names = group.members.map(lambda side: tuple((display_name(member.name), member.op) for member in side))
        return group.level, group.call, group.family, group.phase, *names

    return sorted(group_by(groups, key).values(), key=lambda some: (-sum(sum(g.time) for g in some), some[0].name))


def _called(member: Member, name: str) -> bool:
    names = [member.name, match_name(member.name), display_name(member.name), member.op or ""]
    return name == kernels_of(member.family) or any(name in known_name for known_name in names)


def _described(comparison: Comparison, alike: Sequence[Group]) -> list[str]:
    """How ``alike`` groups were matched, where they are, and what both sides have of all of them."""
    group, number = alike[0], f"{len(alike):,} groups, " if len(alike) > 1 else ""
    why = why_matched(group.level, group.call, comparison.labels)
    changed = changed_input_of(group, comparison.trees)
    if changed or group.level == "op":
        why += f", with {' '.join(changed)}" if changed else ", or the same on inputs that differ or are not recorded"
    where = [f"phase {group.phase}"]
    if modules := dict.fromkeys(g.module for g in alike if g.module):
        where.append(f"module {next(iter(modules))}" if len(modules) == 1 else f"{len(modules)} modules")
    lines_of_code = list(dict.fromkeys(chain(*(g.lines for g in alike))))
    where += [f"family {group.family}", *(f"in {line}" for line in lines_of_code[: bounds.EXAMPLES])]
    lines = [f"{number}{group.level}: {why}", f"  {', '.join(where)}"]
    width = max(map(len, comparison.labels))
    for k, (name, side) in enumerate(zip(comparison.labels, comparison.sides, strict=True)):
        members = [_together(same) for same in zip(*(g.members[k] for g in alike), strict=True)]
        texts = [_member(comparison, member, side.files) for member in members] or ["–"]
        lines += [f"  {name:<{width}}  {text}" for text in texts]
    return lines


def why_matched(level: str, call: str | None, labels: Pair[str]) -> str:
    """What work of ``level`` below ``call`` has in common with its counterpart, of sides called ``labels``."""
    return WHY[level].format(call=call or "an operator", labels=labels)


def _together(same: Sequence[Member]) -> Member:
    """The work of ``same``, all of one name, as one."""
    first = min(same, key=lambda member: (member.first.file, member.first.ns))
    return replace(first, count=sum(member.count for member in same), ns=sum(member.ns for member in same))


def _member(comparison: Comparison, member: Member, files: tuple[str, ...]) -> str:
    operator = f" below {member.op}" if member.op and member.op != member.name else ""
    return (
        f"{count(comparison.number(member.count))} × {display_name(member.name)}{operator}, "
        f"{time(comparison.us(member.ns))}; first at ts {member.first.ns / 1000:.3f}{_lane(member)} "
        f"of {files[member.first.file]}"
    )


def _lane(member: Member) -> str:
    if not member.first.lane:
        return ""
    return f", {'stream' if member.category in DEVICE_CATEGORIES else 'thread'} {member.first.lane}"
