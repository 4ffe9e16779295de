"""The fetcher of the published traces, against a server on this machine; and its manifest, against the traces where
they are.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fetch_traces
import pytest
from fetch_traces import address, check, content_sha256, is_valid, main, read_manifest
from traces import FOLDER, NAMES, needs_traces

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PLAIN = json.dumps(
    {"traceEvents": [{"ph": "X", "name": "aten::mm", "ts": 1.5, "dur": 2}, {"ph": "M", "name": "process_name"}]}
).encode()
LIST = json.dumps([{"ph": "X", "name": "aten::add", "ts": 7, "dur": 1}]).encode()
COMPRESSED = gzip.compress(LIST)


def archive() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, body in (("runs/worker0.json", PLAIN), ("runs/worker1.json", LIST)):
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))
    return buffer.getvalue()


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


ROWS = [
    {"to": "same/trace.json.gz", "path": "data/trace.json.gz", "sha256": sha256(COMPRESSED)},
    {"to": "plain/a.json", "path": "data/a b.json", "sha256": sha256(PLAIN)},
    {"to": "packed/a.json.gz", "path": "data/a b.json", "sha256": sha256(PLAIN)},
    {"to": "events/trace.json.gz", "path": "data/trace.json.gz", "content_sha256": content_sha256(LIST)},
    {
        "to": "ranks/worker0.json.gz",
        "path": "data/runs.tar.gz",
        "member": "worker0.json",
        "content_sha256": content_sha256(PLAIN),
    },
    {"to": "ranks/worker1.json", "path": "data/runs.tar.gz", "member": "worker1.json", "sha256": sha256(LIST)},
]
STORED = {"same/trace.json.gz": LIST, "plain/a.json": PLAIN, "packed/a.json.gz": PLAIN, "events/trace.json.gz": LIST}
STORED |= {"ranks/worker0.json.gz": PLAIN, "ranks/worker1.json": LIST}


class Server(ThreadingHTTPServer):
    """Serves `files`, by path, and keeps the paths that were asked for."""

    def __init__(self) -> None:
        prefix = f"/owner/project/{COMMIT}/data/"
        self.files = {
            f"{prefix}trace.json.gz": COMPRESSED,
            f"{prefix}a%20b.json": PLAIN,
            f"{prefix}runs.tar.gz": archive(),
        }
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = self.server.files.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"") + (1 if "cut" in self.path else 0)))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    fetch_traces.download.cache_clear()
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def manifest(folder: Path, rows: list[dict]) -> Path:
    keys = {"repository": "owner/project", "commit": COMMIT, "licence": "MIT"}
    text = "".join(
        "[[trace]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in (keys | row).items()) for row in rows
    )
    path = folder / "manifest.toml"
    path.write_text(text)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    read = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return {name: gzip.decompress(body) if name.endswith(".gz") else body for name, body in read.items()}


def run(server: Server, folder: Path, rows: list[dict] = ROWS) -> int:
    return main(["--base-url", server.url, "--to", str(folder / "data")], manifest(folder, rows))


def test_fetches_files_archive_members_and_plain_files_to_compress(server, tmp_path, capsys):
    assert run(server, tmp_path) == 0
    assert contents(tmp_path / "data") == STORED
    assert (tmp_path / "data/same/trace.json.gz").read_bytes() == COMPRESSED  # as published, not compressed anew
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == f"{tmp_path / 'data'}: 6 fetched"
    assert err == ""


def test_an_archive_is_downloaded_once(server, tmp_path):
    run(server, tmp_path)
    assert sum(path.endswith(".tar.gz") for path in server.asked) == 1


def test_continues_with_what_is_missing_or_invalid(server, tmp_path, capsys):
    run(server, tmp_path)
    (tmp_path / "data/plain/a.json").unlink()
    (tmp_path / "data/packed/a.json.gz").write_bytes(b"cut off")
    (tmp_path / "data/same/trace.json.gz.part").write_bytes(b"left behind")
    fetch_traces.download.cache_clear()
    server.asked.clear()
    assert run(server, tmp_path) == 0
    assert {path.rpartition("/")[2] for path in server.asked} == {"a%20b.json"}
    assert capsys.readouterr().out.splitlines()[-1].endswith("2 fetched, 4 kept")
    server.asked.clear()
    assert run(server, tmp_path) == 0
    assert server.asked == []


@pytest.mark.parametrize("key", ["sha256", "content_sha256"])
def test_a_wrong_hash_is_one_line_and_the_rest_is_fetched(server, tmp_path, capsys, key):
    wrong = {"to": "wrong/trace.json.gz", "path": "data/trace.json.gz", key: "0" * 64}
    assert run(server, tmp_path, [wrong, *ROWS]) == 1
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    assert re.fullmatch(
        rf"wrong/trace\.json\.gz: {key} is [0-9a-f]{{12}}…, traces\.toml has 000000000000…; "
        r"fetch it again, or check commit and path .*",
        line,
    )
    assert out.splitlines()[-1].endswith("6 fetched, 1 failed")
    assert contents(tmp_path / "data") == STORED  # nothing of the wrong file, under no name


def test_a_wrong_file_does_not_replace_the_one_that_is_there(server, tmp_path):
    existing = tmp_path / "data/wrong/trace.json.gz"
    existing.parent.mkdir(parents=True)
    existing.write_bytes(COMPRESSED)
    assert run(server, tmp_path, [{"to": "wrong/trace.json.gz", "path": "data/trace.json.gz", "sha256": "0" * 64}]) == 1
    assert existing.read_bytes() == COMPRESSED


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (
            {"path": "data/none.json"},
            r"http://\S+/data/none\.json answered 404 Not Found; check repository, commit and path in traces\.toml",
        ),
        (
            {"path": "data/runs.tar.gz", "member": "worker9.json"},
            r"data/runs\.tar\.gz has no member worker9\.json; check member in traces\.toml",
        ),
        (
            {"path": "data/a b.json", "member": "worker0.json"},
            r"data/a b\.json is not a whole tar archive; fetch it again, or check path in traces\.toml",
        ),
        ({"path": "data/runs.tar.gz"}, r"not a trace \(.*\); fetch it again, or check path in traces\.toml"),
        ({"path": "data/broken.json.gz"}, r"not a trace \(.*\); fetch it again, or check path in traces\.toml"),
        (
            {"path": "data/cut.json"},
            r"http://\S+ cannot be read \(.*\); check the network, or name a mirror with --base-url",
        ),
        (
            {"path": "data/pointer.json"},
            r"http://\S+ is a pointer of Git LFS, not the file; set lfs = true for it in traces\.toml",
        ),
    ],
)
def test_what_cannot_be_fetched_is_one_line(server, tmp_path, capsys, row, complaint):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    for name, body in (
        ("pointer.json", pointer),
        ("cut.json", PLAIN),
        ("broken.json.gz", COMPRESSED[:20] + b"!" + COMPRESSED[21:]),
    ):
        server.files[f"/owner/project/{COMMIT}/data/{name}"] = body
    assert run(server, tmp_path, [{"to": "x/trace.json", "content_sha256": "0" * 64} | row]) == 1
    assert re.fullmatch(rf"x/trace\.json: {complaint}\n", capsys.readouterr().err)
    assert contents(tmp_path) == {"manifest.toml": (tmp_path / "manifest.toml").read_bytes()}


@pytest.mark.usefixtures("server")
def test_an_unreachable_server_is_one_line_per_file(tmp_path, capsys):
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as closed:
        url = f"http://127.0.0.1:{closed.server_port}"
    assert main(["--base-url", url, "--to", str(tmp_path / "data")], manifest(tmp_path, ROWS[:2])) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(
        re.fullmatch(
            r"\S+: http://\S+ cannot be read \(.*\); check the network, or name a mirror with --base-url", line
        )
        for line in lines
    )


def test_the_environment_names_the_base_url(server, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACEDIFF_TRACES_URL", f"{server.url}/")
    assert main(["--to", str(tmp_path / "data")], manifest(tmp_path, ROWS)) == 0
    assert contents(tmp_path / "data") == STORED


def test_addresses():
    row = {"repository": "owner/project", "commit": COMMIT, "path": "data/a b.json"}
    assert address(row) == f"https://raw.githubusercontent.com/owner/project/{COMMIT}/data/a%20b.json"
    assert (
        address(row | {"lfs": True})
        == f"https://media.githubusercontent.com/media/owner/project/{COMMIT}/data/a%20b.json"
    )
    assert (
        address(row | {"lfs": True}, "http://mirror/traces/")
        == f"http://mirror/traces/owner/project/{COMMIT}/data/a%20b.json"
    )


def test_an_unknown_origin_is_named_and_skipped(server, tmp_path, capsys):
    assert run(server, tmp_path, [{"to": "x/trace.json", "origin": "unknown"}]) == 0
    assert server.asked == []
    assert capsys.readouterr().out.startswith("x/trace.json: its origin is unknown, so it is not fetched; ")


def test_the_content_hash_sees_events_and_nothing_else():
    events = [{"name": "a", "ts": 1, "dur": 2, "args": {"Call stack": "/home/me"}}, {"name": "b", "ts": 0.5}]
    same = [{"ts": 0.5, "name": "b"}, {"dur": 2, "ts": 1, "name": "a", "args": {"Call stack": "/home/user"}}]
    wanted = content_sha256(json.dumps({"traceEvents": events, "metadata": 1}).encode())
    assert content_sha256(json.dumps(same, indent=1).encode()) == wanted
    assert content_sha256(gzip.compress(json.dumps({"traceEvents": same}).encode())) == wanted
    for changed in (
        events[:1],
        [events[0], events[0]],
        [events[0] | {"dur": 3}, events[1]],
        [events[0] | {"name": "c"}, events[1]],
    ):
        assert content_sha256(json.dumps(changed).encode()) != wanted


def test_the_manifest_is_complete():
    rows = read_manifest()
    assert len({row["to"] for row in rows}) == len(rows) == 41
    for row in rows:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+\.json(\.gz)?", row["to"]), row
        assert row["licence"] in ("MIT", "BSD-3-Clause", "Apache-2.0"), row
        if row.get("origin") != "unknown":
            assert re.fullmatch(r"[\w.-]+/[\w.-]+", row["repository"]), row
            assert re.fullmatch(r"[0-9a-f]{40}", row["commit"]), row
            assert ("sha256" in row) != ("content_sha256" in row), row
            assert re.fullmatch(r"[0-9a-f]{64}", row.get("sha256") or row["content_sha256"]), row


@needs_traces
def test_the_manifest_names_the_traces_of_the_suite():
    assert sorted(row["to"] for row in read_manifest()) == NAMES


@needs_traces
@pytest.mark.parametrize("row", read_manifest(), ids=lambda row: row["to"])
def test_the_traces_are_those_of_the_manifest(row):
    assert is_valid(row, FOLDER / row["to"])


def test_check_accepts_what_it_describes():
    for row in ROWS:
        check(row, STORED[row["to"]] if row["to"] != "same/trace.json.gz" else COMPRESSED)
