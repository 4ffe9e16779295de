"""The HTML report, in a real browser: every section is there, tables sort and search, links land, and nothing recorded
is ever run.
"""

import json
from copy import deepcopy
from functools import cache, partial
from itertools import pairwise

import pytest
from browser import faults, scrolled
from build_trace import annotation, call, document, kernel, op, step, write
from click.testing import CliRunner
from msgspec.structs import replace
from page_data import page_data
from real_sets import COMMAND, real_comparison, real_report
from tracediff_cli.group import cli
from traces import FOLDER, needs_traces, trace

import tracediff
from tracediff import charts
from tracediff.diff.ops import Op
from tracediff.present.answer import answer_of
from tracediff.report.page.figures import chart
from tracediff.report.page.html import WORK_TITLES, explanation, to_html, to_notebook, to_summary
from tracediff.structs import Pair

LARGEST = 6_000_000
"""Bytes of a page, whatever the input (docs/report.md)."""
USUAL = 2_500_000
"""Bytes of the page of a real pair."""
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "{{x}}${x} %{customdata} $\\href{javascript:alert(1)}{y}$",
    '"><svg onload=alert(1)>',
    "\u202ertl\x00\x07\x1b[31m\ud800",
    "n" * 10_000,
)
WORK, STEP = ("flame", "changes"), ("step", "timeline")
SECTIONS = (
    "answer",
    "why",
    *STEP,
    *WORK,
    "distributions",
    "charts",
    "preflight",
    "origin",
)
"""Of a pair of one rank whose first cause is on the host."""


def events(scale=1, names=("gemm", "add")):
    """Three steps, in each of which every name is an operator with a kernel of ``scale`` times 20 µs."""
    out = []
    for k in range(3):
        start = 100 * len(names) * k
        out.append(step(k + 1, start, 80 * len(names)))
        for j, name in enumerate(names):
            begin, number = start + 70 * j, 1000 * k + j + 1
            out += [op(f"aten::{name}", begin, 20), call("cudaLaunchKernel", begin + 2, 3, correlation=number)]
            out.append(kernel(name, begin + 20, 20 * scale, correlation=number))
    return out


def compared(folder, control, test, **options):
    paths = [
        write(folder / side / "trace.json", document(side_events))
        for side, side_events in (("control", control), ("test", test))
    ]
    return tracediff.compare(*map(str, paths), **options).comparison


def written(folder, comparison):
    path = folder / "report.html"
    path.write_text(to_html(comparison, COMMAND), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def report_of(tmp_path_factory):
    """The file with the report of a pair of real traces."""

    @cache
    def report(control, test):
        path = tmp_path_factory.mktemp(control) / "report.html"
        path.write_text(real_report(control, test), encoding="utf-8")
        return path

    return report


@pytest.fixture(scope="module")
def resnet(report_of):
    """The report of the pair whose story is the DataLoader."""
    return report_of("resnet50_workers0", "resnet50_workers4")


@pytest.fixture(scope="module")
def doubled(tmp_path_factory):
    """The report of two small sets, of which test's kernels take twice as long."""
    folder = tmp_path_factory.mktemp("doubled")
    return written(folder, compared(folder, events(), events(2)))


def rows(page, table):
    """The names of the rows of a table that exist now."""
    return page.eval_on_selector_all(
        f"#{table} tbody tr[data-place] td:first-child", "cells => cells.map(c => c.textContent)"
    )


@needs_traces
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_every_section_and_chart_is_drawn_without_a_complaint(visit, resnet, width, dark):
    visited = visit(resnet, width, dark)
    page = visited.page
    scrolled(page)
    assert page.eval_on_selector_all("main > section", "all => all.map(s => s.id)") == list(SECTIONS)
    assert not visited.complaints
    drawn = set(page.eval_on_selector_all("[data-chart]", "all => all.map(c => c.dataset.chart)"))
    assert drawn == set(charts.NAMES) - {"ranks", "step_waterfall"}  # one rank; the states are a table with bars
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(23, 27, 33)" if dark else "rgb(255, 255, 255)"
    )
    levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert all(page.eval_on_selector_all(".chart", "all => all.map(c => c.getAttribute('aria-label').length > 20)"))
    assert width < 1280 or dark or faults(page) == []


