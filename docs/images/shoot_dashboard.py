"""Pictures of every page of the dashboard, light and dark, 1280 and 768 pixels wide; part of ``make screenshots``."""

from __future__ import annotations

import threading
from pathlib import Path

from playwright.sync_api import Browser, Page
from tracediff_dashboards.app import Dashboard
from tracediff_dashboards.pages import PAGES
from tracediff_dashboards.reading.sets import Sets
from tracediff_dashboards.server import bound

WIDTHS, THEMES = (1280, 768), ("light", "dark")
HEIGHT = 1000


def shoot_dashboard(browser: Browser, folders: tuple[Path, Path], out: Path) -> None:
    """dashboard-PAGE-WIDTH-THEME.png: the first screen of each page; of the changes with a row chosen."""
    control, test = folders
    dashboard = Dashboard(Sets({control.name: str(control), test.name: str(test)}))
    server = bound(dashboard, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for theme in THEMES:
            for width in WIDTHS:
                page = browser.new_page(
                    viewport={"width": width, "height": HEIGHT}, color_scheme=theme, reduced_motion="reduce"
                )
                for name in PAGES:
                    _open(page, f"http://127.0.0.1:{server.server_port}/{name}")
                    page.screenshot(path=out / f"dashboard-{name}-{width}-{theme}.png")
                page.close()
    finally:
        server.shutdown()
        dashboard.close()


def _open(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("#page h1")
    page.wait_for_load_state("networkidle")
    if address.endswith("/changes"):
        page.click(".ag-row [col-id=name] >> nth=0")
        page.wait_for_selector("#details .main-svg", state="attached")
    page.wait_for_timeout(500)
