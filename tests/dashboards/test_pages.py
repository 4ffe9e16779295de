"""The dashboard in a real browser: every page, filters, rows, links, change of sets, faults, and names that would
run.
"""

import re
import threading
from urllib.parse import parse_qs, urlsplit

import pytest
from browser import faults
from dashboard_runs import HOSTILE
from tracediff_dashboards.app import Dashboard
from tracediff_dashboards.pages import PAGES
from tracediff_dashboards.reading.sets import Sets
from tracediff_dashboards.server import bound

PAIR = "?control=base&test=faster"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (768, "dark")])
def test_every_page_is_drawn_without_a_complaint(tab, width, scheme):
    app = tab(width, dark=scheme == "dark")
    for k, page in enumerate(PAGES):
        show = app.turn if k and scheme == "dark" else app.go
        show(f"/{page}{PAIR}").settle()
        assert app.page.evaluate("document.documentElement.scrollWidth") <= width
        assert app.page.inner_text("nav a.current >> nth=0") == PAGES[page][0]
        assert app.page.evaluate("(nav => nav.scrollWidth <= nav.clientWidth)(document.querySelector('#nav'))")
        assert scheme == "dark" or faults(app.page) == []
    assert app.page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(23, 27, 33)" if scheme == "dark" else "rgb(255, 255, 255)"
    )
    assert not app.complaints


def test_the_overview_shows_the_verdict_and_leads_to_the_work(tab):
    app = tab().go(f"/{PAIR}")
    assert "less time per step" in app.page.inner_text(".verdict")
    assert "add up to the step: 0 ns unexplained" in app.page.inner_text("#page")
    app.page.click("text=All changes")
    app.page.wait_for_selector(".ag-row")
    assert urlsplit(app.page.url).path == "/changes"
    assert not app.complaints


def test_filters_leave_out_and_live_in_the_address(tab):
    app = tab().go(f"/changes{PAIR}&tab=kernels", ".ag-row")
    assert set(app.rows()) == {"mm_kernel", "add_kernel", "relu_kernel"}
    app.choose("family", "gemm")
    app.page.wait_for_function("() => document.querySelectorAll('.ag-center-cols-container .ag-row').length === 1")
    assert app.rows() == ["mm_kernel"]
    assert parse_qs(urlsplit(app.page.url).query)["family"] == ["gemm"]
    other = tab().go(app.page.url.removeprefix(app.url), ".ag-row").settle()
    assert other.rows() == ["mm_kernel"]
    assert "gemm" in other.page.inner_text("#family")
    other.page.click("#clear")
    other.page.wait_for_function("() => document.querySelectorAll('.ag-center-cols-container .ag-row').length === 3")
    assert "family" not in urlsplit(other.page.url).query
    app.choose("device", "CPU")
    app.page.wait_for_selector("#page .missing")
    assert "clear a filter" in app.page.inner_text("#page")
    app.page.go_back()
    app.page.wait_for_selector(".ag-row")
    assert app.rows() == ["mm_kernel"]
    assert not app.complaints + other.complaints


def test_steps_and_ranks_are_chosen_without_reading_again(tab, dashboard):
    app = tab().go("/?control=ranks&test=base")
    reads = dashboard.loader.find("ranks", "base")
    app.unfold().page.fill("#steps", "2..3")
    app.page.keyboard.press("Enter")
    app.page.wait_for_selector("text=steps 2–3 (recorded: 1–4)")
    app.page.fill("#steps", "7..9")
    app.page.keyboard.press("Enter")
    app.page.wait_for_selector("[role=alert] >> text=no step is left to compare; steps in this file: 1–4")
    app.page.fill("#steps", "x")
    app.page.keyboard.press("Enter")
    app.page.wait_for_selector("text=not a step or a range of steps")
    app.page.fill("#steps", "")
    app.page.keyboard.press("Enter")
    app.page.wait_for_selector("#page h1")
    app.go("/?control=ranks&test=base&rank=1", "text=no file of rank 1")
    assert "--rank" not in app.page.inner_text("[role=alert]")
    assert reads is dashboard.loader.find("ranks", "base") is None
    assert not app.complaints


def test_without_modules_the_page_leads_to_what_is_annotated(tab):
    app = tab().go(f"/{PAIR}")
    assert "the traces contain no modules" in app.page.inner_text("dt:has-text('Which module changed most') + dd")
    app.turn(f"/changes{PAIR}&tab=modules")
    app.page.click(".missing >> text=Annotations and Python")
    app.page.wait_for_selector(".ag-row")
    assert "tab=scopes" in app.page.url
    assert not app.complaints


