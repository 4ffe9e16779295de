"""The screens of a GPU's traces in README and documentation are what the command prints."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tracediff_cli.group import cli
from traces import FOLDER, needs_traces

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```\n\$ tracediff (compare resnet50_workers0 resnet50_workers4)\n(.*?)```", re.DOTALL)


@needs_traces
@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/compare.md"])
def test_a_screen_is_what_the_command_prints(page, monkeypatch):
    monkeypatch.chdir(FOLDER)
    ((command, shown),) = BLOCK.findall((ROOT / page).read_text())
    monkeypatch.setattr("sys.argv", ["tracediff", *command.split()])
    printed = CliRunner(env={"COLUMNS": "80"}).invoke(cli, command.split()).output
    assert [line.rstrip() for line in printed.splitlines()] == shown.splitlines()
