"""compare --by, explain, --families and export --folded."""

import json
from pathlib import Path

import pytest
from build_trace import call, document, kernel, op, step, write
from click.testing import CliRunner
from tracediff_cli.group import cli

import tracediff

SAMPLES = Path(__file__).parents[2] / "sample_traces"
EAGER, COMPILED = str(SAMPLES / "vit/eager"), str(SAMPLES / "vit/compile")


def run(*args):
    result = CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(
        cli, args, catch_exceptions=False, standalone_mode=False
    )
    assert result.return_value == 0
    return result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("view", "row"),
    [("family", "gemm"), ("phase", "backward"), ("op", "aten::mm"), ("kernel", "cpp_fused_"), ("cause", "fusion")],
)
def test_the_work_by(view, row):
    text = run("compare", EAGER, COMPILED, "--by", view)
    assert "Operator self time by" in text
    assert any(line.strip().startswith(row) for line in text.splitlines())
    assert " of work: " in text


@pytest.mark.parametrize(
    ("kernels", "line"),
    [
        (("sgemm_64x64_nt", "sgemm_64x64_nt"), None),
        (("sgemm_64x64_nt", "ampere_fp16_s16816gemm_fp16_64x64_nt"), "tensor cores: 0 → 100 % of kernel time"),
    ],
)
def test_the_share_of_tensor_cores_is_shown_if_either_side_uses_them(tmp_path, kernels, line):
    paths = []
    for side, name in zip("ab", kernels, strict=True):
        events = [step(1, 0, 100), op("aten::mm", 0, 30), call("cudaLaunchKernel", 20, 5, correlation=1)]
        paths.append(str(write(tmp_path / f"{side}.json", document([*events, kernel(name, 40, 50, correlation=1)]))))
    text = run("compare", *paths, "--by", "family")
    assert "GPU time by family" in text
    assert line in text if line else "tensor cores" not in text[text.index("GPU time by family") :]


@pytest.mark.slow
def test_explain():
    assert "fusion: a fused kernel and the operators" in run("explain", EAGER, COMPILED, "gelu_backward")


@pytest.mark.slow
def test_each_line_of_why_is_explained_by_its_parts():
    diff = tracediff.compare(EAGER, COMPILED)
    causes = diff.explanation.causes
    assert len(causes) > 3
    for cause in causes:
        assert diff.explain(cause.label)
    (host,) = (cause for cause in causes if cause.label == "compiled code on the host")
    head, why, heading, *parts = run("explain", EAGER, COMPILED, "compiled code on…", "--top", "1").splitlines()
    assert head.startswith("compiled code on the host: 0.0 → ")
    assert f"effect on the mean step +{host.delta_us / 1000:.1f} ms" in head
    assert (why.split(";")[0], heading.split()[0]) == ("added", "change")
    assert len(parts) == 2  # the largest part, and how many more there are


@pytest.mark.slow
def test_a_module_that_one_side_recorded_is_that_of_both():
    lines = run("compare", EAGER, COMPILED, "--by", "module").splitlines()
    (mlp,) = (line for line in lines if line.startswith("  blocks.*.mlp  "))
    assert mlp.split()[1:4] == ["9", "→", "3"]  # operators of eager, which has no stacks, that were fused


@pytest.mark.slow
def test_compiled_code_is_in_the_total_that_names_it():
    document = json.loads(run("compare", EAGER, COMPILED, "--json", "-"))
    parts = document["explanation"]["tree"]["children"]
    us = {part["label"]: part["test_us"] for part in (*parts, *(inner for part in parts for inner in part["children"]))}
    lines = run("compare", EAGER, COMPILED, "--top", "3").splitlines()
    (row,) = (line for line in lines if line.startswith("all operators, compiled"))
    assert float(row.split()[-2]) == pytest.approx((us["operators"] + us["compiled code"]) / 1000, abs=0.06)


@pytest.mark.slow
def test_folded_stacks():
    lines = run("export", EAGER, COMPILED, "--folded", "-").splitlines()
    assert all(len(line.rsplit(" ", 2)) == 3 and " " not in line.rsplit(" ", 2)[0] for line in lines)
    assert any(line.startswith("backward;AddmmBackward0;aten::mm ") for line in lines)


@pytest.mark.slow
def test_a_familys_own_rules(tmp_path):
    rules = tmp_path / "families.toml"
    rules.write_text('[[family]]\nname = "mine"\npatterns = ["^aten::mm$"]\n')
    text = run("compare", EAGER, COMPILED, "--families", str(rules), "--by", "family")
    assert any(line.strip().startswith("mine") for line in text.splitlines())
    assert "op: mine" in run("compare", EAGER, COMPILED, "--families", str(rules), "-v")
