"""`[tool.tracediff]` in pyproject.toml."""

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


def test_options_that_a_project_sets_work_on_the_command_line():
    found = cli.get_command(None, "compare")
    with found.make_context("compare", ["a", "b", "--noise-floor", "2%"]) as context:
        assert context.params["noise_floor"] == 0.02


def test_the_options_of_reading_have_a_help_of_their_own():
    usual, reading = (CliRunner().invoke(cli, ["compare", option]).output for option in ("--help", "--help-reading"))
    assert "--max-memory" in reading
    assert "--max-memory" not in usual
    assert "--rank" in usual
