"""The kernel account of both sides: every GPU event in exactly one group, closing with residual 0."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

from tracediff.profile.average import KernelAverage, KernelKind
from tracediff.profile.families import family_of_kernel
from tracediff.profile.names import is_generated, match_name, readable

LEVELS = ("exact", "added", "removed")
"""How a group was matched, in order of trust."""


@dataclass(frozen=True)
class Member:
    """GPU events of one kind on one side; count and ns are numerators over scale."""

    name: str
    op: str | None
    count: int
    ns: int


@dataclass(frozen=True)
class Group:
    """GPU events of both sides that are the same work; counts and times are numerators over scale.

    Attributes:
        level: one of LEVELS.
        name: readable name of its largest member.
        family: what kind of work.
        control, test: members, the largest first.
    """

    level: str
    name: str
    family: str
    control: tuple[Member, ...]
    test: tuple[Member, ...]

    @property
    def control_ns(self) -> int:
        """Time on the control side."""
        return sum(m.ns for m in self.control)

    @property
    def test_ns(self) -> int:
        """Time on the test side."""
        return sum(m.ns for m in self.test)

    @property
    def control_count(self) -> int:
        """Events on the control side."""
        return sum(m.count for m in self.control)

    @property
    def test_count(self) -> int:
        """Events on the test side."""
        return sum(m.count for m in self.test)

    @property
    def delta(self) -> int:
        """test − control time."""
        return self.test_ns - self.control_ns

    @property
    def parts(self) -> tuple[Fraction, Fraction]:
        """(part of the change by count, part by mean duration), in the same unit as `delta`."""
        return split_change(self.control_count, self.control_ns, self.test_count, self.test_ns)


@dataclass(frozen=True)
class Outside:
    """GPU events of the whole set that belong to no used step: plain counts and ns."""

    control_count: int
    control_ns: int
    test_count: int
    test_ns: int


@dataclass(frozen=True)
class GpuTime:
    """GPU time per step on both sides; numerators over scale except in `spilled` and `outside`.

    Attributes:
        groups: every GPU event of the used steps, largest change first.
        busy_control, busy_test: union per GPU, summed over GPUs.
        spilled: events whose launch is not in the file. outside: events launched outside every step.
    """

    groups: tuple[Group, ...]
    busy_control: int
    busy_test: int
    spilled: Outside
    outside: Outside
    unattributed: int = 0

    @property
    def control(self) -> int:
        """Σ durations on the control side."""
        return sum(g.control_ns for g in self.groups)

    @property
    def test(self) -> int:
        """Σ durations on the test side."""
        return sum(g.test_ns for g in self.groups)

    @property
    def delta(self) -> int:
        """test − control."""
        return self.test - self.control

    @property
    def matched(self) -> int:
        """Change within groups that have members on both sides."""
        return sum(g.delta for g in self.groups if g.control and g.test)

    @property
    def added(self) -> int:
        """Change by groups that only the test side has."""
        return sum(g.delta for g in self.groups if not g.control)

    @property
    def removed(self) -> int:
        """Change by groups that only the control side has."""
        return sum(g.delta for g in self.groups if not g.test)


def split_change(control_count: int, control_ns: int, test_count: int, test_ns: int) -> tuple[Fraction, Fraction]:
    """Δ = Δcount · (mean_a + mean_b)/2 + Δmean · (count_a + count_b)/2, exact and antisymmetric; where a side is 0 all is count."""
    delta = Fraction(test_ns - control_ns)
    if not control_count or not test_count:
        return delta, Fraction(0)
    means = Fraction(control_ns, control_count) + Fraction(test_ns, test_count)
    by_count = (test_count - control_count) * means / 2
    return by_count, delta - by_count


def compare_gpu_time(control: KernelAverage, test: KernelAverage, scale: int) -> GpuTime:
    """Both kernel accounts on one ``scale`` (a multiple of both denominators)."""
    c, t = scale // control.denominator, scale // test.denominator
    sides = {}
    for side, average, factor in (("control", control, c), ("test", test, t)):
        grouped: dict[tuple[str, ...], list[tuple[KernelKind, int, int]]] = defaultdict(list)
        for kind, (count, ns) in average.kinds.items():
            grouped[_exact_key(kind)].append((kind, factor * count, factor * ns))
        sides[side] = grouped
    keys = dict.fromkeys([*sides["control"], *sides["test"]])
    groups = [_group(sides["control"].get(key, []), sides["test"].get(key, [])) for key in keys]
    groups.sort(key=lambda g: (-abs(g.delta), g.name, g.level, [(m.name, m.op or "") for m in g.control + g.test]))
    return GpuTime(
        tuple(groups),
        c * control.busy,
        t * test.busy,
        Outside(*control.spilled, *test.spilled),
        Outside(*control.outside, *test.outside),
    )


def _exact_key(kind: KernelKind) -> tuple[str, ...]:
    """What must agree at level exact: match name, op, shapes where recorded; of generated kernels grid and block too."""
    return (kind.category, match_name(kind.name), kind.op or "", kind.shapes or "", kind.launch_shape or "")


def _group(control: list[tuple[KernelKind, int, int]], test: list[tuple[KernelKind, int, int]]) -> Group:
    level = "exact" if control and test else "added" if test else "removed"
    kind, _, _ = max(control + test, key=lambda k: (k[2], k[0].name))
    name = match_name(kind.name) if not is_generated(kind.name) else kind.name
    return Group(level, readable(name), family_of_kernel(kind.name, kind.op), _members(control), _members(test))


def _members(kinds: list[tuple[KernelKind, int, int]]) -> tuple[Member, ...]:
    members = [Member(kind.name, kind.op, count, ns) for kind, count, ns in kinds]
    return tuple(sorted(members, key=lambda m: (-m.ns, m.name)))
