"""A real browser, Debian's chromium, for what only a browser can show."""

import shutil
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)

ARGUMENTS = ["--no-sandbox", "--js-flags=--no-opt --no-maglev"]
"""A page lives too short for what V8's optimising compilers cost."""


@dataclass
class Visit:
    """An opened page, and all it did that a report must not do.

    Attributes:
        complaints: errors and warnings of the console, exceptions, dialogs, and requests for anything but the file
            itself.
    """

    page: object
    complaints: list[str] = field(default_factory=list)

    def turn(self, path: Path, ready: str | None = "[data-ready]") -> None:
        """Open another file in the same tab, whose process has compiled the scripts of pages already."""
        self.page.goto(path.as_uri())
        if ready:
            self.page.wait_for_selector(ready, state="attached")


def faults(page) -> list[str]:
    """What axe finds serious or critical on a page, one line each: the rule and the first element."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [f"{v['id']}: {v['nodes'][0]['html']}" for v in found if v["impact"] in ("serious", "critical")]


def complaining(complaints: list[str], is_own) -> list:
    """(event, what hears it) for all that a page must not do: errors and warnings of the console, exceptions, dialogs,
    and requests for what is not its own; ``is_own``: address → whether it is.
    """
    return [
        ("console", lambda m: m.type in ("error", "warning") and complaints.append(f"{m.type}: {m.text}")),
        ("pageerror", lambda e: complaints.append(f"exception: {e}")),
        ("dialog", lambda d: (complaints.append(f"dialog: {d.message}"), d.dismiss())),
        ("request", lambda r: is_own(r.url) or complaints.append(f"request: {r.url[:200]}")),
    ]


def left(page, listeners):
    """End the session of a page: what it stored, allowed, routed, opened and was listened to is gone."""
    for event, listener in listeners:
        page.remove_listener(event, listener)
    for other in page.context.pages:
        if other is not page:
            other.close()
    page.unroute_all()
    page.context.unroute_all()
    page.context.clear_cookies()
    page.context.clear_permissions()
    if page.url != "about:blank":
        page.evaluate("localStorage.clear(); sessionStorage.clear()")


IN_VIEW = "place => Boolean(place.querySelector('.main-svg') || void place.scrollIntoView())"
"""Asked again until the chart is drawn: what is drawn above it moves it out of view."""


def scrolled(page):
    """Bring every chart into view until it is drawn, each trace as what it is.

    plotly.js draws kinds of traces that it does not have as scatter.
    """
    page.eval_on_selector_all("details.more", "all => all.forEach(one => { one.open = true; })")
    for place in page.query_selector_all(".chart"):
        page.wait_for_function(IN_VIEW, arg=place, polling=100)
        kinds = "place => [place.data, place._fullData].map(traces => traces.map(trace => trace.type))"
        asked, drawn = place.evaluate(kinds)
        assert drawn == asked


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def idle_pages():
    """Pages that no test has open, each in a browser session of its own: a new one compiles all scripts again."""
    return []


@pytest.fixture
def session_page(browser, idle_pages) -> Iterator:
    """Opens pages, each in a browser session that holds nothing of earlier tests but the cache:
    ``session_page(listeners, width, dark, idle_at)``. A small page at ``idle_at`` of the same server keeps the process.
    """
    used = []

    def opened(listeners: list, width: int, dark: bool, idle_at: str = "about:blank"):
        page = idle_pages.pop() if idle_pages else browser.new_context().new_page()
        used.append((page, listeners, idle_at))
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media="screen", color_scheme="dark" if dark else "light", reduced_motion="reduce")
        for event, listener in listeners:
            page.on(event, listener)
        return page

    yield opened
    for page, listeners, idle_at in used:
        left(page, listeners)
        page.goto(idle_at)
        idle_pages.append(page)


@pytest.fixture
def visit(session_page):
    """Opens a file: ``visit(path, width=1280, dark=False)`` → `Visit`, once the page's script has run."""

    def opened(path: Path, width: int = 1280, dark: bool = False, ready: str | None = "[data-ready]") -> Visit:
        own = ("data:", "blob:", path.parent.as_uri())
        complaints: list[str] = []
        visited = Visit(session_page(complaining(complaints, lambda url: url.startswith(own)), width, dark), complaints)
        visited.turn(path, ready)
        return visited

    return opened


PERFETTO = """<!DOCTYPE html><title>Perfetto</title><script>
addEventListener("message", (event) => {
  if (event.data === "PING") return event.source.postMessage("PONG", "*");
  const reader = new FileReader();
  reader.onload = () => { window.got = { title: event.data.perfetto.title, trace: reader.result }; };
  reader.readAsDataURL(new Blob([event.data.perfetto.buffer]));
});
</script>"""
"""The part of Perfetto's page that takes a trace from the page that opened it."""


def play_perfetto(context, address: str = "https://ui.perfetto.dev") -> None:
    """Answer at ``address`` as Perfetto's page does, without a network."""
    context.route(f"{address}/**", lambda route: route.fulfill(body=PERFETTO, content_type="text/html"))


def taken(page, button: str) -> tuple[str, bytes]:
    """(title, trace) that a click on ``button`` hands to Perfetto's page."""
    with page.expect_popup() as popup:
        page.click(button)
    popup.value.wait_for_function("() => window.got")
    got = popup.value.evaluate("window.got")
    return got["title"], b64decode(got["trace"].partition(",")[2])
