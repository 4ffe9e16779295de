"""Variants prove that they do the same work, and a run that ends badly says why and takes nothing with it."""

import re
from pathlib import Path

import pytest
from collecting import ONCE, collect

from tracediff.collect.driver import Collection
from tracediff.collect.variant import parse_variant
from tracediff.collected import VariantRow, collection_table
from tracediff.diff.preflight import different_results, not_finite
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.ingest.manifest import Computed, Manifest, Results, read_collection, read_manifest
from tracediff.present.collection import notes_of
from tracediff.report.collection import to_markdown

pytestmark = pytest.mark.torch

LEARNS = """
import time
from pathlib import Path
import torch

class Learns:
    def __init__(self, variant):
        self.model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
        self.x, self.variant = torch.randn(2, 3, 8, 8), variant
        self.forward = variant(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self):
        self.optimizer.zero_grad()
        loss = self.forward(self.x).square().mean() + self.forward(self.x).mean()
        if self.variant.text == "eager@random":
            loss = loss + torch.rand(())
        loss.backward()
        if self.variant.text == "eager@frozen":
            self.optimizer.zero_grad()
        self.optimizer.step()
        return {"loss": loss}

make_step = Learns

def second_fails(variant, folder):
    count = len(list(Path(folder).iterdir()))
    (Path(folder) / str(count)).touch()
    def step():
        if count:
            raise MemoryError("no room")
        return torch.ones(4) + 1
    return step

def breaks(variant):
    def function(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()
    compiled, x = variant(function), torch.randn(8)
    return lambda: compiled(x)

def hangs(variant):
    return lambda: time.sleep(60)
"""


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learned")
    (folder / "learns.py").write_text(LEARNS)
    variants = ("eager", "eager@again", "eager@random", "eager@frozen", "fx_fused")
    words = [word for variant in variants for word in ("--variant", variant)]
    result = collect(folder, "learns.py", *words, "-o", "out", "--repeats", "1", *ONCE)
    return folder / "out", result


def test_a_variant_that_trains_nothing_is_refused(learned):
    out, result = learned
    assert result.returncode == 1
    assert "fx_fused failed: fx_fused folds batch norms" in result.stdout.replace("\n", " ")
    assert "so it cannot be trained" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (out / "fx_fused").exists()


def test_variants_that_compute_something_else_are_named(learned):
    out, _ = learned
    rows = {row.variant: row for row in collection_table(out).rows}
    assert re.fullmatch(r"norm of the gradients [\d.]+ → none \(first step\)", rows["eager@frozen"].different)
    assert [rows[name].different for name in ("eager", "eager@again", "eager@random")] == [None] * 3
    assert "`eager@frozen` does not do the same work: norm of the gradients" in to_markdown(collection_table(out))
    eager, again, frozen = (load_sets([out / name])[0] for name in ("eager", "eager@again", "eager@frozen"))
    (reason,) = (r for r in compare_sets(eager, frozen).comparability.reasons if r.code == "results")
    assert (reason.level, reason.is_unlike) == ("caution", True)
    assert "results" not in {r.code for r in compare_sets(eager, again).comparability.reasons}


def test_what_is_recorded_is_the_norm(learned):
    out, _ = learned
    runs = [read_manifest(out / name).runs[0].results for name in ("eager", "eager@random")]
    assert [r.is_random for r in runs] == [False, True]
    assert (runs[0].dtype, runs[0].first.finite) == ("float32", True)
    assert runs[0].later.value < runs[0].first.value  # it learns
    assert runs[0].first.gradients > 0


def manifest(first, later=None, dtype="float32", is_random=False):
    """A manifest of one run with these results."""
    results = Results(dtype, is_random, first, later or first)
    run = type("Run", (), {"results": results})
    return type("Facts", (), {"runs": [run]})


@pytest.mark.parametrize(
    ("control", "test", "same"),
    [
        (manifest(Computed(1.0, 2.0)), manifest(Computed(1.0005, 2.0)), True),
        (manifest(Computed(1.0, 2.0)), manifest(Computed(1.002, 2.0)), False),
        (manifest(Computed(1.0, 2.0)), manifest(Computed(1.0, 2.1), dtype="bfloat16"), True),
        (manifest(Computed(1.0), Computed(0.5)), manifest(Computed(1.0), Computed(0.503)), True),
        (manifest(Computed(1.0), Computed(0.5)), manifest(Computed(1.0), Computed(0.51)), False),
        (manifest(Computed(1.0, 2.0)), manifest(Computed(1.0, None)), False),
        (manifest(Computed(1.0)), manifest(Computed(None, None, finite=False)), False),
        (manifest(Computed()), manifest(Computed()), True),
        (manifest(Computed(1.0)), manifest(Computed(3.0), is_random=True), True),
        (manifest(Computed(0.0, 0.0)), manifest(Computed(0.0, 0.0)), True),
        (None, manifest(Computed(1.0)), True),
    ],
)
def test_rounding_is_no_difference(control: Manifest, test: Manifest, same):
    assert (different_results(control, test) is None) == same == (different_results(test, control) is None)


