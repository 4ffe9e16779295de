"""compare --by, --explain, --families and export --folded."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from tracediff_cli.main import cli

SAMPLES = Path(__file__).parents[2] / "sample_traces"
EAGER, COMPILED = str(SAMPLES / "vit/eager"), str(SAMPLES / "vit/compile")


def run(*args):
    result = CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(
        cli, args, catch_exceptions=False, standalone_mode=False
    )
    assert result.return_value == 0
    return result.stdout


@pytest.mark.parametrize(
    ("view", "row"),
    [("family", "gemm"), ("phase", "backward"), ("op", "aten::mm"), ("kernel", "cpp_fused_"), ("cause", "fusion")],
)
def test_the_work_by(view, row):
    text = run("compare", EAGER, COMPILED, "--by", view)
    assert "Operator self time by" in text
    assert any(line.strip().startswith(row) for line in text.splitlines())
    assert " of work: " in text


def test_explain():
    assert "fusion: a fused kernel and the operators" in run("compare", EAGER, COMPILED, "--explain", "gelu_backward")


def test_folded_stacks():
    lines = run("export", EAGER, COMPILED, "--folded", "-").splitlines()
    assert all(len(line.rsplit(" ", 2)) == 3 and " " not in line.rsplit(" ", 2)[0] for line in lines)
    assert any(line.startswith("backward;AddmmBackward0;aten::mm ") for line in lines)


def test_a_familys_own_rules(tmp_path):
    rules = tmp_path / "families.toml"
    rules.write_text('[[family]]\nname = "mine"\npatterns = ["^aten::mm$"]\n')
    text = run("compare", EAGER, COMPILED, "--families", str(rules), "--by", "family")
    assert any(line.strip().startswith("mine") for line in text.splitlines())
    assert "op: mine" in text
