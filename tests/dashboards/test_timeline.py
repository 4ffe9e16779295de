"""The timeline of the dashboard: choose steps, look closer, follow a kernel to its launch; both sides on one axis."""

import gzip
import json
import re
import urllib.error
import urllib.request

import pytest
from browser import faults, play_perfetto, taken
from build_trace import call, document, kernel, op, step, write
from dash import html
from dashboard_runs import events
from msgspec.structs import astuple
from tracediff_dashboards.pages.details import spans
from tracediff_dashboards.pages.rows import table_rows
from tracediff_dashboards.reading.comparisons import Comparisons, PageContext
from tracediff_dashboards.reading.events import merged_step
from tracediff_dashboards.reading.loading import Loader
from tracediff_dashboards.reading.sets import Sets
from tracediff_dashboards.reading.step_inspector import StepChoice, StepInspector, is_used, places, window_of
from tracediff_dashboards.state.view import TABS, View, view_of

from tracediff.aggregate.assemble import narrowed
from tracediff.engine import load_sets
from tracediff.errors import TracediffError
from tracediff.explain.compare import compare_sets
from tracediff.profile.model.selection import Selection

GRAPH = "#chart-timeline .js-plotly-plot"
LISTENS = f"() => document.querySelector('{GRAPH}')?._ev?.listeners('plotly_relayout').length > 0"
"""Whether dash has connected the chart: what is zoomed before does not reach the server."""
NAMES = f"() => document.querySelector('{GRAPH}').data.flatMap(t => t.customdata)"


def loaded(runs, *names):
    sets = load_sets([str(runs / name) for name in names])
    return sets, compare_sets(*sets)


def test_every_step_of_every_rank_can_be_chosen(runs):
    (control, _), _ = loaded(runs, "ranks", "ranks")
    assert [p.key for p in places(control)] == [f"run 1|{rank}|{step}" for rank in (0, 1) for step in (1, 2, 3, 4)]


