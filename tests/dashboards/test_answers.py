"""The questions that the dashboard answers: in rows with known sums, and within two clicks in a browser."""

import re
import threading
from urllib.parse import urlsplit

import pytest
from build_trace import annotation, call, document, kernel, op, python, step, write
from dashboard_runs import events
from msgspec.structs import replace
from tracediff_dashboards.app import Dashboard
from tracediff_dashboards.pages.changes import column
from tracediff_dashboards.pages.details import details
from tracediff_dashboards.pages.rows import find_row, table_rows
from tracediff_dashboards.pages.static import _idle, _work_link
from tracediff_dashboards.reading.comparisons import PageContext
from tracediff_dashboards.reading.sets import Sets
from tracediff_dashboards.server import bound
from tracediff_dashboards.state.view import OF_TABS, view_of
from traces import needs_traces, trace

from tracediff.engine import LoadOptions, load_sets
from tracediff.explain.compare import compare_sets
from tracediff.formatting import time_unit
from tracediff.present import sections
from tracediff.report.page.html import to_html
from tracediff.report.page.script_data import tables
from tracediff.structs import Pair

PAIR = "?control=before&test=after"


def model(slow, name):
    """Steps of a model of three layers, after which the host sleeps.

    In each layer aten::linear calls aten::mm, which launches ``name`` of ``slow`` µs, and aten::relu a kernel of 4 µs.
    """
    out = []
    for k in range(3):
        start = 1000 * k
        out += [step(k + 1, start, 990), annotation("sleep", start + 600, 380)]
        out.append(python("nn.Module: Net_0", start + 5, 500, number=10 * k + 1, module=0))
        for layer in range(3):
            at, number = start + 10 + 150 * layer, 100 * k + 10 * layer
            out += [
                python(
                    f"nn.Module: Layer_{layer}", at, 140, number=10 * k + 2 + layer, parent=10 * k + 1, module=layer
                ),
                op("aten::linear", at + 5, 50),
                op("aten::mm", at + 10, 30, **{"Input Dims": [[8, 8], [8, 8]]}),
                call("cudaLaunchKernel", at + 15, 5, correlation=number + 1),
                kernel(name, at + 25, slow, correlation=number + 1),
                op("aten::relu", at + 70, 20),
                call("cudaLaunchKernel", at + 75, 5, correlation=number + 2),
                kernel("relu_kernel", at + 85 + slow, 4, correlation=number + 2),
            ]
    return document(out)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    write(folder / "before" / "t.json", model(10, "old_gemm_kernel"))
    write(folder / "after" / "t.json", model(25, "new_gemm_kernel"))
    return folder


@pytest.fixture(scope="module")
def comparison(pair):
    return compare_sets(*load_sets([pair / "before", pair / "after"]))


def cells(comparison, tab):
    return {row.cells["name"]: row.cells for row in table_rows(comparison, tab)}


def test_instances_of_a_module_share_a_row(comparison):
    found = cells(comparison, "modules")
    layer = found["Net/Layer[*]"]
    assert (layer["instances"], layer["control_count"], layer["test_count"]) == (3, 6, 6)
    assert (layer["control_us"], layer["test_us"], layer["delta_us"]) == (3 * 14, 3 * 29, 45)
    assert sum(c["delta_us"] for c in found.values()) == 45
    groups = [row for row in table_rows(comparison, "groups") if "gemm" in row.cells["kernels"]]
    (gemm,) = groups
    assert (gemm.cells["name"], gemm.cells["kernels"]) == ("aten::mm", "old_gemm_kernel → new_gemm_kernel")
    assert (gemm.cells["instances"], gemm.cells["module"], gemm.cells["delta_us"]) == (3, "Net/Layer[*]", 45)
    assert [(m.name, m.count) for side in gemm.item.members for m in side] == [
        ("old_gemm_kernel", 3 * comparison.scale),
        ("new_gemm_kernel", 3 * comparison.scale),
    ]
    assert sum(row.cells["delta_us"] for row in table_rows(comparison, "groups")) == 45
    assert len(gemm.item.items[0]) == 3


