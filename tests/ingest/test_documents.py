"""Settings, families and manifests of any content: an answer or one line, within bounded time and memory."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tracediff.collected import collection_table
from tracediff.diff.gate.limits import read_settings
from tracediff.errors import TracediffError
from tracediff.ingest.files.documents import MOST_JSON, MOST_TOML
from tracediff.ingest.manifest import read_manifest
from tracediff.profile.kernels.families import read_rules

SAMPLES = Path(__file__).parents[2] / "sample_traces"
SETTINGS = """[check]
max_regression = "3%"
allow = ["gpu"]
[[check.limit]]
subject = "family:gemm"
relative = 0.05
absolute = "20us"
[[check.waiver]]
pattern = "op:*"
reason = "known"
expires = 2099-12-31
"""
RULES = '[[family]]\nname = "mine"\npatterns = ["^aten::mm$"]\n'
DEEP, DIGITS = "[" * 3000, "9" * 5000
ODD_TOML = ["", "-1", "nan", "1e400", "true", '"²%"', '"1_0%"', '"٣us"', "[[1]]", "{a = 1}", "2099-02-31", DIGITS, DEEP]


def line_of(read, path):
    """The error of reading ``path``, None if it is read."""
    try:
        read(path)
    except TracediffError as error:
        return str(error)
    return None


@pytest.mark.parametrize(("text", "read"), [(SETTINGS, read_settings), (RULES, read_rules)])
def test_every_value_of_toml_is_checked(text, read, tmp_path):
    path = tmp_path / "x.toml"
    lines = text.splitlines()
    for k, line in enumerate(lines):
        for value in ODD_TOML if "=" in line else ():
            path.write_text("\n".join([*lines[:k], f"{line.partition('=')[0]} = {value}", *lines[k + 1 :]]))
            found = line_of(read, path)
            key = line.partition(" ")[0]
            assert found or key in ("name", "patterns", "pattern", "reason"), (line, value)  # any text may be one
            assert found is None or (found.startswith(str(path)) and found.isprintable() and len(found) < 600)


@pytest.mark.parametrize("read", [read_settings, read_rules])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"caf\xe9 = 1", "not valid TOML"),
        (b"x = " + b"[" * 50_000, "nested too deep"),
        (b"x = " + b"9" * 5000, "a number of too many digits"),
        (b"a" + b".a" * 50_000 + b" = 1", "a line with more than 400 dots"),
        (b"#" * (MOST_TOML + 1), "larger than 128 KB"),
    ],
)
def test_toml_is_bounded(read, content, reason, tmp_path):
    path = tmp_path / "x.toml"
    path.write_bytes(content)
    assert reason in line_of(read, path)


@pytest.mark.parametrize("read", [read_settings, read_rules, lambda path: read_manifest(path.parent)])
def test_only_regular_files_are_read(read, tmp_path):
    path = tmp_path / "manifest.json"
    assert "no such file" in line_of(read, path)
    path.mkdir()
    assert "a folder" in line_of(read, path)
    path.rmdir()
    os.mkfifo(path)
    assert "not a regular file" in line_of(read, path)
    path.unlink()
    path.symlink_to("/dev/zero")
    assert "not a regular file" in line_of(read, path)
    path.unlink()
    path.symlink_to(path)
    assert "too many levels of symbolic links" in line_of(read, path)


@pytest.fixture
def collection(tmp_path):
    """A collection of two variants, one run each, and the manifest of the second."""
    out = tmp_path / "out"
    for name in ("eager", "compile"):
        shutil.copytree(SAMPLES / "graph-breaks" / name, out / name)
    shutil.copy(SAMPLES / "graph-breaks" / "collection.json", out)
    manifest = json.loads((out / "compile" / "manifest.json").read_text())
    return out, manifest | {"provenance": manifest["provenance"][:1], "runs": manifest["runs"][:1]}


ODD_JSON = [None, True, -5, 0, 1e308, 10**30, "x", [], {}, [[]], [None]]


def places_of(value, path=()):
    yield path
    if isinstance(value, list | dict):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value[:1]):
            yield from places_of(inner, (*path, key))


def with_value(document, place, value):
    """A copy of the document with ``value`` at ``place``; parts elsewhere are shared."""
    if not place:
        return value
    key, *rest = place
    copy = document.copy()
    copy[key] = with_value(document[key], rest, value)
    return copy


def test_every_value_of_a_manifest_is_checked(collection):
    out, manifest = collection
    path = out / "compile" / "manifest.json"
    for place in filter(None, places_of(manifest)):
        for value in ODD_JSON:
            path.write_text(json.dumps(with_value(manifest, place, value)))
            found = line_of(lambda path: read_manifest(path.parent), path)
            assert found is None or (found.startswith(str(path)) and found.isprintable())
            if place[-1] == "wall_us" and "unprofiled_steps" in place:  # the others are not read
                assert found, value


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"variant": "caf\xe9"}', "not a manifest of this version"),
        (b'{"environment": {"x": ' + b"[" * 100_000, "not a manifest of this version"),
        (b'{"x": ' + b"[" * 100_000, "nested too deep"),
        (b" " * (MOST_JSON + 1), "larger than 8192 KB"),
        (b'{"schema": "' + b"x" * 5000 + b'"}', "not a manifest of this version"),
        (b"", "not a manifest of this version"),
    ],
)
def test_json_is_bounded(content, reason, tmp_path):
    (tmp_path / "manifest.json").write_bytes(content)
    found = line_of(read_manifest, tmp_path)
    assert reason in found
    assert len(found) < 600


def test_a_manifest_without_runs_or_steps_is_a_row_without_figures(collection):
    out, manifest = collection
    path = out / "compile" / "manifest.json"
    path.write_text(json.dumps(manifest | {"runs": []}))
    assert [(row.step_us is None, row.failed) for row in collection_table(out).rows] == [
        (False, None),
        (True, "its manifest lists no run"),
    ]
    runs = [run | {"unprofiled_steps": [], "profiled_steps": []} for run in manifest["runs"]]
    path.write_text(json.dumps(manifest | {"runs": runs}))
    row = collection_table(out).rows[1]
    assert (row.runs, row.step_us, row.iqr_us, row.speedup, row.overhead) == (len(runs), None, None, None, None)


@pytest.mark.parametrize("folder", ["../out/eager", "/etc", "..", "", "a" * 5000])
def test_a_variant_of_a_collection_lies_in_its_folder(collection, folder):
    out, _ = collection
    facts = json.loads((out / "collection.json").read_text())
    facts["variants"][1]["folder"] = folder
    (out / "collection.json").write_text(json.dumps(facts))
    assert "not a collection of this version" in line_of(collection_table, out)


def test_a_collection_without_variants_is_a_line(collection):
    out, _ = collection
    facts = json.loads((out / "collection.json").read_text())
    (out / "collection.json").write_text(json.dumps(facts | {"variants": []}))
    assert "contains no variant" in line_of(collection_table, out)
