"""What holds for every comparison: both accounts close exactly, and diff(a, b) = −diff(b, a)."""

from fractions import Fraction

import pytest


def assert_closes(comparison):
    step, gpu = comparison.step_time, comparison.gpu_time
    assert step.residual == 0
    host = comparison.host_time
    assert host.matched + host.placed + host.added + host.removed == host.delta
    assert not (host.groups and gpu.groups)
    assert sum(s.time.control for s in step.states) == step.period.control
    assert sum(s.time.test for s in step.states) == step.period.test
    assert gpu.matched + gpu.placed + gpu.added + gpu.removed + gpu.unattributed.delta == gpu.delta
    for group in gpu.groups:
        assert sum(group.parts) == group.delta
    for category in ("kernel", "gpu_memcpy", "gpu_memset"):
        ops = [op for op in comparison.ops if op.category == category]
        assert all(op.self_time.control == op.total.control and op.self_time.test == op.total.test for op in ops)
    if gpu.groups:
        assert (
            sum(op.total.control for op in comparison.ops if op.category in ("kernel", "gpu_memcpy", "gpu_memset"))
            == gpu.time.control
        )

    if comparison.explanation is not None:
        assert_explained(comparison)


def assert_explained(comparison):
    """The explanation accounts for the step's change: at every node, and line by line."""
    found = comparison.explanation
    change = comparison.us(comparison.step_time.delta)
    close = {"rel": 1e-9, "abs": 1e-6}  # µs
    assert found.change_us == pytest.approx(change, **close)
    lines = sum(cause.delta_us for cause in found.causes) + found.exposure_us + found.rest_us
    assert lines == pytest.approx(change, **close)
    for node in found.root.walk():
        assert sum(node.effects.values()) == pytest.approx(node.change, rel=1e-9, abs=1e-3)  # ns
        if node.children:
            for name in ("path", "total", "count", "parts"):
                parts = sum(getattr(child, name) for child in node.children.values())
                assert parts == pytest.approx(getattr(node, name), rel=1e-9, abs=1e-3)
        assert (node.path <= node.total * (1 + 1e-9) + 1e-3).all()


def mirrored(comparison):
    """Everything that must change its sign or its side when the sides are swapped."""
    d, gpu, scale = comparison, comparison.gpu_time, comparison.scale
    level = {"added": "removed", "removed": "added"}
    return {
        "states": {s.name: (Fraction(s.time.test, scale), Fraction(s.time.control, scale)) for s in d.step_time.states},
        "gpu": (Fraction(gpu.added, scale), Fraction(gpu.removed, scale), Fraction(gpu.matched, scale)),
        "groups": sorted(
            (
                level.get(g.level, g.level),
                g.name,
                _members(g.members.test, scale),
                _members(g.members.control, scale),
                tuple(p / scale for p in g.parts),
            )
            for g in gpu.groups
        ),
        "ops": {
            (o.category, o.raw_name): (
                o.count.test,
                o.count.control,
                o.total.test,
                o.total.control,
                o.self_time.test,
                o.self_time.control,
            )
            for o in d.ops
        },
        "classes": {(o.category, o.raw_name): (o.count_change, o.significance.time_change) for o in d.ops},
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


def assert_explanations_mirror(forward, backward):
    """Swapped sides: every line and every kind of effect with the other sign."""
    if forward.explanation is None or backward.explanation is None:
        return
    a, b = forward.explanation, backward.explanation
    assert a.root.parts == pytest.approx(-b.root.parts, rel=1e-6, abs=1)  # ns
    close = {"rel": 1e-6, "abs": 1e-3}
    assert sorted(c.delta_us for c in a.causes) == pytest.approx(sorted(-c.delta_us for c in b.causes), **close)
    assert a.rest_us == pytest.approx(-b.rest_us, **close)
    assert {f.code for f in a.facts} == {f.code for f in b.facts}


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
    assert_explanations_mirror(forward, backward)
