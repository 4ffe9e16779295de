"""Pictures of every chart, of the report and of the dashboard, light and dark, wide and narrow: ``make screenshots``.

They are of the published traces that the tests run against, where those are present, else of sample_traces.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import traces  # noqa: E402  # tests/traces.py: where the published traces are
from shoot_dashboard import shoot_dashboard  # noqa: E402

import tracediff  # noqa: E402
from tracediff import charts  # noqa: E402
from tracediff.diff.comparison import Comparison  # noqa: E402
from tracediff.report.charts_files import write_charts  # noqa: E402
from tracediff.report.page.html import to_html  # noqa: E402

OUT = Path(__file__).parent
SAMPLE = ("sample_traces/vit/eager", "sample_traces/vit/compile")
USUAL = ("resnet50_workers0", "resnet50_workers4")
WITH_MODULES = ("timesformer_h100", "timesformer_mi300")
PAIRS = {
    "ranks": ("dlrm_8ranks", "dlrm_8ranks"),
    "memory": WITH_MODULES,
}
"""Charts that tell more of another pair than of the usual one."""
WIDTHS, THEMES = (1280, 390), ("light", "dark")
REPORT_HEIGHT = 1500
MARGIN = "#flame { margin: 0 -1rem; padding: 1rem } #flame h2 { border: 0; margin: 0; padding: 0 }"


def folders(pair: tuple[str, str]) -> tuple[Path, Path]:
    """Where the pair is, or the samples where the published traces are absent."""
    control, test = (
        ROOT / name if "/" in name else traces.FOLDER / name for name in (pair if traces.FILES else SAMPLE)
    )
    return control, test


def compared(pair: tuple[str, str]) -> Comparison:
    """The comparison of a pair."""
    return tracediff.compare(*folders(pair)).comparison


def shoot_charts(browser: Browser, comparison: Comparison, names: list[str], folder: Path) -> None:
    """NAME-WIDTH-THEME.png of each chart."""
    for theme in THEMES:
        write_charts(comparison, folder, theme=theme, names=names)
        for width in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": 900})
            for name in names:
                page.goto((folder / f"{name}.html").as_uri())
                page.wait_for_selector(".main-svg", state="attached")
                page.locator(".plotly-graph-div").screenshot(path=OUT / f"{name}-{width}-{theme}.png")
            page.close()


def shoot_report(browser: Browser, comparison: Comparison, folder: Path) -> None:
    """report-WIDTH-THEME.png: its beginning."""
    for page, name in _reports(browser, comparison, folder):
        page.screenshot(path=OUT / f"report-{name}.png")


def shoot_flame(browser: Browser, comparison: Comparison, folder: Path) -> None:
    """flame-WIDTH-THEME.png: the flame graph of the report."""
    for page, name in _reports(browser, comparison, folder):
        page.add_style_tag(content=MARGIN)
        page.locator("#flame").screenshot(path=OUT / f"flame-{name}.png")


def _reports(browser: Browser, comparison: Comparison, folder: Path) -> Iterator[tuple[Page, str]]:
    """The open report in each width and theme, and WIDTH-THEME."""
    path = folder / "report.html"
    path.write_text(to_html(comparison, "tracediff compare control/ test/ --html report.html"), encoding="utf-8")
    for theme in THEMES:
        for width in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": REPORT_HEIGHT}, color_scheme=theme)
            page.goto(path.as_uri())
            page.wait_for_selector("#flame .flame-box", state="attached")
            page.wait_for_timeout(300)
            yield page, f"{width}-{theme}"
            page.close()


def main() -> None:
    """Make them all."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no Chromium found: apt-get install chromium")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as temporary:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        usual = compared(USUAL)
        shoot_report(browser, usual, Path(temporary))
        shoot_flame(browser, compared(WITH_MODULES), Path(temporary))
        shoot_charts(browser, usual, [name for name in charts.NAMES if name not in PAIRS], Path(temporary))
        for name, pair in PAIRS.items():
            shoot_charts(browser, compared(pair), [name], Path(temporary))
        shoot_dashboard(browser, folders(USUAL), OUT)
        browser.close()


if __name__ == "__main__":
    main()