def test_where_the_gpu_is_the_cause_its_work_stands_first(visit, doubled):
    page = visit(doubled).page
    ids = page.eval_on_selector_all("main > section", "all => all.map(s => s.id)")
    assert ids == [*SECTIONS[:2], *WORK, *STEP, *SECTIONS[6:]]


def test_sections_have_the_names_of_their_links(visit, doubled):
    page = visit(doubled).page
    links = page.eval_on_selector_all("header nav a", "all => all.map(a => [a.hash, a.textContent])")
    assert [page.inner_text(f"{section} h2") for section, _ in links] == [text for _, text in links]


def test_tables_say_what_their_times_are(visit, doubled):
    page = visit(doubled).page
    assert page.inner_text(".changes caption") == "GPU work by operator: GPU time in µs per step"
    for tab, time in (("Operators and calls", "self time"), ("Kernels and copies", "GPU time")):
        page.click(f"text={tab}")
        assert page.inner_text("#ops .found").endswith(f"; {time} in µs per step")


def test_the_time_of_files_without_steps_is_of_the_whole_file(visit, tmp_path):
    control, test = ([e for e in events(scale) if e["name"][:12] != "ProfilerStep"] for scale in (1, 2))
    path = written(tmp_path, compared(tmp_path, control, test))
    visited = visit(path)
    page = visited.page
    assert page.inner_text(".changes caption").endswith("µs over the whole file")
    assert page.inner_text(".states tfoot th") == "whole file"
    assert "add up to the whole file: 0 ns unexplained" in page.inner_text("#step")
    page.set_viewport_size({"width": 390, "height": 900})
    visited.turn(path)
    heads = ".rows:visible th >> nth={}"
    assert all(page.locator(heads.format(k)).evaluate("h => h.scrollWidth <= h.clientWidth") for k in range(3))
    assert "per step" not in page.inner_text("main")


@needs_traces
def test_the_bar_of_the_step_is_the_sum_of_those_above(visit, resnet):
    page = visit(resnet).page
    edges = page.eval_on_selector_all(
        "#why .bar span", "all => all.map(s => s.getBoundingClientRect()).map(r => [r.left, r.right].map(Math.round))"
    )
    host, *_, gpu, step = edges  # the step waits less for either
    assert step == pytest.approx([gpu[0], host[1]], abs=1)


@needs_traces
def test_a_page_has_at_most_eight_screens(visit, report_of):
    page = visit(report_of("hta_control", "hta_test")).page
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.evaluate("document.documentElement.scrollHeight") <= 8 * 800


@needs_traces
@pytest.mark.parametrize(
    ("control", "test"),
    [("hta_control", "hta_test"), ("resnet50_workers0", "resnet50_workers4"), ("tinylm_compile", "tinylm_cudagraph")],
)
def test_the_first_screen_has_the_verdict_its_causes_and_all_lines_of_why(visit, report_of, control, test):
    comparison = real_comparison(control, test)
    page = visit(report_of(control, test)).page
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.locator("#why tbody tr").count() == len(explanation(comparison).rows)
    ends = "all => all.map(e => e.getBoundingClientRect().bottom)"
    shown = page.eval_on_selector_all(".verdict, .lead, #why tr", ends)
    assert shown == sorted(shown)
    assert shown[-1] <= 800
    text = page.inner_text("#answer") + page.inner_text("#why")
    for sentence in (answer_of(comparison).verdict, *answer_of(comparison).below, answer_of(comparison).setting):
        assert text.count(sentence) == 1


