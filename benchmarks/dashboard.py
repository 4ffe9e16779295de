"""Measures the response times and the memory of the dashboard in a real browser (Chromium, through playwright).

    python benchmarks/dashboard.py                                    # the timesformer pair
    python benchmarks/dashboard.py --long big.json slower.json        # also zooms into a long pair from tile.py

Response times are those of the server, from request to response; that of the first page is measured in the browser,
from the end of the comparison to the first chart.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import flask
from playwright.sync_api import Page, sync_playwright
from tracediff_dashboards.app import Dashboard
from tracediff_dashboards.reading.sets import Sets
from tracediff_dashboards.server import bound

TRACES = Path(os.environ.get("TRACEDIFF_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))
CHROMIUM = "/usr/bin/chromium"
FILTERS = (("device", "GPU"), ("phase", "forward"), ("family", "gemm"), ("module", ""))
GRAPH = "document.querySelector('#chart-timeline .js-plotly-plot')"
WINDOWS = ((0.25, 0.75), (0.3, 0.6), (0.4, 0.5), (0.1, 0.9))
"""Windows of the step to zoom into; the first one waits until the events are read."""


@dataclass
class Measured:
    """Measurements of a dashboard.

    Attributes:
        compared: time at which the comparison was complete. response_times: in seconds, since the last action.
    """

    compared: float = 0.0
    response_times: list[float] = field(default_factory=list)

    def slowest(self, page: Page, act: Callable[[], Any], wait_ms: int = 1500) -> float:
        """The slowest response to the action ``act``, in ms."""
        self.response_times.clear()
        act()
        page.wait_for_timeout(wait_ms)
        return 1000 * max(self.response_times, default=0.0)


@contextmanager
def served(control: str, test: str) -> Iterator[tuple[str, Measured]]:
    """A dashboard of two sets: its URL and its measurements."""
    dashboard, measured = Dashboard(Sets({"control": control, "test": test})), Measured()
    compare = dashboard.comparisons._compared

    def compared(*arguments: Any) -> Any:
        comparison = compare(*arguments)
        measured.compared = measured.compared or time.perf_counter()
        return comparison

    def answered(response: flask.Response) -> flask.Response:
        if "_dash-update-component" in flask.request.path:
            measured.response_times.append(time.perf_counter() - flask.g.begun)
        return response

    dashboard.comparisons._compared = compared
    dashboard.app.server.before_request(lambda: setattr(flask.g, "begun", time.perf_counter()))
    dashboard.app.server.after_request(answered)
    server = bound(dashboard, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", measured
    finally:
        server.shutdown()
        dashboard.close()


def memory() -> str:
    """Resident memory of this process, which is the server: in total, and without mapped files."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return ", ".join(
        f"{int(status[key].split()[0]) >> 10} MB {what}"
        for key, what in (("VmRSS", "in total"), ("RssAnon", "without mapped files"))
    )


def choose(page: Page, control: str, label: str) -> None:
    """Select an entry of a dropdown, the first one if ``label`` is empty."""
    page.click(f"#{control}")
    page.locator(".dash-dropdown-content:visible .dash-dropdown-option", has_text=label).first.click()
    if page.locator(".dash-dropdown-content:visible").count():
        page.keyboard.press("Escape")


def pair(page: Page, control: str, test: str) -> None:
    """Measure the first page, filters, ranks and all pages of a pair."""
    with served(control, test) as (url, measured):
        page.goto(url)
        page.wait_for_selector("#chart-families .main-svg", state="attached")
        print(f"first page after the comparison: {time.perf_counter() - measured.compared:.2f} s")
        page.wait_for_timeout(2000)
        for control_id, label in FILTERS:
            print(
                f"filter {control_id}: "
                f"{measured.slowest(page, lambda c=control_id, v=label: choose(page, c, v)):.0f} ms"
            )
        print(f"all filters cleared: {measured.slowest(page, lambda: page.click('#clear')):.0f} ms")
        print(f"rank: {measured.slowest(page, lambda: choose(page, 'rank', '0')):.0f} ms")
        for name in page.eval_on_selector_all("nav a", "all => all.map(a => a.textContent)")[1:]:
            print(f"page {name}: {measured.slowest(page, lambda n=name: page.click(f'nav >> text={n}')):.0f} ms")
        print(f"memory: {memory()}")


def zoom(page: Page, control: str, test: str) -> None:
    """Measure zooming into the timeline of a long pair."""
    with served(control, test) as (url, measured):
        page.goto(f"{url}/timeline")
        page.wait_for_selector("#chart-timeline .main-svg", state="attached", timeout=600_000)
        print(f"long pair: memory before its events are read: {memory()}")
        length = page.evaluate(f"{GRAPH}.layout.xaxis.range[1]")
        for k, (low, high) in enumerate(WINDOWS):
            relayout = (
                f"Plotly.relayout({GRAPH}, {{'xaxis.range[0]': {low * length}, 'xaxis.range[1]': {high * length}}})"
            )
            slowest_ms = measured.slowest(
                page, lambda script=relayout: page.evaluate(script), 60_000 if k == 0 else 3000
            )
            print(f"zoom to {low:.0%} to {high:.0%}: {slowest_ms:.0f} ms{', reading the events' if k == 0 else ''}")
        print(f"memory: {memory()}")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--pair",
        nargs=2,
        default=[str(TRACES / "timesformer_h100"), str(TRACES / "timesformer_mi300")],
        metavar=("CONTROL", "TEST"),
    )
    parser.add_argument(
        "--long", nargs=2, metavar=("CONTROL", "TEST"), help="also measure this pair with millions of events"
    )
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        pair(browser.new_page(viewport={"width": 1280, "height": 900}), *options.pair)
        if options.long:
            zoom(browser.new_page(viewport={"width": 1280, "height": 900}), *options.long)
        browser.close()


if __name__ == "__main__":  # processes that read sets import this file
    main()
