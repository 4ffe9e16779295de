"""Small leaves are added up before the tree is built, and the lines stay the same."""

import numpy as np
import pytest
from traces import FOLDER, needs_traces

from tracediff import bounds
from tracediff.engine import load_sets
from tracediff.explain import tree
from tracediff.explain.compare import compare_sets
from tracediff.explain.exposure import account
from tracediff.explain.leaves import Leaves
from tracediff.explain.lines import lines_of
from tracediff.explain.tree import build


def many_leaves(number, slower):
    """Kernels of 200 operators and calls of the host; the first family takes ``slower`` times as long."""
    random = np.random.default_rng(1)
    families = random.integers(0, 4, number)
    on_host = random.random(number) < 0.3
    chains = [
        ("host", "operators", f"op{i % 50}", f"call {i}")
        if host
        else ("GPU work", f"family{f}", f"op{i % 200}", "k", i)
        for i, (f, host) in enumerate(zip(families.tolist(), on_host.tolist(), strict=True))
    ]
    ns = random.lognormal(3, 1.5, number)
    total = np.array([ns, ns * random.normal(1, 0.01, number) * np.where(families == 0, slower, 1)])
    gone = random.random(number)
    total[0, gone < 0.02] = total[1, gone > 0.98] = 0
    return Leaves(
        chains=chains,
        groups=np.full(number, -1),
        path=total * np.where(random.random(number) < 0.5, 1, 0.2),
        total=total,
        count=(total > 0) * 1.0,
        samples=(total[:1], total[1:]),
        amounts=np.where(random.random(number) < 0.5, np.nan, np.ones((2, number))),
        unit=np.full(number, "FLOPs", object),
        kinds=np.full(number, "gpu", object),
        names=np.full((2, number), "", object),
        ops=np.full((2, number), "", object),
        longest=({}, {}),
        steps=([1], [1]),
        in_each=np.ones((2, number), bool),
    )


def spelled(root):
    lines = lines_of(root)
    of_lines, remainders = account(lines, root, {}, [])
    rests = {label: (one.longer_us, one.shorter_us) for label, one in remainders.items()}
    return [(line.trail, line.node.label, pytest.approx(us)) for line, us in of_lines], rests


@pytest.mark.parametrize("slower", [1.0, 1.5])
def test_a_tree_of_many_leaves_has_the_same_lines_and_fewer_nodes(monkeypatch, slower):
    leaves = many_leaves(5000, slower)
    whole = build(leaves)
    monkeypatch.setattr(bounds, "LEAVES_APART", 0)
    root = build(leaves)
    assert sum(1 for _ in root.walk()) < sum(1 for _ in whole.walk())
    lines, rest = spelled(root)
    expected, expected_rest = spelled(whole)
    assert lines == expected
    assert rest.keys() == expected_rest.keys()
    assert all(rest[label] == pytest.approx(both, abs=1e-3) for label, both in expected_rest.items())
    assert sorted(root.leaves) == sorted(whole.leaves)
    assert root.path == pytest.approx(whole.path)
    assert {label: node.work for label, node in root.children.items()} == pytest.approx(
        {label: node.work for label, node in whole.children.items()}
    )


def test_where_no_leaf_is_small_each_stays_alone(monkeypatch):
    """The step does not change, and each leaf does: any change is large beside it."""
    monkeypatch.setattr(bounds, "LEAVES_APART", 0)
    path = np.array([[1.0, 2.0], [2.0, 1.0]])
    together = tree.added_up([("host", "a"), ("host", "b")], path, path, path[1] - path[0])
    assert [leaves.tolist() for leaves in together] == [[0], [1]]


@needs_traces
@pytest.mark.parametrize(
    ("control", "test"), [("bertsmall_h100", "bertsmall_mi300"), ("tinylm_compile", "tinylm_cudagraph")]
)
def test_real_explanations_stay_the_same(monkeypatch, control, test):
    sets = load_sets([str(FOLDER / control), str(FOLDER / test)])

    def explained():
        explanation = compare_sets(*sets, force=True).explanation
        return [(c.label, c.what, c.delta_us, [r.text for r in c.reasons]) for c in explanation.causes]

    expected = explained()
    monkeypatch.setattr(bounds, "LEAVES_APART", 0)
    found = explained()
    assert [(*line[:2], line[3]) for line in found] == [(*line[:2], line[3]) for line in expected]
    assert [line[2] for line in found] == pytest.approx([line[2] for line in expected])
