"""The tables of every real trace close with the accounts; where HTA tables the same, the numbers are equal."""

import logging
from importlib import import_module

import numpy as np
import pytest
import traces
from one_file import real_profile

from tracediff.profile.events.step_states import STATES
from tracediff.profile.placement.gpu_events import SPILLED
from tracediff.profile.tables import table_schema

pytestmark = traces.needs_traces


def per_step(profile, name, column, keep=bool):
    """int64[steps]: the column summed over the rows whose key is kept; by default all (no key is empty)."""
    table = profile.tables[name]
    position = [c.name for c in table_schema(name).columns].index(column)
    kept = np.array([keep(key) for key in table.keys], bool)[table.key] if len(table.key) else np.zeros(0, bool)
    out = np.zeros(len(profile.step_numbers), np.int64)
    np.add.at(out, table.step[kept], table.values[kept, position])
    return out


@pytest.mark.parametrize("name", traces.NAMES)
def test_measures_close_with_the_accounts(name):
    profile = real_profile(name)
    steps = len(profile.step_numbers)
    work = profile.kernels
    launched = np.flatnonzero(work.step > SPILLED)
    launched = launched[work.step[launched] >= 0]

    def of_work(values, which):
        return np.bincount(work.step[which], values[which], steps).astype(np.int64).tolist()

    kernels = launched[np.array(profile.categories)[work.category[launched]] == "kernel"]
    assert per_step(profile, "gaps", "time").tolist() == (profile.periods * profile.origin.gpu_count).tolist()
    assert (
        per_step(profile, "streams", "busy", lambda key: key[1] == "all streams").tolist() == profile.busy_ns.tolist()
    )
    for column, values in (("sum", work.total_ns), ("events", work.count)):
        each = per_step(profile, "streams", column, lambda key: key[1] != "all streams")
        together = per_step(profile, "streams", column, lambda key: key[1] == "all streams")
        assert each.tolist() == together.tolist() == of_work(values, launched)
    assert per_step(profile, "kernel_sizes", "time").tolist() == of_work(work.total_ns, kernels)
    assert per_step(profile, "kernel_sizes", "kernels").tolist() == of_work(work.count, kernels)
    assert (
        per_step(profile, "loading", "exposed").tolist() == profile.state_ns[:, STATES.index("data_loading")].tolist()
    )
    if profile.origin.gpu_count == 1:
        for state in STATES:
            assert (
                per_step(profile, "gaps", "time", lambda key, state=state: key[2] == state).tolist()
                == profile.state_ns[:, STATES.index(state)].tolist()
            )
    for measured, column, categories in (
        ("python", "self", ("python_function",)),
        ("host_modules", "self", ("cpu_op", "cuda_runtime", "cuda_driver")),
    ):
        if profile.tables[measured].keys:
            measured_rows = np.isin(np.array(profile.categories)[profile.ops.category], categories) & (
                profile.ops.step >= 0
            )
            assert per_step(profile, measured, column).sum() == profile.ops.self_ns[measured_rows].sum()


def test_the_modules_of_a_real_step_hold_their_parts():
    profile = real_profile("timesformer_h100")
    table = profile.tables["host_modules"]
    rows = {table.keys[k][0]: v for k, v in zip(table.key.tolist(), table.values.tolist(), strict=True)}
    top = [v for path, v in rows.items() if "/" not in path]
    assert sum(total for _, total, *_ in top) == sum(self_ns for self_ns, *_ in rows.values())
    layers = [path for path in rows if path.rpartition("/")[2].startswith("TimesformerLayer[")]
    assert len(layers) == 12
    assert {rows[path][3] for path in layers} == {1}


@pytest.fixture(scope="module")
def hta():
    """HTA's analysis of one trace, without its log and its bars."""
    module = import_module("hta.trace_analysis")
    logging.getLogger("hta").setLevel(logging.CRITICAL)
    return lambda name: module.TraceAnalysis(trace_files={0: str(traces.trace(name))}, trace_dir="/")


@pytest.mark.parametrize("name", ["hta_control", "resnet50_workers0", "transformer_h100_run1"])
def test_launches_and_busy_time_are_those_of_hta_where_times_are_whole_microseconds(name, hta):
    """HTA leaves the last step out; it counts time from its first kernel to the end of its last, we count periods."""
    theirs = hta(name)
    stats = theirs.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0]
    profile = real_profile(name)
    us = {
        c: int(per_step(profile, "launches", c)[:-1].sum())
        for c in ("launches", "events", "host", "delay", "work", "short")
    }
    assert us["launches"] == us["events"] == len(stats)
    assert us["short"] == (stats.cpu_duration > stats.gpu_duration).sum()
    assert [us["host"], us["delay"], us["work"]] == [
        1000 * int(stats[c].sum()) for c in ("cpu_duration", "launch_delay", "gpu_duration")
    ]
    breakdown = theirs.get_temporal_breakdown(visualize=False).iloc[0]
    busy = per_step(profile, "gaps", "time", lambda key: key[1] == "busy")[:-1].sum()
    assert busy == 1000 * int(breakdown["kernel_time(us)"] - breakdown["idle_time(us)"])
