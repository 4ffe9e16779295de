"""The dashboard in a real browser: every page, filters, rows, links, change of sets, faults, and names that would
run.
"""

import re
import threading
from urllib.parse import parse_qs, urlsplit

import pytest
from dashboard_runs import HOSTILE
from tracediff_dashboards.app import make_app
from tracediff_dashboards.pages import PAGES
from tracediff_dashboards.server import bound
from tracediff_dashboards.sets import Sets

PAIR = "?control=base&test=faster"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (768, "dark")])
def test_every_page_is_drawn_without_a_complaint(tab, width, scheme):
    one = tab(width, color_scheme=scheme)
    for page in PAGES:
        one.go(f"/{page}{PAIR}").settle()
        assert one.page.evaluate("document.documentElement.scrollWidth") <= width
        assert one.page.inner_text("nav a.current") == PAGES[page]
    assert one.page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(23, 27, 33)" if scheme == "dark" else "rgb(255, 255, 255)"
    )
    assert not one.complaints


def test_the_overview_shows_the_verdict_and_leads_to_the_work(tab):
    one = tab().go(f"/{PAIR}")
    assert "faster per step" in one.page.inner_text(".verdict")
    assert "add up to the step; residual: 0 ns" in one.page.inner_text("#page")
    one.page.click("text=All changes")
    one.page.wait_for_selector(".ag-row")
    assert urlsplit(one.page.url).path == "/changes"
    assert not one.complaints


def test_filters_leave_out_and_live_in_the_address(tab):
    one = tab().go(f"/changes{PAIR}&tab=kernels", ".ag-row")
    assert set(one.rows()) == {"mm_kernel", "add_kernel", "relu_kernel"}
    one.choose("family", "gemm")
    one.page.wait_for_function("() => document.querySelectorAll('.ag-center-cols-container .ag-row').length === 1")
    assert one.rows() == ["mm_kernel"]
    assert parse_qs(urlsplit(one.page.url).query)["family"] == ["gemm"]
    other = tab().go(one.page.url.removeprefix(one.url), ".ag-row").settle()
    assert other.rows() == ["mm_kernel"]
    assert "gemm" in other.page.inner_text("#family")
    other.page.click("#clear")
    other.page.wait_for_function("() => document.querySelectorAll('.ag-center-cols-container .ag-row').length === 3")
    assert "family" not in urlsplit(other.page.url).query
    one.choose("device", "CPU")
    one.page.wait_for_selector("#page .missing")
    assert "clear a filter" in one.page.inner_text("#page")
    one.page.go_back()
    one.page.wait_for_selector(".ag-row")
    assert one.rows() == ["mm_kernel"]
    assert not one.complaints + other.complaints


def test_steps_and_ranks_are_chosen_without_reading_again(tab, dashboard):
    one = tab().go("/?control=ranks&test=base")
    reads = dashboard.loader.find("ranks", "base")
    one.page.fill("#steps", "2..3")
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector("text=steps 2–3 of 1–4")
    one.page.fill("#steps", "7..9")
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector("[role=alert] >> text=no step is left")
    one.page.fill("#steps", "x")
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector("text=not a step or a range of steps")
    one.page.fill("#steps", "")
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector("#page h1")
    one.go("/?control=ranks&test=base&rank=1", "text=no file of rank 1")
    assert "--rank" not in one.page.inner_text("[role=alert]")
    assert reads is dashboard.loader.find("ranks", "base") is None
    assert not one.complaints


def test_one_rank_after_another_is_chosen(tab):
    one = tab().go("/health?control=ranks&test=ranks")
    one.choose("rank", "1")
    one.choose("rank", "0")
    one.page.wait_for_function("() => location.search.includes('rank=0&rank=1')")
    assert not one.complaints


def test_a_row_shows_its_matches_steps_and_stack_and_its_link_restores_it(tab):
    one = tab().go(f"/changes{PAIR}", ".ag-row")
    one.page.click(".ag-row [col-id=name] >> text=aten::mm")
    one.page.wait_for_selector("#details h2")
    panel = one.page.inner_text("#details")
    for text in (
        "aten::mm",
        "the same kernels launched by the same call",
        "mm_kernel",
        "[[2, 3]]",
        "unknown" if "unknown" in panel else "forward",
        "Median step",
    ):
        assert text in panel
    one.page.wait_for_selector("#details .main-svg")
    one.page.wait_for_function("() => location.search.includes('row=')")
    other = tab().go(one.page.url.removeprefix(one.url), "#details h2")
    assert other.page.inner_text("#details h2") == "aten::mm"
    other.page.wait_for_selector(".ag-row-selected")
    assert not one.complaints + other.complaints


def test_every_tab_lists_rows_and_shows_details(tab):
    one = tab()
    for name in ("ops", "kernels", "scopes", "families", "groups"):
        one.go(f"/changes{PAIR}&tab={name}", ".ag-row")
        one.page.click(".ag-row [col-id=name] >> nth=0")
        one.page.wait_for_selector("#details h2")
    one.go(f"/changes{PAIR}&tab=modules").settle()
    assert not one.complaints


