"""Which runs count as disturbed by other processes, from known samples."""

import json

import pytest
from collecting import written

from tracediff.collect.driver import ATTEMPTS, Collection
from tracediff.collect.measure import occupancy
from tracediff.collect.run_progress import RunTimes
from tracediff.collect.variant import parse_variant
from tracediff.ingest.manifest import read_manifest

CALM = [1.0, 1.001, 0.999]
SETTINGS = {"workload": "mlp", "target": None, "size": "tiny", "device": "cpu", "threads": 1, "seed": 0}
SETTINGS |= {"wait": 0, "warmup": 1, "active": 3, "timed": 3, "detail": "timing", "annotate": None, "provenance": True}


def samples(shares, threads=1):
    """Steps of 1 ms in which the process had these shares of its threads."""
    return [{"wall_us": 1000.0, "cpu_us": 1000.0 * share * threads, "involuntary_switches": 0} for share in shares]


def facts_of(unprofiled, profiled, waiting=(None, None)):
    """What a worker measures besides the steps; without a part of the time that it waited for a processor, as where
    the system does not tell.
    """
    facts = {"build_s": 0.0, "first_step_s": 0.0, "unprofiled_steps": unprofiled, "profiled_steps": profiled}
    facts |= {"occupancy": occupancy(unprofiled, 1), "profiled_occupancy": occupancy(profiled, 1)}
    facts |= {"waiting": waiting[0], "profiled_waiting": waiting[1]}
    constant = {"items": None, "lost_format": {}, "fx_nodes": {}, "modules": {}, "provenance": []}
    return facts | constant | {"peak_memory_bytes": {}, "environment": {}}


def collected(monkeypatch, out, *runs, **settings):
    """The runs of a collection in which run k's attempts table ``runs[k - 1]``: (unprofiled, profiled) shares, the last
    ones ever again.
    """

    def measured(_self, _variant, run, order, attempt=1):
        unprofiled, profiled = map(samples, runs[run - 1][:attempt][-1])
        return {"run": run, "order": order, "attempts": attempt, "contended": False, **facts_of(unprofiled, profiled)}

    monkeypatch.setattr(Collection, "_run", measured)
    assert Collection(out, [parse_variant("eager", ())], SETTINGS | settings, len(runs)).collect() == 0
    assert len(read_manifest(out / "eager").runs) == len(runs)
    return written(out / "eager")["runs"]


def test_the_share_is_process_time_of_all_threads():
    assert occupancy(samples([1.0, 0.5], threads=4), 4) == pytest.approx(0.75)
    assert occupancy([], 1) == 0


@pytest.mark.parametrize("disturbed", [(CALM, [1.0, 0.5, 1.0]), ([1.0, 0.5, 1.0], CALM), ([0.5] * 3, [0.5] * 3)])
def test_a_run_disturbed_in_either_pass_is_collected_again_and_marked(monkeypatch, tmp_path, capsys, disturbed):
    runs = collected(monkeypatch, tmp_path, [(CALM, CALM)], [disturbed], [(CALM, CALM)])
    assert [r["contended"] for r in runs] == [False, True, False]
    assert [r["attempts"] for r in runs] == [1, ATTEMPTS, 1]
    assert capsys.readouterr().err.count("eager, run 2: repeated, because other processes took") == ATTEMPTS - 1
    assert (runs[1]["occupancy"], runs[1]["profiled_occupancy"]) == tuple(
        pytest.approx(sum(shares) / 3) for shares in disturbed
    )


def test_a_run_that_was_calm_the_second_time_is_not_marked(monkeypatch, tmp_path):
    runs = collected(monkeypatch, tmp_path, [(CALM, CALM)], [(CALM, [0.6] * 3), (CALM, CALM)], [(CALM, CALM)])
    assert [(r["attempts"], r["contended"]) for r in runs] == [(1, False), (2, False), (1, False)]


def test_steps_that_wait_on_purpose_and_a_profiler_that_works_on_one_thread_are_no_disturbance(monkeypatch, tmp_path):
    runs = collected(monkeypatch, tmp_path, *[[([0.2] * 3, [0.3] * 3)]] * 3)
    assert not any(r["contended"] for r in runs)


def test_each_pass_is_compared_with_its_own_median(monkeypatch, tmp_path):
    runs = collected(monkeypatch, tmp_path, *[[([0.4] * 3, [0.9] * 3)]] * 2, [([0.4] * 3, [0.8] * 3)])
    assert [r["contended"] for r in runs] == [False, False, True]


@pytest.mark.parametrize(("share", "marked"), [(0.975, False), (0.965, True)])
def test_three_percent_is_the_limit(monkeypatch, tmp_path, share, marked):
    runs = collected(monkeypatch, tmp_path, *[[([1.0] * 3, [1.0] * 3)]] * 2, [([1.0] * 3, [share] * 3)])
    assert runs[2]["contended"] is marked