def test_filters_are_folded_until_one_is_used(tab):
    app = tab().go(f"/{PAIR}")
    assert not app.page.is_visible("#family")
    assert app.page.evaluate("document.querySelector('#page').getBoundingClientRect().top") < 150
    app.turn(f"/{PAIR}&device=gpu")
    assert app.page.is_visible("#family")
    assert not app.complaints


def test_a_folder_of_links_says_that_they_lead_out_of_it(tab, runs, tmp_path):
    (tmp_path / "A").symlink_to(runs / "base")
    linked = Dashboard(Sets(root=tmp_path))
    server = bound(linked, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    app = tab(url=f"http://127.0.0.1:{server.server_port}").go("/")
    assert "links that lead out of it (A), which are not followed" in app.page.inner_text("#page")
    server.shutdown()
    server.server_close()
    linked.close()


def test_a_rank_of_each_side_is_chosen_in_the_page(tab):
    app = tab().go("/?control=ranks&test=ranks&rank=1").settle()
    assert app.page.is_hidden("#clear")  # beside the sets, not among the filters
    assert app.page.is_visible("#rank")
    app.choose("test-rank", "0")
    app.page.wait_for_selector("text=ranks rank 1")
    assert "test_rank=0" in app.page.url
    assert app.page.inner_text("h1") == "ranks rank 1 → ranks rank 0"
    app.turn("/?control=ranks&test=base")
    assert app.page.is_visible("#rank")
    assert app.page.is_hidden("#test-rank-field")
    assert not app.complaints


def test_one_rank_after_another_is_chosen(tab):
    app = tab().go("/health?control=ranks&test=ranks")
    app.choose("rank", "1")
    app.choose("rank", "0")
    app.page.wait_for_function("() => location.search.includes('rank=0&rank=1')")
    assert not app.complaints


def test_a_row_shows_its_matches_steps_and_stack_and_its_link_restores_it(tab):
    app = tab().go(f"/changes{PAIR}&tab=ops", ".ag-row")
    app.page.click(".ag-row [col-id=name] >> text=aten::mm")
    app.page.wait_for_selector("#details h2")
    panel = app.page.inner_text("#details")
    for text in (
        "aten::mm",
        "work of the same names below the same call",
        "mm_kernel",
        "[[2, 3]]",
        "unknown" if "unknown" in panel else "forward",
        "Median step",
    ):
        assert text in panel
    app.page.wait_for_selector("#details .main-svg")
    app.page.wait_for_selector("#spans .main-svg")
    assert " → " in app.page.inner_text("#spans")  # when it runs on both sides, one click from the table
    app.page.wait_for_function("() => location.search.includes('row=')")
    other = tab().go(app.page.url.removeprefix(app.url), "#details h2")
    assert other.page.inner_text("#details h2") == "aten::mm"
    other.page.wait_for_selector(".ag-row-selected")
    assert not app.complaints + other.complaints


def test_every_tab_lists_rows_and_shows_details(tab):
    app = tab().go(f"/{PAIR}")
    for name in ("ops", "kernels", "scopes", "families", "groups"):
        app.turn(f"/changes{PAIR}&tab={name}", ".ag-row")
        app.page.click(".ag-row [col-id=name] >> nth=0")
        app.page.wait_for_selector("#details h2")
    app.turn(f"/changes{PAIR}&tab=modules")
    assert not app.complaints


def test_the_table_sorts_filters_hides_pins_and_is_downloaded(tab, tmp_path):
    app = tab().go(f"/changes{PAIR}&tab=kernels", ".ag-row")
    app.page.click(".ag-header-cell[col-id=name] .ag-header-cell-label")
    app.page.wait_for_selector(".ag-header-cell[col-id=name][aria-sort=ascending]")
    assert app.rows() == sorted(app.rows())
    shown = app.page.locator(".ag-center-cols-container .ag-row [col-id=control_self_us]").all_inner_texts()
    assert shown == ["42.0"] * 3
    changes = app.page.locator(".ag-center-cols-container .ag-row [col-id=delta_self_us]").all_inner_texts()
    assert changes == ["−20.0"] * 3
    written = [app.page.evaluate(f"dashAgGridFunctions.change({x}, 1)") for x in ("45", "-45", "0", "0.04", "null")]
    assert written == ["+45.0", "−45.0", "0.0", "0.0", ""]
    app.choose("columns", "family")
    app.page.wait_for_selector(".ag-header-cell[col-id=family]", state="detached")
    app.choose("pinned", "change")
    app.page.wait_for_selector(".ag-pinned-left-header .ag-header-cell[col-id=delta_self_us]")
    with app.page.expect_download() as download:
        app.page.click("#csv")
    download.value.save_as(tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text("utf-8-sig").splitlines()
    assert lines[0].startswith('"name","change (µs)"')
    assert [line.split(",")[0] for line in lines[1:]] == ['"add_kernel"', '"mm_kernel"', '"relu_kernel"']
    assert not app.complaints


def test_a_link_restores_how_the_table_is_arranged(tab):
    app = tab().go(f"/changes{PAIR}&tab=kernels", ".ag-row")
    app.page.click(".ag-header-cell[col-id=name] .ag-header-cell-label")
    app.page.wait_for_function("() => location.search.includes('sort=name%3Aasc')")
    app.choose("columns", "family")
    app.choose("pinned", "change")
    app.page.evaluate(
        "dash_ag_grid.getApi('grid').setFilterModel({name: {filterType: 'text', type: 'contains', filter: 'u_k'}})"
    )
    app.page.wait_for_function(
        "() => location.search.includes('where=') && location.search.includes('pin=') && "
        "location.search.includes('show=')"
    )
    app.settle()
    assert app.rows() == ["relu_kernel"]
    other = tab().go(app.page.url.removeprefix(app.url), ".ag-row")
    other.page.wait_for_selector(".ag-header-cell[col-id=name][aria-sort=ascending]")
    other.page.wait_for_selector(".ag-pinned-left-header .ag-header-cell[col-id=delta_self_us]")
    other.settle()
    assert other.rows() == ["relu_kernel"]
    assert not other.page.query_selector(".ag-header-cell[col-id=family]")
    assert other.page.url == app.page.url
    other.page.click("text=Families")
    other.page.wait_for_function("() => !/sort=|where=|show=|pin=/.test(location.search)")
    other.settle()
    assert len(other.rows()) > 1
    assert not app.complaints + other.complaints


def test_sides_swap_sets_change_and_tabs_do_not_mix(tab):
    app, other = tab().go(f"/{PAIR}"), tab().go("/?control=base&test=slower")
    app.page.click("#swap")
    app.page.wait_for_selector("h1:has-text('faster → base')")
    assert "longer per step" in app.page.inner_text(".verdict")
    app.choose("control", "slower")
    app.page.wait_for_selector("h1:has-text('slower → base')")
    assert other.page.inner_text("h1").replace("\u2068", "") == "base → slower"
    other.page.reload()
    other.page.wait_for_selector("h1:has-text('base → slower')")
    assert not app.complaints + other.complaints


def test_a_bad_file_is_one_line_and_the_app_lives_on(tab):
    app = tab().go("/?control=base&test=bad", ".alert")
    message = app.page.inner_text(".alert p")
    assert "bad/trace.json" in message
    assert "\n" not in message
    assert "Traceback" not in app.page.content()
    app.page.click("#again")
    app.settle().page.wait_for_selector(".alert")  # the one of the second attempt
    app.choose("test", "faster")
    app.page.wait_for_selector("h1:has-text('base → faster')")
    assert not app.complaints


def test_a_load_shows_its_progress_and_is_cancelled(tab, monkeypatch, runs):
    made = Dashboard(Sets(root=runs))
    server = bound(made, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr("tracediff_dashboards.reading.loading.AT_ONCE", held := threading.Semaphore(0))
    app = tab(url=f"http://127.0.0.1:{server.server_port}").go(f"/{PAIR}", "#status >> text=Looking for traces")
    app.page.click("#cancel")
    held.release()
    app.page.wait_for_selector(".alert >> text=was cancelled")
    assert app.page.is_hidden("#cancel")
    held.release()
    app.page.click("#again")
    app.page.wait_for_selector(".verdict")
    assert app.page.inner_text("#status") == ""
    assert not app.complaints
    server.shutdown()
    made.close()


def test_what_cannot_be_compared_says_so_and_can_be_forced(tab):
    app = tab().go("/?control=base&test=host")
    for page in PAGES:
        app.turn(f"/{page}?control=base&test=host&family=gemm&phase=forward")
    app.turn("/?control=base&test=host", ".verdict.refused")
    app.page.click("text=Compare anyway")
    app.page.wait_for_selector(".verdict:not(.refused)")
    assert "forced=1" in app.page.url
    app.turn(f"/changes?{urlsplit(app.page.url).query}", ".ag-row")
    assert not app.complaints


def test_an_address_reads_nothing_but_sets_of_the_folder(tab):
    app = tab()
    names = [
        "../base",
        "/etc/passwd",
        "..%2F..%2Fetc",
        "base/../../x",
        "nosuch",
        "%00",
        "~root",
        "http://example.org/x.json",
    ]
    for k, name in enumerate(names):
        show = app.turn if k else app.go
        show(f"/?control=base&test={name}", ".alert")
        assert "no such set below the folder" in app.page.inner_text(".alert"), name
        assert "root:" not in app.page.inner_text("body"), name
    assert not app.complaints


def test_dropped_files_are_compared_and_bad_ones_refused(tab, runs, tmp_path):
    app = tab().go("/")
    assert "Choose a control and a test" in app.page.inner_text("#page")
    files = [runs / "base" / "trace.json", runs / "slower" / "trace.json"]
    app.page.set_input_files("#upload input[type=file]", files)
    app.page.wait_for_selector(".verdict")
    assert "control=dropped" in app.page.url
    address = app.page.url.removeprefix(app.url)
    assert "trace.json (dropped)" in app.page.inner_text("#control")
    (tmp_path / "notes.txt").write_text("no trace")
    app.page.set_input_files("#upload input[type=file]", [tmp_path / "notes.txt"])
    app.page.wait_for_selector("#notice >> text=not a trace or snapshot")
    other = tab().go(address, ".verdict")
    guessed = re.sub(r"dropped%3A[^%]+", "dropped%3Aabc", address)
    assert "no such set" in other.go(guessed, ".alert").page.inner_text(".alert")
    assert [complaint for complaint in app.complaints if "400" not in complaint] == []  # of the refused file


def test_hostile_names_are_text(tab):
    app = tab().go("/?control=hostile-a&test=hostile-b").settle()
    for page in list(PAGES)[1:]:
        app.turn(f"/{page}?control=hostile-a&test=hostile-b")
    for name in ("ops", "kernels", "groups"):
        app.turn(f"/changes?control=hostile-a&test=hostile-b&tab={name}", ".ag-row")
        shown = app.rows()
        assert any("<script>" in text for text in shown)
        app.page.click(".ag-row [col-id=name] >> nth=0")
        app.page.wait_for_selector("#details h2")
    app.go(f"/?control={HOSTILE[1]}&test=<b>x</b>&family={HOSTILE[0]}", ".alert")
    assert app.page.eval_on_selector_all("main script, main img, main svg [onload]", "all => all.length") == 0
    assert not app.complaints


def test_thirty_quick_interactions_fail_nowhere(tab):
    app = tab().go(f"/changes{PAIR}&tab=kernels", ".ag-row")
    for k in range(10):
        app.page.click("nav a >> nth=1")
        app.page.click(f"nav a >> nth={k % 7}")
        app.page.click("#swap")
        if k % 3 == 0:
            app.page.click("#theme-button")
        if k % 4 == 0:
            app.unfold().page.fill("#steps", f"{1 + k % 3}..4")
            app.page.keyboard.press("Enter")
    app.settle()
    app.page.click("nav a >> nth=0")
    app.page.wait_for_selector(".verdict")
    assert not app.complaints


def test_no_chart_repeats_a_table(tab):
    """Families and runtime calls are rows of Changes."""
    app = tab().go(f"/{PAIR}").settle()
    assert app.page.locator(".chart").count() == 0
    app.turn(f"/timeline{PAIR}")
    assert app.page.eval_on_selector_all(".chart .dash-graph", "all => all.map(c => c.id)") == ["chart-timeline"]
    assert not app.complaints


def test_the_theme_is_kept_and_reaches_charts(tab):
    app = tab().go(f"/ranks{PAIR}", "#chart-distributions .main-svg")
    paper = "document.querySelector('#chart-distributions .js-plotly-plot').layout.template.layout.paper_bgcolor"
    assert app.page.evaluate(paper) == "#FFFFFF"
    app.page.click("#theme-button")
    app.page.wait_for_function(f"() => {paper} === '#171B21'")
    app.page.reload()
    app.page.wait_for_selector("#chart-distributions .main-svg")
    assert app.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert not app.complaints


def test_the_flame_graph_lives_in_the_address_and_leads_to_the_tables(tab):
    app = tab().go(f"/flame{PAIR}", ".flame-box")
    app.page.click(".flame-box:has-text('aten::mm')")
    app.page.wait_for_selector("#flame-row h2 >> text=aten::mm")
    zoomed = app.settle().page.url
    app.page.check("label:has-text('inverted') input")
    app.page.select_option(".flame select", "host")
    app.page.fill(".flame input[type=search]", "relu")
    app.page.wait_for_url("**find=relu**")
    app.settle()
    other = tab().go(app.page.url.removeprefix(app.url), ".flame-box.match").settle()
    assert other.page.is_checked("label:has-text('inverted') input")
    assert other.page.input_value(".flame select") == "host"
    assert other.page.input_value(".flame input[type=search]") == "relu"
    steps_back = 0  # three changes; a browser may keep two addresses of one
    while app.page.url != zoomed and steps_back < 4:
        app.page.go_back()
        app.settle()
        steps_back += 1
    assert app.page.url == zoomed
    app.page.wait_for_selector("#flame-row h2 >> text=aten::mm")
    assert "find=" not in urlsplit(app.page.url).query, app.page.url
    app.page.click("#flame-row a >> nth=0")
    app.page.wait_for_selector("#details h2 >> text=aten::mm")
    app.settle()  # a grid that is left while it is read warns
    app.page.click("#details >> text=Show in the flame graph")
    app.page.wait_for_selector(".flame-box.match")
    assert app.page.input_value(".flame input[type=search]") == "aten::mm"
    assert not app.complaints
    assert not other.complaints


def test_the_keyboard_reaches_everything(tab):
    app = tab().go(f"/changes{PAIR}", ".ag-row")
    app.page.keyboard.press("Tab")
    assert app.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    app.page.keyboard.press("Enter")
    assert app.page.evaluate("document.activeElement.id") == "page"
    app.page.focus("nav a >> nth=0")
    assert app.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    unlabelled = (
        "all => all.filter(e => !e.labels?.length && !e.getAttribute('aria-label') && !e.textContent.trim() "
        "&& e.offsetParent).map(e => e.outerHTML)"
    )
    assert (
        app.page.eval_on_selector_all(
            "header button, section button, section input[type=text], .tools button", unlabelled
        )
        == []
    )
    app.page.click(".ag-row [col-id=name] >> nth=0")
    app.page.keyboard.press("ArrowDown")
    app.page.keyboard.press("Space")
    app.page.wait_for_function("() => document.querySelector('.ag-row-selected')?.getAttribute('row-index') === '1'")
    assert not app.complaints


def test_on_a_phone_names_have_room(tab):
    """Of tables: a name of two words takes at most a line for each."""
    app = tab(390).go(f"/{PAIR}").settle()
    for table in (".why", ".changes"):
        heights = app.page.eval_on_selector_all(
            f"{table} tbody th > *", "all => all.map(e => e.getBoundingClientRect().height)"
        )
        assert heights
        assert max(heights) < 50
    assert app.page.evaluate("document.documentElement.scrollWidth") <= 390
    widths = app.page.eval_on_selector_all(".answers dd", "all => all.map(e => e.getBoundingClientRect().width)")
    assert min(widths) > 300


def test_the_table_keeps_ends_of_long_names_and_has_the_whole_width_until_a_row_is_selected(tab):
    app = tab().go("/changes?control=hostile-a&test=hostile-b&tab=kernels", ".ag-row")
    width = "document.querySelector('.gridbox').offsetWidth / document.querySelector('#page').offsetWidth"
    assert app.page.evaluate(width) > 0.9
    long = app.page.locator(".ag-row [col-id=name]", has_text="nnnnnnnn").first
    head, end = long.inner_text().split("…", 1)
    assert head.startswith("nnnn")
    assert len(end) == 15
    app.page.locator(".ag-floating-filter input").first.fill("nnnnnnnn")
    app.page.wait_for_function("() => location.search.includes('nnnnnnnn')")
    app.page.wait_for_selector("#rows >> text=1 of ")
    long.click()
    app.page.wait_for_selector("#details h2")
    assert app.page.evaluate(width) < 0.7
    assert not app.complaints
