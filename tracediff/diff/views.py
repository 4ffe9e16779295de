"""Views: the same work summed by family, phase, module, operator or kernel; and by what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tracediff.diff.groups import Group, Member, WorkTime
from tracediff.diff.matching.items import Item
from tracediff.diff.module_instances import every_instance, outermost
from tracediff.diff.moved_lines import moved_lines
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import table_name

UNKNOWN = "(unknown)"


@dataclass
class Sum:
    """One line of a view: numerators over the comparison's scale."""

    name: str
    control: int = 0
    test: int = 0
    control_count: int = 0
    test_count: int = 0

    @property
    def delta(self) -> int:
        """test − control."""
        return self.test - self.control


@dataclass(frozen=True)
class Modules:
    """How modules are summed.

    Attributes:
        depth: modules from the outermost on that are told apart, None for all. instances: whether the instances of a
            module are told apart.
    """

    depth: int | None = None
    instances: bool = False

    def __call__(self, member: Member | Item) -> str:
        """The name under which the work of ``member`` is summed."""
        path = outermost(member.module or UNKNOWN, self.depth)
        return path if self.instances else every_instance(path)


VIEWS: dict[str, Callable[[Member | Item], str]] = {
    "family": lambda m: m.family,
    "phase": lambda m: m.phase,
    "module": Modules(),
    "op": lambda m: m.op or "(no operator)",
    "kernel": lambda m: display_name(table_name(m.name)),
}
"""What work can be summed by."""

CAUSES = {
    "exact": "the same kernels",
    "op": "other kernels of the same operators",
    "module": "other operators of the same modules",
    "fusion": "fusion",
    "layout": "changes of layout",
    "sequence": "replayed work, by its order",
    "sequence~family": "replayed work, by its place and family",
    "family": "the rest, by family",
    "same module": "work of the same modules, without partners",
    "same family": "work of the same families, without partners",
    "added": "only in the test",
    "removed": "only in the control",
}
"""What a change of kernel time is put down to: the level of its group, and layout where all members only reorder
data.
"""

LAYOUT_WORDS = (
    "nchwtonhwc",
    "nhwctonchw",
    "transpose",
    "permute",
    "tensortransform",
    "batchedtranspose",
    "nchw2nhwc",
    "nhwc2nchw",
)


def summed(work: WorkTime, view: str) -> list[Sum]:
    """All of ``work`` by one of VIEWS or by ``cause``, the largest change first; the lines add up to the account."""
    own = {"cause": by_cause, "line": by_line}
    return own[view](work) if view in own else summed_by(work, VIEWS[view])


def by_line(work: WorkTime) -> list[Sum]:
    """All of ``work`` by the line of code outside of torch that it runs for; the lines add up to the account."""
    sums: dict[str, Sum] = {}
    moved = moved_lines(*({item.line or UNKNOWN for g in work.groups for item in g.items[side]} for side in (0, 1)))
    for group in work.groups:
        for items, side in zip(group.items, ("control", "test"), strict=True):
            for item in items:
                name = item.line or UNKNOWN
                name = moved.get(name, name) if side == "control" else name
                line = sums.setdefault(name, Sum(name))
                setattr(line, side, getattr(line, side) + item.ns)
                setattr(line, f"{side}_count", getattr(line, f"{side}_count") + item.count)
    return _sorted(sums)


def summed_by(work: WorkTime, key: Callable[[Member | Item], str]) -> list[Sum]:
    """All of ``work`` by the name that ``key`` gives, the largest change first; the lines add up to the account."""
    sums: dict[str, Sum] = {}
    for group in work.groups:
        for members, side in ((group.control, "control"), (group.test, "test")):
            for member in members:
                name = key(member)
                line = sums.setdefault(name, Sum(name))
                setattr(line, side, getattr(line, side) + member.ns)
                setattr(line, f"{side}_count", getattr(line, f"{side}_count") + member.count)
    return _sorted(sums)


def by_cause(work: WorkTime) -> list[Sum]:
    """All of ``work`` by CAUSES; the lines add up to the account."""
    sums: dict[str, Sum] = {}
    for group in work.groups:
        name = CAUSES["layout" if _is_layout(group) else group.level]
        line = sums.setdefault(name, Sum(name))
        line.control += group.control_ns
        line.test += group.test_ns
        line.control_count += group.control_count
        line.test_count += group.test_count
    return _sorted(sums)


def _is_layout(group: Group) -> bool:
    return all(
        any(word in m.name.lower().replace("_", "") for word in LAYOUT_WORDS) for m in (*group.control, *group.test)
    )


def _sorted(sums: dict[str, Sum]) -> list[Sum]:
    return sorted(sums.values(), key=lambda s: (-abs(s.delta), -max(s.control, s.test), s.name))