def test_steps_without_process_time_are_no_disturbance(monkeypatch, tmp_path):
    assert not any(r["contended"] for r in collected(monkeypatch, tmp_path, *[[([0.0] * 3, [0.0] * 3)]] * 2))


def waiting(monkeypatch, out, variants, parts, attempts=ATTEMPTS):
    """(variant, run, attempt) in the order of collection, and the manifests, of a collection whose runs wait for
    ``parts[variant]``: of each run the part in each attempt.
    """
    done = []

    def measured(_self, variant, run, order, attempt=1):
        done.append((variant.text, run, attempt))
        part = parts[variant.text][run - 1][:attempt][-1]
        steps = samples(CALM)
        return {"run": run, "order": order, "attempts": attempt, "contended": False} | facts_of(steps, steps, (0, part))

    monkeypatch.setattr(Collection, "_run", measured)
    chosen = [parse_variant(text, ()) for text in variants]
    assert Collection(out, chosen, SETTINGS, len(parts[variants[0]]), attempts).collect() == 0
    assert all(read_manifest(out / variant.folder).runs for variant in chosen)
    return done, [written(out / variant.folder) for variant in chosen]


def test_a_side_that_is_disturbed_as_a_whole_is_marked(monkeypatch, tmp_path):
    _, (eager, again) = waiting(
        monkeypatch, tmp_path, ["eager", "eager@again"], {"eager": [[0.5], [0.5]], "eager@again": [[0], [0.03]]}
    )
    assert [r["contended"] for r in eager["runs"]] == [True, True]
    assert [r["contended"] for r in again["runs"]] == [False, False]


def test_disturbed_runs_are_collected_again_in_turn_and_are_not_interleaved_then(monkeypatch, tmp_path):
    parts = {"eager": [[0.5, 0], [0.5, 0]], "eager@again": [[0.5, 0.5, 0], [0]]}
    done, manifests = waiting(monkeypatch, tmp_path, ["eager", "eager@again"], parts)
    assert done[4:] == [("eager", 1, 2), ("eager@again", 1, 2), ("eager", 2, 2), ("eager@again", 1, 3)]
    assert [m["interleaved"] for m in manifests] == [False, False]
    assert not any(r["contended"] for m in manifests for r in m["runs"])
    _, manifests = waiting(
        monkeypatch, tmp_path / "calm", ["eager", "eager@again"], {"eager": [[0]], "eager@again": [[0]]}
    )
    assert [m["interleaved"] for m in manifests] == [True, True]


def test_runs_on_a_gpu_are_not_judged(monkeypatch, tmp_path):
    runs = collected(monkeypatch, tmp_path, [(CALM, CALM)], [(CALM, [0.5] * 3)], [(CALM, CALM)], device="cuda")
    assert not any(r["contended"] for r in runs)


def test_a_run_whose_gpu_was_slowed_down_is_collected_again(monkeypatch, tmp_path, capsys):
    def measured(_self, _variant, run, order, attempt=1):
        clocks = {"throttled": 0.2 if (run, attempt) == (2, 1) else 0.0}
        facts = facts_of(samples(CALM), samples(CALM)) | {"clocks": clocks}
        return {"run": run, "order": order, "attempts": attempt, "contended": False, **facts}

    monkeypatch.setattr(Collection, "_run", measured)
    Collection(tmp_path, [parse_variant("eager", ())], SETTINGS | {"device": "cuda"}, 2).collect()
    assert [(r["attempts"], r["contended"]) for r in written(tmp_path / "eager")["runs"]] == [(1, False), (2, False)]
    assert (
        "run 2: repeated, because heat or its supply slowed the GPU down for 20% of its time" in capsys.readouterr().err
    )


def test_a_manifest_without_the_profiled_share_is_read(monkeypatch, tmp_path):
    collected(monkeypatch, tmp_path, [(CALM, CALM)])
    path = tmp_path / "eager" / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["runs"][0]["profiled_occupancy"]
    path.write_text(json.dumps(manifest))
    assert [r.contended for r in read_manifest(tmp_path / "eager").runs] == [False]


def test_the_time_left_is_that_of_the_last_run_of_each_variant(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("tracediff.collect.run_progress.time.monotonic", lambda: now[0])
    times = RunTimes()

    def run(variant, seconds, *upcoming):
        times.upcoming = upcoming
        times.start()
        left = times.left_s(variant)
        now[0] += seconds
        times.finish(variant)
        return left

    assert run("eager", 10, "compile", "compile", "eager") is None
    assert run("compile", 60, "compile", "eager") == 30  # as long as the eager run
    assert run("compile", 20, "eager") == 70
    assert times.fraction == 3 / 5
    times.upcoming = ()
    times.start()
    now[0] += 4
    assert times.left_s("eager") == 6
    now[0] += 60
    assert times.left_s("eager") == 0
