"""Bars of changes in a terminal."""

from hypothesis import given, strategies as st
from properties import examples

from tracediff.present.plain_text import ZERO, bars

CHANGES = st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=8)


@examples(200)
@given(CHANGES, st.integers(5, 30))
def test_all_bars_meet_at_one_line_and_fit(changes, width):
    found = bars(changes, width)
    drawn = [found.draw(change).plain for change in changes]
    assert len({text.index(ZERO) for text in drawn}) == 1
    assert max(map(len, drawn)) <= width
    for change, text in zip(changes, drawn, strict=True):
        faster, slower = text.split(ZERO)
        assert not (faster.strip() if change >= 0 else slower)


@examples(200)
@given(CHANGES)
def test_a_larger_change_has_no_shorter_bar(changes):
    found = bars(changes, 20)
    for sign in (-1, 1):
        lengths = [len(found.draw(c).plain.replace(ZERO, "").strip()) for c in sorted(changes, key=abs) if c * sign > 0]
        assert lengths == sorted(lengths)


def test_small_changes_have_small_bars():
    assert bars([1, -1], 20, least=1000).draw(1).plain.strip() in (ZERO, f"{ZERO}▏")
