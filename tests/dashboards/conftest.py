"""A running dashboard over a folder of small built traces, and a browser on it."""

import threading
from dataclasses import dataclass, field

import pytest
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
def tab(browser, dashboard):
    """Opens tabs, each a browser session of its own."""
    contexts = []

    def opened(width=1280, url=dashboard.url, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, reduced_motion="reduce", **options)
        contexts.append(context)
        new_tab = Tab(context.new_page(), url)
        new_tab.page.on(
            "console",
            lambda m: new_tab.complaints.append(f"{m.type}: {m.text}") if m.type in ("error", "warning") else None,
        )
        new_tab.page.on("pageerror", lambda e: new_tab.complaints.append(f"exception: {e}"))
        new_tab.page.on("dialog", lambda d: (new_tab.complaints.append(f"dialog: {d.message}"), d.dismiss()))
        new_tab.page.on(
            "request",
            lambda r: (
                new_tab.complaints.append(f"request: {r.url[:200]}")
                if not r.url.startswith((url, "data:", "blob:"))
                else None
            ),
        )
        new_tab.page.on("request", new_tab.asks)
        for answered in ("requestfinished", "requestfailed"):
            new_tab.page.on(answered, new_tab.is_answered)
        new_tab.page.on(
            "response", lambda r: new_tab.complaints.append(f"{r.status}: {r.url[:200]}") if r.status >= 400 else None
        )
        return new_tab

    yield opened
    for context in contexts:
        context.close()
