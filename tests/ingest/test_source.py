"""Bytes come from plain, gzip, zstd and zip files and from URLs, by content; every fault of the medium is one line."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import os
import random
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from build_trace import document, op, rows, text

from tracediff import bounds
from tracediff.errors import NotATrace, TracediffError
from tracediff.ingest.discover import find_traces
from tracediff.ingest.files.source import TraceFile, Unpacked, open_trace
from tracediff.ingest.read import read_trace

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CONTENT = text(document([op(f"op {i}", i, 1, **{"External id": i}) for i in range(300)]))


def in_zip(content: bytes, method: int = zipfile.ZIP_DEFLATED, member: str = "rank0.json") -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr(member, content)
    return packed.getvalue()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "gzip of several members": lambda c: (
        gzip.compress(c[:1000]) + gzip.compress(c[1000:2001]) + gzip.compress(c[2001:])
    ),
    "gzip with padding": lambda c: gzip.compress(c) + b"\0" * 512,
    "zstd": zstd.compress,
    "zstd of several frames": lambda c: zstd.compress(c[:1000]) + zstd.compress(c[1000:]),
    "zip": in_zip,
    "zip, stored": lambda c: in_zip(c, zipfile.ZIP_STORED),
    "zip, bzip2": lambda c: in_zip(c, zipfile.ZIP_BZIP2),
    "zip, LZMA": lambda c: in_zip(c, zipfile.ZIP_LZMA),
    "zip of gzip": lambda c: in_zip(gzip.compress(c), zipfile.ZIP_STORED, "rank0.json.gz"),
    "zip of zstd": lambda c: in_zip(zstd.compress(c), member="rank0.json"),
}


def read_first(path: Path) -> list:
    (file,) = find_traces(path)
    return rows(read_trace(file))


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "trace.json.zst", "trace", "trace.txt"])
@pytest.mark.parametrize("packed", PACKED)
def test_packing_is_told_by_content_and_not_by_name(tmp_path: Path, packed: str, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(PACKED[packed](CONTENT))
    assert len(read_first(path)) == 300


def test_all_packings_give_the_same_trace(tmp_path: Path) -> None:
    found = []
    for i, pack in enumerate(PACKED.values()):
        (tmp_path / str(i)).write_bytes(pack(CONTENT))
        found.append(read_first(tmp_path / str(i)))
    assert all(f == found[0] for f in found)


def test_gzip_is_read_without_isal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "isal", None)
    (tmp_path / "t").write_bytes(gzip.compress(CONTENT))
    assert len(read_trace(str(tmp_path / "t"))) == 300


def test_a_member_of_an_archive_is_read_by_its_path(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for rank in range(3):
            archive.writestr(f"deep/rank{rank}.json", text(document([op(f"of rank {rank}", 0, 1)])))
    found = read_trace(TraceFile(str(tmp_path / "all.zip"), "deep/rank1.json"))
    assert found.names == ["of rank 1"]
    assert str(found.file) == f"{tmp_path}/all.zip/deep/rank1.json"


@pytest.mark.parametrize("packed", ["gzip", "zstd", "plain"])
def test_urls_are_read_and_their_packing_told_by_content(packed: str) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.pipe("/folder/trace", PACKED[packed](CONTENT))
    assert len(read_trace("memory://folder/trace")) == 300


def test_a_missing_url_and_an_unknown_protocol_are_refused_in_one_line() -> None:
    pytest.importorskip("fsspec")
    refused("memory://no/such/trace", "cannot be opened")
    refused("nonsense://x", "cannot be opened")


class Server(BaseHTTPRequestHandler):
    """Serves CONTENT, packed, whole or cut off; anything else is not found or forbidden."""

    def do_HEAD(self) -> None:
        self.answer(b"")

    def do_GET(self) -> None:
        self.answer(PACKED["gzip"](CONTENT))

    def answer(self, body: bytes) -> None:
        status = {"/trace.json.gz": 200, "/cut.json.gz": 200, "/mine.json.gz": 403}.get(self.path, 404)
        self.send_response(status)
        self.send_header("Content-Length", str(len(PACKED["gzip"](CONTENT))))
        self.end_headers()
        self.wfile.write(body if self.path != "/cut.json.gz" else body[:100])

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install 'torch-tracediff[remote]'")
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


def test_a_trace_is_read_from_a_web_server(server: str) -> None:
    assert len(read_trace(TraceFile(f"{server}/trace.json.gz"))) == 300


def test_what_a_web_server_does_not_give_is_one_line(server: str) -> None:
    refused(f"{server}/none.json.gz", "cannot be opened (404 Not Found)")
    refused(f"{server}/mine.json.gz", "cannot be opened (403 Forbidden)")
    refused(f"{server}/cut.json.gz", "the connection failed")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    refused(f"http://127.0.0.1:{port}/trace.json", "Cannot connect to host")


@pytest.mark.parametrize(
    ("url", "missing", "packages"),
    [
        ("https://host/trace.json.gz", "fsspec", "'torch-tracediff[remote]', or"),
        ("https://host/trace.json.gz", "aiohttp", "'torch-tracediff[remote]', or"),
        ("s3://bucket/trace.json.gz", "s3fs", "'torch-tracediff[remote]' s3fs, or"),
        ("gs://bucket/trace.json.gz", "gcsfs", "'torch-tracediff[remote]' gcsfs, or"),
        ("az://container/trace.json.gz", "adlfs", "'torch-tracediff[remote]' adlfs, or"),
    ],
)
def test_a_missing_package_for_urls_is_named(url: str, missing: str, packages: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from tracediff.ingest.files.source import *\n"
    code += f"try: open_trace(TraceFile({url!r})).__enter__()\nexcept TracediffError as error: print(error)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.startswith(f"{url}: reading {url.partition('/')[0]}// needs a package that is not installed (")
    assert f"; pip install {packages} copy the file here\n" in out


def read_all(path: Path | str) -> None:
    for file in find_traces(path):
        read_trace(file)


def refused(path: Path | str, reason: str, kind: type[TracediffError] = TracediffError) -> TracediffError:
    """The error of reading ``path``: one line that names the file, what is wrong and what to do."""
    with pytest.raises(TracediffError) as caught:
        read_all(path)
    error = caught.value
    assert isinstance(error, kind)
    assert reason in error.reason
    assert error.remedy
    assert str(path) in str(error)
    assert "\n" not in str(error)
    assert error.__cause__ is None
    return error


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b" \n\t ", "the file is empty"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"hello", "text, not Kineto JSON"),
        (b"\x0a\x12\x08\x01\x10\x02\x1a\xff\xfe\x80" * 50, "binary (a protobuf trace?)"),
        (b"\xff\xfe{\0}\0", "binary"),
        (bz2.compress(CONTENT), "binary"),
        (b'"text"', "text, not Kineto JSON"),
        (b"{}", "JSON without traceEvents"),
        (b'{"a": 1}', "JSON without traceEvents"),
        (b'{"traceEvents": null}', "JSON without traceEvents"),
        (b'{"traceEvents": {}}', "JSON without traceEvents"),
        (b'{"traceEvents": "["}', "JSON without traceEvents"),
        (b'{"deep": {"traceEvents": [{"ph": "X", "ts": 1}]}}', "JSON without traceEvents"),
        (b'{"a": 1, "b', "the file is cut off before its events"),
        (b'{"schema": "1.1", "pid": 1, "nodes": [{"id": 1, "ctrl_deps": 2}]}', "an execution trace"),
        (b"[]", "contains no events"),
        (b"[1, 2]", "contains no readable event"),
        (b'[{"a": 1}]', "contains no readable event"),
        (b'{"traceEvents": []}', "contains no events"),
        (b'{"traceEvents": [', "contains no readable event"),
    ],
)
def test_what_is_no_trace_is_named_for_what_it_is(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    refused(path, reason)


def test_files_that_are_no_traces_are_told_from_faults(tmp_path: Path) -> None:
    (tmp_path / "no.json").write_bytes(b'{"a": 1}')
    (tmp_path / "broken.json").write_bytes(gzip.compress(CONTENT)[:-100])
    refused(tmp_path / "no.json", "", NotATrace)
    assert not isinstance(refused(tmp_path / "broken.json", ""), NotATrace)


@pytest.mark.parametrize("packed", ["gzip", "zstd"])
@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_a_cut_off_packed_file_is_refused_with_what_to_do(tmp_path: Path, packed: str, kept: float) -> None:
    path = tmp_path / "trace.json.gz"
    content = PACKED[packed](CONTENT)
    path.write_bytes(content[: int(len(content) * kept)])
    assert "copy it again" in refused(path, "the compressed file is cut off").remedy


@pytest.mark.parametrize("packed", [p for p in PACKED if p != "plain"])
def test_damage_to_a_packed_file_is_refused_in_one_line_or_harmless(tmp_path: Path, packed: str) -> None:
    draw = random.Random(packed)
    whole = PACKED[packed](CONTENT)
    path = tmp_path / "trace"
    refusals = []
    for _ in range(80):
        content = bytearray(whole)
        for _ in range(draw.choice((1, 3, 20))):
            content[draw.randrange(4, draw.choice((60, len(content))))] = draw.randrange(256)
        path.write_bytes(content)
        try:
            read_first(path)
        except TracediffError as error:
            refusals.append(str(error))
    assert len(refusals) > 10
    assert not [r for r in refusals if "\n" in r]


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress, in_zip], ids=["gzip", "zstd", "zip"])
def test_decompression_bombs_are_refused(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(pack(text(document([op("a" * 10_000, 1, 1)] * 4000), "compact")))
    refused(path, "unpacks to more than 100 times its size")


def test_an_ordinary_ratio_is_no_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "UNPACKED_BYTES", 1000)
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(CONTENT))
    assert len(read_first(path)) == 300


def test_missing_folder_and_unreadable_paths_are_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(tmp_path / "no such", "no such file or folder")
    with pytest.raises(TracediffError, match=r"no such file or folder; check the path$"):
        read_trace(str(tmp_path / "no such"))
    with pytest.raises(TracediffError, match="is a directory"):
        read_trace(str(tmp_path))
    with pytest.raises(TracediffError, match="cannot be opened"):
        read_trace("nul\0byte")

    def forbidden(*_: object, **__: object) -> io.BufferedReader:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    (tmp_path / "t.json").write_bytes(CONTENT)
    monkeypatch.setattr(os, "open", forbidden)
    refused(tmp_path / "t.json", "permission denied")


def test_a_failing_disk_is_refused_in_one_line() -> None:
    class Failing:
        def read(self, _: int) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(TracediffError, match="input/output error"):
        Unpacked(TraceFile("t.json"), Failing(), 0).read(10)


def test_reads_are_whole_though_the_medium_gives_little_at_a_time() -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 1, 3))

    stream = Unpacked(TraceFile("t.json"), Slow(b"0123456789"), 0)
    assert [stream.read(4), stream.read(4), stream.read(4), stream.read(4)] == [b"0123", b"4567", b"89", b""]


@pytest.mark.parametrize("member", ["missing.json", "folder/"])
def test_a_missing_member_is_refused_in_one_line(tmp_path: Path, member: str) -> None:
    (tmp_path / "a.zip").write_bytes(in_zip(CONTENT))
    with (
        pytest.raises(TracediffError, match="cannot be opened"),
        open_trace(TraceFile(str(tmp_path / "a.zip"), member)),
    ):
        pass


def test_names_with_control_characters_cannot_break_the_line(tmp_path: Path) -> None:
    path = tmp_path / "new\nline\x1b[31m.json"
    path.write_bytes(b"{}")
    with pytest.raises(TracediffError) as caught:
        read_trace(str(path))
    assert str(caught.value).isprintable()