@needs_traces
def test_several_ranks_are_drawn(visit, tmp_path):
    diff = tracediff.compare(FOLDER / "dlrm_8ranks", FOLDER / "dlrm_8ranks", force=True)
    visited = visit(written(tmp_path, diff.comparison))
    scrolled(visited.page)
    visited.page.click("header nav >> text=Ranks")
    assert "heatmap" in visited.page.evaluate("document.getElementById('chart-ranks').data.map(d => d.type)")
    assert not visited.complaints


def test_a_browser_that_cannot_unpack_the_data_says_so(browser, doubled):
    page = browser.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(doubled.as_uri())
    assert "cannot show the charts and long tables: DecompressionStream" in page.inner_text("main .caution >> nth=0")
    assert "per step" in page.inner_text("#answer")
    page.close()


@needs_traces
def test_the_answer_stands_first_and_needs_no_script(resnet):
    text = resnet.read_text(encoding="utf-8")
    body = text[text.index("<main") : text.index('id="data"')]
    order = [body.index(f'id="{key}"') for key in SECTIONS]
    assert order == sorted(order)
    for expected in (
        "24 % less time per step: 175.5 → 132.8 ms, with _MultiProcessingDataLoaderIter instead of "
        "_SingleProcessDataLoaderIter",
        "loading data",
        "69.4 → 0.8",
        "−66.3",
        "−56.2",
        "The states add up to the step: 0 ns unexplained",
        "steps 6–10 (warm-up: step 5)",
    ):
        assert expected in body
    assert COMMAND in body
    assert len(text.encode()) < USUAL


@needs_traces
def test_without_javascript_the_page_says_so_and_leaves_no_gaps(browser, resnet):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(resnet.as_uri())
    assert "shows no charts" in page.inner_text("main")
    assert "loading data" in page.inner_text("#why")
    assert not any(place.is_visible() for place in page.query_selector_all(".chart, input, #theme"))
    context.close()


@needs_traces
def test_tables_sort_and_search(visit, resnet):
    page = visit(resnet).page
    assert page.inner_text(".tabs [aria-pressed=true]") == "Operators and calls"  # the first cause is on the host
    assert page.is_hidden("#groups")
    first = rows(page, "ops")
    assert first[0] == "aten::copy_"
    page.click("#ops th[data-column=name] button")
    assert page.get_attribute("#ops th[data-column=name]", "aria-sort") == "ascending"
    assert rows(page, "ops") == sorted(rows(page, "ops"), key=str.lower)
    page.click("#ops th[data-column=name] button")
    assert rows(page, "ops") == sorted(rows(page, "ops"), key=str.lower, reverse=True)
    page.fill("#ops input[type=search]", "ADAPTIVE_avg")
    assert set(rows(page, "ops")) == {"aten::adaptive_avg_pool2d"}
    page.fill("#ops input[type=search]", "no such thing")
    assert rows(page, "ops") == []
    assert page.inner_text("#ops .found").strip().startswith("0 of ")
    page.fill("#ops input[type=search]", "ProfilerStep")
    assert rows(page, "ops") == []
    page.click("text=Annotations and Python")
    assert rows(page, "ops") == ["ProfilerStep#"]
    page.fill("#ops input[type=search]", "")
    page.click("text=Kernels and copies")
    assert set(page.locator("#ops td[data-column=category]").all_inner_texts()) <= {
        "kernel",
        "gpu_memcpy",
        "gpu_memset",
    }
    assert len(rows(page, "ops")) > 10
    page.click("text=Annotations and Python")
    page.click(".changes a >> nth=0")
    assert page.is_hidden("#ops")
    page.click("#groups .details .sides button >> nth=0")
    assert page.locator("#ops tr.chosen").count() == 1  # a link finds its row whatever was chosen


