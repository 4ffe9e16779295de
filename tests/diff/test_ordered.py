"""Pairs in order of long sequences: as of short ones, at a cost that grows with the length."""

import pytest

from tracediff import bounds
from tracediff.aggregate.call_tree import Occurrence
from tracediff.diff.matching.align import ascending
from tracediff.diff.matching.fusion import _computing
from tracediff.diff.matching.items import Item
from tracediff.diff.matching.sequence import in_order
from tracediff.diff.matching.similarity import Similarity
from tracediff.profile.kernels.families import DEFAULT


def items(names, fused=()):
    return [
        Item(
            *(k, Occurrence(0, k, "7"), -1, "kernel", name, None, 0),
            count=1,
            ns=1000 + k % 7,
            op=None,
            family=DEFAULT.of_kernel(name, None),
            phase="other",
            module=None,
            line=None,
            fused=fused or ((name.partition("fused_")[2],) if "fused_" in name else ()),
        )
        for k, name in enumerate(names)
    ]


def layers(count, kernels=("gemm_a", "triton_poi_fused_add_mul_0", "softmax_x", "gemm_b", "layer_norm")):
    return [f"{kernel}" if kernel != "layer_norm" else f"layer_norm_{k}" for k in range(count) for kernel in kernels]


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setattr(bounds, "SCORED_PAIRS", 1)
    monkeypatch.setattr(bounds, "SCORED_WIDTH", 60)


def test_a_band_finds_what_all_pairs_together_give(monkeypatch):
    a, b = layers(80), layers(95)
    del b[100:117], a[300:309]
    similarity = Similarity(items(a), items(b))
    whole = in_order(similarity)
    monkeypatch.setattr(bounds, "SCORED_PAIRS", 1)
    monkeypatch.setattr(bounds, "SCORED_WIDTH", 60)
    assert in_order(similarity) == whole
    assert len(whole) > 350


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("inserted", [0, 1, 200])
def test_a_band_follows_the_names_that_both_sides_have_once(inserted):
    a = [f"kernel {k}" for k in range(400)]
    b = [*a[:150], *(f"new {k}" for k in range(inserted)), *a[150:]]
    pairs = in_order(Similarity(items(a), items(b)))
    assert pairs == [(k, k if k < 150 else k + inserted) for k in range(400)]


def test_scored_pairs_grow_with_the_length(monkeypatch):
    monkeypatch.setattr(bounds, "SCORED_PAIRS", 1000)
    scored = []
    row = Similarity.row
    monkeypatch.setattr(Similarity, "row", lambda self, i, j: scored.append(len(j)) or row(self, i, j))
    for count in (100, 400):
        scored.clear()
        in_order(Similarity(items(layers(count)), items(layers(count))))
        assert sum(scored) <= 5 * count * bounds.SCORED_WIDTH


def test_work_that_nothing_can_be_the_same_as_is_not_scored():
    a, b = [f"kernel a{k}" for k in range(50)], [f"kernel b{k}" for k in range(50)]
    assert [len(side) for side in Similarity(items([*a, "gemm"]), items([*b, "gemm"])).comparable()] == [1, 1]


def test_the_longest_chain_ascends_on_both_sides():
    assert ascending([(0, 5), (1, 0), (2, 1), (3, 9), (3, 2)]) == [(1, 0), (2, 1), (3, 2)]


def test_operators_are_found_in_lists_as_whole_words():
    kernels = items(["triton_poi_fused_native_layer_norm_add_0", "triton_poi_fused__softmax_addmm_1"])
    found = _computing(kernels, {"native_layer_norm", "add", "_softmax", "softmax", "layer", "mm"})
    assert {op: [k.name[-1] for k in held] for op, held in found.items()} == {
        "native_layer_norm": ["0"],
        "add": ["0"],
        "layer": ["0"],
        "_softmax": ["1"],
        "softmax": ["1"],
    }
