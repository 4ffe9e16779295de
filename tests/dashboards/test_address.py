"""The address is the state: what it says is read as it was written, and what nobody wrote does no harm."""

from hypothesis import example, given
from hypothesis import strategies as st
from tracediff_dashboards.choices import changed, row_of
from tracediff_dashboards.filters import SIZES, TABS, Filters, View, view_of

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
lists = st.lists(names, max_size=4, unique=True).map(tuple)
filters = st.builds(
    Filters, st.sampled_from([None, "gpu", "cpu"]), lists, lists, lists, st.sampled_from(["", "5", "5..10"]), st.sets(st.integers(0, 99)).map(sorted).map(tuple)
)
views = st.builds(View, names, names, filters, st.booleans(), st.sampled_from(TABS), names, st.sampled_from(SIZES))


@given(views)
def test_a_view_is_read_as_it_was_written(view):
    assert view_of(view.query()) == view


@given(st.text(max_size=200))
@example("?" + "&".join("a=1" for _ in range(1000)))
@example("?rank=٣&rank=-1&rank=1e9&rank=99999999999&device=tpu&tab=x&size=x&steps=;")
def test_any_address_is_a_view(search):
    view = view_of(search)
    assert view.tab in TABS
    assert view.filters.device in (None, "gpu", "cpu")
    assert all(isinstance(rank, int) for rank in view.filters.ranks)
    assert view_of(view.query()) == view


def test_choices_change_what_they_say_and_no_more():
    view = View("a", "b", Filters("gpu", families=("gemm",)), row="r")
    values = {"control": "a", "test": "b", "device": "gpu", "phase": [], "family": ["gemm"], "module": None, "steps": " 2..3 ", "rank": [3, 1]}
    assert changed(view, {"steps"}, values).filters == Filters("gpu", families=("gemm",), steps="2..3", ranks=(1, 3))
    assert changed(view, {"swap"}, values) == View("b", "a", view.filters, row="r")
    assert changed(view, {"clear"}, values).filters == Filters()
    assert changed(view, {"tab"}, {"tab": "groups"}) == View("a", "b", view.filters, tab="groups")
    assert changed(view, {"tab"}, {"tab": "nosuch"}) == view
    assert changed(view, {"dropped"}, {"dropped": ["x", "y"]}) == View("x", "y")
    assert changed(view, {"dropped"}, {"dropped": ["x"]}) == View("a", "x")
    assert changed(view, {"grid"}, {"grid": [{"key": "k"}]}).row == "k"
    assert changed(view, {"grid"}, {"grid": []}) == view
    assert [row_of(given) for given in ({"ids": ["k"]}, {"ids": []}, {}, None, [], [{}], "x")] == ["k", None, None, None, None, None, None]
