"""A running dashboard over a folder of small built traces, and a browser on it."""

import threading
from dataclasses import dataclass, field

import pytest
from browser import entered, left
from dashboard_runs import make_runs
from tracediff_dashboards.app import Dashboard
from tracediff_dashboards.reading.sets import Sets
from tracediff_dashboards.server import bound

QUIET_MS = 200
LOOK_MS = 50


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    return make_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def dashboard(runs):
    """A dashboard over the folder, behind a server on a free port; ``url`` is where."""
    made = Dashboard(Sets(root=runs))
    server = bound(made, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made.url = f"http://127.0.0.1:{server.server_port}"
    yield made
    server.shutdown()
    server.server_close()
    made.close()


@dataclass
class Tab:
    """One tab.

    Attributes:
        complaints: all that it must not do: errors, dialogs, failed answers, requests that leave the server.
        asked: requests that are not answered yet.
    """

    page: object
    url: str
    complaints: list[str] = field(default_factory=list)
    asked: set[object] = field(default_factory=set)

    def asks(self, request):
        """A request begins."""
        self.asked.add(request)

    def is_answered(self, request):
        """A request ends."""
        self.asked.discard(request)

    def listeners(self):
        """(event, what hears it) for all events of the page that complaints and requests are read from."""
        own = (self.url, "data:", "blob:")
        return [
            ("console", lambda m: m.type in ("error", "warning") and self.complaints.append(f"{m.type}: {m.text}")),
            ("pageerror", lambda e: self.complaints.append(f"exception: {e}")),
            ("dialog", lambda d: (self.complaints.append(f"dialog: {d.message}"), d.dismiss())),
            ("request", lambda r: r.url.startswith(own) or self.complaints.append(f"request: {r.url[:200]}")),
            ("response", lambda r: r.status >= 400 and self.complaints.append(f"{r.status}: {r.url[:200]}")),
            ("request", self.asks),
            ("requestfinished", self.is_answered),
            ("requestfailed", self.is_answered),
        ]

    def empty(self, url):
        """Leave the dashboard, without what it stored, for a small page at ``url``, which keeps its process."""
        left(self.page)
        self.page.goto(f"{url}/_favicon.ico")

    def go(self, path="/", ready="#page h1"):
        """Open a page and wait for it."""
        self.page.goto(self.url + path)
        self.page.wait_for_selector(ready)
        return self

    def turn(self, path, ready="#page h1"):
        """Go to another address as a link in the page does: loading the page again takes seconds of processor time."""
        with self.page.expect_request("**/_dash-update-component*"):
            self.page.evaluate(
                "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }", path
            )
        self.settle()
        self.page.wait_for_selector(ready)
        return self

    def settle(self):
        """Wait until nothing has been asked of the server for a while: the browser's own "networkidle" comes once a
        document.
        """
        quiet = 0
        while quiet < QUIET_MS:
            self.page.wait_for_timeout(LOOK_MS)
            quiet = 0 if self.asked else quiet + LOOK_MS
        return self

    def choose(self, control, *labels):
        """Choose entries of a dropdown."""
        self.page.click(f"#{control}")
        for label in labels:
            self.page.locator(".dash-dropdown-content:visible .dash-dropdown-option", has_text=label).first.click()
        if self.page.locator(".dash-dropdown-content:visible").count():
            self.page.keyboard.press("Escape")
        return self.settle()

    def rows(self):
        """The names in the table, top to bottom."""
        return self.page.eval_on_selector_all(
            ".ag-pinned-left-cols-container .ag-row, .ag-center-cols-container .ag-row",
            "all => all.filter(r => r.querySelector('[col-id=name]')).sort((a, b) => a.getAttribute('row-index') - "
            "b.getAttribute('row-index'))"
            ".map(r => r.querySelector('[col-id=name]').textContent)",
        )


@pytest.fixture
def tab(browser, dashboard, idle_pages):
    """Opens tabs, each in a browser session of its own that holds nothing of earlier tests but the cache."""
    used = []

    def opened(width=1280, url=dashboard.url, dark=False):
        page = entered(idle_pages.pop() if idle_pages else browser.new_context().new_page(), width, dark)
        new_tab = Tab(page, url)
        listeners = new_tab.listeners()
        for event, listener in listeners:
            page.on(event, listener)
        used.append((new_tab, listeners))
        return new_tab

    yield opened
    for used_tab, listeners in used:
        for event, listener in listeners:
            used_tab.page.remove_listener(event, listener)
        used_tab.empty(dashboard.url)
        idle_pages.append(used_tab.page)