def test_a_list_keeps_what_was_searched_in_another(visit, doubled, tmp_path):
    visited = visit(doubled)
    page = visited.page
    assert page.locator("[data-tab]:visible").all_inner_texts() == [*WORK_TITLES.values()]
    page.fill("#groups input[type=search]", "add")
    page.click("text=Kernels and copies")
    assert rows(page, "ops") == ["add"]
    assert page.is_hidden("#groups")
    assert page.inner_text("#ops .found").strip().startswith("1 of 2;")
    assert page.get_attribute("#ops table", "aria-rowcount") == "2"
    page.click("text=Operators and calls")
    assert rows(page, "ops") == ["aten::add"]
    visited.turn(written(tmp_path, compared(tmp_path, *[[e for e in events() if e["cat"] == "cpu_op"]] * 2)))
    assert page.locator("[data-tab]:visible").all_inner_texts() == ["Matched work", "Operators and calls"]


def waited(us):
    """Three steps that wait for a product of ``us``."""
    out = []
    for k in range(3):
        start = 1000 * k
        out += [step(k + 1, start, 100 + us), op("aten::mm", start, 20)]
        out += [call("cudaLaunchKernel", start + 2, 3, correlation=k + 1), kernel("gemm", start + 20, us, k + 1)]
        out.append(call("cudaDeviceSynchronize", start + 30, us - 9))
    return out


def test_a_line_of_the_explanation_opens_its_work_and_that_its_partners(visit, tmp_path):
    visited = visit(written(tmp_path, compared(tmp_path, waited(100), waited(500))))
    page = visited.page
    link = "#why a[data-table=groups] >> nth=0"
    named = page.get_attribute(link, "data-find")
    page.click(link)
    assert page.input_value("#groups input[type=search]") == named
    members = [place.inner_text() for place in page.query_selector_all("#groups .details .sides ul")]
    assert members == ["1 × gemm, 100.0 µs", "1 × gemm, 500.0 µs"]
    page.click("#groups .details li button >> nth=0")
    assert "Matched groups".lower() in page.inner_text("#ops .details").lower()
    page.click("#ops .details li button >> nth=0")
    assert page.is_visible("#groups .details .sides")
    assert not visited.complaints


def test_an_open_row_shows_its_work_on_the_timeline(visit, tmp_path):
    page = visit(written(tmp_path, compared(tmp_path, events(), events(1, ("gemm", "softmax"))))).page
    scrolled(page)
    bright = """document.getElementById("chart-timeline").data.flatMap(
        (t) => (t.selectedpoints ?? [...t.ids.keys()]).map((k) => /<b>(.*?)<.b>/.exec(t.customdata[k])[1]))"""
    everything = page.evaluate(bright)
    page.locator("#groups tbody button", has_text="softmax").click()
    assert page.evaluate(bright) == ["softmax"]  # of the one step that is drawn
    page.get_by_role("button", name="0 marks in control, 1 in test").click()
    page.locator("#groups .details").get_by_role("button", name="close").click()
    assert page.evaluate(bright) == everything


@needs_traces
@pytest.mark.parametrize("link", ["#changes .changes a >> nth=1", "#changes .changes a >> nth=3"])
def test_back_returns_to_the_link_that_was_followed(visit, resnet, link):
    visited = visit(resnet)
    page = visited.page
    name = page.inner_text(link)
    page.click(link)
    page.wait_for_function("() => document.querySelector('.browse .details:not([hidden])')")
    page.go_back()
    page.wait_for_function("name => document.activeElement.textContent === name", arg=name)
    place = page.evaluate("document.activeElement.getBoundingClientRect().top")
    assert 0 < place < 900
    page.go_forward()
    page.wait_for_function("() => document.activeElement.type === 'search'")
    page.click("nav a[href='#flame']")
    page.wait_for_function("() => Math.abs(document.querySelector('#flame').getBoundingClientRect().top) < 120")
    assert not visited.complaints


