"""Malformed requests, over a real socket: each is answered with 400 and all headers, and none with a traceback."""

import json
import logging
import os
import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from interrupts import wait_until
from tracediff_dashboards import server as server_module
from tracediff_dashboards.security import MOST_BYTES, PATH, VALUES, security_headers

from tracediff import bounds

QUERY = "?control=base&test=faster"
JSON = "application/json"


def post(url, body, content_type=JSON):
    """(status, headers, text) of the answer to a POST of bytes, or of an object as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url + PATH, data, {"Content-Type": content_type})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def raw(dashboard, data):
    """The answer to these bytes."""
    host, port = dashboard.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(data)
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
    return answer.decode("latin-1")


@pytest.fixture(scope="module")
def requests(dashboard):
    """Output → a valid request for each callback of the server."""
    urllib.request.urlopen(dashboard.url).read()
    values = {"url.pathname": "/", "url.search": QUERY, "ready.data": 0}
    found = {}
    for output, callback in dashboard.app.callback_map.items():
        if "callback" not in callback:
            continue
        names = [] if callback["no_output"] else output.removeprefix("..").removesuffix("..").split("...")
        outputs = [dict(zip(("id", "property"), name.split(".", 1), strict=True)) for name in names]
        parts = {
            part: [
                {"id": i["id"], "property": i["property"], "value": values.get(f"{i['id']}.{i['property']}")}
                for i in callback[part]
            ]
            for part in ("inputs", "state")
        }
        changed = [f"{parts['inputs'][0]['id']}.{parts['inputs'][0]['property']}"]
        outputs = outputs if output.startswith("..") or not outputs else outputs[0]
        found[output] = {"output": output, "outputs": outputs, "changedPropIds": changed, **parts}
    return found


@pytest.fixture(autouse=True)
def quiet(caplog, capsys):
    """No callback may log an error, and no thread of the server may print a traceback."""
    with caplog.at_level(logging.WARNING):
        yield
    assert [r.getMessage() for r in caplog.records] == []
    assert capsys.readouterr().err == ""


def test_every_value_has_a_type_and_valid_requests_are_served(dashboard, requests):
    named = {f"{v['id']}.{v['property']}" for body in requests.values() for v in (*body["inputs"], *body["state"])}
    assert named == set(VALUES)
    assert {post(dashboard.url, body)[0] for body in requests.values()} <= {200, 204}


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", JSON),
        (b"{", JSON),
        (b"[]", JSON),
        (b"null", JSON),
        (b"\xff\xfe", JSON),
        (b"[" * 100_000, JSON),
        (b'{"output": NaN}', JSON),
        ({}, JSON),
        ({"output": 5}, JSON),
        ({"output": "nosuch.children"}, JSON),
        ({"output": "grid.columnDefs"}, JSON),  # it runs in the browser
        ({"output": "details.children"}, JSON),
        ({"output": "details.children", "outputs": [], "inputs": {}}, JSON),
        (b"a=b", "application/x-www-form-urlencoded"),
        (b'{"output": "' + b"x" * (MOST_BYTES + 1) + b'"}', JSON),
    ],
)
def test_what_is_no_request_of_a_page_is_refused(dashboard, body, content_type):
    status, headers, text = post(dashboard.url, body, content_type)
    assert status == 400
    assert len(text) < 300
    assert "Traceback" not in text
    assert set(security_headers()) <= set(headers)


def test_wrong_parts_of_a_request_are_refused(dashboard, requests):
    for body in requests.values():
        wrong = [
            {**body, "outputs": [{"id": "page", "property": "children"}]},
            {**body, "outputs": {"id": 5}},
            {**body, "inputs": body["inputs"][1:]},
            {**body, "inputs": [*body["inputs"], *body["inputs"]]},
            {**body, "inputs": [[value] for value in body["inputs"]]},
            {**body, "inputs": [{**value, "id": "nosuch"} for value in body["inputs"]]},
            {**body, "inputs": [{**value, "id": {"type": "x"}} for value in body["inputs"]]},
            {**body, "changedPropIds": ["nosuch.value"]},
            {**body, "inputs": [{**value, "value": {"a": [{}]}} for value in body["inputs"]], "state": [{}]},
            {**body, "state": 5},
        ]
        assert {post(dashboard.url, each)[0] for each in wrong} == {400}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["points", "id", "ids", "key", "xaxis.range", "xaxis.range[0]", "colId", "name", "x"]),
            inner,
        )
    ),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_values_of_any_type_never_fail_within(dashboard, requests, data):
    body = data.draw(st.sampled_from(list(requests.values())))
    parts = {
        part: [{**value, "value": data.draw(ANYTHING)} if data.draw(st.booleans()) else value for value in body[part]]
        for part in ("inputs", "state")
    }
    client = dashboard.app.server.test_client()
    answer = client.post(PATH, json={**body, **parts}, headers={"Host": "127.0.0.1"})
    assert answer.status_code in (200, 204, 400)


def test_values_that_json_allows_and_no_page_sends_are_refused(dashboard, requests):
    body = next(body for body in requests.values() if body["inputs"][0]["id"] == "url")
    text = json.dumps(body)
    for search in ('"\\ud800"', "NaN", "1e999", "[" * 900 + "]" * 900):
        assert post(dashboard.url, text.replace(json.dumps(QUERY), search).encode())[0] == 400


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nBad\r\n\r\n", None),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", "400"),
        (b"GET\r\n\r\n", "400"),
        (b"GET /\r\n\r\n", "400"),
        (b"GET / HTTP/9\r\n\r\n", "400"),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", "414"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", "431"),
        (b"GET /_dash-component-suites/nosuch/x.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "404"),
        (b"GET /_dash-component-suites/dash/nosuch.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "404"),
        (b"GET /assets/nosuch.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "404"),
        (b"GET /assets/dashboard.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "200"),
        (b"BREW / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "405"),
        (
            b"POST /_dash-update-component HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: 99999999999\r\n\r\n{}",
            "400",
        ),
        (
            b"POST /_dash-update-component HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: x\r\n\r\n",
            "400",
        ),
    ],
)
def test_every_answer_of_the_server_has_its_headers(dashboard, data, status):
    answer = raw(dashboard, data)
    head = answer.partition("\r\n\r\n")[0]
    if status:
        assert head.split()[1] == status
    for name in security_headers():
        assert f"\r\n{name}: " in head


@pytest.fixture
def small(dashboard, monkeypatch):
    """Its port: a server with 3 threads, whose clients have little time."""
    for name, value in (("CONNECTIONS", 3), ("HEAD_S", 1.0), ("CROWDED_HEAD_S", 0.2)):
        monkeypatch.setattr(bounds, name, value)
    monkeypatch.setattr(server_module, "CONTENT_SECONDS", 0.5)
    server = server_module.bound(dashboard, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_slow_clients_are_bounded_and_others_are_served(small):
    before = threading.active_count()
    slow = [socket.create_connection(("127.0.0.1", small)) for _ in range(12)]
    stop = threading.Event()

    def drip():
        while not stop.wait(0.05):
            for connection in slow:
                with suppress(OSError):  # it was closed
                    connection.send(b"x")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{small}/palette.css", timeout=30) as answer:
            assert answer.status == 200
        assert threading.active_count() - before <= 1 + 3
    finally:
        stop.set()
        dripping.join()
        for connection in slow:
            connection.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "head",
    [
        "",
        "GET /palette.css HTTP/1.1\r\nA: b",
        f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {JSON}\r\nContent-Length: 100\r\n\r\n",
        "POST /upload?name=a.json HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
        "Content-Length: 100\r\n\r\n",
    ],
)
def test_a_client_that_drips_is_dropped(small, head):
    with socket.create_connection(("127.0.0.1", small), timeout=0.1) as connection:
        connection.sendall(head.encode())
        for _ in range(200):
            try:
                connection.send(b"x")
                if not connection.recv(1000):
                    return
            except TimeoutError:
                continue
            except OSError:
                return
    raise AssertionError("it is still served")


@pytest.mark.slow
def test_many_clients_at_once_leave_nothing_behind(dashboard, requests):
    bodies, answered = list(requests.values()), []

    def client(k):
        answered.extend(post(dashboard.url, body)[0] for body in bodies[k:] + bodies[:k])

    def all_clients():
        """Memory in MB afterwards."""
        clients = [threading.Thread(target=client, args=(k,)) for k in range(len(bodies))]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

    warm = [all_clients() for _ in range(6)]  # memory grows once, when what is read in the background arrives
    before, threads = warm[-1], threading.active_count()
    after = [all_clients() for _ in range(3)][-1]
    assert {*answered} == {200, 204}
    assert after - before < 16
    wait_until(lambda: threading.active_count() <= threads + 1, "threads that end")


def test_a_client_that_takes_no_answer_is_dropped(small):
    before = threading.active_count()
    with socket.create_connection(("127.0.0.1", small)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(200):
            time.sleep(0.05)
            if threading.active_count() == before:
                return
            with suppress(OSError):
                connection.send(b"GET /flame.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
    raise AssertionError("it is still served")


def test_a_dropped_file_is_stored_or_refused_in_a_line(dashboard):
    def send(name, data, **headers):
        request = urllib.request.Request(
            f"{dashboard.url}/upload?name={name}", data, {"Content-Type": "application/octet-stream", **headers}
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    content = b"x" * (2 * MOST_BYTES)  # more than other requests may have
    status, name = send("t.json", content)
    assert (status, dashboard.sets.uploads.path(name).read_bytes()) == (200, content)
    for wrong in (
        send("t.exe", b""),
        send("t.json", b"", **{"Content-Type": "text/plain"}),
        send("", b""),
    ):
        assert wrong[0] == 400
        assert wrong[1].count("\n") == 1
    head = "POST /upload?name=t.json HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
    assert "larger than 64 MB" in raw(dashboard, f"{head}Content-Length: {1 << 40}\r\n\r\n".encode())


def test_an_error_of_a_user_is_a_line_in_every_callback(dashboard, requests):
    values = {
        "url.search": QUERY.replace("faster", "nosuch"),
        "flame-view.data": {"node": {"kind": "op", "name": "x"}},
        "grid.selectedRows": [{"key": "x"}],
        "chart-timeline.clickData": {"points": [{"id": "0:1"}]},
        "chart-timeline.relayoutData": {"xaxis.range": [20, 60]},
    }
    named = 0
    for body in requests.values():
        for value in (*body["inputs"], *body["state"]):
            value["value"] = values.get(f"{value['id']}.{value['property']}", value["value"])
        status, _, text = post(dashboard.url, body)
        assert status in (200, 204)
        named += "no such set below the folder" in text
    assert named == 5  # all that need the sets; reading and cancelling do not


def test_a_fault_of_a_callback_is_a_line(dashboard, requests, monkeypatch, caplog):
    monkeypatch.setattr(dashboard.comparisons, "whole", lambda _: 1 / 0)
    body = next(body for body in requests.values() if body["output"].startswith("..flame-row"))
    body["inputs"][0]["value"] = {"node": {"kind": "op", "name": "x"}}
    body["state"][0]["value"] = QUERY
    status, _, text = post(dashboard.url, body)
    assert status == 200
    assert "failed in this request (ZeroDivisionError)" in text
    assert "Traceback" not in text
    assert [record.getMessage().count("\n") for record in caplog.records] == [0]
    caplog.clear()


@pytest.mark.parametrize(
    "data",
    [
        b"GET /?token=secret x HTTP/1.1\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST /upload HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: [\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(dashboard, data):
    answer = raw(dashboard, data)
    assert answer.split()[1] in ("400", "403")
    assert "secret" not in answer
