"""``tracediff explain``: how the work of one name was matched, and why."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from glob import escape
from itertools import chain
from math import isclose

from msgspec.structs import replace

from tracediff import bounds
from tracediff.arrays import group_by
from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group
from tracediff.diff.matching.items import Item
from tracediff.diff.views import kernels_of, operators
from tracediff.errors import LIST_NAMES, TracediffError, did_you_mean, log_line, printable, quoted
from tracediff.explain.explanation import Explanation
from tracediff.explain.leaves import HOST, NOT_RECORDED, ON_THE_HOST, largest_kernels
from tracediff.explain.reasons import changed_input_of
from tracediff.explain.tree import Node
from tracediff.formatting import ARROW, Unit, change, count, counts, plural, time
from tracediff.present.explanation_lines import DOUBTS, because
from tracediff.present.path import Times, cause_rows, exposures, is_visible, read_path, together, unit_of
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import match_name
from tracediff.runtimes import DEVICE_CATEGORIES
from tracediff.structs import Pair

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
    """Text about all that is called ``name``, which may be cut with “…” as on a screen: the line of Why with its parts,
    and the groups with such work (an operator, kernel or family, else what has it in its name), the largest first; of
    an operation of the host that is neither, its times.

    Raises:
        TracediffError: nothing has that name, or it is empty.
    """
    if not name:
        raise TracediffError("NAME", "is empty", LIST_NAMES)
    sections = [_line_of_why(comparison, name, most), _work(comparison, name, most)]
    lines = [line for section in filter(None, sections) for line in ("", *section)][1:]
    return "".join(f"{log_line(printable(line))}\n" for line in lines or _on_host(comparison, name, most))


def _work(comparison: Comparison, name: str, most: int) -> list[str]:
    """The work called ``name`` and the groups that have it; empty if there is none."""
    members = [
        (group, side, member, names) for group in comparison.work.groups for side, member, names in _named(group)
    ]
    matches = [row for row in members if any(_is_called(known_name, name) for known_name in row[-1])]
    matches = matches or [row for row in members if any(name in known_name for known_name in row[-1])]
    if not matches:
        return []
    ns = [sum(member.ns for _, of_side, member, _ in matches if of_side == side) for side in (0, 1)]
    groups = list({id(group): group for group, *_ in matches}.values())
    lines = [f"{name}: {plural(len(groups), 'group')}, {change(*map(comparison.us, ns))} {comparison.basis}"]
    instances = _instances(groups)
    for alike in instances[:most]:
        lines += ["", *_described(comparison, alike)]
    if more := sum(map(len, instances[most:])):
        lines += ["", f"{plural(more, 'more group')} (--top)"]
    return lines


def _named(group: Group) -> Iterator[tuple[int, Item, tuple[str, ...]]]:
    """(side, member, all that it is called) of the members of ``group``."""
    for side, operator, member in operators(group):
        names = operator, member.name, match_name(member.name), display_name(member.name), member.op or ""
        yield side, member, (*names, kernels_of(member.family))


def _is_called(known_name: str, name: str) -> bool:
    """Whether ``known_name`` is ``name``, which may be cut with “…”."""
    return known_name == name or ("…" in name and fnmatchcase(known_name, escape(name).replace("…", "*")))


def _line_of_why(comparison: Comparison, name: str, most: int) -> list[str]:
    """The line of Why called ``name``, and its largest parts; empty if none is."""
    explanation = comparison.explanation
    if explanation is None:
        return []
    for doubt in DOUBTS.values():
        name = name.removesuffix(f", {doubt}")
    effect = f"effect on the {explanation.period}"
    unit, own = unit_of(explanation), {id(row.cause): row.times for row in read_path(explanation).rows}
    for cause, times in ((row.cause, row.times) for row in cause_rows(explanation)):
        if _is_called(cause.label, name) or _is_called(cause.label.removesuffix(ON_THE_HOST), name):
            head = f"{cause.label}: {unit.change(cause.control_us, cause.test_us)}, {effect}"
            texts = [because(cause), STACKS if cause.chain[-1] == NOT_RECORDED else ""]
            parts = _parts(comparison, cause.node, unit, most)
            return [f"{head} {_effect(unit, own.get(id(cause), times))}", *filter(None, texts), *parts]
    return _of_the_path(comparison, explanation, name.split(" (")[0], most)  # in which its only line is


def _of_the_path(comparison: Comparison, explanation: Explanation, name: str, most: int) -> list[str]:
    """The step, or the part of the critical path, or what of it is exposed, that is called ``name``, with its parts."""
    path, unit, effect = read_path(explanation), unit_of(explanation), f"effect on the {explanation.period}"
    if name in ("step", explanation.period):
        step = together(part.times for part in path.parts.values())
        of_parts = (_part(unit, path.name_of(part), part.times, part.times.delta) for part in path.parts.values())
        return [f"{name}: {unit.change(*step.path)}", *of_parts]
    for part in path.parts.values():
        node, name_of_part = explanation.root.children[part.label], path.name_of(part)
        names = name_of_part, part.label, part.work, f"{part.label} time"
        if any(_is_called(each, name) for each in names):
            head = f"{name_of_part}: {unit.change(*part.times.every)}, {effect} {_effect(unit, part.times)}"
            return [head, *_parts(comparison, node, unit, most)]
    for one in exposures(path, explanation.facts):
        if _is_called(one.label, name):
            texts = [_part(unit, path.name_of(part), part.times, part.times.exposure) for part in path.exposed]
            return [f"{one.label}: {effect} {unit.signed_text(one.delta_us)}", *filter(None, [one.what]), *texts]
    host = explanation.root.children.get(HOST)
    for node in host.children.values() if host is not None else ():  # what is mostly exposed
        if _is_called(node.label, name.removesuffix(ON_THE_HOST)):
            control, test = (node.total / 1000).tolist()
            head = f"{node.label}: {unit.change(control, test)}, {effect} {unit.signed_text(node.change / 1000)}"
            return [head, *_parts(comparison, node, unit, most)]
    return []


def _effect(unit: Unit, times: Times) -> str:
    """What it takes longer itself, and how much of it is more or less exposed."""
    exposed = f", {unit.text(abs(times.exposure))} {times.exposed}" if is_visible(times.exposure, unit) else ""
    return f"{unit.signed_text(times.own)}{exposed}"


def _parts(comparison: Comparison, node: Node, unit: Unit, most: int) -> Iterator[str]:
    """The ``most`` largest parts of ``node`` by how much more or less of them is on the path, and the others."""
    while len(node.children) == 1:
        (node,) = node.children.values()
    parts = []
    for step, child in node.children.items():
        label = largest_kernels(comparison.work.groups[step]) if isinstance(step, int) else child.label
        parts.append((label, Times(Pair(*map(float, child.path / 1000)), Pair(*map(float, child.total / 1000)))))
    parts.sort(key=lambda part: -abs(part[1].delta))
    largest = [part for part in parts if is_visible(part[1].delta, unit)][:most]
    yield from ["  change on the critical path, exposed or itself:"] if largest else []
    yield from (_part(unit, label, times, times.delta) for label, times in largest)
    if largest and len(largest) < len(parts):
        others = parts[len(largest) :]
        rest = together(times for _, times in others)
        yield _part(unit, f"{plural(len(others), 'other')} (--top)", rest, rest.delta)


def _part(unit: Unit, label: str, times: Times, us: float) -> str:
    reads_same = all(map(isclose, map(unit.rounded, times.path), map(unit.rounded, times.every)))
    on_path = "" if reads_same else f"on the critical path {ARROW.join(map(unit.plain, times.path))}, in all "
    return f"  {unit.signed(us):>8}  {label}: {on_path}{unit.change(*times.every)}"


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


def _together(same: Sequence[Item]) -> Item:
    """The work of ``same``, all of one name, as one."""
    first = min(same, key=lambda member: (member.first.file, member.first.ns))
    return replace(first, count=sum(member.count for member in same), ns=sum(member.ns for member in same))


def _member(comparison: Comparison, member: Item, files: tuple[str, ...]) -> str:
    operator = f" below {member.op}" if member.op and member.op != member.name else ""
    first, kind = member.first, "stream" if member.category in DEVICE_CATEGORIES else "thread"
    return (
        f"{count(comparison.number(member.count))} × {display_name(member.name)}{operator}, "
        f"{time(comparison.us(member.ns))}; first at ts {first.ns / 1000:.3f}{first.lane and f', {kind} {first.lane}'} "
        f"of {files[first.file]}"
    )
