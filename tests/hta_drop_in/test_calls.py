"""The drop-in by itself, on small traces made here: what it takes, what it gives, what it refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import build_trace as b
import pandas as pd
import pytest

from tracediff.engine import load_sets
from tracediff.errors import TracediffError
from tracediff.hta import OUTSIDE, BadArgument, DeviceType, LabeledTrace, TraceDiff, short_name


def two_steps(factor: float = 1, first: int = 1, copies: int = 1, rank: int = 0) -> b.Document:
    """Two steps of 100 µs with an op and its kernel each, one kernel launched before them, one from before the capture,
    one GPU annotation.
    """
    events = [b.call("cudaLaunchKernel", 1, 2, 90), b.kernel("early", 5, 3, 90), b.kernel("spilled", 2, 4, 91)]
    for i in range(2):
        start = 10 + 100 * i
        events.append(b.step(first + i, start, 100))
        for k in range(copies):
            events += [
                b.op("aten::mm", start + 10 + 20 * k, 10 * factor),
                b.call("cudaLaunchKernel", start + 12 + 20 * k, 2, 10 * i + k),
            ]
            events.append(b.kernel("void gemm<float>(int)", start + 40 + 20 * k, 7.25 * factor, 10 * i + k))
        events.append(b.event("gpu_user_annotation", f"ProfilerStep#{first + i}", start + 40, 90, pid=0, tid=7))
    return b.document(events, distributedInfo={"rank": rank})


@pytest.fixture
def control(tmp_path: Path) -> Path:
    return b.write(tmp_path / "control" / "trace.json", two_steps())


@pytest.fixture
def test(tmp_path: Path) -> Path:
    return b.write(tmp_path / "test" / "trace.json.gz", two_steps(factor=2, copies=2))


def test_the_frame(control: Path, test: Path) -> None:
    frame = TraceDiff.compare_traces(str(control.parent), str(test.parent))
    assert frame.index.name == "name"
    assert frame.index.tolist() == ["ProfilerStep#1", "aten::mm", "cudaLaunchKernel", "void gemm<float>(int)"]
    assert frame.loc["void gemm<float>(int)"].to_dict() == {
        "Control_counts": 1, "Control_total_duration": 7.25, "Test_counts": 2, "Test_total_duration": 29.0,
        "diff_counts": 1, "diff_duration": 21.75, "counts_change_categories": "+",
    }  # fmt: skip
    assert frame["counts_change_categories"].tolist() == ["=", "+", "+", "+"]


def test_names_of_one_side_stand_behind(tmp_path: Path) -> None:
    for side, names in (("a", "zc"), ("b", "bz")):
        b.write(
            tmp_path / side / "t.json",
            b.document([b.step(1, 0, 100), *(b.op(n, 10 * i, 5) for i, n in enumerate(names, 1))]),
        )
    frame = TraceDiff.compare_traces(tmp_path / "a", tmp_path / "b")
    assert frame.index.tolist() == ["ProfilerStep#1", "c", "z", "b"]
    assert frame["counts_change_categories"].tolist() == ["=", "-", "=", "+"]


@pytest.mark.parametrize(
    "as_given",
    [
        lambda p: p,
        lambda p: [p],
        lambda p: LabeledTrace(t=load_sets([p])[0], label="Control"),
        lambda p: load_sets([p])[0],
    ],
)
def test_every_kind_of_input(control: Path, as_given: Any) -> None:
    frame = TraceDiff.compare_traces(as_given(control), control)
    assert frame.columns[[0, 2]].tolist() == ["Control_counts", "Test_counts"]
    assert (frame["diff_duration"] == 0).all()


def test_hta_s_trace_keeps_the_ranks_it_was_given(control: Path, test: Path) -> None:
    hta_trace = SimpleNamespace(trace_files={3: str(control), 5: str(test)})
    labeled = LabeledTrace(t=hta_trace)
    assert labeled.ranks() == [3, 5]
    assert labeled.extract_ops(rank=5, device_type=DeviceType.GPU)["counts"].tolist() == [2]


def test_ops_and_their_places(control: Path) -> None:
    ops = LabeledTrace(trace_dir=control).extract_ops(iteration=[1, 2], device_type=DeviceType.CPU)
    assert ops.columns.tolist() == ["rank", "iteration", "cat", "name", "counts", "total_duration"]
    assert ops[["iteration", "cat", "name"]].values.tolist() == [
        [i, cat, name]
        for i in (1, 2)
        for cat, name in (
            ("cpu_op", "aten::mm"),
            ("cuda_runtime", "cudaLaunchKernel"),
            ("user_annotation", f"ProfilerStep#{i}"),
        )
    ]


def test_no_event_is_lost_between_iterations_and_outside(control: Path) -> None:
    labeled = LabeledTrace(trace_dir=control)
    ops = labeled.extract_ops(iteration=[*labeled.iterations(), OUTSIDE], device_type=DeviceType.GPU)
    assert ops.groupby("name")["counts"].sum().to_dict() == {"early": 1, "spilled": 1, "void gemm<float>(int)": 2}


def test_repeats_are_averaged_and_ranks_and_steps_summed(tmp_path: Path) -> None:
    for run, copies in ((1, 1), (2, 2)):
        for rank in (0, 1):
            b.write(tmp_path / f"run{run}" / f"rank{rank}.json", two_steps(copies=copies, rank=rank))
    frame = TraceDiff.compare_traces(tmp_path, tmp_path / "run1", test_rank=[0, 1], test_iteration=[1, 2])
    assert frame.loc["aten::mm"].tolist()[:4] == [1.5, 15.0, 4, 40.0]
    assert frame["Test_counts"].dtype == "int64"


def test_equal_labels_get_told_apart_and_the_inputs_stay(control: Path, test: Path) -> None:
    sides = [LabeledTrace("x", trace_dir=p) for p in (control, test)]
    assert TraceDiff.compare_traces(*sides).columns[[0, 2]].tolist() == ["x_counts", "x_test_counts"]
    assert [side.label for side in sides] == ["x", "x"]
    assert TraceDiff.ops_diff(*sides)["increased"] == ["aten::mm", "cudaLaunchKernel", "void gemm<float>(int)"]


def test_steps_are_one_row_only_where_their_numbers_differ(control: Path, tmp_path: Path) -> None:
    later = b.write(tmp_path / "later.json", two_steps(first=7))
    assert TraceDiff.ops_diff(control, later)["unchanged"][0] == "ProfilerStep"
    assert "ProfilerStep#2" in TraceDiff.ops_diff(control, control, control_iteration=2, test_iteration=2)["unchanged"]


@pytest.mark.parametrize(
    ("raw", "short"),
    [
        ("aten::mm", "aten::mm"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("void at::native::(anonymous namespace)::fill<4, F<float> >(int, F<float>)", "at::native::::fill"),
        (
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            "enumerate#_SingleProcessDataLoaderIter.__next__",
        ),
        ("void f<(bool)1>(int) [clone .kd]", "f"),
        ("f(x) ", "f"),
        ("<built-in method mm of type object at 0x7f>", "<built-in method mm of type object at 0x7f>"),
        ("model.py(12): forward", "model.py(12): forward"),
    ],
)
def test_short_names(raw: str, short: str) -> None:
    assert short_name(raw) == short


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"control_rank": 4}, "no such rank: 4; choose from 0"),
        ({"test_iteration": [1, 9]}, "no such iteration: 9; choose from 1, 2"),
        ({"test_iteration": []}, "an empty list of iterations"),
        ({"device_type": "TPU"}, "TPU: not a device type"),
    ],
)
def test_what_cannot_be_served(control: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BadArgument, match=message) as raised:
        TraceDiff.compare_traces(control, control, **arguments)
    assert isinstance(raised.value, ValueError)
    assert isinstance(raised.value, TracediffError)


def test_what_is_no_set(control: Path, tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match="not a trace set"):
        TraceDiff.compare_traces(control, 7)
    with pytest.raises(BadArgument, match="neither t nor trace_dir"):
        LabeledTrace("x")
    with pytest.raises(BadArgument, match="clash"):
        TraceDiff.compare_traces(LabeledTrace("diff", trace_dir=control), control)
    with pytest.raises(TracediffError, match="no such file or folder"):
        TraceDiff.compare_traces(control, tmp_path / "nowhere")


def test_importing_it_loads_nothing_heavy() -> None:
    code = (
        "import sys, tracediff.hta; print([m for m in ('pandas', 'plotly', 'torch', 'scipy', 'hta') if m in "
        "sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_figures(control: Path, test: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tracediff.charts.figures.operation_bars import frame_counts_diff, frame_duration_diff

    frame = TraceDiff.compare_traces(control, test)
    for draw, columns in (
        (frame_counts_diff, frame.columns[[0, 2, 4]]),
        (frame_duration_diff, frame.columns[[1, 3, 5]]),
    ):
        bars = draw(frame).data
        assert [bar.name for bar in bars] == ["Control", "Test", "Difference"]
        assert [list(bar.y) for bar in bars] == [frame[c].tolist() for c in columns]
    assert frame_duration_diff(frame).layout.xaxis.ticktext[-1] == "void gemm&lt;float&gt;(int)"
    shown: list[Any] = []
    monkeypatch.setattr("plotly.graph_objects.Figure.show", lambda figure: shown.append(figure))
    TraceDiff.visualize_counts_diff(frame)
    assert len(shown) == 1
    TraceDiff.visualize_duration_diff(frame, show_image=False, export_image_path=str(tmp_path / "f.html"))
    assert len(shown) == 1
    assert "Total duration by name" in (tmp_path / "f.html").read_text()
    with pytest.raises(TracediffError, match="cannot be written"):
        TraceDiff.visualize_duration_diff(frame, False, str(tmp_path / "nowhere" / "f.html"))


def test_figures_show_what_changed_most() -> None:
    from tracediff.charts.figures.operation_bars import frame_counts_diff

    n = 60
    columns = {
        "a_counts": 0,
        "a_total_duration": 0.0,
        "b_counts": range(n),
        "b_total_duration": 0.0,
        "diff_counts": range(n),
        "diff_duration": 0.0,
    }
    frame = pd.DataFrame(columns, index=[f"op{i}" for i in range(n)])
    figure = frame_counts_diff(frame, top=3)
    assert list(figure.data[1].y) == [57, 58, 59]
    assert "3 of 60" in figure.layout.title.text
    with pytest.raises(TracediffError, match="not 2"):
        frame_counts_diff(frame.drop(columns="a_total_duration"))


def test_an_image_that_cannot_be_made_is_an_error_with_a_remedy(control: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_kaleido(_figure: Any, _path: str) -> None:
        raise ValueError("needs kaleido\nlong explanation")

    monkeypatch.setattr("plotly.graph_objects.Figure.write_image", no_kaleido)
    with pytest.raises(BadArgument, match=r"needs kaleido.*torch-tracediff"):
        TraceDiff.visualize_counts_diff(TraceDiff.compare_traces(control, control), False, "x.png")