def test_the_table_sorts_filters_hides_pins_and_is_downloaded(tab, tmp_path):
    one = tab().go(f"/changes{PAIR}&tab=kernels", ".ag-row")
    one.page.click(".ag-header-cell[col-id=name] .ag-header-cell-label")
    one.page.wait_for_selector(".ag-header-cell[col-id=name][aria-sort=ascending]")
    assert one.rows() == sorted(one.rows())
    shown = one.page.locator(".ag-center-cols-container .ag-row [col-id=control_us]").all_inner_texts()
    assert shown == ["42.0"] * 3
    one.choose("columns", "family")
    one.page.wait_for_selector(".ag-header-cell[col-id=family]", state="detached")
    one.choose("pinned", "change")
    one.page.wait_for_selector(".ag-pinned-left-header .ag-header-cell[col-id=delta_us]")
    with one.page.expect_download() as download:
        one.page.click("#csv")
    download.value.save_as(tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text("utf-8-sig").splitlines()
    assert lines[0].startswith('"name","change (µs)"')
    assert [line.split(",")[0] for line in lines[1:]] == ['"add_kernel"', '"mm_kernel"', '"relu_kernel"']
    assert not one.complaints


def test_a_link_restores_how_the_table_is_arranged(tab):
    one = tab().go(f"/changes{PAIR}&tab=kernels", ".ag-row")
    one.page.click(".ag-header-cell[col-id=name] .ag-header-cell-label")
    one.page.wait_for_function("() => location.search.includes('sort=name%3Aasc')")
    one.choose("columns", "family")
    one.choose("pinned", "change")
    one.page.evaluate(
        "dash_ag_grid.getApi('grid').setFilterModel({name: {filterType: 'text', type: 'contains', filter: 'u_k'}})"
    )
    one.page.wait_for_function(
        "() => location.search.includes('where=') && location.search.includes('pin=') && "
        "location.search.includes('show=')"
    )
    one.settle()
    assert one.rows() == ["relu_kernel"]
    other = tab().go(one.page.url.removeprefix(one.url), ".ag-row")
    other.page.wait_for_selector(".ag-header-cell[col-id=name][aria-sort=ascending]")
    other.page.wait_for_selector(".ag-pinned-left-header .ag-header-cell[col-id=delta_us]")
    other.settle()
    assert other.rows() == ["relu_kernel"]
    assert not other.page.query_selector(".ag-header-cell[col-id=family]")
    assert other.page.url == one.page.url
    other.page.click("text=Families")
    other.page.wait_for_function("() => !/sort=|where=|show=|pin=/.test(location.search)")
    other.settle()
    assert len(other.rows()) > 1
    assert not one.complaints + other.complaints


def test_sides_swap_sets_change_and_tabs_do_not_mix(tab):
    one, other = tab().go(f"/{PAIR}"), tab().go("/?control=base&test=slower")
    one.page.click("#swap")
    one.page.wait_for_selector("h1:has-text('faster → base')")
    assert "slower per step" in one.page.inner_text(".verdict")
    one.choose("control", "slower")
    one.page.wait_for_selector("h1:has-text('slower → base')")
    assert other.page.inner_text("h1").replace("\u2068", "") == "base → slower"
    other.page.reload()
    other.page.wait_for_selector("h1:has-text('base → slower')")
    assert not one.complaints + other.complaints


def test_a_bad_file_is_one_line_and_the_app_lives_on(tab):
    one = tab().go("/?control=base&test=bad", ".alert")
    message = one.page.inner_text(".alert p")
    assert "bad/trace.json" in message
    assert "\n" not in message
    assert "Traceback" not in one.page.content()
    one.page.click("#again")
    one.page.wait_for_selector(".alert")
    one.choose("test", "faster")
    one.page.wait_for_selector("h1:has-text('base → faster')")
    assert not one.complaints


def test_a_load_shows_its_progress_and_is_cancelled(tab, monkeypatch, runs):
    made = make_app(Sets(root=runs))
    server = bound(made, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr("tracediff_dashboards.loading.AT_ONCE", held := threading.Semaphore(0))
    one = tab(url=f"http://127.0.0.1:{server.server_port}").go(f"/{PAIR}", "#status >> text=Looking for traces")
    one.page.click("#cancel")
    held.release()
    one.page.wait_for_selector(".alert >> text=was cancelled")
    assert one.page.is_hidden("#cancel")
    held.release()
    one.page.click("#again")
    one.page.wait_for_selector(".verdict")
    assert one.page.inner_text("#status") == ""
    assert not one.complaints
    server.shutdown()
    made.close()


def test_what_cannot_be_compared_says_so_and_can_be_forced(tab):
    one = tab()
    for page in PAGES:
        one.go(f"/{page}?control=base&test=host&family=gemm&phase=forward").settle()
    one.go("/?control=base&test=host", ".verdict.refused")
    one.page.click("text=Compare anyway")
    one.page.wait_for_selector(".verdict:not(.refused)")
    assert "forced=1" in one.page.url
    one.go(f"/changes?{urlsplit(one.page.url).query}", ".ag-row")
    assert not one.complaints


@pytest.mark.parametrize(
    "name",
    ["../base", "/etc/passwd", "..%2F..%2Fetc", "base/../../x", "nosuch", "%00", "~root", "http://example.org/x.json"],
)
def test_an_address_reads_nothing_but_sets_of_the_folder(tab, name):
    one = tab().go(f"/?control=base&test={name}", ".alert")
    assert "no such set below the folder" in one.page.inner_text(".alert")
    assert "root:" not in one.page.inner_text("body")
    assert not one.complaints


def test_dropped_files_are_compared_and_bad_ones_refused(tab, runs, tmp_path):
    one = tab().go("/")
    assert "Choose a control and a test" in one.page.inner_text("#page")
    files = [runs / "base" / "trace.json", runs / "slower" / "trace.json"]
    one.page.set_input_files("#upload input[type=file]", files)
    one.page.wait_for_selector(".verdict")
    assert "control=dropped" in one.page.url
    address = one.page.url.removeprefix(one.url)
    assert "trace.json (dropped)" in one.page.inner_text("#control")
    (tmp_path / "notes.txt").write_text("no trace")
    one.page.set_input_files("#upload input[type=file]", [tmp_path / "notes.txt"])
    one.page.wait_for_selector("#notice >> text=not a trace or snapshot")
    assert tab().go(address, ".verdict")
    guessed = re.sub(r"dropped%3A[^%]+", "dropped%3Aabc", address)
    assert "no such set" in tab().go(guessed, ".alert").page.inner_text(".alert")
    assert not one.complaints


def test_hostile_names_are_text(tab):
    one = tab()
    for page in PAGES:
        one.go(f"/{page}?control=hostile-a&test=hostile-b").settle()
    for name in ("ops", "kernels", "groups"):
        one.go(f"/changes?control=hostile-a&test=hostile-b&tab={name}", ".ag-row")
        shown = one.rows()
        assert any("<script>" in text for text in shown)
        one.page.click(".ag-row [col-id=name] >> nth=0")
        one.page.wait_for_selector("#details h2")
    one.go(f"/?control={HOSTILE[1]}&test=<b>x</b>&family={HOSTILE[0]}", ".alert")
    assert one.page.eval_on_selector_all("main script, main img, main svg [onload]", "all => all.length") == 0
    assert not one.complaints


def test_thirty_quick_interactions_fail_nowhere(tab):
    one = tab().go(f"/changes{PAIR}&tab=kernels", ".ag-row")
    for k in range(10):
        one.page.click("nav a >> nth=1")
        one.page.click(f"nav a >> nth={k % 7}")
        one.page.click("#swap")
        if k % 3 == 0:
            one.page.click("#theme-button")
        if k % 4 == 0:
            one.page.fill("#steps", f"{1 + k % 3}..4")
            one.page.keyboard.press("Enter")
    one.settle()
    one.page.click("nav a >> nth=0")
    one.page.wait_for_selector(".verdict")
    assert not one.complaints


def test_the_theme_is_kept_and_reaches_charts(tab):
    one = tab(color_scheme="light").go(f"/{PAIR}", "#chart-step_waterfall .main-svg")
    paper = "document.querySelector('#chart-step_waterfall .js-plotly-plot').layout.template.layout.paper_bgcolor"
    assert one.page.evaluate(paper) == "#FFFFFF"
    one.page.click("#theme-button")
    one.page.wait_for_function(f"() => {paper} === '#171B21'")
    one.page.reload()
    one.page.wait_for_selector("#chart-step_waterfall .main-svg")
    assert one.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert not one.complaints


def test_the_tree_changes_its_size_and_zooms(tab):
    one = tab().go(f"/tree{PAIR}", "g.slice")
    one.page.click("#size label >> text=calls")
    one.page.wait_for_selector("figcaption >> text=operator calls")
    assert "size=count" in one.page.url
    one.page.click("g.slice >> nth=1")
    one.page.wait_for_selector("g.pathbar g, .pathbar")
    assert not one.complaints


def test_the_keyboard_reaches_everything(tab):
    one = tab().go(f"/changes{PAIR}", ".ag-row")
    one.page.keyboard.press("Tab")
    assert one.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    one.page.keyboard.press("Enter")
    assert one.page.evaluate("document.activeElement.id") == "page"
    one.page.focus("nav a >> nth=0")
    assert one.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    unlabelled = (
        "all => all.filter(e => !e.labels?.length && !e.getAttribute('aria-label') && !e.textContent.trim() "
        "&& e.offsetParent).map(e => e.outerHTML)"
    )
    assert (
        one.page.eval_on_selector_all(
            "header button, section button, section input[type=text], .tools button", unlabelled
        )
        == []
    )
    one.page.click(".ag-row [col-id=name] >> nth=0")
    one.page.keyboard.press("ArrowDown")
    one.page.keyboard.press("Space")
    one.page.wait_for_function("() => document.querySelector('.ag-row-selected')?.getAttribute('row-index') === '1'")
    assert not one.complaints
