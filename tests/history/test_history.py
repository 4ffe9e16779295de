"""``tracediff history`` on a repository whose history has a planted regression."""

import json
import math

import pytest
from browser import scrolled
from click.testing import CliRunner
from history_repository import MACHINE, RepositoryOfModels, write_set
from inert_markdown import parsed
from msgspec.structs import replace
from schema_validation import validate
from tracediff_cli.group import cli

from tracediff.charts.figures.commits import commits
from tracediff.git import Repository
from tracediff.history.series import all_series
from tracediff.history.store import read

PLANTED = 7
CHANGE = 1190 / 1100 - 1


def invoke(*arguments):
    return CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"}).invoke(cli, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """(a repository of 12 commits, of which number 7 makes the gemm slower; a history with a set of each)."""
    folder = tmp_path_factory.mktemp("planted")
    models, place = RepositoryOfModels(folder / "repository"), folder / "history"
    for k in range(12):
        models.commit(100 if k < PLANTED else 190, "Use another layout" if k == PLANTED else f"Change number {k}")
        traces = write_set(folder / f"set{k}", 100 if k < PLANTED else 190, seed=k)
        added = invoke(
            "history",
            "add",
            traces,
            "--output",
            place,
            "--commit",
            f"{models.commits[k]},2026-01-{k + 1:02}",
            *MACHINE,
        )
        assert added.exit_code == 0, added.output
    return models, place


def shown(planted, monkeypatch, *arguments):
    models, place = planted
    monkeypatch.chdir(models.folder)
    result = invoke("history", "show", place, *arguments)
    assert result.exception is None, result.output
    return result.stdout


@pytest.mark.slow
def test_show_names_the_commit_the_cause_and_the_operator(planted, monkeypatch):
    text = shown(planted, monkeypatch)
    before, after = (planted[0].commits[k][:9] for k in (PLANTED - 1, PLANTED))
    assert text.splitlines()[0] == "gemm · test machine · 12 commits, 60 runs"
    assert f"from {after} on" in text
    assert f"commits: {before}..{after}: 1 commit, Use another layout" in text
    assert "aten::mm (gemm): " in text
    assert "aten::mm  gemm_kernel" in text
    assert sum("Use another layout" in line and "% longer" in line for line in text.splitlines()) == 1


def test_the_document_has_the_change_and_follows_its_schema(planted, monkeypatch):
    document = json.loads(shown(planted, monkeypatch, "--json", "-"))
    validate(document, "tracediff.history/1")
    (series,) = document["series"]
    (change,) = series["changes"]
    commits_in_order = planted[0].commits
    assert [point["commit"] for point in series["points"]] == commits_in_order
    assert [change[key] for key in ("good", "bad", "commit")] == [commits_in_order[k] for k in (6, 7, 7)]
    assert change["ci95"][0] < CHANGE < change["ci95"][1]
    assert (change["finding"], change["commits"]) == ("time", 1)
    assert change["operators"][0]["operator"].startswith("aten::mm")
    for point in series["points"]:
        assert point["ci95_us"][0] < point["step_us"] < point["ci95_us"][1]
        assert point["step_us"] == pytest.approx(math.prod(point["runs_us"]) ** (1 / len(point["runs_us"])))


def test_the_order_is_that_of_git_and_else_of_time(planted, monkeypatch, tmp_path):
    models, place = planted
    monkeypatch.chdir(tmp_path)  # no repository
    by_time = json.loads(invoke("history", "show", place, "--json", "-").stdout)["series"][0]
    assert not by_time["is_in_git_order"]
    assert [point["commit"] for point in by_time["points"]] == models.commits
    assert by_time["changes"][0]["commits"] is None
    entries = read(str(place))[0][::-1]
    (series,) = all_series(entries, Repository(models.folder))
    assert series.is_of_git
    assert [point.commit for point in series.points] == models.commits


def test_tables_of_families_and_memory(planted, monkeypatch):
    families = shown(planted, monkeypatch, "--by", "family", "--last", "2")
    assert [round(float(line.split()[-1])) for line in families.splitlines() if "Change number 1" in line] == [190, 190]
    heads = next(line for line in families.splitlines() if "commit " in line and "message" in line)
    assert "gemm" in heads
    assert heads.index("pointwise") < heads.index("gemm")
    assert "unknown" in shown(planted, monkeypatch, "--by", "memory")


def test_page_and_markdown(planted, monkeypatch, tmp_path):
    text = shown(planted, monkeypatch, "--html", tmp_path / "page.html", "--markdown", "-")
    assert "Use another layout" in text
    page = (tmp_path / "page.html").read_text()
    assert "commits-0" in page
    assert "aten::mm (gemm): " in page


def test_the_chart_has_a_dot_for_each_commit_and_a_level_for_each_side(planted):
    (series,) = all_series(read(str(planted[1]))[0], Repository(planted[0].folder))
    for theme in ("light", "dark"):
        figure = commits(series, theme=theme)
        levels = [trace for trace in figure.data if trace.mode == "lines"]
        (dots,) = [trace for trace in figure.data if trace.mode == "markers"]
        assert len(dots.x) == 12
        assert levels[1].y[0] / levels[0].y[0] - 1 == pytest.approx(CHANGE, abs=0.02)
        assert any(shape.type == "rect" for shape in figure.layout.shapes)
    assert "1 change point, the largest +8" in figure.layout.title.text.replace("<br>", " ")


def test_sets_of_one_commit_count_together_and_machines_stay_apart(planted, tmp_path, monkeypatch):
    monkeypatch.chdir(planted[0].folder)
    commit = planted[0].commits[0]
    for seed, machine in ((1, "a"), (2, "a"), (3, "b")):
        traces = write_set(tmp_path / f"set{seed}", 100, runs=2, seed=seed)
        names = ("--machine", machine, "--configuration", "gemm", "--commit", commit)
        assert invoke("history", "add", traces, "-o", tmp_path / "history", *names).exit_code == 0
    found = json.loads(invoke("history", "show", tmp_path / "history", "--json", "-").stdout)["series"]
    assert [(s["machine"], [len(p["runs_us"]) for p in s["points"]]) for s in found] == [("a", [4]), ("b", [2])]
    only = json.loads(invoke("history", "show", tmp_path / "history", "--machine", "b", "--json", "-").stdout)
    assert [series["machine"] for series in only["series"]] == ["b"]
    wrong = invoke("history", "show", tmp_path / "history", "--configuration", "gem")
    assert str(wrong.exception) == "--configuration: the history has no 'gem'; did you mean gemm?"


def test_two_runs_of_each_of_two_commits_tell_no_change(tmp_path):
    for commit, gemm in (("a,2026-01-01", 100), ("b,2026-01-02", 300)):
        traces = write_set(tmp_path / commit[0], gemm, runs=2)
        invoke("history", "add", traces, "-o", tmp_path / "h", "--commit", commit, *MACHINE)
    text = invoke("history", "show", tmp_path / "h").stdout
    assert "too few runs to tell a change: 3 before it and after it are needed" in text
    assert "95 % interval" not in text  # of what may be the change


def test_damaged_entries_are_named(tmp_path):
    invoke(
        "history",
        "add",
        write_set(tmp_path / "set", 100),
        "-o",
        tmp_path / "h",
        "--commit",
        "x,2026-01-01",
        *MACHINE,
    )
    (tmp_path / "h" / "broken.tdprof.gz").write_bytes(b"\x1f\x8b")
    text = invoke("history", "show", tmp_path / "h").stdout
    assert " ".join(text.split()).startswith("not read: ")
    assert "broken.tdprof.gz" in "".join(text.split())
    assert "no change beyond the noise" in text


def test_names_are_text_in_every_output(tmp_path, monkeypatch, visit):
    monkeypatch.chdir(tmp_path)
    name = "<img src=x onerror=alert(1)>|`a`[b](c) ##[error]"
    for k in range(4):
        traces = write_set(tmp_path / f"set{k}", 100 if k < 2 else 300, seed=k)
        names = (
            "--commit",
            f"{name}{k},2026-01-{k + 1:02}",
            "--machine",
            name,
            "--configuration",
            name,
        )
        assert invoke("history", "add", traces, "-o", "history", *names).exit_code == 0
    result = invoke("history", "show", "history", "--html", "page.html", "--markdown", "page.md", "--json", "page.json")
    assert result.exception is None
    assert "##[error]" not in result.stdout
    assert "<img" not in (tmp_path / "page.html").read_text()
    visited = visit(tmp_path / "page.html")
    scrolled(visited.page)
    assert not visited.complaints
    assert name in " ".join(parsed((tmp_path / "page.md").read_text()))
    document = json.loads((tmp_path / "page.json").read_text())
    assert document["series"][0]["machine"] == name
    assert len(document["series"][0]["changes"]) == 1


@pytest.mark.parametrize(("freedom", "is_known"), [(1, False), (2, False), (3, True)])
def test_too_few_runs_tell_no_interval(planted, freedom, is_known):
    (series,) = all_series(read(str(planted[1]))[0], Repository(planted[0].folder))
    few = replace(series, noise=replace(series.noise, freedom=freedom))
    assert (few.interval_us(few.points[0]) is not None) is is_known