@needs_traces
def test_a_narrow_window_shows_names_and_changes_whole(visit, resnet):
    page = visit(resnet, 390).page
    for table in ("ops", "groups"):
        page.click(f"[data-tab={table}]")
        assert page.evaluate(f"(box => box.scrollWidth <= box.clientWidth)(document.querySelector('#{table} .rows'))")
        assert page.is_visible(f"#{table} tbody tr[data-place='0'] td[data-column^=delta]")
        assert not page.eval_on_selector_all(
            f"#{table} .number", "cells => cells.filter(c => c.scrollWidth > c.clientWidth).map(c => c.textContent)"
        )
    titles = "[...document.querySelectorAll('figcaption')].every(c => c.scrollWidth <= c.clientWidth)"
    assert page.evaluate(titles)


@needs_traces
@pytest.mark.parametrize("width", [1280, 700])
def test_heads_of_tables_fit_their_columns(visit, resnet, width):
    heads = visit(resnet, width).page.eval_on_selector_all(
        ".sums.why thead th", "heads => heads.filter(h => h.scrollWidth > h.clientWidth).map(h => h.textContent)"
    )
    assert heads == []


def test_words_are_whole_beside_long_file_names(visit, tmp_path):
    comparison = compared(tmp_path, events(), events(2))
    many = tuple(f"worker{k}_step_12.1694128201545.pt.trace.json.gz" for k in range(8))
    page = visit(
        written(
            tmp_path,
            replace(
                comparison, control=replace(comparison.control, files=many), test=replace(comparison.test, files=many)
            ),
        )
    ).page
    lines = (
        "(cell => cell.getClientRects().length && cell.clientHeight / parseFloat(getComputedStyle(cell).lineHeight))"
    )
    assert (
        page.evaluate(
            f"{lines}([...document.querySelectorAll('#origin th')].find(c => c.textContent === 'created with'))"
        )
        < 2
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


@needs_traces
def test_tables_are_used_by_keyboard(visit, resnet):
    page = visit(resnet).page
    page.click("text=Matched work")
    page.focus("#groups tbody button >> nth=0")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    names = rows(page, "groups")
    assert page.evaluate("document.activeElement.textContent") == names[2]
    page.keyboard.press("Enter")
    assert page.is_visible("#groups .details")
    assert page.evaluate("document.querySelector('#groups .details').getBoundingClientRect().bottom <= innerHeight + 1")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.details') !== null")
    page.focus("#groups .details p:last-child button")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == names[2]
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.closest('tr').getAttribute('aria-rowindex')") == page.get_attribute(
        "#groups table", "aria-rowcount"
    )


@needs_traces
def test_the_theme_changes_page_and_charts_together(visit, resnet):
    visited = visit(resnet)
    page = visited.page
    page.locator("#timeline").scroll_into_view_if_needed()  # charts are drawn when they come into view
    page.wait_for_selector("#chart-timeline .main-svg")
    paper = "document.querySelector('#chart-timeline').layout.template.layout.paper_bgcolor"
    assert page.evaluate(paper) == "#FFFFFF"
    page.click("#theme")
    page.wait_for_function(f"() => {paper} === '#171B21'")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(23, 27, 33)"
    page.click("#theme")
    page.wait_for_function(f"() => {paper} === '#FFFFFF'")
    assert not visited.complaints


@needs_traces
def test_print_shows_every_chart_and_the_first_rows(visit, resnet):
    visited = visit(resnet, dark=True)
    page = visited.page
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.wait_for_function("() => [...document.querySelectorAll('.chart')].every(c => c.querySelector('.main-svg'))")
    assert len(rows(page, "ops")) == 40
    assert not page.is_visible("header")
    assert page.pdf().startswith(b"%PDF")
    widest = "Math.max(...[...document.querySelectorAll('.chart .main-svg')].map(c => c.getBoundingClientRect().width))"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(widest) <= 690  # what A4 leaves between margins of a centimetre
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.wait_for_function(f"() => {widest} > 1000")


