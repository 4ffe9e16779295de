"""``tracediff export --perfetto``: what is written is what viewers take, and our own reader finds the events of both
steps in it again.
"""

import gzip
import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from build_trace import PROCESS, annotation, call, document, kernel, memory, op, python, step, write
from hypothesis import given
from properties import examples
from random_traces import trace_events
from real_sets import real_comparison
from traces import needs_traces

import tracediff
from tracediff import bounds
from tracediff.arrays import MISSING
from tracediff.errors import TracediffError
from tracediff.ingest.read import read_trace
from tracediff.present.explanation_lines import INNER, explanation_table, sentence

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
PAIRS = [
    ("hta_control", "hta_test"),
    ("timesformer_h100", "timesformer_mi300"),
    ("resnet50_workers0", "resnet50_workers4"),
    ("tinylm_compile", "hta_nccl"),
]
KEYS = {
    "M": {"ph", "name", "pid", "tid", "args"},
    "X": {"ph", "name", "cat", "pid", "tid", "ts", "dur", "args"},
    "i": {"ph", "s", "name", "cat", "pid", "tid", "ts", "args"},
    "C": {"ph", "name", "cat", "pid", "tid", "ts", "args"},
    "s": {"ph", "id", "name", "cat", "pid", "tid", "ts"},
    "f": {"ph", "bp", "id", "name", "cat", "pid", "tid", "ts"},
}
NAMES = ("process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index")
METADATA = {"label", "file", "rank", "step", "gpu", "torch", "events", "python_functions_left_out"}


def merged(control, test, tmp_path):
    """(the comparison, the document, the file it was written to) of two sets."""
    return written(tracediff.compare(control, test, force=True), tmp_path)


def written(diff, tmp_path):
    path = tmp_path / "merged.json"
    assert diff.to_perfetto(path) == path.read_text()
    return diff.comparison, json.loads(path.read_bytes(), parse_float=ns_of, parse_constant=pytest.fail), path


def ns_of(text):
    """Microseconds with three decimals → ns, without a float; other numbers as they are."""
    whole, _, rest = text.partition(".")
    return int(whole + rest) if len(rest) == 3 else float(text)


def sets(folder, control, test):
    return str(write(folder / "control" / "trace.json", document(control))), str(
        write(folder / "test" / "trace.json", document(test))
    )


def one_step(ns=10, **names):
    name = {"op": "aten::mm", "kernel": "gemm", **names}
    return [
        step(1, 0, 100),
        op(name["op"], 10, 40, **{"Input Dims": [[2, 3], [3, 4]], "Concrete Inputs": ["/home/me/secret/x.py", ""]}),
        call("cudaLaunchKernel", 20, 5, correlation=1),
        kernel(name["kernel"], 30, ns, correlation=1, grid=[1, 2, 3]),
        memory(15, 400, 500),
    ]


def check(doc):
    """What viewers need of a trace, beyond JSON."""
    assert set(doc) == {"displayTimeUnit", "otherData", "traceEvents"}
    assert set(doc["otherData"]) == {"tracediff", "control", "test"}
    assert all(set(doc["otherData"][side]) == METADATA for side in ("control", "test"))
    events = doc["traceEvents"]
    for e in events:
        assert set(e) == KEYS[e["ph"]]
        assert isinstance(e["pid"], int)
        assert isinstance(e["tid"], int)
        assert e["ph"] == "M" or (isinstance(e["ts"], int) and e["ts"] >= 0)
        assert e["ph"] != "M" or e["name"] in NAMES
        assert e["ph"] != "X" or (isinstance(e["dur"], int) and e["dur"] >= 0)
        assert all(isinstance(value, int | float | str | list) for value in e.get("args", {}).values())
    check_tracks(events)
    check_arrows(events)


def check_tracks(events):
    """Every track is named once and belongs to one process; its slices, in the order of the file, are outer before
    inner and nest.
    """
    named = Counter((e["name"], e["pid"], e["tid"]) for e in events if e["ph"] == "M")
    assert set(named.values()) == {1}
    tracks = {(e["pid"], e["tid"]) for e in events if e["ph"] in "Xi"}
    assert len({tid for _, tid in tracks}) == len(tracks)
    assert all(("thread_name", *track) in named and ("process_name", track[0], track[0]) in named for track in tracks)
    open_ends = defaultdict(list)
    before = defaultdict(int)
    for e in events:
        if e["ph"] == "X":
            ends = open_ends[e["tid"]]
            assert e["ts"] >= before[e["tid"]]
            before[e["tid"]] = e["ts"]
            while ends and ends[-1] <= e["ts"]:
                ends.pop()
            assert not ends or e["ts"] + e["dur"] <= ends[-1]
            ends.append(e["ts"] + e["dur"])


