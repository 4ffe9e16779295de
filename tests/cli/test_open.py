"""``tracediff open``: one file on the loopback interface for Perfetto's page."""

import json
import threading
from http.client import HTTPConnection

import pytest
from build_trace import document, op, write

from tracediff.errors import TracediffError
from tracediff.serve_file import VIEWER, FileServer, serving


@pytest.fixture
def served(tmp_path):
    """(server at a free port, its file), with a thread that answers."""
    path = write(tmp_path / "my trace.json", document([op("aten::mm", 0, 5)]))
    with serving(str(path), 0) as server:
        done = threading.Event()

        def answer():
            while not done.is_set():
                server.handle_request()

        thread = threading.Thread(target=answer)
        thread.start()
        yield server, path
        done.set()
        thread.join()


def fetch(server, method, path, **headers):
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=5)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def test_the_page_gets_the_file_and_nothing_else(served):
    server, path = served
    response, body = fetch(server, "GET", "/my%20trace.json")
    assert (response.status, body) == (200, path.read_bytes())
    assert response.headers["Access-Control-Allow-Origin"] == VIEWER
    assert json.loads(body)
    assert fetch(server, "HEAD", "/my%20trace.json")[0].headers["Content-Length"] == str(path.stat().st_size)
    assert [fetch(server, "GET", other)[0].status for other in ("/", "/../conftest.py")] == [404, 404]
    assert server.served == 1


def test_another_name_for_this_machine_gets_nothing(served):
    """A page elsewhere could make the browser fetch through a name that leads here."""
    assert fetch(served[0], "GET", "/my%20trace.json", Host="attacker.example")[0].status == 404


def test_the_address_is_perfetto_s_with_the_file(served):
    server, _ = served
    assert server.url == f"{VIEWER}/#!/?url=http://127.0.0.1:{server.server_port}/my%20trace.json"


def test_a_file_that_is_not_there_and_a_port_in_use_are_one_line(served, tmp_path):
    server, path = served
    with pytest.raises(TracediffError, match="no such file"):
        FileServer(str(tmp_path / "missing.json"), 0)
    with pytest.raises(TracediffError, match=f"port {server.server_port}"):
        FileServer(str(path), server.server_port)
