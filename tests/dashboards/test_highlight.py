"""What stands out on the timeline: the row that is selected in the table, else the work that the filters leave."""

import pytest
from browser import faults
from build_trace import call, document, kernel, op, step, write
from dashboard_runs import events
from tracediff_dashboards.pages.rows import table_rows
from tracediff_dashboards.pages.timeline import highlight
from tracediff_dashboards.reading.comparisons import Comparisons
from tracediff_dashboards.reading.loading import Loader
from tracediff_dashboards.reading.sets import Sets
from tracediff_dashboards.reading.step_inspector import StepInspector
from tracediff_dashboards.state.view import view_of

GRAPH = "#chart-timeline .js-plotly-plot"
BRIGHT = f"""() => document.querySelector('{GRAPH}').data.flatMap((trace) =>
    (trace.selectedpoints ?? [...trace.ids.keys()]).map((k) => trace.ids[k][0] + trace.customdata[k]))"""
LISTENS = f"() => document.querySelector('{GRAPH}')?._ev?.listeners('plotly_click').length > 0"


def test_the_selected_row_stands_out_on_both_sides_until_it_is_cleared(tab):
    app = tab().go("/changes?control=base&test=slower&tab=kernels")
    page = app.page
    page.locator(".ag-row [col-id=name]", has_text="mm_kernel").first.click()
    page.click("#spans a:has-text('Show on the timeline')")
    page.wait_for_selector("#caption-timeline >> text=Highlighted: mm_kernel: 1 event in control, 1 in test.")
    app.settle()
    marks = page.evaluate(BRIGHT)
    assert [mark[0] for mark in marks] == ["0", "1"]
    assert all("mm_kernel" in mark for mark in marks)
    assert faults(page) == []
    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.querySelector('#caption-timeline').textContent.includes('Highlighted')")
    app.settle()
    assert "row=" not in page.url
    assert len(page.evaluate(BRIGHT)) > 10
    page.go_back()
    page.click("#unmark")
    page.wait_for_selector("#unmark", state="detached")
    assert not app.complaints


def test_filters_let_the_work_that_they_leave_stand_out(tab):
    app = tab().go("/timeline?control=base&test=slower&family=gemm")
    app.page.wait_for_selector(
        "#caption-timeline >> text=Highlighted: the work that the filters leave: 1 event in control"
    )
    app.settle()
    assert all("mm_kernel" in mark for mark in app.page.evaluate(BRIGHT))
    assert "highlight their work on the timeline" in app.page.inner_text("#unfiltered")


def test_where_nothing_is_to_stand_out_nothing_fades(tab):
    app = tab().go("/timeline?control=base&test=slower&device=cpu")
    app.page.wait_for_selector("#caption-timeline >> text=0 events in control, 0 in test")
    app.settle()
    assert len(app.page.evaluate(BRIGHT)) > 10


def test_operators_of_a_host_that_runs_ahead_stand_out_where_they_run(tmp_path):
    """The host launches step 2 while the GPU still works on step 1; what runs in step 2 is the operator of step 3."""
    late = []
    for k in range(3):
        late += [step(k + 1, 100 * k, 100), op("aten::mm", 100 * k + 5, 20)]
        late += [call("cudaLaunchKernel", 100 * k + 10, 5, correlation=k + 1)]
        late += [kernel("mm_kernel", 50 + 80 * k, 80, correlation=k + 1)]
    for side in ("a", "b"):
        write(tmp_path / side / "t.json", document(late))
    loader = Loader(Sets(root=tmp_path))
    loader.pair("a", "b").finished.wait(60)
    rows = "?control=a&test=b&tab=ops&at_control=run+1%7C0%7C2&at_test=run+1%7C0%7C2"
    context = Comparisons(loader).context(view_of(rows), None)
    row = next(row for row in table_rows(context.comparison, "ops") if row.cells["name"] == "aten::mm")
    context = Comparisons(loader).context(view_of(f"{rows}&row={row.key}"), None)
    events_, sentence = highlight(context, StepInspector())
    loader.close()
    assert [len(side) for side in events_] == [1, 1]
    assert ": 1 event in control, 1 in test. " in sentence


@pytest.mark.parametrize("end", ["key", "button"])
def test_the_details_of_a_clicked_event_can_be_closed(tab, end):
    app = tab().go("/timeline?control=base&test=slower")
    page = app.page
    page.wait_for_function(LISTENS)
    mark = page.evaluate(
        f"document.querySelector('{GRAPH}').data.flatMap(t => t.ids).find(id => !id.includes('state'))"
    )
    page.evaluate(
        f"document.querySelector('{GRAPH}').emit('plotly_click', "
        f"{{points: [{{curveNumber: 0, pointNumber: 0, id: '{mark}'}}], event: {{}}}})"
    )
    page.wait_for_selector("#followed table")
    assert page.evaluate("document.querySelector('#followed').offsetHeight <= innerHeight / 4")
    assert "start after the first" in page.inner_text("#followed thead")
    if end == "key":
        page.keyboard.press("Escape")
    else:
        page.click("#followed button")
    page.wait_for_selector("#followed table", state="detached")
    assert not app.complaints


def crowded(short):
    """A step of 10 ms with a pair of kernels of ``short`` ns each in the same pixel, one of aten::mm and one of
    aten::add.
    """
    out = [step(1, 0, 10_000)]
    for j, name in enumerate(("mm", "add")):
        out += [op(f"aten::{name}", 100 * j, 50), call("cudaLaunchKernel", 100 * j + 5, 5, correlation=j + 1)]
        out += [kernel(f"{name}_kernel", 500 + 0.5 * j, short / 1000, correlation=j + 1)]
    return document(out)


def context_of(folder, query):
    loader = Loader(Sets(root=folder))
    view = view_of(query)
    loader.pair(view.control, view.test).finished.wait(60)
    context = Comparisons(loader).context(view, None)
    loader.close()
    return context


def test_an_event_that_shares_a_mark_gets_one_of_its_own_to_stand_out(tmp_path):
    for name, short in (("a", 300), ("b", 400)):
        write(tmp_path / name / "t.json", crowded(short))
    context, inspector = context_of(tmp_path, "?control=a&test=b&family=gemm"), StepInspector()
    events, _ = highlight(context, inspector)

    def on_gpu(side, column):
        """Of the marks on the GPU of a side, without and with what stands out."""
        timelines = [
            inspector.step(context.shown_steps[side], None, *apart).timeline for apart in ((), events[side : side + 1])
        ]
        return [
            [
                value
                for value, row in zip(getattr(t.marks, column), t.marks.row.tolist(), strict=True)
                if "GPU" in t.rows[row]
            ]
            for t in timelines
        ]

    for side in (0, 1):
        assert on_gpu(side, "count") == [[2], [1, 1]]
        names, rows = on_gpu(side, "name")[1], on_gpu(side, "event")[1]
        assert [name for name, row in zip(names, rows, strict=True) if row in events[side]] == ["mm_kernel"]


def test_only_the_ranks_that_are_compared_are_shown(tmp_path):
    """Rank 0 of two ranks against rank 0 alone."""
    for rank in (0, 1):
        write(tmp_path / "a" / f"rank{rank}.json", document(events(rank + 1), distributedInfo={"rank": rank}))
    write(tmp_path / "b" / "rank0.json", document(events(3), distributedInfo={"rank": 0}))
    context = context_of(tmp_path, "?control=a&test=b&family=gemm")
    assert [traces.ranks for traces in context.sets] == [[0], [0]]
    assert [len(rows) for rows in highlight(context, StepInspector())[0]] == [1, 1]