def test_results_that_are_no_numbers_are_named_also_where_both_sides_have_them():
    spoilt, whole = manifest(Computed(None, None, finite=False)), manifest(Computed(1.0))
    assert different_results(spoilt, spoilt) is None
    assert (not_finite(spoilt), not_finite(whole)) == ("first", None)
    assert not_finite(manifest(Computed(1.0), Computed(None, None, finite=False))) == "fourth"
    row = VariantRow(variant="eager", runs=1, not_finite="first")
    assert notes_of(row) == ["eager: the result or the gradients of the first step are not finite"]


def test_runs_before_one_that_fails_are_kept(tmp_path):
    (tmp_path / "learns.py").write_text(LEARNS)
    (tmp_path / "starts").mkdir()
    options = ["-o", "out", "--repeats", "3", *ONCE, "--", str(tmp_path / "starts")]
    result = collect(tmp_path, "learns.py:second_fails", *options)
    assert result.returncode == 1
    assert [r.run for r in read_manifest(tmp_path / "out" / "eager").runs] == [1]
    assert read_collection(tmp_path / "out").variants[0].failed == "run 2: MemoryError: no room"
    (row,) = collection_table(tmp_path / "out").rows
    assert (row.runs, row.failed) == (1, "run 2: MemoryError: no room")
    assert [p.name for p in (tmp_path / "out" / "eager").iterdir() if p.is_dir()] == ["run1"]
    assert "eager failed: run 2: MemoryError: no room" in result.stdout


def test_a_run_that_does_not_end_is_ended(tmp_path, monkeypatch, capfd):
    (tmp_path / "learns.py").write_text(LEARNS)
    settings = {"workload": None, "target": f"{tmp_path / 'learns.py'}:hangs", "size": None, "device": "cpu"}
    settings |= {"threads": 1, "seed": 0, "wait": 0, "warmup": 1, "active": 3, "timed": 3, "detail": "timing"}
    settings |= {"annotate": None, "provenance": True, "arguments": []}
    monkeypatch.chdir(tmp_path)
    collection = Collection(tmp_path / "out", [parse_variant("eager", ())], settings, 2, timeout_s=8)
    assert collection.collect() == 1
    assert collection.failed["eager"].startswith("it did not end within 0.13")
    assert capfd.readouterr().err.count("build") == 1  # the second run is not tried


def test_a_graph_that_breaks_although_it_must_not_is_named_with_its_line(tmp_path):
    variant = "compile:backend=eager,fullgraph"
    (tmp_path / "learns.py").write_text(LEARNS)
    result = collect(tmp_path, "learns.py:breaks", "--variant", variant, "-o", "out", "--repeats", "1", *ONCE)
    line = 1 + LEARNS.splitlines().index("        torch._dynamo.graph_break()")
    failed = read_collection(tmp_path / "out").variants[0].failed
    assert result.returncode == 1
    assert failed.startswith("Unsupported: ")
    assert failed.endswith(f"(learns.py:{line})")
    assert "TORCHDYNAMO_VERBOSE" not in failed


def test_every_attempt_of_the_first_run_compiles_anew(tmp_path, monkeypatch):
    collection = Collection(tmp_path / "out", [], {"threads": 1}, 3)
    collection._caches = tmp_path / "caches"
    variant = parse_variant("compile", ())
    before = []

    def watched(_command, env, *_):
        cache = Path(env["TORCHINDUCTOR_CACHE_DIR"])
        before.append(cache.exists())
        cache.mkdir(parents=True, exist_ok=True)
        return 1, ""

    monkeypatch.setattr(collection, "_watched", watched)
    for run, attempt in ((1, 1), (2, 1), (1, 2), (2, 2), (3, 1)):
        collection._run(variant, run, 1, attempt)
    assert before == [False, True, False, True, True]
