"""The flame graph in a real browser: what it shows, zoom, search, inversion, keyboard, and names that would run."""

import pytest
from browser import faults, scrolled
from build_trace import call, document, event, kernel, op, step, write

import tracediff
from tracediff.report.page.script_data import analysis_flame, comparison_flame

HOSTILE = "</script><img src=x onerror=alert(1)>"


def events(gemm, lengths):
    """A step of a net with two layers, each with two kernels, and a hostile name."""
    out = [step(1, 0, 400), event("python_function", "nn.Module: Net_0", 0, 390)]
    number = 0
    for k in range(2):
        out.append(event("python_function", f"nn.Module: Layer_{k}", 100 * k, 90))
        for j, (name, length) in enumerate(zip((gemm, "softmax_kernel"), lengths, strict=True)):
            start, number = 100 * k + 30 * j, number + 1
            out += [
                op(("aten::mm", "aten::softmax")[j], start, 10, **{"Input Dims": [[2, 3 + k]]}),
                call("cudaLaunchKernel", start + 1, 2, correlation=number),
                kernel(name, start + 10, length, correlation=number),
            ]
    out += [op(HOSTILE, 210, 10), call("cudaLaunchKernel", 211, 2, correlation=9)]
    return [*out, kernel(HOSTILE, 220, 20, correlation=9)]


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flame")
    write(folder / "control" / "t.json", document(events("gemm_old", (40, 20))))
    write(folder / "test" / "t.json", document(events("gemm_new", (20, 30))))
    tracediff.compare(folder / "control", folder / "test").to_html(folder / "report.html")
    return folder


def boxes(page):
    """The labels of the boxes with room for one, in the order of the tree."""
    return page.eval_on_selector_all(".flame-box", "all => all.map(box => box.textContent)")


def detail(page):
    return page.inner_text(".flame-detail")


def contrasts(page):
    """The contrast of every box's text."""
    return page.evaluate(
        """() => [...document.querySelectorAll('.flame-box')].map(box => {
          const bright = (colour) => {
            const [r, g, b] = colour.match(/\\d+/g).slice(0, 3).map(v => v / 255)
              .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
          };
          const [a, b] = [bright(getComputedStyle(box).color), bright(getComputedStyle(box).backgroundColor)];
          return Math.max(a, b) / Math.min(a, b);
        })"""
    )


@pytest.fixture
def shown(visit, sides):
    visited = visit(sides / "report.html")
    visited.page.wait_for_selector(".flame-box")
    return visited


def test_the_difference_is_zoomed_searched_and_inverted(shown):
    page = shown.page
    assert boxes(page) == [
        "all work", "forward", "Net", "Layer[*]", "aten::mm", "gemm_old → gemm_new",
        "aten::softmax", "softmax_kernel", HOSTILE, HOSTILE,
    ]  # fmt: skip
    assert "control 140.0 µs · test 120.0 µs · −20.0 µs (−14 %)" in detail(page)
    assert min(contrasts(page)) > 4.5
    page.click(".flame-box:has-text('aten::mm')")
    assert boxes(page) == ["aten::mm", "gemm_old → gemm_new"]
    assert "control 80.0 µs · test 40.0 µs · −40.0 µs (−50 %) · 2 calls per step" in detail(page)
    assert "[[2, 3]] or [[2, 4]]" in detail(page)
    page.click(".flame-path button >> text=Net")
    assert boxes(page)[0] == "Net"
    page.fill(".flame input[type=search]", "SOFTMAX")
    page.wait_for_selector(".flame-box.match")
    found = page.inner_text(".flame-found")
    assert "control 40.0 µs (29 % of all), test 60.0 µs (50 %), change +20.0 µs; 2 boxes." in found
    page.check("label:has-text('inverted') input")
    assert boxes(page)[:6] == ["all work", "gemm_old → gemm_new", "aten::mm", "Layer[*]", "Net", "forward"]
    assert "control 40.0 µs (29 % of all), test 60.0 µs (50 %)" in page.inner_text(".flame-found")
    page.check("label:has-text('regex') input")
    page.fill(".flame input[type=search]", "(")
    page.wait_for_selector(".flame input[aria-invalid=true]")
    page.click(".flame-tools button")
    page.check("label:has-text('separate') input")
    assert [label for label in boxes(page) if "Layer" in label] == ["Layer[0]", "Layer[1]"]
    page.select_option(".flame select", "count")
    assert "control 5 · test 5" in detail(page)
    page.hover(".flame-box:has-text('Layer[1]')")
    assert "Layer[1] module" in page.inner_text(".flame-tip")
    assert faults(page) == []
    assert not shown.complaints