def check_arrows(events):
    """Every arrow has one beginning and one end, each right behind the slice that it binds to, and points forwards."""
    begins, ends = {}, {}
    slice_before = None
    for e in events:
        if e["ph"] == "X":
            slice_before = e
        if e["ph"] in "sf":
            ends_of_kind = begins if e["ph"] == "s" else ends
            assert e["id"] not in ends_of_kind
            ends_of_kind[e["id"]] = e["ts"], slice_before["args"]["correlation"], slice_before["cat"]
            assert [e[k] for k in ("pid", "tid", "ts")] == [slice_before[k] for k in ("pid", "tid", "ts")]
    assert begins.keys() == ends.keys()
    for number, (time, correlation, category) in begins.items():
        assert time <= ends[number][0]
        assert correlation == ends[number][1]
        assert category in ("cuda_runtime", "cuda_driver")


def in_window(typical):
    """(name, start, duration) in ns of the complete events of the step's file that overlap its period, cut to it; and
    of its instants.
    """
    trace = read_trace(typical.file)
    first, last = typical.timeline.start, typical.timeline.end
    found = Counter()
    for ts, dur, name, category, phase in zip(
        trace.ts.tolist(), trace.dur.tolist(), trace.name, trace.category, trace.phase, strict=True
    ):
        if trace.categories[category] in ("Trace", "metadata", "counter") or trace.phases[phase] not in "Xi":
            continue
        start, end = max(ts, first), min(ts + max(dur, 0), last)
        if start < end or (dur <= 0 and first <= ts < last):
            found[trace.names[name], start - first, MISSING if dur == MISSING else end - start] += 1
    return found


def read_back(path, doc, side):
    """The same of what our reader finds in the merged file of one side's processes."""
    pids = {
        e["pid"]
        for e in doc["traceEvents"]
        if e["name"] == "process_name" and e["args"]["name"].startswith(f"{side}: ")
    }
    trace = read_trace(str(path))
    columns = zip(trace.ts.tolist(), trace.dur.tolist(), trace.name, trace.pid, trace.phase, strict=True)
    return Counter(
        (trace.names[n], ts, dur)
        for ts, dur, n, pid, ph in columns
        if trace.ids[pid] in pids and trace.phases[ph] in "Xi"
    )


def check_all(comparison, doc, path):
    check(doc)
    for side in ("control", "test"):
        typical = getattr(comparison, side).typical
        wanted = in_window(typical)
        assert read_back(path, doc, side) == wanted
        assert doc["otherData"][side]["events"] == sum(wanted.values())
        assert doc["otherData"][side]["file"] == typical.file.name
        (period,) = [e for e in doc["traceEvents"] if e.get("cat") == "step" and e["tid"] == 100_001 + (side == "test")]
        assert (period["ts"], period["dur"]) == (0, typical.timeline.end - typical.timeline.start)
    marks = [e for e in doc["traceEvents"] if e.get("cat") == "explanation"]
    found = explanation_table(comparison.explanation)
    assert [(e["name"], "delta_us" in e["args"]) for e in marks] == [
        (sentence(fact.text), False) for fact in comparison.explanation.facts
    ] + [
        (f"{found.figures(line)[-1]} {found.unit.name}  {level * INNER}{line.label}", True)
        for level, line in found.rows
    ]
    assert all(e["ts"] == 0 and e["ph"] == "i" for e in marks)
    tracediff.load(path)