@pytest.mark.slow
def test_a_dark_chart_is_the_light_one_with_its_differences(tmp_path):
    comparison = compared(tmp_path, events(), events(2))
    for name in charts.NAMES:
        drawn = chart(name, partial(getattr(charts, name), comparison))
        if drawn.data is None:
            continue
        patched = deepcopy(drawn.data)
        for path, value in patched.pop("dark"):
            node = patched
            for key in path[:-1]:
                node = node[key]
            node[path[-1]] = value
        dark = getattr(charts, name)(comparison, theme="dark")
        assert patched["data"] == json.loads(dark.to_json())["data"]
        assert patched["layout"]["template"] == json.loads(dark.to_json())["layout"]["template"]


def test_nothing_recorded_is_run_or_lost(visit, tmp_path):
    control, test = events(names=HOSTILE), events(2, names=HOSTILE[::-1])
    for side_events in (control, test):
        side_events.append(annotation(HOSTILE[0], 1, 2))
    comparison = compared(tmp_path, control, test, force=True)
    sides = [
        replace(side, label=HOSTILE[k], files=HOSTILE, torch=HOSTILE[1], devices=(HOSTILE[0],))
        for k, side in enumerate((comparison.control, comparison.test))
    ]
    hostile = replace(comparison, control=sides[0], test=sides[1])
    path = tmp_path / "report.html"
    path.write_text(to_html(hostile, f"tracediff compare '{HOSTILE[1]}'"), encoding="utf-8")
    visited = visit(path)
    page = visited.page
    for scheme in ("light", "dark"):
        if scheme == "dark":
            page.emulate_media(color_scheme=scheme)
            visited.turn(path)
        scrolled(page)
        page.click("text=Kernels and copies")
        for name in HOSTILE[:5]:
            page.fill("#ops input[type=search]", name)
            assert name in rows(page, "ops")
            page.click("#ops tbody button >> nth=0")
            assert name in page.inner_text("#ops .details")
        page.hover("#chart-duration_diff .barlayer .point >> nth=0", force=True)
        assert page.inner_text("h1") == f"{HOSTILE[0]} → {HOSTILE[1]}"
        assert page.eval_on_selector_all("main script, main img, main svg [onload]", "all => all.length") == 0
        assert not visited.complaints


def test_hostile_names_are_text_in_fragments_too(visit, tmp_path):
    comparison = compared(tmp_path, events(names=HOSTILE), events(2, names=HOSTILE[::-1]))
    del comparison
    result = CliRunner().invoke(
        cli, ["export", str(tmp_path / "control"), str(tmp_path / "test"), "--charts", str(tmp_path / "charts")]
    )
    assert result.exit_code == 0
    first, *others = (
        tmp_path / "charts" / f"{name}.html" for name in ("duration_diff", "families", "timeline", "step_waterfall")
    )
    visited = visit(first, ready=".main-svg")
    for path in others:
        visited.turn(path, ready=".main-svg")
    assert not visited.complaints


def test_ten_thousand_rows_are_in_the_page_and_a_screen_of_them_in_the_document(visit, tmp_path):
    comparison = compared(tmp_path, events(), events(2))
    op = next(o for o in comparison.ops if o.category == "kernel")
    many = replace(
        comparison,
        ops=tuple(
            replace(op, counted_as=f"k{k}", raw_name=f"k{k}", self_time=op.self_time._replace(control=1000 * k))
            for k in range(12_000)
        ),
    )
    page = visit(written(tmp_path, many)).page
    page.click("text=Kernels and copies")
    assert page.inner_text("#ops .found").strip().startswith("10,000 of 12,000")
    assert "2,000 with the smallest change are omitted" in page.inner_text("#ops .found")
    assert len(rows(page, "ops")) < 60
    page.evaluate("document.querySelector('#ops .rows').scrollTop = 1e9")
    page.wait_for_function("() => document.querySelector('#ops tbody tr[data-place=\"9999\"]')")
    assert len(rows(page, "ops")) < 60


