"""Files that share a folder are merged into one set only if they are runs and ranks of one program."""

import zipfile
from pathlib import Path

import pytest
import traces
from build_trace import call, document, kernel, op, step, write

from tracediff.engine import load_sets
from tracediff.errors import TracediffError

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
OPERATORS = tuple(f"aten::op{k}" for k in range(4))


def trace(path, operators=OPERATORS, gpu="H100", rank=None, world=None):
    where = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": world}}
    events = [step(1, 0, 100), call("cudaLaunchKernel", 2, 1, correlation=1), kernel("gemm", 10, 50, correlation=1)]
    events += [op(name, 10 * k, 5) for k, name in enumerate(operators)]
    write(path, document(events, deviceProperties=[{"id": 0, "name": gpu}], **where), layout="compact")


def load(where):
    (found,) = load_sets([str(where)])
    return found


def error_of(where):
    with pytest.raises(TracediffError) as error:
        load(where)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    "names",
    [
        ["run1/rank0", "run2/rank0"],
        ["run1/a/rank0", "run2/a/rank0"],
        ["first.rank0", "second.rank0"],
        ["node0/rank0", "node1/rank1"],
    ],
)
def test_runs_and_ranks_of_one_program_are_one_set(tmp_path, names):
    for name in names:
        trace(tmp_path / f"{name}.json")
    assert len(load(tmp_path).profiles) == 2


def test_a_run_that_lacks_an_operator_is_of_the_same_program(tmp_path):
    trace(tmp_path / "run1" / "rank0.json")
    trace(tmp_path / "run2" / "rank0.json", OPERATORS[:-1])
    assert len(load(tmp_path).runs) == 2


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        ({"operators": ("aten::x", "aten::y", *OPERATORS[:1])}, "rank 0: 38 % of the calls in common"),
        ({"gpu": "V100"}, "different GPUs of rank 0"),
        ({"world": 2}, "world sizes 1, 2"),
    ],
)
@pytest.mark.parametrize("names", [("run1/rank0", "run2/rank0"), ("a", "b"), ("x/a", "y/b")])
def test_files_of_different_programs_are_listed(tmp_path, names, other, difference):
    trace(tmp_path / f"{names[0]}.json", rank=0, world=1)
    trace(tmp_path / f"{names[1]}.json", **{"rank": 0, "world": 1, **other})
    found = error_of(tmp_path)
    assert f"files of different programs ({difference})" in found
    places = [n.partition("/")[0] if n.startswith(("x", "y")) else f"{n}.json" for n in names]
    assert all(f"{place} (" in found for place in places)
    assert difference in error_of(tmp_path / "**" / "*.json")  # a pattern makes no set of different programs


def test_folders_that_may_be_sets_are_one_set_only_as_a_pattern(tmp_path):
    for folder in ("a/run1", "a/run2", "b"):
        trace(tmp_path / folder / "rank0.json")
    found = error_of(tmp_path)
    assert "a (2 files, H100, 4 operators), b (H100, 4 operators); give one of them" in found
    assert f"such as {tmp_path}/a" in found
    assert len(load(tmp_path / "a").runs) == 2
    assert f"'{tmp_path}/*' in quotes" in found
    assert len(load(tmp_path / "*").profiles) == 3
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for path in sorted(tmp_path.rglob("*.json")):
            archive.write(path, path.relative_to(tmp_path))
    assert error_of(tmp_path / "all.zip").endswith("unpack the archive, and give one folder or file of it")


def test_variants_of_a_collection_are_no_runs():
    found = error_of(SAMPLES / "vit")
    assert "compile (2 files, no GPU" in found
    assert "eager (2 files, no GPU" in found
    assert len(load(SAMPLES / "vit" / "eager").runs) == 2


@traces.needs_traces
@pytest.mark.parametrize(
    ("names", "merges"),
    [
        (["transformer_h100_run1", "transformer_h100_run2"], True),
        (["resnet50_workers0", "resnet50_workers0_repeat"], True),
        (["bertsmall_h100", "bertsmall_mi300"], False),
        (["bertsmall_h100", "falconsai_h100"], False),
        (["hta_control", "hta_test"], False),
    ],
)
def test_real_traces(names, merges):
    where = [str(traces.FOLDER / name) for name in names]
    if merges:
        assert len(load_sets([where])[0].runs) == 2
    else:
        with pytest.raises(TracediffError, match="different programs"):
            load_sets([where])
