"""``tracediff export --charts``: pages that open offline, JSON, and images where kaleido is installed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from build_trace import call, document, kernel, op, step, write
from click.testing import CliRunner
from inert_markdown import parsed
from tracediff_cli.group import cli

import tracediff
from tracediff import charts
from tracediff.errors import TracediffError
from tracediff.report.charts_files import check_formats, write_charts

RUN = "from tracediff_cli.main import main; main()"
NAME = "</script><img src=x onerror=alert(1)>"


@pytest.fixture
def folders(tmp_path):
    for side, ns in (("control", 10), ("test", 20)):
        events = []
        for k in range(2):
            start = 100 * k
            events += [
                step(k + 1, start, 50),
                op(f"aten::{NAME}", start + 5, 20),
                call("cudaLaunchKernel", start + 6, 3, correlation=k + 1),
            ]
            events.append(kernel(NAME, start + 20, ns, correlation=k + 1))
        write(tmp_path / side / "trace.json", document(events))
    return str(tmp_path / "control"), str(tmp_path / "test")


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "tracediff", "export", *arguments], capture_output=True, text=True)


@pytest.mark.slow
def test_each_chart_is_a_page_and_json(folders, tmp_path):
    out = tmp_path / "charts"
    done = run(*folders, "--charts", str(out), "--images", "dark")
    assert done.returncode == 0, done.stderr
    assert f"wrote {2 * len(charts.NAMES)} chart files to {out}" in done.stdout
    assert sorted(p.name for p in out.iterdir()) == sorted(
        ["plotly.min.js", *(f"{n}.{e}" for n in charts.NAMES for e in ("html", "json"))]
    )
    for name in charts.NAMES:
        assert set(json.loads((out / f"{name}.json").read_text())) >= {"data", "layout"}
        page = (out / f"{name}.html").read_text()
        assert '<script src="plotly.min.js">' in page
        assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)
        assert NAME not in page
        assert "sendChartToCloud" in page  # among the buttons that are removed
        assert "<img" not in page


def test_images_need_kaleido(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("tracediff.report.charts_files.find_spec", lambda _: None)
    with pytest.raises(TracediffError, match=r"pip install 'torch-tracediff\[images\]'"):
        write_charts(tracediff.compare(*folders).comparison, tmp_path / "out", ["svg"])
    assert not (tmp_path / "out").exists()
    with pytest.raises(TracediffError, match="unknown format"):
        check_formats(["gif"])


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (["export", "--charts", "out", "--images", "png"], "--images png"),
        (["compare", "--markdown", "out/diff.md", "--images", "png"], "--images png"),
    ],
)
def test_without_kaleido_the_command_says_so_in_one_line(folders, tmp_path, command, option):
    code = (
        f"import importlib.util as u; known = u.find_spec; u.find_spec = lambda name: None if name == 'kaleido' "
        f"else known(name); {RUN}"
    )
    asked = [command[0], *map(os.path.abspath, folders), *command[1:]]
    done = subprocess.run([sys.executable, "-c", code, *asked], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert f"error: {option}: images need kaleido" in done.stderr
    assert "torch-tracediff[images]" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.browser
def test_markdown_with_images_links_to_them(folders, tmp_path):
    target = tmp_path / "my answer.md"
    result = CliRunner().invoke(cli, ["compare", *folders, "--markdown", str(target), "--images", "svg"])
    assert result.exit_code == 0, result.output
    links = re.findall(r"^!\[(.*)\]\((.*)\)$", target.read_text(), re.M)
    assert [Path(unquote(link)).stem for _, link in links] == ["step_waterfall", "duration_diff", "timeline"]
    for alternative, link in links:
        assert alternative.startswith(("Step time", "GPU", "One step of each side"))
        parsed(f"![{alternative}]({link})")
        assert (tmp_path / unquote(link)).read_text().startswith("<svg")


def test_a_fragment_goes_into_a_page_that_has_loaded_plotly(visit, folders, tmp_path):
    done = CliRunner().invoke(cli, ["export", *folders, "--charts", str(tmp_path / "out"), "--images", "fragment"])
    assert done.exit_code == 0, done.output
    fragment = (tmp_path / "out" / "duration_diff.fragment.html").read_text()
    assert fragment.lstrip().startswith("<div")
    assert "<html" not in fragment
    page = tmp_path / "out" / "mine.html"
    page.write_text(f'<!DOCTYPE html><script src="plotly.min.js"></script><h1>Mine</h1>{fragment}')
    visited = visit(page, ready=".main-svg")
    assert not visited.complaints


def test_images_need_a_file_to_stand_beside(folders):
    for more in ([], ["--markdown", "-"]):
        result = CliRunner().invoke(cli, ["compare", *folders, "--images", "png", *more])
        assert result.exit_code == 2
        assert "--markdown FILE" in result.output


@pytest.mark.browser
def test_images_are_written(folders, tmp_path):
    written = write_charts(
        tracediff.compare(*folders).comparison, tmp_path, ["png", "svg", "pdf"], names=["step_waterfall"]
    )
    heads = {p.suffix: p.read_bytes()[:5] for p in written}
    assert heads[".png"].startswith(b"\x89PNG")
    assert heads[".svg"].startswith(b"<svg")
    assert heads[".pdf"] == b"%PDF-"
    assert "<img" not in (tmp_path / "step_waterfall.svg").read_text()


def test_a_folder_that_cannot_be_made_is_an_error(folders, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TracediffError, match="cannot be created"):
        write_charts(tracediff.compare(*folders).comparison, tmp_path / "file" / "out")


def test_formats_without_a_folder_are_a_mistake(folders):
    done = run(*folders, "--folded", "-", "--images", "png")
    assert done.returncode == 2
    assert "--charts DIR" in done.stderr
