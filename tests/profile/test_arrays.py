"""Functions on arrays against slow ones that take each nanosecond by itself."""

import numpy as np
from hypothesis import given, strategies as st
from properties import examples

from tracediff.arrays import BARE, busy_ns, edges_of, paint

INTERVALS = st.lists(st.tuples(st.integers(0, 40), st.integers(-2, 25), st.integers(-1, 4)), max_size=12)
"""Start, length, and layer or step of each."""


def columns(drawn):
    start, length, number = np.array(drawn, np.int64).reshape(-1, 3).T
    return start, start + length, number


@examples(300)
@given(INTERVALS)
def test_each_instant_has_the_lowest_layer_that_covers_it(drawn):
    start, end, layer = columns(drawn)
    edges = edges_of(start, end, np.array([0, 70]))
    assert edges.tolist() == sorted({0, 70, *start.tolist(), *end.tolist()})
    for from_, to, found in zip(edges, edges[1:], paint(edges, start, end, layer), strict=False):
        for ns in range(from_, to):
            covering = [k for s, e, k in zip(start, end, layer, strict=True) if s <= ns < e]
            assert found == min(covering, default=BARE)


@examples(300)
@given(INTERVALS)
def test_busy_time_of_the_last_steps_is_their_union(drawn):
    start, end, step = columns(drawn)
    found = busy_ns(start, end, step, 5)
    for first in range(5):
        alive = {ns for s, e, k in zip(start, end, step, strict=True) if k >= first for ns in range(s, e)}
        assert found[first:].sum() == len(alive)
