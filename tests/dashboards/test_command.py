"""``tracediff dashboard``: what it takes, what it refuses, and that it serves."""

import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from click.testing import CliRunner
from interrupts import heed_interrupts
from tracediff_cli.group import cli
from tracediff_cli.open import page_that_opens
from tracediff_dashboards.app import Dashboard
from tracediff_dashboards.reading.sets import Sets
from tracediff_dashboards.server import bound


def refused(*arguments):
    result = CliRunner().invoke(cli, ["dashboard", *map(str, arguments)])
    return f"{result.exception}"


def test_what_cannot_be_served_is_refused_in_a_line(runs, tmp_path):
    assert "nosuch: no such file or folder" in refused(runs / "base", tmp_path / "nosuch")
    assert "not a folder" in refused(runs / "base" / "trace.json")
    assert "3 sets were given" in refused(*[runs / "base"] * 3)
    assert "leave --token out" in refused(runs, "--host", "0.0.0.0", "--token", "none")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert refused(runs, "--port", taken.getsockname()[1]).startswith("--port: cannot serve on 127.0.0.1:")
    for host in ("nosuch.invalid", "a" * 70):
        assert refused(runs, "--host", host).startswith(f"--host: {host!r} is not a known address")
    assert refused(runs, "--host", "192.0.2.1").startswith("--host: 192.0.2.1 is not an address of this machine")
    assert "16 or more letters" in refused(runs, "--host", "0.0.0.0", "--token", "short")
    assert "no trace in the folder" in refused(tmp_path, tmp_path) or "empty" in refused(tmp_path, tmp_path)


def test_a_missing_extra_is_named(runs, monkeypatch):
    for name in [n for n in sys.modules if n.startswith("tracediff_dashboards")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dash", None)
    assert refused(runs).endswith("pip install 'torch-tracediff[dashboard]'")


def test_other_users_do_not_see_the_token_of_the_page_that_opens():
    with page_that_opens("http://127.0.0.1:8050/?token=secret") as page:
        path = Path(unquote(urlsplit(page).path))
        assert "secret" not in page
        assert path.parent.stat().st_mode & 0o77 == 0
        assert "url=http://127.0.0.1:8050/?token=secret" in path.read_text()
    assert not path.parent.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "asked", "status"),
    [
        ([], signal.SIGINT, 0),
        (["--host", "0.0.0.0", "--token", "0123456789abcdef"], signal.SIGINT, 0),
        (["--token", "none"], signal.SIGTERM, 128 + signal.SIGTERM),
    ],
)
def test_it_serves_until_it_is_interrupted(runs, options, asked, status):
    command = [sys.executable, "-u", "-m", "tracediff", "dashboard", runs / "base", runs / "faster", "--port", "0"]
    process = subprocess.Popen(
        [*map(str, command), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    try:
        line = process.stdout.readline()
        url, token = re.search(r"(http://[0-9.]+:\d+/)(?:\?token=(\S+))? ", line).groups()
        if "none" not in options:
            assert len(token) >= 32 or token in options
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(url)
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(f"{url}?token={token}" if token else url) as answer:
            assert answer.status == 200
            assert answer.url == url
    finally:
        process.send_signal(asked)
    out, err = process.communicate(timeout=60)
    assert process.returncode == status, err
    assert ("stopped" in out) is (status == 0)
    warning = {"--host": "other machines can reach 0.0.0.0", "--token": "every user of this machine"}
    assert warning[options[0]] in err if options else not err


def test_a_signal_while_a_thread_starts_ends_the_server(runs, monkeypatch):
    """It may come once the thread runs, which then ends as any other."""
    server = bound(Dashboard(Sets(root=runs)), "127.0.0.1", 0)
    start = threading.Thread.start

    def interrupted(thread):
        start(thread)
        thread.join()
        raise SystemExit(143)

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with server, socket.create_connection(("127.0.0.1", server.server_port)) as client:
        client.shutdown(socket.SHUT_WR)
        with pytest.raises(SystemExit):
            server.handle_request()
