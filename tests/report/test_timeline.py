"""The report's timeline: what a click says of an event, and how a highlight ends; tables that are typed into."""

import pytest
from build_trace import call, document, kernel, op, step, write

import tracediff
from tracediff.report.page.html import to_html

SELECTION = ".selection"
BRIGHT = """document.getElementById("chart-timeline").data.flatMap(
    (t) => (t.selectedpoints ?? [...t.ids.keys()]).map((k) => t.ids[k])).length"""
NOT_HIGHLIGHTED = "Click an event to see what it is, and where else it runs."


def events(ns):
    """Three steps; in each, aten::mm launches two GEMMs of ``ns`` µs; no operator launches a third kernel."""
    out = []
    for k in range(3):
        start = 1000 * k
        out += [step(k + 1, start, 900), op("aten::mm", start + 5, 60)]
        for j, name in enumerate(("gemm<float>", "gemm<float>", "alone")):
            number = 10 * k + j + 1
            out += [call("cudaLaunchKernel", start + 10 + 30 * j, 5, correlation=number)]
            out += [kernel(name, start + 100 + 200 * j, ns, correlation=number)]
    return out


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("timeline")
    for side, ns in (("before", 90), ("after", 150)):
        write(folder / side / "trace.json", document(events(ns)))
    page = folder / "report.html"
    page.write_text(to_html(tracediff.compare(folder / "before", folder / "after").comparison), encoding="utf-8")
    return page


def place_of(page, name, k=0):
    """Centre of the k-th mark whose hover text contains ``name``, on the screen."""
    page.eval_on_selector("#chart-timeline", "place => place.scrollIntoView({ block: 'center' })")
    page.wait_for_selector("#chart-timeline .barlayer path", state="attached")
    return page.evaluate(
        """([name, k]) => [...document.querySelectorAll("#chart-timeline .barlayer .trace")].flatMap((trace) => {
            const texts = trace.__data__[0].trace.customdata;
            return [...trace.querySelectorAll("path")].filter((_, i) => texts[i].includes(name));
          }).map((path) => path.getBoundingClientRect()).map((r) => [r.x + r.width / 2, r.y + r.height / 2])[k]""",
        [name, k],
    )


def click_on(page, name, k=0):
    page.mouse.click(*place_of(page, name, k))
    page.wait_for_selector(f"{SELECTION} strong")
    return page.inner_text(SELECTION)


@pytest.mark.parametrize(("k", "side", "duration"), [(0, "control: before", "90.0 µs"), (2, "test: after", "150.0 µs")])
def test_a_clicked_event_says_what_it_is_and_shows_its_likes(visit, report, k, side, duration):
    visited = visit(report)
    page = visited.page
    text = click_on(page, "gemm&lt;float&gt;", k)
    assert text.startswith("gemm<float>\n")
    assert f"{side}, rank 0 · GPU 0 stream 7 · {duration}, at " in text
    assert text.split("launched by ")[1].startswith("aten::mm\n")
    assert "Highlighted: 2 marks in control, 2 in test." in text
    assert page.evaluate(BRIGHT) == 4
    page.get_by_role("button", name="Show in the table").click()
    assert "gemm<float>" in page.inner_text("#ops tbody tr.chosen td:first-child")
    assert not visited.complaints


def test_wide_marks_have_their_names_and_a_highlight_those_of_its_own(visit, report):
    page = visit(report).page
    place_of(page, "gemm")
    names = ".mark-names span:text-is('{}')"
    page.wait_for_selector(names.format("gemm<float>"))
    assert page.locator(names.format("gemm<float>")).count() == 4
    assert page.locator(names.format("cudaLaunchKernel")).count() == 0  # too narrow
    page.evaluate("Plotly.relayout('chart-timeline', {'xaxis.range': [0, 120]})")
    page.wait_for_selector(names.format("cudaLaunchKernel"))
    page.evaluate("Plotly.relayout('chart-timeline', {'xaxis.range': [0, 1000]})")
    click_on(page, "gemm&lt;float&gt;")
    page.wait_for_selector(names.format("alone"), state="detached")
    assert page.locator(names.format("gemm<float>")).count() == 4


def test_an_event_that_no_operator_launched_names_none(visit, report):
    assert "launched by" not in click_on(visit(report).page, "alone")


def test_a_click_between_events_opens_the_nearest_of_the_row(visit, report):
    page = visit(report).page
    x, y = place_of(page, "alone")
    page.mouse.click(x + 200, y)  # nothing runs there
    page.wait_for_selector(f"{SELECTION} strong")
    assert page.inner_text(SELECTION).startswith("alone")


@pytest.mark.parametrize("end", ["key", "button"])
@pytest.mark.parametrize("start", ["event", "row"])
def test_a_highlight_can_be_cleared(visit, report, start, end):
    page = visit(report).page
    place_of(page, "gemm")
    everything = page.evaluate(BRIGHT)
    if start == "event":
        click_on(page, "gemm")
    else:
        page.locator("#groups tbody tr", has_text="gemm").locator("button").click()
        assert page.inner_text(f"{SELECTION} strong") == "aten::mm"
    assert page.evaluate(BRIGHT) == 4
    if end == "key":
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("Escape")
    else:
        page.get_by_role("button", name="Clear").click()
    assert page.evaluate(BRIGHT) == everything
    assert page.inner_text(SELECTION) == NOT_HIGHLIGHTED


def test_a_row_shows_its_events_also_where_longer_ones_share_their_marks(visit, tmp_path):
    """Of two kernels within a pixel the shorter one was nowhere on the timeline."""
    for side, us in (("before", 0.2), ("after", 0.3)):
        events = [step(1, 0, 10_000)]
        for k, name in enumerate(("long", "short")):
            events += [op(f"aten::{name}", 100 * k, 50), call("cudaLaunchKernel", 100 * k + 5, 5, correlation=k + 1)]
            events += [kernel(f"{name}_kernel", 5000 + k, us * (2 - k), correlation=k + 1)]
        write(tmp_path / side / "t.json", document(events))
    path = tmp_path / "report.html"
    path.write_text(to_html(tracediff.compare(tmp_path / "before", tmp_path / "after").comparison), encoding="utf-8")
    page = visit(path).page
    page.click("text=Kernels and copies")
    for name in ("long_kernel", "short_kernel"):
        page.locator("#ops tbody button", has_text=name).click()
        assert page.locator("#ops .details button", has_text="1 mark in control, 1 in test").count() == 1
    place_of(page, "long_kernel")
    assert page.evaluate(BRIGHT) == 2


def test_states_have_no_likes(visit, report):
    text = click_on(visit(report).page, "<b>GPU compute")
    assert "before, rank 0 · state · " in text
    assert "Highlighted: 1 mark in control, 0 in test." in text
    assert "Show in the table" not in text


def test_a_table_keeps_the_focus_while_it_is_searched_and_takes_none_before(visit, report):
    page = visit(report).page
    assert page.evaluate("document.activeElement === document.body")
    page.click("text=Kernels and copies")
    page.click("#ops input[type=search]")
    page.keyboard.type("gemm")
    assert page.input_value("#ops input[type=search]") == "gemm"
    page.keyboard.press("Tab")  # the box beside it
    page.locator("#ops tbody button").first.press("Enter")
    page.locator("#ops .details button").first.press("Escape")
    assert page.is_hidden("#ops .details")
    assert "gemm" in page.evaluate("document.activeElement.textContent")
