"""Items: the work of one side with all that matching goes by."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tracediff.aggregate.call_tree import CallTree, Work
from tracediff.diff.matching.origins import Origins
from tracediff.profile.kernels.match_names import is_generated, match_name
from tracediff.profile.work import UNMATCHED

FamilyOf = Callable[[str, str | None], str]
"""(name of the work, its operator) → family."""

FUSED_LIST = re.compile(r"(?:^|_)fused_(?P<ops>.+?)(?:_\d+)?$", re.DOTALL)


@dataclass(eq=False, kw_only=True)
class Item:
    """Equal work of one side at one place.

    Attributes:
        work: what it is, with numerators over its tree's denominator.
        match: what must agree with a partner: category, match name, and of generated kernels grid and block.
        name: match name alone. op: the operator that launched it, None for none.
        family, phase: kind of work, part of the step. module: path of the module it belongs to, None where unknown.
        line: the code outside of torch that its operator runs for, None where unknown.
        fused: the operators that a fused kernel computes: base names from its origin, or the list in its name as one
            text; empty for others.
        count, ns: numerators over the comparison's scale.
    """

    work: Work
    match: tuple[str, str, str]
    name: str
    op: str | None
    family: str
    phase: str
    module: str | None
    line: str | None
    fused: tuple[str, ...]
    count: int
    ns: int

    @property
    def order(self) -> int:
        """Position in the step by stream and start."""
        return self.work.order

    @property
    def node(self) -> int:
        """The operator or scope that it hangs below, −1 for none."""
        return self.work.node


def items_of(
    tree: CallTree, factor: int, family_of: FamilyOf, origins: Origins, qualified: Mapping[str, str]
) -> list[Item]:
    """The items of ``tree`` in the order in which they ran.

    Args:
        family_of: tells the family of a kernel.
        factor: brings the tree's numerators to the comparison's scale.
        qualified: the profiler's module names (``Linear_7``) → the model's own (``blocks.3.fc1``), which are used
            instead where known.
    """
    phases, modules = inherited(tree, qualified)
    launches: Counter[str] = Counter()
    items = []
    for work in sorted((w for w in tree.work if w.ordinal != UNMATCHED), key=lambda w: (w.order, w.name, w.node)):
        name, op, inside = match_name(work.name), tree.op(work.node), work.node >= 0
        origin = None
        if is_generated(work.name):
            origin = origins.find(work.name, phases[work.node] if inside else "", launches[work.name])
            launches[work.name] += 1
        items.append(
            Item(
                work=work,
                match=(work.category, name, (work.launch_shape or "") if is_generated(work.name) else ""),
                name=name,
                op=op,
                family=family_of(work.name, op),
                phase=phases[work.node] if inside else "unknown",
                module=(origin and origin.module) or (modules[work.node] if inside else None),
                line=(tree.calls[work.node].line if inside else None) or (origin.line if origin else None),
                fused=(origin and origin.ops) or fused_list(name),
                count=factor * work.count,
                ns=factor * work.ns,
            )
        )
    return items


def inherited(tree: CallTree, qualified: Mapping[str, str]) -> tuple[list[str], list[str | None]]:
    """The phase and module path of every node; ``qualified`` as for `items_of`."""
    phases: list[str] = []
    modules: list[str | None] = []
    for call in tree.calls:
        inside = call.parent >= 0
        phases.append(phases[call.parent] if inside else call.name)
        module = modules[call.parent] if inside else None
        if call.kind == "module":
            qualified_name = qualified.get(call.name.removeprefix("nn.Module: "))
            module = (
                (qualified_name or call.label)
                if qualified_name is not None
                else "/".join(filter(None, (module, call.label)))
            )
        modules.append(module)
    return phases, modules


def fused_list(name: str) -> tuple[str, ...]:
    """The operators that a fused kernel's name lists, as one text to search in: their names hold underscores
    themselves.
    """
    found = FUSED_LIST.search(name) if is_generated(name) else None
    return (found["ops"],) if found else ()
