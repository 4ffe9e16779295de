"""Views: the same work summed by family, phase, module, operator or kernel, and by its kind of change; and the matched
work as one row for an operator with its kernels on both sides.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain

from msgspec.structs import replace

from tracediff import bounds, thresholds
from tracediff.arrays import group_by, shared_value
from tracediff.diff.groups import Group, WorkTime
from tracediff.diff.matching.items import Item
from tracediff.diff.ops import GPU_WORK
from tracediff.formatting import ARROW, joined, once, with_more
from tracediff.ingest.model.names import LINE_OF_CODE
from tracediff.patterns import late
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import match_name, table_name
from tracediff.runtimes import call_role
from tracediff.structs import Amounts, FrozenStruct, Pair, Timed, side_sums, total

NUMBER = late(r"\[\d+\]|(?<=\w)_\d+(?=/|$)|\.\d+(?=[./]|$)")
"""What distinguishes instances: ``Layer[3]``, the profiler's ``Layer_3``, and ``layers.3`` of qualified names."""


def every_instance(path: str) -> str:
    """``Encoder/Layer[*]/Attention`` for ``Encoder/Layer[3]/Attention``."""
    return NUMBER.sub(lambda match: {"[": "[*]", "_": "_*", ".": ".*"}[match[0][0]], path)


def outermost(path: str, depth: int | None) -> str:
    """The first ``depth`` modules of ``path``; all for None."""
    return "/".join(path.split("/")[:depth])


def moved_lines(control: Iterable[str], test: Iterable[str]) -> dict[str, str]:
    """Line of control, ``model.py(12): forward`` → the same code's line in test: of functions of one name in one file,
    which may have another name, the k-th of control is the k-th of test, if both sides have as many.
    """
    before, after = (_files(lines) for lines in (control, test))
    renamed = _renamed_files(before, after)
    out: dict[str, str] = {}
    for file, functions in before.items():
        for function, old in functions.items():
            new = after.get(renamed.get(file, file), {}).get(function, set())
            if len(old) == len(new):
                out |= {one: other for (_, one), (_, other) in zip(sorted(old), sorted(new), strict=True)}
    return out


Files = dict[str, dict[str, set[tuple[int, str]]]]
"""File → function → (number, line) of its lines."""


def _files(lines: Iterable[str]) -> Files:
    out: Files = defaultdict(lambda: defaultdict(set))
    for line in lines:
        if match := LINE_OF_CODE.fullmatch(line):
            out[match["file"]][match["function"]].add((int(match["line"]), line))
    return out


def _renamed_files(before: Files, after: Files) -> dict[str, str]:
    """File that only control has → the one that only test has in its place, with most of both's functions."""
    out = {}
    for file in before.keys() - after.keys():
        shared = {new: len(before[file].keys() & after[new].keys()) for new in after.keys() - before.keys()}
        new = max(sorted(shared), key=lambda new: shared[new], default="")
        if new and shared[new] > thresholds.MOSTLY * len(before[file].keys() | after[new].keys()):
            out[file] = new
    return out


def call_names(names: Iterable[str]) -> dict[str, str]:
    """Call → how both sides name it: as it is if all calls that do the same are named alike, else by what they do."""
    by_role: dict[str, set[str]] = defaultdict(set)
    for name in names:
        if (role := call_role(name)) != name:
            by_role[role].add(name)
    return {name: name if len(alike) == 1 else role for role, alike in by_role.items() for name in alike}


UNKNOWN = "(unknown)"


class Sum(Amounts, kw_only=True):
    """One line of a view."""

    name: str


class Modules(FrozenStruct):
    """How modules are summed.

    Attributes:
        depth: modules from the outermost on that are separate, None for all. instances: whether the instances of a
            module are separate.
    """

    depth: int | None = None
    instances: bool = False

    def __call__(self, member: Item) -> str:
        """The name under which the work of ``member`` is summed."""
        path = outermost(member.module or UNKNOWN, self.depth)
        return path if self.instances else every_instance(path)


ALL_MODULES = Modules()
VIEWS: dict[str, Callable[[Item], str]] = {
    "family": lambda m: m.family,
    "phase": lambda m: m.phase,
    "module": ALL_MODULES,
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
    "nchw2nhwc",
    "nhwc2nchw",
)