@needs_traces
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0])
def test_real_pairs(pair, tmp_path):
    check_all(*written(tracediff.Diff(real_comparison(*pair)), tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["vit", "graph-breaks", "ensemble"])
def test_sample_pairs(pair, tmp_path):
    control, test = sorted(p for p in (SAMPLES / pair).iterdir() if p.is_dir())
    check_all(*merged(str(control), str(test), tmp_path))


@examples(25)
@given(control=trace_events(), test=trace_events())
def test_random_traces(control, test, tmp_path):
    check_all(*merged(*sets(tmp_path, control, test), tmp_path))


def test_an_event_that_begins_before_the_step_is_cut_and_says_so(tmp_path):
    events = [
        step(1, 0, 100),
        op("aten::mm", 1, 2),
        step(2, 100, 50),
        op("aten::add", 90, 20),
        op("aten::relu", 120, 5),
    ]
    diff = tracediff.compare(*sets(tmp_path, events, events))
    doc = json.loads(diff.to_perfetto())
    (period,) = {(e["name"], e["dur"]) for e in doc["traceEvents"] if e.get("cat") == "step"}
    assert period == ("step 1", 100)
    (cut, _) = [e for e in doc["traceEvents"] if e["name"] == "aten::add"]
    assert (cut["ts"], cut["dur"]) == (90, 10)
    assert cut["args"] == {"recorded start (µs)": 90, "recorded duration (µs)": 20}


def test_events_that_overlap_get_rows_of_their_own_up_to_a_bound(tmp_path):
    overlapping = [kernel(f"k{i}", 10 + i, 20, stream=7) for i in range(bounds.PERFETTO_ROWS + 1)]
    events = [step(1, 0, 100), op("aten::mm", 1, 2), *overlapping]
    doc = json.loads(tracediff.compare(*sets(tmp_path, events, events)).to_perfetto(), parse_float=ns_of)
    check(doc)
    rows = [
        e["args"]["name"]
        for e in doc["traceEvents"]
        if e["name"] == "thread_name" and e["args"]["name"].startswith("stream")
    ]
    assert rows == 2 * ["stream 7", *(f"stream 7, overlapping {i}" for i in range(1, bounds.PERFETTO_ROWS))]
    kernels = [e for e in doc["traceEvents"] if e.get("cat") == "kernel"]
    assert len(kernels) == 2 * len(overlapping)
    assert {e["dur"] for e in kernels if "recorded duration (µs)" not in e["args"]} == {20_000}
    assert {e["name"] for e in kernels if "recorded duration (µs)" in e["args"]} == {f"k{bounds.PERFETTO_ROWS}"}


def test_arguments_memory_and_instants_are_kept_and_folders_are_not(tmp_path):
    doc = json.loads(tracediff.compare(*sets(tmp_path, one_step(), one_step(20))).to_perfetto())
    by_name = {e["name"]: e for e in doc["traceEvents"] if e["ph"] in "XiC"}
    assert by_name["aten::mm"]["args"] == {"Input Dims": "[[2, 3], [3, 4]]", "Concrete Inputs": '["x.py", ""]'}
    assert by_name["gemm"]["args"] == {"device": 0, "stream": 7, "correlation": 1, "grid": "[1, 2, 3]"}
    assert by_name["[memory]"]["args"]["Bytes"] == 400
    assert by_name["control: allocated on GPU 0"]["args"] == {"bytes": 500}


HOSTILE = [
    "<script>alert(1)</script>",
    "{{x}}",
    "a" * 10_000,
    "\u202egnp.exe",
    "\x00\x1b[31m\n\u2028",
    'quote " back \\ slash',
    "\ud800",
    "</traceEvents>]}",
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_text(name, tmp_path):
    events = [*one_step(10, op=name, kernel=name), annotation(name, 50, 5, **{name or "x": name})]
    secret = {"env": {"HF_TOKEN": "hf_secret"}, "host_name": "me.example", "traceName": "/home/me/t.json"}
    path = write(tmp_path / "trace.json", document(events, **secret))
    text = tracediff.compare(tracediff.load(path, label=name), tracediff.load(path)).to_perfetto()
    check(json.loads(text, parse_float=ns_of))
    text.encode()
    assert all(c.isprintable() or c == "\n" for c in text)
    assert not any(word in text for word in ("secret", "me.example", "/home/me"))
    assert max(len(e["name"]) for e in json.loads(text)["traceEvents"]) == (
        bounds.PERFETTO_TEXT if len(name) > 4000 else pytest.approx(60, abs=60)
    )
    if name.isprintable() and len(name) < 100:
        assert Counter(e["name"] for e in json.loads(text)["traceEvents"])[name] == 6


def test_of_too_many_events_python_functions_are_left_out_first(tmp_path, monkeypatch):
    events = [*one_step(), *(python("model.py(1): f", 60 + i, 1, i) for i in range(5))]
    diff = tracediff.compare(*sets(tmp_path, events, events))
    monkeypatch.setattr(bounds, "PERFETTO_EVENTS", 6)
    doc = json.loads(diff.to_perfetto())
    assert doc["otherData"]["test"]["events"] == 5
    assert doc["otherData"]["test"]["python_functions_left_out"] == 5
    assert "model.py" not in str(doc["traceEvents"])
    monkeypatch.setattr(bounds, "PERFETTO_EVENTS", 4)
    with pytest.raises(TracediffError, match=r"has 5 events.*with step"):
        diff.to_perfetto()


def test_old_instants_stand_on_the_thread_whose_id_is_text(tmp_path):
    events = [step(1, 0, 100, tid=str(PROCESS)), op("aten::mm", 1, 2, tid=str(PROCESS)), memory(5, 10, 10, tid=PROCESS)]
    doc = json.loads(tracediff.compare(*sets(tmp_path, events, events)).to_perfetto())
    tracks = {e["tid"] for e in doc["traceEvents"] if e["name"] in ("aten::mm", "[memory]")}
    assert len(tracks) == 2  # one a side


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "tracediff", "export", *map(str, arguments)], capture_output=True, text=True
    )


@pytest.mark.slow
def test_the_command_writes_plain_and_compressed_files(tmp_path):
    pair = sets(tmp_path, one_step(), one_step(20))
    done = run(*pair, "--perfetto", tmp_path / "both.json.gz")
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout
        == f"wrote step 1 of control (5 events) and step 1 of test (5 events) to {tmp_path / 'both.json.gz'}\n"
    )
    plain = run(*pair, "--perfetto", "-")
    assert plain.stdout == gzip.decompress((tmp_path / "both.json.gz").read_bytes()).decode()
    check(json.loads(plain.stdout, parse_float=ns_of))


def test_a_snapshot_is_one_line(tmp_path):
    from tracediff.aggregate.snapshot import write_snapshot

    control, test = sets(tmp_path, one_step(), one_step(20))
    write_snapshot(tracediff.load(control), tmp_path / "base.tdprof.gz")
    done = run(tmp_path / "base.tdprof.gz", test, "--perfetto", tmp_path / "both.json")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "a snapshot contains no events; give the traces" in done.stderr
    assert not (tmp_path / "both.json").exists()
