"""``tracediff open``: one file on the loopback interface for Perfetto's page."""

import json
import re
import socket
import threading
from http.client import HTTPConnection

import pytest
from build_trace import document, op, write
from click.testing import CliRunner
from tracediff_cli.group import cli
from tracediff_cli.open import VIEWER, FileServer

from tracediff.errors import TracediffError


@pytest.fixture
def served(tmp_path):
    """(server at a free port, its file), with a thread that answers."""
    path = write(tmp_path / "my trace.json", document([op("aten::mm", 0, 5)]))
    with FileServer(str(path), 0) as server:
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
    response, body = fetch(server, "GET", server.path)
    assert (response.status, body) == (200, path.read_bytes())
    assert response.headers["Access-Control-Allow-Origin"] == VIEWER
    assert json.loads(body)
    assert fetch(server, "HEAD", server.path)[0].headers["Content-Length"] == str(path.stat().st_size)
    assert [fetch(server, "GET", other)[0].status for other in guesses(server)] == [404] * 7
    assert server.served == 1


def test_another_name_for_this_machine_gets_nothing(served):
    """A page elsewhere could make the browser fetch through a name that leads here."""
    assert fetch(served[0], "GET", served[0].path, Host="attacker.example")[0].status == 404


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def guesses(server):
    """Paths of another account on this machine, which knows the file's name."""
    token, name = server.path.split("/")[1:]
    others = (token, f"{token}/", f"{token}/other.json", f"{'A' * len(token)}/{name}")
    return ("/", "/../conftest.py", f"/{name}", *(f"/{other}" for other in others))


def test_the_address_is_perfetto_s_with_the_file_at_a_path_that_nobody_guesses(served):
    server, path = served
    assert server.url == f"{VIEWER}/#!/?url=http://127.0.0.1:{server.server_port}{server.path}"
    assert re.fullmatch(r"/[A-Za-z0-9_-]{32}/my_trace\.json", server.path)
    with FileServer(str(path), 0) as another:
        assert another.path != server.path


@pytest.mark.parametrize("name", ["caf\udce9.json", "%41&x=#?.json", "\n\x1b.json", "–.json"])
def test_a_name_of_any_bytes_is_served(tmp_path, name):
    path = write(tmp_path / name, document([op("aten::mm", 0, 5)]))
    with FileServer(str(path), 0) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        assert fetch(server, "GET", server.path)[1] == path.read_bytes()
        thread.join()
        assert server.url.isprintable()


def test_other_accounts_do_not_see_the_address_in_the_browser_s_command(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(FileServer, "handle_request", lambda server: setattr(server, "served", 1))
    path = write(tmp_path / "a.json", document([op("aten::mm", 0, 5)]))
    result = CliRunner().invoke(cli, ["open", str(path), "--port", str(free_port())])
    assert result.exception is None
    assert opened[0].startswith("file://")
    assert result.output.startswith(VIEWER)


def test_a_file_that_is_not_there_and_a_port_in_use_are_one_line(served, tmp_path):
    server, path = served
    with pytest.raises(TracediffError, match=r"no such file or folder; check the path$"):
        FileServer(str(tmp_path / "missing.json"), 0)
    with pytest.raises(TracediffError, match=f"port {server.server_port}"):
        FileServer(str(path), server.server_port)