def summed(work: WorkTime, view: str, modules: Modules = ALL_MODULES) -> list[Sum]:
    """All of ``work`` by one of VIEWS, by ``line`` or by ``cause``, the largest change first; the lines add up to the
    account. ``modules`` says how modules are summed.
    """
    own = {"cause": by_cause, "line": by_line}
    return own[view](work) if view in own else summed_by(work, modules if view == "module" else VIEWS[view])


def by_line(work: WorkTime) -> list[Sum]:
    """All of ``work`` by the line of code outside of torch that it runs for; the lines add up to the account."""
    items = [(side, item.line or UNKNOWN, item) for side, item in work.items()]
    moved = moved_lines(*({line for which, line, _ in items if which == side} for side in (0, 1)))
    return _sums((side, line if side else moved.get(line, line), item) for side, line, item in items)


def by_operator(work: WorkTime) -> list[Sum]:
    """All of ``work`` by operator, GPU work without one by family; the lines add up to the account. Where an operator
    does what another one did, both are one line.
    """
    return _sums(chain.from_iterable(map(operators, work.groups)))


def operators(group: Group) -> Iterator[tuple[int, str, Item]]:
    """(side, operator, member) of the members of ``group``."""
    successors = _successors(group)
    for side, members in enumerate(group.members):
        # Names work whose operator one side did not record.
        partner = shared_value(other.op for other in group.members[1 - side])
        for member in members:
            op = member.op or partner or ("" if member.category in GPU_WORK else member.name)
            name = match_name(op) if op else f"{kernels_of(member.family)} without operator"
            yield side, successors.get(member.family, name), member


def _successors(group: Group) -> dict[str, str]:
    """Family → ``old → new`` of the operators that do its work in a matched ``group``, one on each side."""
    ops: list[dict[str, set[str]]] = [defaultdict(set), defaultdict(set)]
    for of_family, members in zip(ops, group.members, strict=True):
        for member in members:
            of_family[member.family].add(match_name(member.op or ""))
    before_and_after = {family: (*ops[0][family], *ops[1][family]) for family in ops[0].keys() & ops[1].keys()}
    return {
        family: ARROW.join(names)
        for family, names in before_and_after.items()
        if len(ops[0][family]) == len(ops[1][family]) == 1
        if names[0] != names[1] and all(names)
    }


def kernels_of(family: str) -> str:
    """What the work of a family is called."""
    return f"{family} kernels"


def summed_by(work: WorkTime, key: Callable[[Item], str]) -> list[Sum]:
    """All of ``work`` by the name that ``key`` gives, the largest change first; the lines add up to the account."""
    return _sums((side, key(member), member) for side, member in work.members())


def _sums(parts: Iterable[tuple[int, str, Item]]) -> list[Sum]:
    """Work as (side, name, work), with equal names as one line."""
    sums = side_sums((name, side, (work.ns, work.count)) for side, name, work in parts)
    return sorted_sums(Sum(*both, name=name) for name, both in sums.items())


def by_cause(work: WorkTime) -> list[Sum]:
    """All of ``work`` by CAUSES; the lines add up to the account."""
    causes = group_by(work.groups, lambda group: CAUSES["layout" if _is_layout(group) else group.level])
    return sorted_sums(
        Sum(total(g.time for g in groups), total(g.count for g in groups), name=name) for name, groups in causes.items()
    )


def _is_layout(group: Group) -> bool:
    return all(any(word in m.name.lower().replace("_", "") for word in LAYOUT_WORDS) for m in chain(*group.members))


def sorted_sums(sums: Iterable[Sum]) -> list[Sum]:
    """``sums``, the largest change first."""
    return sorted(sums, key=lambda s: (-abs(s.delta), -max(s.time), s.name))


