"""The URL is the state: it is read as it was written, and invalid values do no harm."""

import json

from hypothesis import example, given, strategies as st
from tracediff_dashboards.state.controls import changed, row_of
from tracediff_dashboards.state.view import (
    COLUMNS,
    CONDITIONS,
    ORDERS,
    SIZES,
    TABS,
    Filters,
    FlameView,
    TableLayout,
    View,
    default_columns,
    sort_of,
    view_of,
    where_of,
)

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
lists = st.lists(names, max_size=4, unique=True).map(tuple)
filters = st.builds(
    Filters,
    st.sampled_from([None, "gpu", "cpu"]),
    phase=lists,
    family=lists,
    module=lists,
    steps=st.sampled_from(["", "5", "5..10"]),
    rank=st.sets(st.integers(0, 99)).map(sorted).map(tuple),
    test_rank=st.sets(st.integers(0, 99)).map(sorted).map(tuple),
)
columns = st.lists(st.sampled_from(list(COLUMNS)), max_size=4, unique=True).map(tuple)
sorts = columns.map(lambda some: tuple(f"{column}:{ORDERS[len(column) % 2]}" for column in some))
conditions = st.fixed_dictionaries(
    {"filterType": st.just("text"), "type": st.sampled_from(sorted(CONDITIONS)), "filter": names}
)
wheres = st.dictionaries(st.sampled_from(list(COLUMNS)), conditions, max_size=3).map(where_of)
tables = st.builds(TableLayout, sorts, columns, columns, wheres)
flames = st.builds(
    FlameView,
    size=st.sampled_from(("", *SIZES)),
    inverted=st.booleans(),
    separate=st.booleans(),
    lines=st.booleans(),
    find=names,
    regex=st.booleans(),
    zoom=lists,
)
views = st.builds(
    View,
    names,
    names,
    filters,
    forced=st.booleans(),
    tab=st.sampled_from(TABS),
    row=names,
    flame=flames,
    table=tables,
)


@given(views)
def test_a_view_is_read_as_it_was_written(view):
    assert view_of(view.query()) == view


@given(st.text(max_size=200))
@example("?" + "&".join("a=1" for _ in range(1000)))
@example("?sort=name&sort=x:asc&show=x&pin=__proto__&where=[")
@example("?where=" + "[" * 5000)
@example('?where={"name":{"filterType":"text","type":[]},"family":{"filterType":"text","type":{}}}')
@example(
    '?where={"name":{"filterType":"text","type":"contains","filter":5},"x":1,"delta_us":{"filterType":"number","type":"__proto__"}}'
)
@example("?rank=٣&rank=-1&rank=1e9&rank=99999999999&device=tpu&tab=x&size=x&steps=;")
def test_any_address_is_a_view(search):
    view = view_of(search)
    assert view.tab in TABS
    assert view.filters.device in (None, "gpu", "cpu")
    assert all(isinstance(rank, int) for rank in view.filters.rank)
    assert set(view.table.order()) | set(view.table.filters()) | {*view.table.visible, *view.table.pinned} <= set(
        COLUMNS
    )
    assert view_of(view.query()) == view


def test_what_the_grid_says_is_kept_as_an_address_says_it():
    joined = {
        "filterType": "number",
        "operator": "OR",
        "conditions": [{"filterType": "number", "type": "lessThan", "filter": 3}, {"type": "x"}],
    }
    kept = json.loads(where_of({"delta_us": joined, "name": {"filterType": "date", "type": "equals"}, "other": joined}))
    assert kept == {"delta_us": {**joined, "conditions": joined["conditions"][:1]}}
    state = [
        {"colId": "name", "sort": "asc", "sortIndex": 1},
        {"colId": "delta_us", "sort": "desc", "sortIndex": 0},
        {"colId": "family", "sort": None},
    ]
    assert sort_of(state) == ("delta_us:desc", "name:asc")
    view = View("a", "b", tab="ops", row="r")
    arranged = changed(view, {"columns", "pinned"}, {"columns": ["name", "family"], "pinned": []})
    assert arranged.table == TableLayout(visible=("name", "family"))
    assert changed(arranged, {"columns"}, {"columns": list(default_columns("ops"))}).table == TableLayout()


def test_choices_change_what_they_say_and_no_more():
    view = View("a", "b", Filters("gpu", family=("gemm",)), row="r")
    values = {
        "control": "a",
        "test": "b",
        "device": "gpu",
        "phase": [],
        "family": ["gemm"],
        "module": None,
        "steps": " 2..3 ",
        "rank": [3, 1],
        "test-rank": None,
    }
    assert changed(view, {"steps"}, values).filters == Filters("gpu", family=("gemm",), steps="2..3", rank=(1, 3))
    kept = {**values, "steps": "", "rank": []}
    assert changed(view, {"swap"}, kept) == View("b", "a", view.filters, row="r")
    assert changed(view, {"swap"}, values).filters.steps == "2..3"  # chosen a moment before
    assert changed(view, {"theme", "ready"}, values) == view
    assert changed(view, {"clear"}, values).filters == Filters()
    zoomed = {"zoom": ["forward", 5, "x" * 5000], "inverted": True, "size": "weight", "find": None, "node": {}}
    assert changed(view, {"flame-view"}, {"flame-view": zoomed}).flame == FlameView(
        inverted=True, zoom=("forward", "x" * 600)
    )
    assert changed(view, {"flame-view"}, {"flame-view": None}) == view
    assert changed(view, {"dropped"}, {"dropped": ["x", "y"]}) == View("x", "y")
    assert changed(view, {"dropped"}, {"dropped": ["x"]}) == View("a", "x")
    assert changed(view, {"grid"}, {"grid": [{"key": "k"}]}).row == "k"
    assert changed(view, {"grid"}, {"grid": []}) == view
    assert [row_of(given) for given in ({"ids": ["k"]}, {"ids": []}, {}, None, [], [{}], "x")] == [
        "k",
        None,
        None,
        None,
        None,
        None,
        None,
    ]
