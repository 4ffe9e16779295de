"""A running dashboard over a folder of small built traces, and a browser on it."""

import threading
from dataclasses import dataclass, field

import pytest
from browser import complaining
from dashboard_runs import make_runs
from tracediff_dashboards.app import Dashboard
from tracediff_dashboards.reading.sets import Sets
from tracediff_dashboards.server import bound

CHOSEN_FIRST = """() => {
  const boxes = document.querySelectorAll('.dash-dropdown-content .dash-dropdown-option input[type=checkbox]');
  const chosen = [...boxes].map(box => box.checked);
  return chosen.every((is, k) => !is || k === 0 || chosen[k - 1]);
}"""
"""Whether the options of an open dropdown are in their order: it puts the chosen ones first."""
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

    url: str
    page: object = None
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
            *complaining(self.complaints, lambda url: url.startswith(own)),
            ("response", lambda r: r.status >= 400 and self.complaints.append(f"{r.status}: {r.url[:200]}")),
            ("request", self.asks),
            ("requestfinished", self.is_answered),
            ("requestfailed", self.is_answered),
        ]

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

    def unfold(self):
        """Show the filters."""
        if not self.page.is_visible("#clear"):
            self.page.click("#filters summary")
        return self

    def choose(self, control, *labels):
        """Choose entries of a dropdown."""
        self.unfold()
        self.page.click(f"#{control}")
        self.page.wait_for_function(CHOSEN_FIRST)  # an option changes into another one when the list is sorted
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
def tab(dashboard, session_page):
    """Opens tabs, each in a browser session of its own."""

    def opened(width=1280, url=dashboard.url, dark=False):
        new_tab = Tab(url)
        new_tab.page = session_page(new_tab.listeners(), width, dark, f"{dashboard.url}/_favicon.ico")
        return new_tab

    return opened