def test_operators_have_the_gpu_time_below_them_beside_their_self_time(comparison):
    found = cells(comparison, "ops")
    for name in ("aten::linear", "aten::mm"):
        assert (found[name]["gpu_control_us"], found[name]["gpu_test_us"], found[name]["gpu_delta_us"]) == (30, 75, 45)
    assert found["aten::linear"]["control_self_us"] == 3 * 20  # of the host, without aten::mm
    assert found["aten::relu"]["gpu_test_us"] == 12
    assert "gpu_test_us" not in found["cudaLaunchKernel"]


@pytest.mark.parametrize("tab", ["ops", "kernels", "modules", "families", "groups"])
def test_the_largest_change_is_first(comparison, tab):
    change = next(name for name, column in OF_TABS[tab].items() if column.is_change)
    deltas = [row.cells[change] for row in table_rows(comparison, tab)]
    assert [abs(us) for us in deltas] == sorted(map(abs, deltas), reverse=True)


@pytest.mark.parametrize("key", ["name", "kernels"])
def test_the_end_of_a_long_name_is_in_its_column(key):
    """aten::cudnn_convolution_backward_input and aten::cudnn_convolution_backward_weight looked alike."""
    definition = column(OF_TABS["groups"][key], time_unit([1.0]), view_of(PAIR), Pair("a", "b"))
    shortened = re.fullmatch(r"shortened\(params.value, (\d+), (\d+)\)", definition["valueFormatter"]["function"])
    length, end = map(int, shortened.groups())
    assert definition["width"] / length >= 7.5  # pixels of a letter
    assert 12 <= end < length


