"""Fetches the published traces that the tests read, at the commits that tests/traces.toml names, into tests/data.

    python tests/fetch_traces.py [--base-url URL] [--to DIR]

Files that are there and valid are kept, so an interrupted run continues where it stopped. Needs the standard library
only.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import hashlib
import http.client
import io
import json
import os
import sys
import tarfile
import tomllib
import urllib.error
import urllib.parse
import urllib.request
import zlib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MANIFEST = HERE / "traces.toml"
GITHUB = "https://raw.githubusercontent.com"
GITHUB_LFS = "https://media.githubusercontent.com/media"
SECONDS = 60
POINTER = b"version https://git-lfs.github.com/spec/"

Row = dict[str, Any]


class Problem(Exception):
    """Why a file could not be fetched, and what to do about it: "what is wrong; what to do"."""


def read_manifest(path: Path = MANIFEST) -> list[Row]:
    """The rows of the manifest, in its order."""
    with open(path, "rb") as file:
        rows: list[Row] = tomllib.load(file)["trace"]
    return rows


def address(row: Row, base_url: str | None = None) -> str:
    """Where the file of a row is published. ``base_url`` replaces GitHub's address for files in Git and in Git LFS
    alike.
    """
    base = base_url or (GITHUB_LFS if row.get("lfs") else GITHUB)
    return f"{base.rstrip('/')}/{row['repository']}/{row['commit']}/{urllib.parse.quote(row['path'])}"


@functools.lru_cache(maxsize=1)  # neighbouring rows may come from one archive
def download(url: str) -> bytes:
    """The bytes at an address; raises `Problem`."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers={"User-Agent": "tracediff-tests"}), timeout=SECONDS
        ) as answer:
            body: bytes = answer.read()
    except urllib.error.HTTPError as error:
        raise Problem(
            f"{url} answered {error.code} {error.reason}; check repository, commit and path in {MANIFEST.name}"
        ) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Problem(
            f"{url} cannot be read ({getattr(error, 'reason', error)}); "
            "check the network, or name a mirror with --base-url"
        ) from None
    if body.startswith(POINTER):
        raise Problem(f"{url} is a pointer of Git LFS, not the file; set lfs = true for it in {MANIFEST.name}")
    return body


def extract(row: Row, body: bytes) -> bytes:
    """The published file: ``body`` itself, or the member of the archive that ``member`` names (its folder in the
    archive does not matter).
    """
    if "member" not in row:
        return body
    try:
        with tarfile.open(fileobj=io.BytesIO(body)) as archive:
            for entry in archive:
                if entry.isfile() and Path(entry.name).name == row["member"]:
                    file = archive.extractfile(entry)
                    assert file is not None
                    return file.read()
    except (tarfile.TarError, OSError, EOFError, zlib.error):
        raise Problem(
            f"{row['path']} is not a whole tar archive; fetch it again, or check path in {MANIFEST.name}"
        ) from None
    raise Problem(f"{row['path']} has no member {row['member']}; check member in {MANIFEST.name}")


def is_compressed_here(row: Row) -> bool:
    """Whether the file is published as plain JSON and kept as .json.gz."""
    return row["to"].endswith(".gz") and not row.get("member", row["path"]).endswith(".gz")


def content_sha256(trace: bytes) -> str:
    """A hash of the events of a trace: their count, and name, time stamp and duration of each, in sorted order.

    It does not depend on compression, on arguments and metadata, or on the order of events.
    """
    plain = gzip.decompress(trace) if trace.startswith(b"\x1f\x8b") else trace
    document = json.loads(plain)
    events = document if isinstance(document, list) else document["traceEvents"]
    lines = sorted(json.dumps([event.get("name"), event.get("ts"), event.get("dur")]) for event in events)
    return hashlib.sha256("\n".join([str(len(lines)), *lines]).encode()).hexdigest()


def check(row: Row, published: bytes) -> None:
    """Raises `Problem` where the published bytes are not those that the row describes."""
    if "sha256" in row:
        kind, wanted, found = "sha256", row["sha256"], hashlib.sha256(published).hexdigest()
    else:
        try:
            kind, wanted, found = "content_sha256", row["content_sha256"], content_sha256(published)
        except (ValueError, KeyError, AttributeError, TypeError, OSError, EOFError, zlib.error) as error:
            raise Problem(f"not a trace ({error}); fetch it again, or check path in {MANIFEST.name}") from None
    if found != wanted:
        raise Problem(
            f"{kind} is {found[:12]}…, {MANIFEST.name} has {wanted[:12]}…; "
            f"fetch it again, or check commit and path in {MANIFEST.name}"
        )


def is_valid(row: Row, file: Path) -> bool:
    """Whether the file is there and is the one that the row describes."""
    try:
        stored = file.read_bytes()
        check(row, gzip.decompress(stored) if is_compressed_here(row) else stored)
    except (OSError, EOFError, zlib.error, Problem):
        return False
    return True


def fetch(row: Row, file: Path, base_url: str | None = None) -> None:
    """Writes the file of a row, under a temporary name until it is whole and valid; raises `Problem`."""
    published = extract(row, download(address(row, base_url)))
    check(row, published)
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f"{file.name}.part")
    partial.write_bytes(gzip.compress(published, mtime=0) if is_compressed_here(row) else published)
    os.replace(partial, file)


def main(arguments: list[str] | None = None, manifest: Path = MANIFEST) -> int:
    """Fetches what is missing; the exit code is 1 if a file could not be fetched."""
    parser = argparse.ArgumentParser(description="Fetch the published traces that the tests read.")
    parser.add_argument(
        "--base-url",
        default=os.environ.get("TRACEDIFF_TRACES_URL"),
        help=f"replaces {GITHUB} (default: TRACEDIFF_TRACES_URL)",
    )
    parser.add_argument(
        "--to", type=Path, default=HERE / "data", metavar="DIR", help="folder to write to (default: tests/data)"
    )
    options = parser.parse_args(arguments)
    counts = {"fetched": 0, "kept": 0, "skipped": 0, "failed": 0}
    for row in read_manifest(manifest):
        file = options.to / row["to"]
        if row.get("origin") == "unknown":
            print(f"{row['to']}: its origin is unknown, so it is not fetched; copy it to {options.to} if you have it")
            counts["skipped"] += 1
        elif is_valid(row, file):
            counts["kept"] += 1
        else:
            try:
                fetch(row, file, options.base_url)
                print(f"{row['to']}: fetched", flush=True)
                counts["fetched"] += 1
            except (Problem, OSError) as error:
                print(f"{row['to']}: {error}", file=sys.stderr, flush=True)
                counts["failed"] += 1
    print(f"{options.to}: " + ", ".join(f"{count} {what}" for what, count in counts.items() if count))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
