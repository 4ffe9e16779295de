"""`[tool.tracediff]` in pyproject.toml, and former spellings of options."""

import pytest
from click.testing import CliRunner
from tracediff_cli.group import cli
from tracediff_cli.options.groups import KEYS, project_settings

from tracediff.errors import TracediffError


def write_project(folder, text):
    (folder / "pyproject.toml").write_text(f"[tool.tracediff]\n{text}\n")


def test_the_nearest_project_sets_options(tmp_path, monkeypatch):
    write_project(tmp_path, 'noise-floor = "2%"\nkeep-going = true\nfamilies = "own.toml"')
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    assert project_settings() == {
        "noise_floor": "2%",
        "keep_going": True,
        "families": str(tmp_path / "own.toml"),
    }
    (tmp_path / "inner" / "pyproject.toml").write_text("[tool.ruff]\n")
    assert project_settings() == {}
    monkeypatch.setenv("TRACEDIFF_PROJECT", str(tmp_path))
    assert project_settings()["noise_floor"] == "2%"


def test_every_key_is_an_option_of_compare():
    options = {name for param in cli.get_command(None, "compare").params for name in param.opts}
    assert {f"--{key}" for key in KEYS} <= options


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('noise-flor = "2%"', "unknown key 'noise-flor'; did you mean noise-floor?"),
        ("jobs = [1]", "jobs is not one value"),
        ("jobs = ", "pyproject.toml"),
    ],
)
def test_what_is_no_setting_is_refused(text, line, tmp_path, monkeypatch):
    write_project(tmp_path, text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TracediffError, match=r".") as error:
        project_settings()
    assert line in str(error.value)


def test_a_value_of_the_wrong_kind_is_refused_as_on_the_command_line(tmp_path, monkeypatch):
    write_project(tmp_path, 'jobs = "many"')
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["compare", "a", "b"])
    assert result.exit_code == 2
    assert "'many' is not a whole number" in result.output


@pytest.mark.parametrize(
    ("arguments", "now"),
    [
        (["compare", "a", "b", "--explain", "x"], "--explain is now tracediff explain CONTROL TEST NAME"),
        (["compare", "a", "b", "--where", "x"], "--where is now tracediff explain CONTROL TEST NAME --events"),
        (["export", "a", "b", "--chart-format", "svg"], "--chart-format is now --images FORMAT"),
        (["compare", "a", "b", "--by", "module", "--instances"], "--instances is now --by instance"),
        (["compare", "a", "b", "--source", ".", "--commits", "v1", "v2"], "--commits is now --commit ctrl=BEFORE"),
        (["check", "a", "b", "--min-delta", "1ms"], "--min-delta is now --max-regression PERCENT,TIME"),
        (["dashboard", "a", "b", "--open"], "--open is now --browser"),
        (["dashboard", "a", "b", "--no-token"], "--no-token is now --token none"),
        (["history", "add", "a", "--to", "h"], "--to is now --output"),
        (
            ["history", "add", "a", "--output", "h", "--commit-time", "2026-01-01"],
            "--commit-time is now --commit NAME,TIME",
        ),
    ],
)
def test_former_spellings_answer_with_the_present_one(arguments, now):
    result = CliRunner().invoke(cli, arguments)
    assert (result.exit_code, now in result.output) == (2, True)


def test_options_that_a_project_sets_still_work_with_a_note(capsys):
    found = cli.get_command(None, "compare")
    with found.make_context("compare", ["a", "b", "--noise-floor", "2%"]) as context:
        assert context.params["noise_floor"] == 0.02
    assert "--noise-floor is now the key noise-floor" in capsys.readouterr().err


def test_the_options_of_reading_have_a_help_of_their_own():
    usual, reading = (CliRunner().invoke(cli, ["compare", option]).output for option in ("--help", "--help-reading"))
    assert "--max-memory" in reading
    assert "--max-memory" not in usual
    assert "--rank" in usual
