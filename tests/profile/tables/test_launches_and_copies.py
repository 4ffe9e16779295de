"""Launches and copies on traces whose answer is known by hand (µs in the events, ns and counts in the tables)."""

from random import Random

import pytest
from build_trace import call, document, kernel, memcpy, memset, op, step, write
from hypothesis import example, given, strategies as st
from one_file import profile_file
from properties import examples
from random_traces import trace_events

from tracediff.aggregate.averages import table_average
from tracediff.engine import LoadOptions, load_sets
from tracediff.errors import TracediffError
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.tables import OF_FILES


def tables_of(folder, events, *names):
    file = TraceFile(str(write(folder / "trace.json", document(events))))
    tables = profile_file(file, tables=names).tables
    return [tables[name] for name in names]


def rows_of(table):
    """(step, key) → values."""
    return {
        (s, table.keys[k]): v
        for s, k, v in zip(table.step.tolist(), table.key.tolist(), table.values.tolist(), strict=True)
    }


def test_a_launch_counts_once_and_its_work_waits_for_its_return(tmp_path):
    events = [
        step(1, 0, 100),
        call("cudaLaunchKernel", 10, 5, correlation=1),
        kernel("a", 20, 3, correlation=1),
        call("cudaGraphLaunch", 30, 10, correlation=2),
        kernel("b", 35, 20, correlation=2),
        kernel("c", 60, 8, correlation=2),
        call("cudaStreamSynchronize", 70, 5),
    ]
    (table,) = tables_of(tmp_path, events, "launches")
    assert rows_of(table) == {
        (0, ("cudaLaunchKernel",)): [5_000, 1, 5_000, 3_000, 1, 1],
        (0, ("cudaGraphLaunch",)): [
            10_000,
            1,
            20_000,
            28_000,
            2,
            1,
        ],  # b began before the call returned: it did not wait
    }


def test_copies_by_direction_and_kind_of_memory(tmp_path):
    events = [step(1, 0, 100)]
    for k, (make, ns) in enumerate(
        [
            ("Memcpy HtoD (Pinned -> Device)", 4),
            ("Memcpy HtoD (Pageable -> Device)", 6),
            ("Memcpy DtoD (Device -> Device)", 1),
        ]
    ):
        events += [
            call("cudaMemcpyAsync", 10 * k, 2, correlation=k),
            memcpy(make, 10 * k + 3, ns, correlation=k, bytes=1000 * (k + 1)),
        ]
    events += [call("cudaMemsetAsync", 50, 2, correlation=9), memset(55, 2, correlation=9)]
    (table,) = tables_of(tmp_path, events, "copies")
    assert rows_of(table) == {
        (0, ("HtoD", "Pinned -> Device")): [4_000, 1, 1000],
        (0, ("HtoD", "Pageable -> Device")): [6_000, 1, 2000],
        (0, ("DtoD", "Device -> Device")): [1_000, 1, 3000],
        (0, ("memset", "")): [2_000, 1, 0],
    }


BOTH_AT_ONCE = [
    step(1, 0, 10),
    op("aten::add", 1, 2),
    call("cudaLaunchKernel", 1, 1, correlation=1),
    memcpy("Memcpy HtoD (Pageable -> Device)", 2, 0, correlation=1),
    kernel("add", 2, 0, correlation=1),
]
"""An operator whose copy and kernel begin together."""


@examples(40)
@example(events=BOTH_AT_ONCE, order=Random(0))
@given(events=trace_events(), order=st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_matter_to_any_table(tmp_path, events, order):
    tables = [rows_of(t) for t in tables_of(tmp_path, events, *OF_FILES)]
    shuffled = list(events)
    order.shuffle(shuffled)
    assert [rows_of(t) for t in tables_of(tmp_path, shuffled, *OF_FILES)] == tables


def test_a_set_is_the_mean_over_steps_then_ranks_then_runs(tmp_path):
    for rank, scale in ((0, 1), (1, 3)):
        events = []
        for k in range(2):
            start = 1000 * k
            events += [
                step(k, start, 900),
                call("cudaLaunchKernel", start + 1, 2 * scale, correlation=k),
                kernel("a", start + 50, 10 * scale * (k + 1), correlation=k),
            ]
        write(tmp_path / f"rank{rank}.json", document(events, distributedInfo={"rank": rank}))
    (traces,) = load_sets([str(tmp_path)], LoadOptions(tables=("launches",)))
    table = table_average(traces, "launches")
    denominator, rows = table.denominator, table.rows
    ((key, values),) = rows.items()
    assert key == ("cudaLaunchKernel",)
    assert [v / denominator for v in values] == [4_000, 1, (47_000 + 43_000) / 2, (15_000 + 45_000) / 2, 1, 0]


def test_an_unknown_table_is_an_error_that_names_the_known(tmp_path):
    path = write(tmp_path / "trace.json", document([step(1, 0, 10), op("aten::add", 1, 2)]))
    with pytest.raises(TracediffError, match="launches"):
        load_sets([str(path)], LoadOptions(tables=("lanches",)))