@pytest.mark.slow
def test_the_page_stays_below_its_limit_whatever_the_input(tmp_path):
    comparison = compared(tmp_path, events(), events(2))
    name = "漢<" * 400
    group = comparison.work.groups[0]
    first = group.items.control[0]
    others = tuple(replace(first, op=f"{name}{k}", module=None) for k in range(40))

    def crowd(k):
        largest = replace(first, name=f"{name}{k}", ns=2 * first.ns, module=f"{k}{name}")
        return replace(group, items=Pair((largest, *others), (largest, *others)), call=name)

    groups = tuple(map(crowd, range(1_000)))
    ops = tuple(
        Op(
            counted_as=f"{k}{name}",
            raw_name=f"{name}{k}",
            category="kernel",
            family="pointwise",
            count=Pair(5, 6),
            total=Pair(1000 + k, 2000 + k),
            self_time=Pair(1000 + k, 2000 + k),
        )
        for k in range(1_000)
    )
    large = replace(comparison, ops=ops, gpu_time=replace(comparison.gpu_time, groups=groups))
    page = to_html(large)
    assert len(page.encode()) < LARGEST
    data = page_data(page)
    assert data["ops"]["all"] == 1_000
    assert 100 < len(data["ops"]["rows"]) < 1_000
    assert 100 < len(data["groups"]["rows"]) < 1_000


def test_a_refused_comparison_says_why(visit, tmp_path):
    cpu = [e for e in events() if e["cat"] in ("cpu_op", "user_annotation")]
    comparison = compared(tmp_path, cpu, events())
    assert comparison.was_refused
    visited = visit(written(tmp_path, comparison))
    scrolled(visited.page)
    assert "Not comparable" in visited.page.inner_text("#answer")
    assert not visited.complaints


@pytest.mark.slow
def test_the_command_writes_the_page(tmp_path):
    compared(tmp_path, events(), events(2))
    target = tmp_path / "out.html"
    result = CliRunner().invoke(
        cli, ["compare", str(tmp_path / "control"), str(tmp_path / "test"), "--html", str(target)]
    )
    assert result.exit_code == 0
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    diff = tracediff.compare(tmp_path / "control", tmp_path / "test")
    assert diff.to_html(tmp_path / "again.html") == (tmp_path / "again.html").read_text(encoding="utf-8")


def test_a_notebook_shows_the_verdict_and_the_step(tmp_path):
    comparison = compared(tmp_path, events(names=HOSTILE), events(2, names=HOSTILE))
    shown = to_summary(replace(comparison, control=replace(comparison.control, label=HOSTILE[0])))
    assert "per step" in shown.partition("verdict")[2][:300]
    assert "The states add up to the step: 0 ns unexplained" in shown
    assert "<script" not in shown
    assert "href" not in shown
    diff = tracediff.Diff(comparison)
    assert diff.summary_html() == to_summary(comparison)
    assert diff._repr_html_() == to_notebook(comparison)


def test_the_flame_graph_of_a_notebook_draws_in_its_frame(tmp_path, visit):
    shown = to_notebook(compared(tmp_path, events(names=HOSTILE), events(2, names=HOSTILE)))
    (tmp_path / "cell.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{shown}", encoding="utf-8")
    opened = visit(tmp_path / "cell.html", ready="iframe")
    frame = opened.page.frame_locator("iframe")
    frame.locator(".flame-box").first.wait_for()
    assert frame.locator(".flame-box").first.text_content() == "all work"
    assert opened.complaints == []


@needs_traces
def test_a_cell_of_a_notebook_is_small():
    pair = trace("timesformer_h100"), trace("timesformer_mi300")
    assert len(tracediff.compare(*map(str, pair))._repr_html_()) < 2_000_000


def test_a_notebook_has_no_link_that_leads_nowhere(tmp_path):
    cpu = [e for e in events() if e["cat"] in ("cpu_op", "user_annotation")]
    shown = to_summary(compared(tmp_path, cpu, events()))
    assert "Not comparable" in shown
    assert "href" not in shown
