"""The usual screen of `tracediff compare`, on real pairs."""

import re
from io import StringIO

import pytest
import traces
from build_trace import document, op, step, write
from click.testing import CliRunner
from pair_stories import compared
from rich.console import Console
from tracediff_cli.group import cli

from tracediff.report.table_terminal import screen_text
from tracediff.report.to_terminal import SHORTER, USUAL, render

PAIRS = [
    ("resnet50_workers0", "resnet50_workers4"),
    ("tinylm_compile", "tinylm_cudagraph"),
    ("bertsmall_h100", "bertsmall_mi300"),
    ("timesformer_h100", "timesformer_mi300"),
    ("hta_control", "hta_test"),
]


def screen(control, test, *args, env):
    runner = CliRunner(env={"NO_COLOR": "1", **env})
    command = ["compare", str(traces.FOLDER / control), str(traces.FOLDER / test), *args]
    result = runner.invoke(cli, command, catch_exceptions=False, standalone_mode=False)
    assert result.return_value == 0
    return result.stdout.splitlines()


@traces.needs_traces
@pytest.mark.parametrize(("control", "test"), PAIRS)
def test_one_screen_with_the_explanation_on_top(control, test):
    lines = screen(control, test, env={"COLUMNS": "80"})
    assert len(lines) <= 34
    assert max(map(len, lines[:-1])) <= 80
    assert lines[-1].startswith("Next: tracediff ")
    answers = ("Because of", "Mainly because of", "Partly because of", "Work that differs", "Largest change")
    heads = [line for line in lines if line.startswith((*answers, "Why", "GPU work by", "Next"))]
    assert [head.split()[0].rstrip(":") for head in heads[1:]] in (["Why", "GPU", "Next"], ["Why", "Next"])
    assert heads[0].startswith(answers)
    rows = lines[lines.index(heads[-2]) + 1 : -3] if heads[-2].startswith("GPU") else []
    assert len({row.split("  ")[1] for row in rows}) == len(rows)  # no two rows look alike


@traces.needs_traces
@pytest.mark.parametrize(("control", "test"), PAIRS)
def test_a_narrow_screen_cuts_names_and_no_numbers(control, test):
    lines = screen(control, test, env={"COLUMNS": "60"})
    why = next(k for k, line in enumerate(lines) if line.startswith("Why"))
    assert not [line for line in lines[why:] if re.search(r"[\d,.]…( |$)", line)]
    assert [line for line in lines[why:] if line.startswith("step")]
    assert max(map(len, lines[:-1])) <= 60


@traces.needs_traces
@pytest.mark.parametrize("width", [50, 80, 160])
def test_each_shorter_screen_is_no_longer(width):
    comparison = compared(*(traces.FOLDER / name for name in ("hta_control", "hta_test")))
    console = Console(width=width, file=StringIO())
    texts = [screen_text(console, render(comparison, shorter)) for shorter in (USUAL, *SHORTER)]
    lines = [text.count("\n") for text in texts]
    assert lines == sorted(lines, reverse=True)  # the largest that fits is looked for by halves


@traces.needs_traces
def test_a_pipe_is_not_cut(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = screen("timesformer_h100", "timesformer_mi300", "-v", env={})
    (softmax,) = [line for line in lines if line.startswith("  aten::_softmax ")]
    assert "cunn_SoftMaxForward<8,bf16,float,bf16,SoftMaxForwardEpilogue> → cunn_SoftMaxForwardReg<" in softmax
    assert "TimesformerLayer[*]/TimeSformerAttention[*]/TimesformerSelfAttention" in softmax
    (why,) = [line for line in lines if line.startswith("Why")]
    assert why.index("total (ms)") < 100  # beside the labels, however wide a pipe is


def test_a_matrix_shows_short_names_whole(tmp_path):
    for name, periods in {"old/a": (100, 130), "new/a": (100, 900), "new/b": (120, 150)}.items():
        for run, us in enumerate(periods):
            write(tmp_path / name / f"run{run}" / "rank0.json", document([step(1, 0, us), op("aten::mm", 0, 30)]))
    paths = [str(tmp_path / name) for name in ("old/a", "new/a", "new/b")]
    lines = CliRunner(env={"COLUMNS": "90", "NO_COLOR": "1"}).invoke(cli, ["matrix", *paths]).stdout.splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["new/a", "new/b"]
    assert not any("…" in line.replace(" % … ", "") for line in lines)


@traces.needs_traces
def test_verbose_has_everything():
    lines = screen("timesformer_h100", "timesformer_mi300", "-v", env={"COLUMNS": "120"})
    text = "\n".join(lines)
    assert "driver (CUDA 12.9 → HIP 6.4): different versions of CUDA or HIP" in text
    assert "Largest changes on the host (self time)" in text


@traces.needs_traces
def test_modules_by_level_and_instance():
    pair = ("timesformer_h100", "timesformer_mi300", "--by", "module", "--top", "50")
    every = screen(*pair, env={"COLUMNS": "300"})
    assert any(re.search(r"TimesformerLayer\[\*\]/TimesformerIntermediate/Linear +24 → 12 ", line) for line in every)
    outer = screen(*pair, "--depth", "1", env={"COLUMNS": "300"})
    assert sum("TimesformerForVideoClassification" in line for line in outer) == 1
    spread = screen(*pair, "--by", "instance", env={"COLUMNS": "300"})
    assert any("TimesformerLayer[3]/TimesformerIntermediate/Linear" in line for line in spread)


@traces.needs_traces
def test_cautions_of_a_kind_are_a_line():
    lines = screen("hta_control", "hta_test", env={"COLUMNS": "120"})
    differences = [line.removeprefix("Not like for like: ") for line in lines if line.startswith("Not like for like")]
    assert differences == ["GPU NVIDIA A100-PG509-200 → Tesla V100-SXM2-16GB; world size 8 → 2"]
    assert "Caution: recorded rank 3 → rank 1" in lines
    lines = screen("resnet50_workers0", "timesformer_h100", env={"COLUMNS": "120"})
    assert any(" calls outside data loading in both" in line for line in lines)  # the fact has the figures