def test_a_chosen_step_and_a_part_of_it(runs):
    (control, _), whole = loaded(runs, "base", "slower")
    inspector, typical = StepInspector(), whole.control.typical
    assert inspector.step(StepChoice(control, "", typical), None) is typical
    step = inspector.step(StepChoice(control, "run 1|0|4", typical), None)
    assert step.timeline.step == 4
    length = step.timeline.end - step.timeline.start
    part = inspector.step(StepChoice(control, "run 1|0|4", typical), (length // 2, length // 2 + 20_000)).timeline
    assert (part.start, part.end) == (step.timeline.start, step.timeline.end)
    assert part.marks.start.min() >= length // 2
    assert part.marks.end.max() <= length // 2 + 20_000
    with pytest.raises(TracediffError, match="no such step in this set"):
        inspector.step(StepChoice(control, "run 1|0|99", typical), None)


def test_without_a_choice_it_is_a_step_that_is_used(runs):
    (control, _), whole = loaded(runs, "ranks", "ranks")
    kept = whole.control.typical
    other = next(step for step in (1, 2, 3, 4) if step != kept.timeline.step)
    narrow = narrowed(control, Selection(first=other, last=other))
    assert is_used(control, kept)
    assert not is_used(narrow, kept)
    assert StepInspector().step(StepChoice(narrow, "", kept), None).timeline.step == other


@pytest.mark.parametrize("tab", TABS)
def test_spans_are_what_the_row_counts(runs, tab):
    """Of every row, in the only used step: as many events as the row counts, and as much time."""
    sets = [
        narrowed(traces, Selection(first=3, last=3)) for traces in load_sets([str(runs / "base"), str(runs / "slower")])
    ]
    whole, inspector = compare_sets(*sets), StepInspector()
    context = PageContext(whole, whole, tuple(sets), View(tab=tab), "light")
    rows = table_rows(whole, tab)
    assert rows
    for row in rows:
        figure = next(part for part in spans(context, row, inspector) if isinstance(part, html.Figure))
        caption = figure.children[0].children[0].children
        counted = [row.cells.get(f"{side}_count") for side in ("control", "test")]
        assert [int(n) for n in re.findall(r"([\d,]+) events?", caption)] == counted


def test_a_side_without_the_row_keeps_its_lane(tmp_path):
    """And it is empty: the chart says that the control has no such event."""
    for side, name in (("a", "old"), ("b", "new")):
        write(tmp_path / side / "t.json", document(events(names=(name,))))
    sets, whole = loaded(tmp_path, "a", "b")
    context = PageContext(whole, whole, tuple(sets), View(tab="kernels"), "light")
    row = next(row for row in table_rows(whole, "kernels") if row.cells["name"] == "new_kernel")
    figure = next(part for part in spans(context, row, StepInspector()) if isinstance(part, html.Figure))
    graph = figure.children[1].children.children.figure
    assert graph.layout.yaxis.ticktext == ("control", "test")
    assert [set(bars.y) for bars in graph.data] == [{1}]


def test_spans_before_the_step_are_in_the_chart(tmp_path):
    """The host launches the second step while the GPU still works on the first."""
    late = [
        step(1, 0, 100), op("aten::mm", 5, 20), call("cudaLaunchKernel", 10, 5, correlation=1),
        step(2, 100, 500), op("aten::mm", 105, 20), call("cudaLaunchKernel", 110, 5, correlation=2),
        kernel("mm_kernel", 50, 400, correlation=1), kernel("mm_kernel", 450, 100, correlation=2),
    ]  # fmt: skip
    for side in ("a", "b"):
        write(tmp_path / side / "t.json", document(late))
    sets, whole = loaded(tmp_path, "a", "b")
    context = PageContext(whole, whole, tuple(sets), View(tab="ops", at_control="run 1|0|2"), "light")
    row = next(row for row in table_rows(whole, "ops") if row.cells["name"] == "aten::mm")
    figure = next(part for part in spans(context, row, StepInspector()) if isinstance(part, html.Figure))
    graph = figure.children[1].children.children.figure
    assert graph.layout.xaxis.range[0] == min(graph.data[0].base) < 0
    assert "a time before 0 is before the step begins on the GPU" in figure.children[0].children[1].children


def test_a_rank_of_each_side(runs):
    """Rank 1 of one set against rank 0 of the same."""
    loader = Loader(Sets(root=runs))
    view = view_of("?control=ranks&test=ranks&rank=1&test_rank=0")
    assert view_of(view.query()) == view
    load = loader.pair(view.control, view.test)
    load.finished.wait(60)
    comparison, _ = Comparisons(loader).whole(view)
    assert (comparison.control.ranks, comparison.test.ranks) == ((1,), (0,))
    assert comparison.control.label.endswith("rank 1")
    assert comparison.test.label.endswith("rank 0")
    loader.close()


@pytest.mark.slow
def test_what_a_process_reads_is_the_same_and_leaves_nothing(runs, monkeypatch, tmp_path):
    (control, _), whole = loaded(runs, "base", "slower")
    choice = StepChoice(control, "run 1|0|4", whole.control.typical)
    near = StepInspector().step(choice, (1000, 90_000))
    monkeypatch.setattr("tracediff_dashboards.reading.events.WORTH_A_PROCESS", 0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    inspector = StepInspector()
    far = inspector.step(choice, (1000, 90_000))
    assert [list(column) for column in astuple(far.timeline.marks)] == [
        list(column) for column in astuple(near.timeline.marks)
    ]
    event = int(far.timeline.marks.event.max())
    assert inspector.follow(choice, event) == StepInspector().follow(choice, event)
    assert list(tmp_path.iterdir()) == []
    inspector.close()


def test_without_space_for_events_the_error_says_so(runs, monkeypatch):
    (control, _), whole = loaded(runs, "base", "slower")
    monkeypatch.setattr("tracediff_dashboards.reading.events.WORTH_A_PROCESS", 0)
    monkeypatch.setattr("tempfile.tempdir", "/nosuch")
    with pytest.raises(TracediffError, match="its events cannot be stored"):
        StepInspector().step(StepChoice(control, "run 1|0|4", whole.control.typical), None)


def test_a_file_that_has_changed_is_not_drawn(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / name / "t.json", document(events(2)))
    (control, _), whole = loaded(tmp_path, "a", "b")
    for other in (document(events(3)), document(events(2, steps=3))):
        write(tmp_path / "a" / "t.json", other)
        with pytest.raises(TracediffError, match="has changed since it was compared"):
            StepInspector().step(StepChoice(control, "run 1|0|2", whole.control.typical), None)


def test_a_mark_leads_to_its_launch_and_the_calls_around_it(runs):
    (control, _), whole = loaded(runs, "base", "slower")
    marks = whole.control.typical.timeline.marks
    event = int(marks.event[marks.name.index("mm_kernel")])
    found = StepInspector().follow(StepChoice(control, "", whole.control.typical), event)
    assert [(what, event.name) for what, event in found] == [
        ("GPU event", "mm_kernel"),
        ("launch", "cudaLaunchKernel"),
        ("around", "aten::mm"),
    ]
    assert StepInspector().follow(StepChoice(control, "", whole.control.typical), 10**9) == []


@pytest.mark.parametrize(
    ("moved", "window"),
    [
        ({"xaxis.range[0]": 0.5, "xaxis.range[1]": 0.25}, (250_000, 500_000)),
        ({"xaxis2.range": [-1, 2]}, (0, 2_000_000)),
        ({"xaxis.autorange": True}, None),
        ({"xaxis.range[0]": "x", "xaxis.range[1]": 1}, None),
        ({"xaxis.range": [float("inf"), 1]}, None),
        ({"xaxis.range": {"x": 1}}, None),
        ({"xaxis.range[0]": 1e300, "xaxis.range[1]": 3}, (3_000_000, (1 << 60) - 1)),
        ({"xaxis.range": [-(10**300), 1 << 64]}, (0, (1 << 60) - 1)),
        ({"autosize": True}, (1, 2)),
        (None, (1, 2)),
    ],
)
def test_windows_are_read_from_what_plotly_says(moved, window):
    assert window_of(moved, 1000.0, (1, 2)) == window


def test_steps_live_in_the_address():
    view = view_of("?control=a&test=b&at_control=run+1%7C0%7C4&window=20000..60000")
    assert view.at_control == "run 1|0|4"
    assert view.window == (20_000, 60_000)
    assert view_of(view.query()) == view
    assert [
        view_of(f"?window={text}").window for text in ("", "1", "2..1", "-1..2", "a..b", "1..2..3", f"1..{1 << 61}")
    ] == [None] * 7


def test_choose_zoom_and_follow_in_the_browser(tab):
    app = tab().go("/timeline?control=base&test=slower&at_control=run+1%7C0%7C4")
    page = app.page
    page.wait_for_selector("#caption-timeline >> text=step 4 of run 1, rank 0")  # the chosen step replaces the typical
    page.wait_for_function(LISTENS)
    app.settle()
    assert page.evaluate(f"document.querySelector('{GRAPH}').layout.xaxis.range[0]") == 0
    page.wait_for_selector(".mark-names span:text-is('mm_kernel')")
    whole = page.evaluate(NAMES)
    point = page.evaluate(
        f"""() => {{
            const plot = document.querySelector('{GRAPH}'), named = c => c.includes('mm_kernel');
            const trace = plot.data.findIndex(t => t.customdata.some(named));
            const k = plot.data[trace].customdata.findIndex(named);
            return [trace, k, plot.data[trace].ids[k]];
        }}"""
    )
    assert point[2].startswith("0:")
    for _ in range(3):  # a late answer with the whole step replaces a window that was chosen before it came
        page.evaluate(
            f"Plotly.relayout(document.querySelector('{GRAPH}'), {{'xaxis.range[0]': 20, 'xaxis.range[1]': 60}})"
        )
        page.wait_for_function(
            f"() => JSON.stringify(({NAMES})()) !== "
            f"{json.dumps(json.dumps(whole, separators=(',', ':'), ensure_ascii=False))}"
        )
        app.settle()
        shown = [round(v) for v in page.evaluate(f"document.querySelector('{GRAPH}').layout.xaxis.range")]
        if shown == [20, 60]:
            break
    assert shown == [20, 60]
    page.wait_for_selector(".mark-names span:text-is('mm_kernel')")
    page.evaluate(
        f"document.querySelector('{GRAPH}').emit('plotly_click', "
        f"{{points: [{{curveNumber: 0, pointNumber: 0, id: '{point[2]}'}}], event: {{}}}})"
    )
    page.wait_for_selector("#followed table")
    assert "cudaLaunchKernel" in page.inner_text("#followed")
    assert "aten::mm" in page.inner_text("#followed")
    page.wait_for_function("() => location.search.includes('window=20000..60000')")
    other = tab().go(page.url.removeprefix(app.url))
    other.page.wait_for_selector("#caption-timeline >> text=step 4 of run 1, rank 0")
    other.page.wait_for_function(LISTENS)
    other.settle()
    assert [round(v) for v in other.page.evaluate(f"document.querySelector('{GRAPH}').layout.xaxis.range")] == [20, 60]
    other.page.evaluate(f"Plotly.relayout(document.querySelector('{GRAPH}'), {{'xaxis.autorange': true}})")
    other.page.wait_for_function("() => !location.search.includes('window=')")
    assert not app.complaints + other.complaints


def steps_in(trace):
    """Step → its marks in the overview, and the number of events of the kernel of ``mm``."""
    marks = json.loads(gzip.decompress(trace))["traceEvents"]
    return [m["name"] for m in marks if m.get("cat") == "step"], sum(m["name"] == "mm_kernel" for m in marks)


def test_perfetto_gets_the_shown_step_of_both_sides(tab):
    app = tab().go("/timeline?control=base&test=slower&at_control=run+1%7C0%7C4")
    page = app.page
    page.wait_for_selector("#caption-timeline >> text=step 4 of run 1, rank 0")
    play_perfetto(page.context)
    title, trace = taken(page, "#perfetto")
    assert "step 4 of run 1" in title
    (control, test), kernels = steps_in(trace)
    assert control == "step 4"
    assert test.startswith("step ")
    assert kernels == 2
    page.wait_for_selector("#perfetto-status >> text=Perfetto has the trace.")
    assert "nothing else is sent" in page.inner_text("#page")
    assert faults(page) == []


def test_a_step_that_cannot_be_read_is_a_line_beside_the_button(tab):
    app = tab().go("/timeline?control=base&test=slower")
    page = app.page
    play_perfetto(page.context)
    page.wait_for_function(LISTENS)
    page.route(
        "**/merged-step*", lambda route: route.fulfill(status=400, body="base: has changed since it was compared")
    )
    with page.expect_popup():
        page.click("#perfetto")
    page.wait_for_selector("#perfetto-status >> text=has changed since it was compared")


def test_without_events_on_both_sides_there_is_no_step_to_open(dashboard, runs):
    _, whole = loaded(runs, "base", "slower")
    with pytest.raises(TracediffError, match="base: a snapshot contains no events; give the traces"):
        merged_step(whole, [None, whole.test.typical])
    with pytest.raises(urllib.error.HTTPError) as found:
        urllib.request.urlopen(f"{dashboard.url}/merged-step", timeout=60)
    assert found.value.code == 400
    assert found.value.read().decode().startswith("dashboard: no comparison is loaded; ")
