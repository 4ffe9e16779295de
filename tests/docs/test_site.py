"""The built documentation: pages that load nothing from other hosts, fit a phone, and can be searched."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from needs import SITE

PAGES = ["index.html", "concepts.html", "reference/command-line.html"]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE.parent)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def opened(browser, address):
    """Opens a page of the site: ``opened(name, width)`` → the page and the list of its complaints."""
    contexts = []

    def opened(name, width=1280):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, reduced_motion="reduce"))
        page, complaints = contexts[-1].new_page(), []
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda r: None if r.url.startswith((address, "data:")) else complaints.append(r.url))
        page.goto(address + name, wait_until="networkidle")
        return page, complaints

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.site
@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_a_phone_and_load_nothing_from_other_hosts(opened, name):
    page, complaints = opened(name, 390)
    assert complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.site
@pytest.mark.browser
@pytest.mark.slow
def test_search_finds_an_option(opened):
    page, complaints = opened("index.html")
    page.click("input.md-search__input")
    page.keyboard.insert_text("skip-first")  # at once: the beginning "skip-" is no valid query
    page.keyboard.press("End")
    page.wait_for_selector("a.md-search-result__link[href*='command-line']", timeout=20_000)
    assert complaints == []
