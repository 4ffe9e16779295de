"""The checks of every request."""

import threading

import pytest
from tracediff_dashboards.app import Dashboard
from tracediff_dashboards.reading.sets import Sets
from tracediff_dashboards.security import is_loopback
from tracediff_dashboards.server import bound

from tracediff import bounds

TOKEN = "a-token-of-the-tests"
QUERY = "?control=base&test=faster"
PATHS = [
    "/",
    "/changes",
    "/palette.css",
    "/tables.css",
    "/numbers.js",
    "/assets/dashboard.css",
    "/_dash-layout",
    "/_dash-dependencies",
    "/nosuch/../x",
    "/_favicon.ico",
]


@pytest.fixture(scope="module")
def local(runs):
    made = Dashboard(Sets(root=runs))
    yield made.app.server.test_client()
    made.close()


@pytest.fixture
def guarded(runs):
    made = Dashboard(Sets(root=runs), host="0.0.0.0", token=TOKEN)
    yield made.app.server.test_client()
    made.close()


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_its_headers(local, guarded, path):
    for client in (local, guarded):
        headers = client.get(path).headers
        policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert "unsafe" not in policy["script-src"]
        assert policy["script-src"].startswith("'self' 'sha256-")
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Frame-Options"] == "DENY"


def test_the_page_loads_from_its_own_server_only(local):
    text = local.get("/").text
    assert "https://" not in text.replace('"dash_version_url":"https:\\u002f\\u002f', "")
    assert "dash_dev_tools" not in text
    assert local.get("/_reload-hash").status_code in (200, 404)
    assert "ag-grid" not in text or "cdn" not in text
    assert "--control:" in local.get("/palette.css").text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8050", "127.0.0.1.evil.example", "169.254.1.1", "[::2]", ""]
)
def test_another_name_for_this_machine_is_not_answered(local, host):
    assert local.get("/", headers={"Host": host}).status_code in (400, 403)


@pytest.mark.parametrize("host", ["127.0.0.1:8050", "localhost:1", "[::1]:8050"])
def test_its_own_names_are(local, host):
    assert local.get("/", headers={"Host": host}).status_code == 200


def test_other_sites_may_not_ask(local):
    for origin in ("http://evil.example", "null", "http://localhost:9999"):
        assert local.post("/_dash-update-component", json={}, headers={"Origin": origin}).status_code == 403
    assert local.get("/", headers={"Origin": "http://localhost"}).status_code == 200
    for site in ("cross-site", "same-site"):
        for method, path in (("GET", "/_dash-layout"), ("POST", "/_dash-update-component"), ("POST", "/upload")):
            assert local.open(path, method=method, headers={"Sec-Fetch-Site": site}).status_code == 403


def test_a_link_on_another_site_opens_the_page_from_the_dashboard_itself(guarded):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    answer = guarded.get(f"/?control=a&token={TOKEN}", headers=headers)
    assert answer.status_code == 200
    assert "Set-Cookie" not in answer.headers
    assert 'http-equiv="refresh"' in answer.text
    assert TOKEN not in answer.text


def test_a_link_with_the_token_works_from_another_site_and_copied_links_for_the_same_user(runs, tab, browser):
    made = Dashboard(Sets(root=runs), token=TOKEN)
    server = bound(made, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    app = tab(url=url)
    app.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page, referrers = app.page, []
    page.on("request", lambda r: referrers.append(r.headers.get("referer", "")) if r.url.startswith(url) else None)
    links = f"<a id=a href='{url}/?token={TOKEN}'>a</a> <a id=b href='{url}/changes{QUERY}'>b</a>"
    page.route("http://evil.example/", lambda route: route.fulfill(body=links, content_type="text/html"))
    page.goto("http://evil.example/")
    page.click("#a")
    page.wait_for_selector("#page h1")
    assert page.url == f"{url}/"
    assert page.evaluate("document.cookie") == ""
    page.goto("http://evil.example/")
    page.click("#b")
    page.wait_for_selector(".ag-row")
    page.click("#copy")
    page.wait_for_selector("#copy >> text=Link copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{url}/changes{QUERY}"
    assert not any(TOKEN in referrer for referrer in referrers)
    same_user, another = page.context.new_page(), browser.new_page()
    assert same_user.goto(copied).status == 200
    assert another.goto(copied).status == 401
    another.close()
    assert [complaint for complaint in app.complaints if "evil.example" not in complaint] == []
    server.shutdown()
    made.close()


def test_wrong_tokens_are_slowed_down_and_lock_nobody_out(guarded, monkeypatch):
    slept = []
    monkeypatch.setattr("tracediff_dashboards.security.time.sleep", slept.append)
    right = {"Authorization": f"Bearer {TOKEN}"}
    answers = [guarded.get("/?token=wrong").status_code for _ in range(bounds.WRONG_TOKENS + 5)]
    answers += [guarded.get("/", headers={"Authorization": "Bearer wrong"}).status_code]
    assert answers == [401] * (bounds.WRONG_TOKENS - 1) + [429] * 7
    assert slept == [bounds.TOKEN_DELAY_S] * 7
    assert guarded.get("/").status_code == 401
    assert guarded.get("/", headers=right).status_code == 200
    assert guarded.get(f"/?token={TOKEN}").status_code == 303
    assert guarded.get("/").status_code == 200
    assert len(slept) == 7


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_told_without_the_token(guarded, path):
    wrong = [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Cookie": "tracediff-session-80=é"},
        {"Cookie": f"tracediff-session-80={TOKEN}"},
    ]
    for headers in wrong:
        answer = guarded.get(path, headers=headers)
        assert answer.status_code == 401
        assert len(answer.text) < 200
    assert guarded.get(f"{path}?token=wrong").status_code == 401
    assert guarded.get(path, headers={"Authorization": f"Bearer {TOKEN}"}).status_code in (200, 404)
    assert guarded.post("/_dash-update-component", json={}).status_code == 401


def test_the_token_moves_from_the_address_to_a_cookie(guarded):
    answer = guarded.get(f"/changes?control=a%26b&family=x&family=y&token={TOKEN}")
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/changes?control=a%26b&family=x&family=y"
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert TOKEN not in cookie
    assert guarded.get("/changes").status_code == 200
    again = guarded.get("/?control=a&token=of-an-earlier-run")
    assert (again.status_code, again.headers["Location"]) == (303, "/?control=a")
    for path in ("//evil.example/", "/%2Fevil.example/", "/\\evil.example/"):
        location = guarded.open(path=path, query_string={"token": TOKEN}).headers["Location"]
        assert location[:1] == "/"
        assert location[1:2] not in ("/", "\\")


def test_a_request_is_bounded(local):
    answer = local.post(
        "/_dash-update-component", data=b"x", headers={"Content-Length": str(1 << 40)}, content_type="application/json"
    )
    assert answer.status_code in (400, 413)


def test_loopback_is_known_by_address():
    assert [
        is_loopback(host)
        for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost", "0.0.0.0", "::", "10.0.0.1", "example.org")
    ] == [True] * 4 + [False] * 4
