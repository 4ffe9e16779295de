"""What a line of the explanation opens in the report is the work of that line."""

import pytest
from build_trace import call, document, kernel, op, step, write

import tracediff
from tracediff.report.page.html import to_html

KERNELS = {
    "norm": ("layer_norm_kernel", "rms_norm_kernel"),
    "gemm": ("ampere_sgemm_128x64_tn", "ampere_sgemm_64x64_tn"),
    "attention": ("fmha_fwd_kernel", "flash_fwd_kernel"),
}
OPERATORS = {"norm": "aten::layer_norm", "gemm": "aten::mm", "attention": "aten::attention"}


def replay(times):
    """Two steps of a graph, whose kernels no operator launches: each takes ``times`` of its family (µs). Before them
    runs an operator of each family.
    """
    out = []
    for k in range(2):
        start, at = 10_000 * k, 200
        out.append(step(k + 1, start, 9_900))
        launched = [(family, names[0], 20) for family, names in KERNELS.items()]
        launched += [(family, name, times[family]) for family, names in KERNELS.items() for name in names]
        for j, (family, name, us) in enumerate(launched):
            number = 100 * k + j + 1
            if j < len(KERNELS):
                out.append(op(OPERATORS[family], start + 10 * j, 8))
            out.append(call("cudaLaunchKernel", start + 10 * j + 1, 5, correlation=number))
            out.append(kernel(name, start + at, us, correlation=number))
            at += us + 1
        out.append(call("cudaDeviceSynchronize", start + 120, at - 110))
    return document(out)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("links")
    write(folder / "before" / "t.json", replay({"norm": 100, "gemm": 100, "attention": 100}))
    write(folder / "after" / "t.json", replay({"norm": 900, "gemm": 400, "attention": 600}))
    path = folder / "report.html"
    path.write_text(to_html(tracediff.compare(folder / "before", folder / "after").comparison), encoding="utf-8")
    return path


@pytest.mark.parametrize("family", KERNELS)
def test_kernels_without_an_operator_open_those_of_their_family(visit, report, family):
    visited = visit(report)
    page = visited.page
    page.locator("#why a", has_text=f"{family} kernels").click()
    row = page.locator("#groups tr.chosen")
    assert row.locator("[data-column=family]").inner_text() == family
    assert row.locator("[data-column=name]").inner_text().split()[0] in KERNELS[family]
    assert set(
        page.eval_on_selector_all("#groups tr[data-place] [data-column=family]", "all => all.map(c => c.textContent)")
    ) == {family}
    assert not visited.complaints


def test_a_row_is_found_by_words_in_any_place(visit, report):
    page = visit(report).page
    for words, names in (
        ("gemm 64x64", ["ampere_sgemm_64x64_tn"]),
        ("  64x64  AMPERE ", ["ampere_sgemm_64x64_tn"]),
        ("gemm fmha", []),
    ):
        page.fill("#groups input[type=search]", words)
        assert [
            n.split()[0]
            for n in page.eval_on_selector_all(
                "#groups tr[data-place] td:first-child", "all => all.map(c => c.textContent)"
            )
        ] == names


def test_an_operator_without_matched_work_is_found_among_all_operators(visit, report):
    """A link of the explanation or of changed work names the table of matched work."""
    page = visit(report).page
    page.eval_on_selector(
        "#changes .changes a", "link => { link.dataset.find = 'cudaDeviceSynchronize'; link.click(); }"
    )
    assert page.inner_text("#ops tr.chosen td:first-child") == "cudaDeviceSynchronize"
    assert page.url.endswith("#ops")


def test_operators_on_the_host_open_all_operators_the_largest_change_first(visit, tmp_path):
    for side, factor in (("before", 1), ("after", 3)):
        events = []
        for number in range(2):
            start = 20_000 * number
            events += [step(number + 1, start, 20_000)]
            for k in range(40):
                at, us = start + 400 * k, (40 + k) * factor
                events += [op(f"aten::op{k}", at, us), call("cudaLaunchKernel", at + us - 6, 5, 100 * number + k)]
                events += [kernel("k", at + us, 10, 100 * number + k)]
        write(tmp_path / side / "t.json", document(events))
    path = tmp_path / "report.html"
    path.write_text(to_html(tracediff.compare(tmp_path / "before", tmp_path / "after").comparison), encoding="utf-8")
    page = visit(path).page
    page.locator("#why a", has_text="operator calls on the host").click()
    assert page.url.endswith("#ops")
    assert page.inner_text("#ops tr.chosen td:first-child") == "aten::op39"
    categories = "#ops tr[data-place] [data-column=category]"
    assert set(page.eval_on_selector_all(categories, "all => all.map(c => c.textContent)")) == {"cpu_op"}


def test_counts_of_both_sides_are_shown_whole(visit, tmp_path):
    for side, calls in (("before", 12_345), ("after", 11_876)):
        events = [step(1, 0, 20_000), *(op("aten::add", k, 1) for k in range(calls))]
        write(tmp_path / side / "t.json", document(events))
    path = tmp_path / "report.html"
    path.write_text(to_html(tracediff.compare(tmp_path / "before", tmp_path / "after").comparison), encoding="utf-8")
    page = visit(path).page
    for table in ("ops", "groups"):
        cell = page.locator(f"#{table} tbody tr[data-place] td[data-column=count]").first
        assert cell.inner_text() == "12,345 → 11,876"
        assert cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth")
