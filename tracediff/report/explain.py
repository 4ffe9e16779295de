"""``tracediff explain``: how the work of one name was matched, and why."""

from __future__ import annotations

from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group, Member
from tracediff.diff.views import kernels_of
from tracediff.errors import TracediffError, printable, quoted
from tracediff.formatting import change, count, plural, time
from tracediff.pair import SIDES, total
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import match_name
from tracediff.report.escape import log_line
from tracediff.runtimes import DEVICE_CATEGORIES

WHY = {
    "exact": "the same kernels launched by the same call of {call}",
    "op": "different kernels launched by the same call of {call}",
    "module": "remaining work of the same module and phase",
    "fusion": "a fused kernel and the operators listed in its name or provenance, between the same neighbouring work",
    "sequence": "not launched by an operator on at least one side: the same name at the same position in the sequence",
    "sequence~family": "not launched by an operator on at least one side: same family between the same two neighbours",
    "family": "no closer match: only family and phase are the same",
    "same module": "the same module and phase, but too much other work there to identify the counterpart",
    "same family": "the same family and phase, but too much other work there to identify the counterpart",
    "added": "no counterpart at any level: only the test has it",
    "removed": "no counterpart at any level: only the control has it",
}


def explain(comparison: Comparison, name: str, most: int = 10) -> str:
    """Text about the groups with work called ``name`` (raw, match or display name, operator, or a part of one; or its
    family, as ``gemm kernels``), the largest first.

    Raises:
        TracediffError: no work of that name.
    """
    groups = [g for g in comparison.work.groups if any(_called(m, name) for side in g.members for m in side)]
    if not groups:
        raise TracediffError(
            "NAME",
            f"no kernel or operator is called {quoted(name)}",
            "list the names with compare --by kernel; --events lists events of any name",
        )
    groups.sort(key=lambda g: (-sum(g.time), g.name))
    us = comparison.us
    times = total(g.time for g in groups).map(us)
    lines = [f"{name}: {plural(len(groups), 'group')}, {change(*times)} per step"]
    for group in groups[:most]:
        lines += ["", *_group(comparison, group)]
    if len(groups) > most:
        lines += ["", f"{len(groups) - most:,} more groups (--top)"]
    return "".join(f"{log_line(printable(line))}\n" for line in lines)


def _called(member: Member, name: str) -> bool:
    names = [member.name, match_name(member.name), display_name(member.name), member.op or ""]
    return name == kernels_of(member.family) or any(name in known_name for known_name in names)


def _group(comparison: Comparison, group: Group) -> list[str]:
    why = WHY[group.level].format(call=group.call or "an operator")
    where = [f"phase {group.phase}"] + ([f"module {group.module}"] if group.module else []) + [f"family {group.family}"]
    where += [f"in {line}" for line in group.lines]
    lines = [f"{group.level}: {why}", f"  {', '.join(where)}"]
    for side, members in zip(SIDES, group.members, strict=True):
        files = (comparison.control if side == "control" else comparison.test).files
        lines += [f"  {side:<8}{_member(comparison, m, files)}" for m in members] or [f"  {side:<8}–"]
    return lines


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
