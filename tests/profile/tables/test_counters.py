"""Counters: a sample holds until the next; what is no number or unknown adds nothing."""

import pytest
import traces
from build_trace import PROCESS, op, step
from one_file import profile_file
from table_rows import measured, rows_of

from tracediff.ingest.files.source import TraceFile


def sample(name, ts, pid=PROCESS, **values):
    return {"ph": "C", "name": name, "pid": pid, "ts": ts, "args": values}


def test_values_hold_until_the_next_of_their_series_and_are_cut_at_steps(tmp_path):
    events = [
        step(1, 0, 100),
        op("aten::mm", 1, 2),
        step(2, 100, 100),
        op("aten::mm", 101, 2),
        sample("load", 0, user=1),  # replaced at once
        sample("load", 0, user=0.5, system=4),
        sample("load", 40, user=2.5),
        sample("load", 120, user=7, system="odd"),
        sample("load", 130, system=0),
        sample("load", 60, pid=7, user=9),  # another process: nothing known behind its only sample
    ]
    assert measured(tmp_path, events, "counters") == {
        (0, ("load", "user")): {"known": 100_000, "integral": 20_000 + 150_000, "samples": 4},
        (0, ("load", "system")): {"known": 100_000, "integral": 400_000, "samples": 1},
        (1, ("load", "user")): {"known": 20_000, "integral": 50_000, "samples": 1},
        (1, ("load", "system")): {"known": 30_000, "integral": 120_000, "samples": 1},
    }


@pytest.mark.parametrize("value", [1e300, -1e300, 2**62, "inf", "nan", "1_0", None, [1], {"a": 1}, True])
def test_what_is_no_number_or_too_large_is_unknown(tmp_path, value):
    events = [
        step(1, 0, 100),
        op("aten::mm", 1, 2),
        sample("c", 10, x=value),
        sample("c", 20, x=3),
        sample("c", 40, x=3),
    ]
    ((key, values),) = measured(tmp_path, events, "counters").items()
    assert (key, values["known"], values["integral"]) == ((0, ("c", "x")), 20_000, 60_000)


def test_a_counter_is_one_whatever_category_it_states_and_whatever_its_series_is_called(tmp_path):
    events = [
        step(1, 0, 100),
        op("aten::mm", 1, 2),
        *({**sample("c", time, bytes=2), "cat": "kernel"} for time in (0, 50)),
    ]
    assert measured(tmp_path, events, "counters") == {
        (0, ("c", "bytes")): {"known": 50_000, "integral": 100_000, "samples": 2}
    }


def test_a_file_without_counters_has_no_rows(tmp_path):
    assert measured(tmp_path, [step(1, 0, 10), op("aten::mm", 1, 2)], "counters") == {}


@traces.needs_traces
def test_the_utilisation_of_a_real_gpu():
    path = traces.trace("kineto_gpu_metrics")
    rows = rows_of(profile_file(TraceFile(str(path)), tables=("counters",)), "counters")
    means = {key[1]: values["integral"] / values["known"] for (_, key), values in rows.items()}
    assert means == pytest.approx({"GPU Utilization": 0.35376, "Est. SM Efficiency": 0.00056}, abs=1e-5)
