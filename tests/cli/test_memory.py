"""tracediff memory: every output, of one snapshot and of two."""

import json
from html import unescape

import pytest
from browser import faults, scrolled
from build_memory_snapshot import alloc, block, frames, free, segment, snapshot, write
from click.testing import CliRunner
from formats import FOLDER, needs_formats
from inert_markdown import parsed
from schema_validation import validate
from tracediff_cli.group import cli

from tracediff.errors import TracediffError

NAMES = ("memory_snapshot_False_ctx128.pickle.gz", "memory_snapshot_bf16_False_ctx128.pickle.gz")


def run(*args, columns=80):
    result = CliRunner(env={"COLUMNS": str(columns), "NO_COLOR": "1"}).invoke(
        cli, ["memory", *map(str, args)], catch_exceptions=False, standalone_mode=False
    )
    assert result.return_value == 0
    return result.stdout


@pytest.fixture
def pair(tmp_path):
    """Test holds 3 MB of a call site that control has 1 MB of, and nothing of another."""
    sides = []
    for name, sizes in (("a", (1_000_000, 2_000_000)), ("b", (3_000_000, 0))):
        trace = [e for k, size in enumerate(sizes) if size for e in alloc(k << 24, size, frames(k + 1), time=1000 + k)]
        trace += [e for k, size in enumerate(sizes) if size for e in free(k << 24, size, frames(9), time=2000)]
        held = segment(1 << 30, 20_000_000, block(1 << 30, 8_000_000))
        sides.append(write(tmp_path / f"{name}.pickle", snapshot([held], trace)))
    return sides


def test_terminal(pair):
    text = run(*pair)
    assert "the peak did not change: 11.0 MB" in text
    assert "model.py:1 forward" in text
    assert max(map(len, text.splitlines())) <= 80
    text = run(pair[0])
    assert "peak 11.0 MB allocated, 20.0 MB reserved" in text
    assert "unknown: allocated before the recording" in text


def test_top(pair):
    text = run(*pair, "--top", 1)
    (row,) = (line.split() for line in text.splitlines() if "other call sites" in line)
    assert row[:4] == ["2", "other", "call", "sites"]


def test_json(pair):
    for sides in (pair, pair[:1]):
        document = json.loads(run(*sides, "--json", "-"))
        validate(document, "tracediff.memory/1")
        (device,) = document["devices"]
        for view in ("by_call_site", "by_module", "by_size_class"):
            assert sum(row["control_bytes"] for row in device[view]) == device["control"]["peak_bytes"] == 11_000_000
        layers = device["control"]["timeline"]["layers"]
        assert max(map(sum, zip(*layers.values(), strict=True))) == 11_000_000
    assert document["test"] is device["test"] is None


def test_a_device_that_one_side_lacks(pair, tmp_path):
    other = write(tmp_path / "c.pickle", snapshot([segment(0, 64, block(0, 8), device=1)]))
    document = json.loads(run(pair[0], other, "--json", "-"))
    validate(document, "tracediff.memory/1")
    assert [(d["control"] is None, d["test"] is None) for d in document["devices"]] == [(False, True), (True, False)]
    assert "device 1" in run(pair[0], other)


def test_names_are_text(tmp_path):
    stack = frames(1, "<img src=x>|`\x1b[31m", "/home/me/[x](y).py")
    path = write(tmp_path / "a.pickle", snapshot([segment(0, 64, block(0, 8, stack=stack))]))
    assert "\x1b" not in run(path)
    markdown = run(path, "--markdown", "-")
    assert any("[x](y).py" in text and "<img src=x>|" in text for text in parsed(markdown))
    assert "<img src=x>" not in run(path, "--html", "-")
    run(path, "--charts", tmp_path / "charts")
    assert "<img src=x>" not in unescape((tmp_path / "charts" / "memory_layers.json").read_text()).replace("&lt;", "")


def test_chart(pair, tmp_path):
    run(*pair, "--charts", tmp_path / "charts")
    assert (tmp_path / "charts" / "memory_layers.html").stat().st_size
    figure = json.loads((tmp_path / "charts" / "memory_layers.json").read_text())
    for group in ("1", "2"):
        layers = [trace["y"] for trace in figure["data"] if trace.get("stackgroup") == group]
        assert max(map(sum, zip(*layers, strict=True))) == pytest.approx(11.0)
    peaks = [trace["y"] for trace in figure["data"] if trace["mode"] == "markers"]
    assert peaks == [[11.0], [11.0]]


def test_the_page_has_the_answer_the_chart_and_all_tables(pair, tmp_path, visit):
    for sides, tables in ((pair, 5), (pair[:1], 5)):
        run(*sides, "--html", tmp_path / "memory.html")
        shown = visit(tmp_path / "memory.html")
        assert "11.0 MB" in shown.page.locator(".verdict").inner_text()
        scrolled(shown.page)
        assert shown.page.locator("#tables table").count() == tables
        assert not shown.complaints
        assert not faults(shown.page)


def test_errors(tmp_path):
    with pytest.raises(TracediffError, match=r"no such file or folder; check the path$"):
        run(tmp_path / "missing")


@needs_formats
def test_the_demonstration():
    text = run(*(FOLDER / "memory" / name for name in NAMES))
    assert "the peak rose: 60.3 → 65.0 GB (+4.68 GB)" in text
    assert "_backends.py:288 einsum     1.36 GB   7.87 GB   +6.50 GB" in text