class WorkChange(Timed, FrozenStruct, dict=True):
    """Work that is the same, in all its instances; counts and times are numerators over the comparison's scale.

    Attributes:
        groups: those that it merges.
    """

    groups: Sequence[Group]

    @cached_property
    def time(self) -> Pair[int]:
        """Time of all groups."""
        return total(g.time for g in self.groups)

    @cached_property
    def count(self) -> Pair[int]:
        """Events of all groups."""
        return total(g.count for g in self.groups)

    @cached_property
    def longest(self) -> Group:
        """The group that takes the most time."""
        return max(self.groups, key=lambda g: sum(g.time))

    @property
    def family(self) -> str:
        """What kind of work it is."""
        return self.longest.family

    @cached_property
    def operator(self) -> str:
        """What launched it, ``A → B`` if another one does now; of work without an operator empty."""
        return _operator(self.longest)

    @property
    def shapes(self) -> str:
        """The inputs of its operator, empty where unknown."""
        return self.longest.shapes

    @cached_property
    def module(self) -> str:
        """Path of its module with ``[*]`` for instances, empty where unknown or several."""
        return shared_value(every_instance(g.module or "") for g in self.groups) or ""

    @cached_property
    def kernel_names(self) -> Pair[tuple[str, ...]]:
        """Match names of what ran, the longest time first; of operators without GPU work empty."""
        return Pair(*(_kernels(m for g in self.groups for m in g.members[side]) for side in (0, 1)))

    @cached_property
    def group(self) -> Group:
        """Its groups as one."""
        return one_group(self.groups)

    @cached_property
    def short_names(self) -> Pair[tuple[str, ...]]:
        """Short names of what ran, the longest time first."""
        return self.kernel_names.map(lambda names: tuple(dict.fromkeys(map(display_name, names))))

    @property
    def kernels(self) -> str:
        """``old → new``, the name alone if both sides or only one side runs it."""
        return _before_and_after(map(_some, self.short_names))

    @property
    def name(self) -> str:
        """Operator and kernels in one text."""
        return joined(self.operator, self.kernels, by="  ")


def _some(names: tuple[str, ...]) -> str:
    """The first of ``names``, and how many more there are."""
    return with_more(" + ".join(names[: bounds.PARTS_NAMED]), len(names) - bounds.PARTS_NAMED)


def work_changes(work: WorkTime) -> list[WorkChange]:
    """All of ``work``, each group in one row, the largest change first; the rows add up to the groups."""
    return sorted(map(WorkChange, group_by(work.groups, _key).values()), key=_place)


def _place(row: WorkChange) -> tuple[object, ...]:
    """The largest change first."""
    names = row.operator, *row.kernel_names, row.module, row.shapes
    return -abs(row.delta), -max(row.time), *names


def one_group(groups: Sequence[Group]) -> Group:
    """Groups of the same work in instances of a module as one group."""
    if len(groups) == 1:
        return groups[0]
    ops = [g.ops for g in groups if g.ops]
    return groups[0].replace(
        ops=total(ops) if len(ops) == len(groups) else None,
        items=Pair(*(tuple(_of_every_instance(chain(*side))) for side in zip(*(g.items for g in groups), strict=True))),
    )


def _of_every_instance(items: Iterable[Item]) -> Iterator[Item]:
    """``items`` without what distinguishes the instances of their modules."""
    for item in items:
        yield replace(item, module=every_instance(item.module)) if item.module else item


def _key(group: Group) -> tuple[object, ...]:
    """What distinguishes rows."""
    kernels = group.members.map(lambda side: frozenset(_kernels(side)))
    return _operator(group), group.shapes, every_instance(group.module or ""), kernels


def _kernels(members: Iterable[Item]) -> tuple[str, ...]:
    """Match names of GPU work, the longest time first."""
    times: dict[str, int] = defaultdict(int)
    for member in members:
        if member.category in GPU_WORK:
            times[match_name(member.name)] += member.ns
    return tuple(sorted(times, key=lambda name: (-times[name], name)))


def _operator(group: Group) -> str:
    """The operator of both sides; without GPU work the members themselves."""
    return group.operator or _before_and_after(operators_of(group.members))


def _before_and_after(both: Iterable[str]) -> str:
    """``before → after``; the one of them where they are equal or the other is empty."""
    return once(filter(None, both))


def operators_of(both: Pair[tuple[Item, ...]]) -> tuple[str, str]:
    """The first operator of each side that the other has not, and how many more there are; of both sides where one has
    no other. Empty of GPU work that none launched.
    """
    control, test = (
        dict.fromkeys(name for m in members if (name := m.op if m.category in GPU_WORK else m.name)) for members in both
    )
    own = [name for name in control if name not in test], [name for name in test if name not in control]
    before, after = own if all(own) or not (control and test) else [[*(control | test)]] * 2
    return _first_of(before), _first_of(after)


def _first_of(names: Sequence[str]) -> str:
    return "" if not names else with_more(names[0], len(names) - 1) if names[1:] else display_name(names[0])
