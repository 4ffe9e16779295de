"""The report's trace of its timeline: what is in it, and that Perfetto's page gets it, and no other page."""

import json
from itertools import pairwise

import pytest
from browser import faults, play_perfetto, taken
from build_trace import call, document, kernel, memory, op, step, write
from real_sets import real_comparison, real_report
from traces import needs_traces

import tracediff
from tracediff.report.page.html import to_html
from tracediff.report.to_perfetto import timeline_trace

STATUS = ".perfetto [role=status]"
PAIRS = [("resnet50_workers0", "resnet50_workers4"), ("hta_control", "hta_test")]


def events(ns):
    out = []
    for k in range(3):
        start = 200 * k
        out += [step(k + 1, start, 150), op("</script><b>", start + 5, 40), memory(start + 10, 400, 500)]
        out += [call("cudaLaunchKernel", start + 10, 5, correlation=k + 1)]
        out += [kernel("gemm", start + 30, ns, correlation=k + 1)]
    return out


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    for side, ns in (("before", 40), ("after", 60)):
        write(folder / side / "trace.json", document(events(ns)))
    return folder / "before", folder / "after"


@pytest.fixture(scope="module")
def compared(sets):
    return tracediff.compare(*sets)


@pytest.fixture(scope="module")
def report(tmp_path_factory, compared):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(to_html(compared.comparison), encoding="utf-8")
    return path


def marks_of(text):
    return [event for event in json.loads(text)["traceEvents"] if event["ph"] == "X"]


def test_the_trace_has_the_step_and_the_events_of_both_sides(compared):
    marks = marks_of(timeline_trace(compared.comparison))
    steps = [mark["dur"] for mark in marks if mark["cat"] == "step"]
    assert steps == [(s.typical.timeline.end - s.typical.timeline.start) / 1000 for s in compared.comparison.sides]
    assert [mark["dur"] for mark in marks if mark["name"] == "gemm"] == [40, 60]
    assert {mark["name"] for mark in marks} >= {"</script><b>", "GPU compute"}


@needs_traces
@pytest.mark.parametrize(("control", "test"), PAIRS)
def test_no_mark_of_a_row_overlaps_another_and_none_is_lost(control, test):
    comparison = real_comparison(control, test)
    marks = marks_of(timeline_trace(comparison))
    rows = {}
    for mark in marks:
        if mark["cat"] not in ("step", "state"):
            rows.setdefault((mark["pid"], mark["tid"]), []).append((mark["ts"], mark["ts"] + mark["dur"]))
    assert all(a[1] <= b[0] + 1e-6 for row in rows.values() for a, b in pairwise(row))
    shown = sum(len(side.typical.timeline.marks.row) for side in comparison.sides)
    assert len(marks) == shown + 2  # and the two steps
    assert len(real_report(control, test)) < 2_500_000


def test_a_snapshot_has_no_trace_and_no_button(tmp_path, sets):
    before, after = sets
    tracediff.snapshot(before, tmp_path / "a.tdprof.gz")
    diff = tracediff.compare(tmp_path / "a.tdprof.gz", after)
    assert timeline_trace(diff.comparison) is None
    assert 'id="perfetto"' not in to_html(diff.comparison)


def test_perfetto_gets_the_trace_of_the_report(visit, report, compared):
    visited = visit(report)
    play_perfetto(visited.page.context)
    title, bytes_ = taken(visited.page, "#perfetto")
    assert "before" in title
    assert "after" in title
    assert json.loads(bytes_) == json.loads(timeline_trace(compared.comparison))
    assert visited.page.inner_text(STATUS).startswith("Perfetto has the trace. If it shows nothing, save the trace")
    assert "nothing leaves this machine" in visited.page.inner_text(".perfetto")
    assert not visited.complaints
    assert faults(visited.page) == []


def test_a_page_that_is_not_perfetto_gets_nothing(visit, report):
    page = visit(report).page
    elsewhere = "https://elsewhere.test"
    play_perfetto(page.context, elsewhere)
    moved = f"<script>location = '{elsewhere}/'</script>"
    page.context.route("https://ui.perfetto.dev/**", lambda route: route.fulfill(body=moved, content_type="text/html"))
    page.clock.install()
    with page.expect_popup() as popup:
        page.click("#perfetto")
    popup.value.wait_for_url(f"{elsewhere}/")
    popup.value.evaluate("addEventListener('message', (e) => { window.pinged = e.data; })")
    page.clock.run_for(2_000)
    popup.value.wait_for_function("() => window.pinged === 'PING'")
    assert page.inner_text(STATUS) == "Waiting for Perfetto …"
    page.clock.run_for(20_000)
    assert "did not answer" in page.inner_text(STATUS)
    assert popup.value.evaluate("window.got") is None


def test_without_a_network_a_line_says_so(visit, report):
    page = visit(report).page
    page.context.route("https://ui.perfetto.dev/**", lambda route: route.abort())
    page.clock.install()
    with page.expect_popup():
        page.click("#perfetto")
    page.clock.run_for(21_000)
    assert page.inner_text(STATUS) == "Perfetto did not answer: it needs a network."


def test_a_blocked_and_a_closed_window_are_lines(visit, report):
    page = visit(report).page
    page.context.route("https://ui.perfetto.dev/**", lambda route: route.fulfill(body="", content_type="text/html"))
    page.clock.install()
    with page.expect_popup() as popup:
        page.click("#perfetto")
    popup.value.close()
    page.clock.run_for(1_000)
    assert page.inner_text(STATUS) == "Perfetto's window was closed."
    page.evaluate("window.open = () => null")
    page.click("#perfetto")
    assert page.inner_text(STATUS).startswith("The browser blocked the window.")


def test_the_trace_is_saved(visit, report, tmp_path, compared):
    page = visit(report).page
    with page.expect_download() as download:
        page.click("#save-trace")
    download.value.save_as(tmp_path / "tracediff.json")
    assert json.loads((tmp_path / "tracediff.json").read_text()) == json.loads(timeline_trace(compared.comparison))
    assert "tracediff open tracediff.json" in page.inner_text(STATUS)
