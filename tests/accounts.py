"""What holds for every comparison: both accounts close exactly, and diff(a, b) = −diff(b, a)."""

from fractions import Fraction


def assert_closes(comparison):
    step, gpu = comparison.step_time, comparison.gpu_time
    assert step.residual == 0
    host = comparison.host_time
    assert host.matched + host.placed + host.added + host.removed == host.delta
    assert not (host.groups and gpu.groups)
    assert sum(s.control for s in step.states) == step.control
    assert sum(s.test for s in step.states) == step.test
    assert gpu.matched + gpu.placed + gpu.added + gpu.removed + gpu.unattributed == gpu.delta
    for group in gpu.groups:
        assert sum(group.parts) == group.delta
    for category in ("kernel", "gpu_memcpy", "gpu_memset"):
        ops = [op for op in comparison.ops if op.category == category]
        assert all(op.control_self == op.control_total and op.test_self == op.test_total for op in ops)
    if gpu.groups:
        assert (
            sum(op.control_total for op in comparison.ops if op.category in ("kernel", "gpu_memcpy", "gpu_memset"))
            == gpu.control
        )


def mirrored(comparison):
    """Everything that must change its sign or its side when the sides are swapped."""
    d, gpu, scale = comparison, comparison.gpu_time, comparison.scale
    level = {"added": "removed", "removed": "added"}
    return {
        "states": {s.name: (Fraction(s.test, scale), Fraction(s.control, scale)) for s in d.step_time.states},
        "gpu": (Fraction(gpu.added, scale), Fraction(gpu.removed, scale), Fraction(gpu.matched, scale)),
        "groups": sorted(
            (
                level.get(g.level, g.level),
                g.name,
                _members(g.test, scale),
                _members(g.control, scale),
                tuple(p / scale for p in g.parts),
            )
            for g in gpu.groups
        ),
        "ops": {
            (o.category, o.raw_name): (
                o.test_count,
                o.control_count,
                o.test_total,
                o.control_total,
                o.test_self,
                o.control_self,
            )
            for o in d.ops
        },
        "classes": {(o.category, o.raw_name): (o.count_change, o.time_change) for o in d.ops},
    }


def _members(members, scale):
    return tuple((m.name, m.op or "", Fraction(m.count, scale), Fraction(m.ns, scale)) for m in members)


OPPOSITE = {
    "added": "deleted",
    "deleted": "added",
    "increased": "decreased",
    "decreased": "increased",
    "faster": "slower",
    "slower": "faster",
}


def assert_antisymmetric(forward, backward):
    forward_answer, backward_answer = mirrored(forward), mirrored(backward)
    assert forward_answer["states"] == {k: v[::-1] for k, v in backward_answer["states"].items()}
    assert forward_answer["gpu"] == (-backward_answer["gpu"][1], -backward_answer["gpu"][0], -backward_answer["gpu"][2])
    swapped = [
        ({"added": "removed", "removed": "added"}.get(lv, lv), n, t, c, tuple(-p for p in parts))
        for lv, n, c, t, parts in backward_answer["groups"]
    ]
    assert forward_answer["groups"] == sorted(swapped)
    assert forward_answer["ops"] == {k: (v[1], v[0], v[3], v[2], v[5], v[4]) for k, v in backward_answer["ops"].items()}
    assert forward_answer["classes"] == {
        k: tuple(OPPOSITE.get(c, c) for c in v) for k, v in backward_answer["classes"].items()
    }
