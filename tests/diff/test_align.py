"""Aligning sequences: the longest common order, the same from both sides."""

from itertools import pairwise

from hypothesis import given, strategies as st

from tracediff.diff.matching.align import align, equal_in_turn, within_gaps

WORDS = st.lists(st.sampled_from("abcd"), max_size=14)


def longest_common(a, b):
    """Its length, slow and plain."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@given(WORDS, WORDS)
def test_the_longest_common_order_is_found(a, b):
    pairs = align(a, b)
    assert len(pairs) == longest_common(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(x[0] < y[0] and x[1] < y[1] for x, y in pairwise(pairs))


@given(WORDS, WORDS)
def test_turned_sequences_give_turned_pairs(a, b):
    assert align(b, a) == [(j, i) for i, j in align(a, b)]


def test_one_sibling_more_among_thousands():
    a = [f"op {i}" for i in range(4000)]
    assert align(a, [*a[:2000], "new", *a[2000:]]) == [(i, i if i < 2000 else i + 1) for i in range(4000)]


def test_sequences_with_little_in_common_have_no_order():
    a = [f"a {i}" for i in range(2000)]
    assert align([*a, "x"], [f"b {i}" for i in range(2000)] + ["y"]) == []


def test_the_kth_of_a_kind_goes_with_the_kth():
    assert equal_in_turn([], "aba", "baab") == [(0, 1), (1, 0), (2, 2)]


def test_gaps_are_aligned_between_pairs_that_stand_in_order():
    assert within_gaps([(1, 1)], "x|y", "x|y") == [(0, 0), (2, 2)]
    assert within_gaps([(1, 1)], "y|x", "x|y") == []