def test_by_line_of_code(visit, tmp_path):
    for side, line, length in (("control", 12, 20), ("test", 14, 30)):
        own = [
            step(1, 0, 200),
            op("aten::mm", 10, 10, stack=f"model.py({line}): forward;train.py(3): <module>"),
            call("cudaLaunchKernel", 11, 2, correlation=1),
            kernel("gemm", 40, length, correlation=1),
            op("aten::add", 30, 5),
        ]
        write(tmp_path / side / "t.json", document(own))
    tracediff.compare(tmp_path / "control", tmp_path / "test").to_html(tmp_path / "report.html")
    visited = visit(tmp_path / "report.html")
    page = visited.page
    page.wait_for_selector(".flame-box")
    page.check("label:has-text('by line of code') input")
    assert boxes(page) == ["all work", "model.py(14): forward", "aten::mm", "gemm"]
    assert "control 20.0 µs · test 30.0 µs" in detail(page)
    page.check("label:has-text('inverted') input")
    assert boxes(page) == ["all work", "gemm", "aten::mm", "model.py(14): forward"]
    page.select_option(".flame select", "count")
    assert "(unknown)" in boxes(page)
    page.click(".flame-tools button")
    assert boxes(page)[1] == "forward"
    assert faults(page) == []
    assert not visited.complaints


def test_without_lines_there_is_no_choice(shown):
    assert not shown.page.query_selector("label:has-text('by line of code')")


def test_the_keyboard_is_enough(shown):
    page = shown.page

    def pressed(*keys):
        for key in keys:
            page.keyboard.press(key)
        return detail(page).split("\n")[0]

    page.focus(".flame-chart")
    assert pressed("ArrowDown", "ArrowDown", "ArrowDown") == "Layer[*] module"
    assert pressed("ArrowDown") == "aten::mm operator"
    assert pressed("ArrowRight") == "aten::softmax operator"
    assert page.evaluate(
        "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))"
        ".getAttribute('aria-label').startsWith('aten::softmax, operator, control 40.0 µs')"
    )
    assert pressed("ArrowUp") == "Layer[*] module"
    pressed("Enter")
    assert boxes(page)[0] == "Layer[*]"
    pressed("Escape")
    assert boxes(page)[0] == "Net"
    pressed("/")
    page.keyboard.type("gemm")
    assert pressed("Enter") == "gemm_old → gemm_new kernel"
    assert page.evaluate("document.activeElement.className") == "flame-chart"


def test_one_set_is_a_flame_graph_of_its_own(visit, sides):
    analysis = tracediff.analyze(sides / "control")
    path = sides / "analysis.html"
    analysis.to_html(path)
    visited = visit(path)
    page = visited.page
    page.wait_for_selector(".flame-box")
    assert "Layer[*]" in boxes(page)
    assert "140.0 µs per step · 100 % of all" in detail(page)
    assert min(contrasts(page)) > 4.5
    assert page.eval_on_selector_all("main > section", "all => all.map(s => s.id)").index("flame") == 3
    scrolled(page)
    assert faults(page) == []
    assert not visited.complaints


def test_its_title_says_what_changed_most(sides):
    graph = comparison_flame(tracediff.compare(sides / "control", sides / "test").comparison)
    assert graph.title == "GPU time per step 140.0 → 120.0 µs; the box aten::mm changed most, −40.0 µs"
    assert graph.data["sides"] == ["control", "test"]
    analysis = analysis_flame(tracediff.analyze(sides / "control").analysis)
    assert analysis.title.startswith("GPU time per step 140.0 µs; ")


def test_a_sentence_has_one_unit(tmp_path):
    for side, length in (("control", 6000), ("test", 9000)):
        write(tmp_path / side / "t.json", document(events("gemm", (length, 6000))))
    graph = comparison_flame(tracediff.compare(tmp_path / "control", tmp_path / "test").comparison)
    assert graph.title == "GPU time per step 24.0 → 30.0 ms; the box aten::mm changed most, +6.0 ms"
