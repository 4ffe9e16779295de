"""Parts of a whole, and operations by name, of one set."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tracediff.aggregate.averages import OpAverage
from tracediff.diff.groups import Member
from tracediff.diff.ops import by_name, gpu_or_cpu
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.families import Families


@dataclass(frozen=True)
class Share:
    """Work of one name: numerators over the analysis' scale."""

    name: str
    ns: int
    count: int = 0


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation, numerators over the analysis' scale; see `tracediff.diff.ops.Op`."""

    name: str
    raw_name: str
    device: str
    category: str
    family: str
    count: int
    total: int
    self_ns: int


def shares(members: Iterable[Member], key: Callable[[Member], str]) -> tuple[Share, ...]:
    """``members`` summed by ``key``, the largest first."""
    sums: dict[str, list[int]] = {}
    for member in members:
        entry = sums.setdefault(key(member), [0, 0])
        entry[0] += member.ns
        entry[1] += member.count
    return tuple(sorted((Share(name, *entry) for name, entry in sums.items()), key=lambda s: (-s.ns, s.name)))


def operations(average: OpAverage, scale: int, families: Families) -> tuple[Operation, ...]:
    """All operations of a set, the largest self time first; spellings of one name are one operation."""
    out = [
        Operation(
            name=display_name(name),
            raw_name=raw,
            device=gpu_or_cpu(category),
            category=category,
            family=families.of_event(category, raw),
            count=count,
            total=total,
            self_ns=self_ns,
        )
        for (category, name), (raw, ((count, total, self_ns),)) in by_name([average], scale).items()
    ]
    return tuple(sorted(out, key=lambda o: (-o.self_ns, o.category, o.raw_name)))