@pytest.fixture(scope="module")
def url(pair):
    made = Dashboard(Sets(root=pair))
    server = bound(made, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    made.close()


def test_the_module_that_saved_most_is_named_where_none_regressed(tab, url):
    app = tab(url=url).go("/?control=after&test=before", ".answers")
    assert "Net/Layer[*]" in app.page.inner_text(".answers dt:has-text('Which module saved most') + dd")


def test_three_questions_take_at_most_two_clicks(tab, url, comparison):
    app = tab(url=url).go(f"/{PAIR}", ".answers")
    clicks = []

    def click(selector):
        clicks.append(selector)
        app.page.click(selector)

    def answer(question):
        return app.page.inner_text(f".answers dt:has-text('{question}') + dd")

    assert "Net/Layer[*]" in answer("Which module regressed most")
    assert "42.0 → 87.0 µs" in answer("Which module regressed most")
    (row,) = sections.work_by(comparison, "module", 2).rows  # of the terminal's --by module
    assert (row.name, row.us) == ("Net/Layer[*]", (42, 87))
    assert ">Net/Layer[*]</bdi></a> (3 instances): 42.0 → 87.0 µs (+45.0)</p>" in to_html(comparison)
    assert "idle" in app.page.inner_text(".answers")
    assert "sleep" in answer("Why the GPU is idle")
    assert clicks == []
    click("th >> text=aten::mm")  # what replaced its kernel?
    app.page.wait_for_selector("#details h2")
    assert "new_gemm_kernel" in app.page.inner_text("#details .sides")
    assert len(clicks) <= 2
    app.go(f"/{PAIR}", ".answers")
    app.page.click(".answers a")
    app.page.wait_for_selector("#details h2 >> text=Layer[*]")
    assert not app.complaints


def test_what_is_not_filtered_says_so_once_on_every_page(tab, url):
    app = tab(url=url).go(f"/{PAIR}")
    assert app.page.is_hidden("#unfiltered")
    for page in ("", "timeline", "ranks", "memory", "health"):
        app.turn(f"/{page}{PAIR}&family=gemm")
        assert app.page.is_visible("#unfiltered")
        assert app.page.locator("text=always cover all work").count() == 1
        assert "filters do not apply" not in app.page.inner_text("#page")
    app.page.click("#clear")
    app.page.wait_for_selector("#unfiltered", state="hidden")
    assert not app.complaints


def test_a_link_to_the_view_is_copied(tab, url):
    app = tab(url=url).go(f"/changes{PAIR}&tab=kernels", ".ag-row")
    app.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    app.page.click("#copy")
    app.page.wait_for_selector("#copy >> text=Link copied")
    assert app.page.evaluate("navigator.clipboard.readText()") == app.page.url
    app.page.wait_for_selector("#copy >> text=Copy link")
    assert not app.complaints


def context(pair):
    sets = load_sets([pair / "before", pair / "after"], LoadOptions(tables=("idle",)))
    whole = compare_sets(*sets)
    return PageContext(whole, whole, tuple(sets), view_of(PAIR), "light")


def test_work_that_one_side_has_says_which(tmp_path):
    """Selecting it failed: the sentence has the name of the side."""
    for side, names in (("before", ("mm",)), ("after", ("mm", "relu"))):
        write(tmp_path / side / "t.json", document(events(names=names)))
    shown = context(tmp_path)
    (added,) = [r for r in table_rows(shown.comparison, "groups") if not r.cells["control_count"]]
    assert str(details(shown, added)[0]) == "H2(Bdi('aten::relu'))"  # as in the table
    for tab in ("groups", "kernels", "families"):
        (added,) = [r for r in table_rows(shown.comparison, tab) if not r.cells["control_count"]]
        text = str(details(replace(shown, view=replace(shown.view, tab=tab)), added))
        assert "added: no counterpart at any level: only after has it" in text
    page = tables(shown.comparison, 1 << 20)
    assert page["why"]["removed"] == "no counterpart at any level: only before has it"
    assert page["why"]["op"] == "other work below the same call of {call}"


def test_a_line_of_the_explanation_leads_to_its_work_else_to_its_family(pair):
    """Its matched work, whose times are the line's: those of the operator alone may have the opposite sign."""
    shown = context(pair)
    place = urlsplit(_work_link(shown, "groups", ("gemm", "aten::mm"))["href"])
    view = view_of(f"?{place.query}")
    assert find_row(shown.comparison, view.tab, view.row).item.family == "gemm"
    assert view.table.filters()["name"]["filter"] == "aten::mm"
    assert _work_link(shown, "groups", ("gemm", "Layer"))["href"] == f"/changes{PAIR}&family=gemm"
    assert not _work_link(shown, "groups", ("nothing", "Layer"))
    assert not _work_link(shown, "groups", ())


def test_what_the_host_does_while_the_gpu_is_idle_is_said_of_all_idle_time(pair):
    """Of one state only, it may be 0 on the side that has it in another state."""
    shown = context(pair)
    (idle,) = [table for table in shown.whole.tables if table.schema.name == "idle"]
    (sleeping,) = [key for key in idle.rows if key[1] == "sleep"]
    elsewhere = {("op", *sleeping[1:]): (Pair(2000 * shown.whole.scale * 1000, 0),)}
    tables = (replace(idle, rows=idle.rows | elsewhere),)
    here, everywhere = (
        "".join(map(str, _idle(replace(shown, whole=replace(shown.whole, tables=some)))))
        for some in (shown.whole.tables, tables)
    )
    assert here.endswith("Bdi('sleep'): 380.0 → 380.0 µs (0.0)")
    assert everywhere.endswith("Bdi('sleep'): 2,380 → 380 µs (−2,000)")


@needs_traces
def test_idle_time_that_control_alone_has_is_named():
    """The longest in the test was named: 10.8 → 18.1 ms in an operator."""
    sets = load_sets([trace("resnet50_workers0"), trace("resnet50_workers4")], LoadOptions(tables=("idle",)))
    whole = compare_sets(*sets)
    text = "".join(map(str, _idle(PageContext(whole, whole, tuple(sets), view_of(PAIR), "light"))))
    assert text.startswith(
        "74.9 → 30.7 ms (−44.3) per step, mostly loading data; the host is mostly in Bdi('enumerate(Data"
    )
    assert text.endswith("): 36.0 → 0.0 ms (−36.0)")


def test_a_line_of_operators_on_the_host_leads_to_all_operators(pair):
    shown = context(pair)
    assert _work_link(shown, "ops", ("cpu_op",)) == {"href": f"/changes{PAIR}&tab=ops"}
    assert "tab=ops&row=" in _work_link(shown, "ops", ("aten::mm",))["href"]
