"""memory-peak: stated of devices whose peak moved on both sides, with what holds the difference (bytes)."""

from build_trace import document, memory, op, step, write
from traces import needs_traces, trace

import tracediff
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.load_options import LoadOptions

MB = 1_000_000
BOTH = ("memory", "memory_holders")


def found(control, test, tables=BOTH):
    sets = load_sets([control, test], LoadOptions(tables=tables))
    return [f for f in compare_sets(*sets).findings if f.code == "memory-peak"]


def trace_of(path, allocated, number=1):
    """One step in which aten::mm and then aten::relu allocate ``allocated`` bytes on each of ``number`` GPUs."""
    events = [step(1, 0, 100), op("aten::mm", 10, 10), op("aten::relu", 30, 10)]
    for device in range(number):
        total = 100 * MB
        for k, size in enumerate(allocated):
            total += size
            events.append(memory(11 + 20 * k + device, size, total, device, Addr=8 * k, **{"Total Reserved": 200 * MB}))
    return write(path, document(events))


def test_a_peak_that_rose_is_told_with_what_holds_it(tmp_path):
    control, test = trace_of(tmp_path / "a.json", [50 * MB, MB]), trace_of(tmp_path / "b.json", [150 * MB, MB])
    (finding,) = found(control, test)
    assert finding.title == "peak memory of GPU rose: 151.0 → 251.0 MB"
    assert finding.detail.startswith("The peak of allocated memory is 66 % higher; reserved memory: 200.0 MB.")
    assert [(e.name, e.control_count, e.test_count) for e in finding.evidence] == [
        ("aten::mm, forward: 50.0 → 150.0 MB", 1, 1)
    ]
    (back,) = found(test, control)
    assert back.title == "peak memory of GPU fell: 251.0 → 151.0 MB"


def test_small_changes_and_tables_that_were_not_asked_for_tell_nothing(tmp_path):
    control = trace_of(tmp_path / "a.json", [50 * MB, MB])
    assert not found(control, trace_of(tmp_path / "small.json", [56 * MB, MB]))
    assert not found(control, trace_of(tmp_path / "more.json", [150 * MB, MB]), tables=())
    (finding,) = found(control, tmp_path / "more.json", tables=("memory",))
    assert not finding.evidence


def test_a_device_that_one_side_alone_tells_of_is_no_change(tmp_path):
    control, test = trace_of(tmp_path / "a.json", [MB]), trace_of(tmp_path / "b.json", [150 * MB], number=2)
    assert not found(control, test)
    assert not found(control, write(tmp_path / "none.json", document([step(1, 0, 100), op("aten::mm", 10, 10)])))


@needs_traces
def test_more_memory_on_another_vendor_is_found_where_it_is():
    finding, *others = found(trace("bertsmall_h100"), trace("bertsmall_mi300"))
    assert not others
    assert finding.title == "peak memory of GPU rose: 101.3 → 146.4 MB"
    assert finding.evidence[0].name == (
        "aten::addmm, BertLMHeadModel/BertOnlyMLMHead/BertLMPredictionHead/Linear, forward: 9.7 → 88.3 MB"
    )
    assert finding.evidence[1].name == "(before the capture): 91.4 → 57.8 MB"
    assert not found(trace("transformer_h100_run1"), trace("transformer_h100_run2"))


def test_tables_without_rows_keep_their_columns(tmp_path):
    path = write(tmp_path / "none.json", document([step(1, 0, 100), op("aten::mm", 10, 10)]))
    frame = tracediff.compare(path, path, tables=["memory"]).table("memory")
    assert frame.empty
    assert {"device", "control_peak_bytes", "test_peak_bytes", "control_churn"} <= set(frame)
    assert {"device", "peak_bytes"} <= set(tracediff.analyze(path, tables=["memory"]).table("memory"))
