"""``tracediff dashboard``: what it takes, what it refuses, and that it serves."""

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner
from interrupts import heed_interrupts
from tracediff_cli.main import cli


def refused(*arguments):
    result = CliRunner().invoke(cli, ["dashboard", *map(str, arguments)])
    return f"{result.exception}"


def test_what_cannot_be_served_is_refused_in_a_line(runs, tmp_path):
    assert "nosuch: no such file or folder" in refused(runs / "base", tmp_path / "nosuch")
    assert "not a folder" in refused(runs / "base" / "trace.json")
    assert "3 sets were given" in refused(*[runs / "base"] * 3)
    assert "require a --token" in refused(runs, "--host", "0.0.0.0")
    assert "16 or more letters" in refused(runs, "--host", "0.0.0.0", "--token", "short")
    assert "no trace in the folder" in refused(tmp_path, tmp_path) or "empty" in refused(tmp_path, tmp_path)


def test_a_missing_extra_is_named(runs, monkeypatch):
    for name in [n for n in sys.modules if n.startswith("tracediff_dashboards")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dash", None)
    assert refused(runs).endswith("pip install 'torch-tracediff[dashboard]'")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("guarded", "asked", "status"),
    [(False, signal.SIGINT, 0), (True, signal.SIGINT, 0), (False, signal.SIGTERM, 128 + signal.SIGTERM)],
)
def test_it_serves_until_it_is_interrupted(runs, guarded, asked, status):
    options = ["--host", "0.0.0.0", "--token", "0123456789abcdef"] if guarded else []
    command = [
        sys.executable,
        "-u",
        "-m",
        "tracediff_cli",
        "dashboard",
        str(runs / "base"),
        str(runs / "faster"),
        "--port",
        "0",
        *options,
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
    )
    try:
        line = process.stdout.readline()
        port = re.search(r":(\d+)/", line)[1]
        if guarded:
            assert "token=0123456789abcdef" in line
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/")
        else:
            assert line.startswith("tracediff dashboard: http://127.0.0.1:")
            assert urllib.request.urlopen(f"http://127.0.0.1:{port}/").status == 200
    finally:
        process.send_signal(asked)
    out, err = process.communicate(timeout=60)
    assert process.returncode == status, err
    assert ("stopped" in out) is (status == 0)
    assert err.startswith("warning: other machines can reach 0.0.0.0") if guarded else not err
