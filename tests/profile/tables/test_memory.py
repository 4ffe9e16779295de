"""Memory and what holds it: against a plain replay of the events, known allocations, and real traces (µs in the events,
bytes).
"""

import gzip
import json
from collections import defaultdict

import pytest
from build_trace import BACKWARD, annotation, document, memory, op, python, step, write
from hypothesis import given, strategies as st
from one_file import profile_file, real_profile
from properties import examples
from traces import needs_traces, trace
from with_torch import run_with_torch

import tracediff
from tracediff.aggregate.averages import table_average
from tracediff.engine import LoadOptions, load_sets
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.tables.memory import BEFORE, NO_ADDRESS, NO_EVENT, NOWHERE

BOTH = ("memory", "memory_holders")
A, B, C = 4096, 8192, 12288


def profile_of(folder, events):
    return profile_file(TraceFile(str(write(folder / "trace.json", document(events)))), tables=BOTH)


def rows(profile, name, step=0):
    """key → values of one step."""
    table = profile.tables[name]
    here = table.step == step
    return {table.keys[k]: tuple(v) for k, v in zip(table.key[here].tolist(), table.values[here].tolist(), strict=True)}


def held(profile, step=0):
    """(operator, module, phase) → (bytes, blocks) at the peak of GPU memory, nothing left out."""
    found = rows(profile, "memory_holders", step)
    return {(o, m, p): values[:2] for (device, p, o, m), values in found.items() if device == "GPU" and any(values[:2])}


def test_a_step_holds_what_was_there_what_came_and_what_went(tmp_path):
    events = [
        step(1, 0, 100), op("aten::relu", 10, 30), op("aten::empty", 15, 10),
        memory(20, 400, 1400, **{"Total Reserved": 2000, "Addr": A}),
        memory(50, -1000, 400, **{"Total Reserved": 2000, "Addr": B}),
        memory(60, 100, 500, **{"Total Reserved": 3000, "Addr": C}),
        memory(70, 1 << 40, 500, name="[OutOfMemory]", **{"Total Reserved": 3000}),
        step(2, 100, 100), op("aten::relu", 110, 30),
        step(3, 200, 100), op("aten::relu", 210, 30), memory(220, -400, 100, **{"Total Reserved": 900, "Addr": A}),
    ]  # fmt: skip
    profile = profile_of(tmp_path, events)
    assert [rows(profile, "memory", k) for k in range(3)] == [
        {("GPU",): (1400, 3000, 500, 500, 1000, 2, 1, 1)},
        {("GPU",): (500, 3000, 500, 0, 0, 0, 0, 0)},
        {("GPU",): (500, 3000, 100, 0, 400, 0, 1, 0)},
    ]
    relu, outside = ("aten::relu", "", "forward"), (NOWHERE, "", "unknown")
    assert held(profile, 0) == {(BEFORE, "", ""): (1000, 0), relu: (400, 1)}
    assert held(profile, 1) == held(profile, 2) == {relu: (400, 1), outside: (100, 1)}
    assert rows(profile, "memory_holders")["GPU", "unknown", NOWHERE, ""] == (0, 0, 100, 1)


def test_memory_is_put_down_to_the_operator_that_does_more_than_allocate_its_phase_and_its_module(tmp_path):
    events = [
        step(1, 0, 100),
        python("nn.Module: Net_0", 5, 40, 1),
        python("nn.Module: Linear_7", 6, 14, 2, 1),
        python("nn.Module: Linear_9", 20, 20, 3, 1),
        op("aten::linear", 7, 10),
        op("aten::addmm", 8, 8),
        op("aten::empty", 9, 2),
        memory(10, 1, 1, Addr=A),
        op("aten::linear", 21, 10),
        op("aten::addmm", 22, 8),
        memory(24, 2, 3, Addr=B),
        op("autograd::engine::evaluate_function: X", 50, 20, tid=BACKWARD),
        op("aten::mm", 52, 8, tid=BACKWARD),
        memory(53, 4, 7, tid=BACKWARD, Addr=C),
        annotation("Optimizer.step#Adam.step", 80, 10),
        op("aten::empty", 82, 6),
        memory(83, 8, 15, Addr=5),
    ]
    assert held(profile_of(tmp_path, events)) == {
        ("aten::addmm", "Net/Linear[0]", "forward"): (1, 1),
        ("aten::addmm", "Net/Linear[1]", "forward"): (2, 1),
        ("aten::mm", "", "backward"): (4, 1),
        ("aten::empty", "", "optimizer"): (8, 1),
    }


def test_what_no_event_tells_is_named_with_its_sign(tmp_path):
    events = [
        step(1, 0, 10),
        op("aten::a", 1, 8),
        memory(2, 10, 10, Addr=A),
        memory(3, 10, 50, Addr=B),
        step(2, 10, 10),
        op("aten::a", 11, 8),
    ]
    assert held(profile_of(tmp_path, events))[NO_EVENT, "", ""] == (30, 0)
    events = [step(1, 0, 10), op("aten::a", 1, 8), memory(2, 10, 10, Addr=A), memory(3, 10, 12, Addr=B)]
    assert held(profile_of(tmp_path, events)) == {("aten::a", "", "forward"): (20, 2), (NO_EVENT, "", ""): (-8, 0)}


def test_old_profilers_tell_changes_and_write_thread_ids_in_two_ways(tmp_path):
    events = [step(1, 0, 100), op("aten::mm", 10, 40, tid="100"), memory(20, 400, 0, tid=100), memory(30, -500, 0)]
    for event in events[2:]:
        del event["args"]["Total Allocated"], event["args"]["Addr"]
    profile = profile_of(tmp_path, events)
    assert rows(profile, "memory") == {("GPU (above the file's start)",): (400, 0, -100, 400, 500, 1, 1, 0)}
    assert rows(profile, "memory_holders") == {
        ("GPU (above the file's start)", "forward", "aten::mm", ""): (0, 0, 400, 1),
        ("GPU (above the file's start)", "", NO_ADDRESS, ""): (400, 0, 0, 0),
    }


def test_one_gpu_of_a_process_has_no_number_so_that_ranks_meet(tmp_path):
    for rank in (0, 1):
        events = [step(1, 0, 100), op("aten::a", 1, 8), memory(2, 10 * (1 + rank), 10 * (1 + rank), device=rank)]
        write(tmp_path / f"rank{rank}.json", document(events, distributedInfo={"rank": rank, "world_size": 2}))
    (traces,) = load_sets([tmp_path], LoadOptions(tables=BOTH))
    table = table_average(traces, "memory")
    denominator, found = table.denominator, table.rows
    assert {key: values[0] / denominator for key, values in found.items()} == {("GPU",): 15}
    two = profile_of(
        tmp_path / "two",
        [
            step(1, 0, 9),
            op("aten::a", 1, 8),
            memory(2, 1, 1),
            memory(3, 2, 2, device=1),
            memory(3, 2, 2, -1, **{"Device Type": 0}),
        ],
    )
    assert set(rows(two, "memory")) == {("GPU 0",), ("GPU 1",), ("host",)}


def test_a_file_without_memory_events_has_no_rows(tmp_path):
    profile = profile_of(tmp_path, [step(1, 0, 100), op("aten::a", 1, 8)])
    assert [len(profile.tables[name].values) for name in BOTH] == [0, 0]


@st.composite
def allocating(draw):
    """Steps of one operator each, and an allocator at work in and between them: blocks from before, events that are
    missing, addresses used again.
    """
    events, time = [], 0
    for number in range(1, 1 + draw(st.integers(1, 4))):
        length = draw(st.integers(4, 20))
        events += [
            step(number, time, length),
            op(draw(st.sampled_from(("aten::mm", "aten::add"))), time + 1, draw(st.integers(1, length - 2))),
        ]
        time += length + draw(st.integers(0, 3))
    live = {address: draw(st.integers(1, 9)) for address in range(1, 5) if draw(st.booleans())}
    total, times = sum(live.values()), sorted(draw(st.lists(st.integers(0, time), max_size=25)))
    for index, ts in enumerate(times):
        address = draw(st.integers(1, 6))
        change = -live.pop(address) if address in live else draw(st.integers(1, 9))
        if change > 0:
            live[address] = change
        total += change
        if draw(st.integers(0, 9)):  # else the event is lost
            events.append(memory(ts, change, total, Addr=address, **{"Ev Idx": index}))
    return events


def replayed(events):
    """By step: peak, what is left, and what holds the peak by operator; one event after the other."""
    changes = sorted((e for e in events if e["name"] == "[memory]"), key=lambda e: (e["ts"], e["args"]["Ev Idx"]))
    ops = [(e["ts"], e["ts"] + e["dur"], e["name"]) for e in events if e["name"].startswith("aten")]
    freed, context = defaultdict(int), set()
    for e in changes:
        if e["args"]["Bytes"] < 0 and e["args"]["Addr"] not in context:
            freed[e["args"]["Addr"]] -= e["args"]["Bytes"]
        context.add(e["args"]["Addr"])
    amount = changes[0]["args"]["Total Allocated"] - changes[0]["args"]["Bytes"]
    states = [(None, amount, {BEFORE: amount})]
    live, old = {}, amount
    for e in changes:
        address, change = e["args"]["Addr"], e["args"]["Bytes"]
        if change > 0:
            live[address] = (next((name for start, end, name in ops if start <= e["ts"] < end), NOWHERE), change)
        elif live.pop(address, None) is None:
            old -= freed.pop(address, 0)
        holders = defaultdict(int, {BEFORE: max(old, 0)})
        for name, size in live.values():
            holders[name] += size
        holders[NO_EVENT] = e["args"]["Total Allocated"] - sum(holders.values())
        states.append((e["ts"], e["args"]["Total Allocated"], holders))
    found = []
    for start, end in [(e["ts"], e["ts"] + e["dur"]) for e in events if e["name"].startswith("ProfilerStep")]:
        states_in_step = [
            [s for s in states if s[0] is None or s[0] < start][-1],
            *(s for s in states if s[0] is not None and start <= s[0] < end),
        ]
        peak = max(states_in_step, key=lambda s: s[1])
        found.append((peak[1], states_in_step[-1][1], {k: v for k, v in peak[2].items() if v}))
    return found


@examples(200)
@given(events=allocating(), order=st.randoms(use_true_random=False))
def test_as_a_plain_replay_whatever_the_order_of_the_file(tmp_path, events, order):
    if not any(e["name"] == "[memory]" for e in events):
        return
    expected = replayed(events)
    order.shuffle(events)
    profile = profile_of(tmp_path, events)
    for k, (peak, end, holders) in enumerate(expected):
        values = rows(profile, "memory", k)["GPU",]
        assert (values[0], values[2]) == (peak, end)
        assert {o: v[0] for (_, _, o, _), v in rows(profile, "memory_holders", k).items() if v[0]} == holders


RECORD = """
import sys, torch
from torch.profiler import profile, schedule, ProfilerActivity
torch.set_num_threads(1)

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

net, kept = Net(), []
steps = schedule(wait=0, warmup=1, active=4, repeat=1)
with profile(activities=[ProfilerActivity.CPU], profile_memory=True, with_stack=True, schedule=steps) as p:
    for _ in range(5):
        a = torch.empty(1000)
        b = torch.zeros(500, dtype=torch.float64)
        with torch.no_grad():
            c = net(b)
        del a, b, c
        kept.append(torch.empty(100))
        p.step()
p.export_chrome_trace(sys.argv[1])
"""


@pytest.mark.torch
def test_known_allocations_recorded_here(tmp_path):
    path = tmp_path / "trace.json"
    run_with_torch(RECORD, path).check_returncode()
    (profile,) = load_sets([path], LoadOptions(tables=BOTH))[0].profiles
    for k in range(4):
        left = 400 * k
        assert rows(profile, "memory", k) == {("host",): (left + 12_000, 0, left + 400, 12_400, 12_000, 4, 3, 0)}
        holders = {key[2:]: values for key, values in rows(profile, "memory_holders", k).items()}
        assert holders == {
            ("aten::empty", ""): (left + 4000, k + 1, 4400, 2),
            ("aten::zeros", ""): (4000, 1, 4000, 1),
            ("aten::clamp_min", "Net"): (4000, 1, 4000, 1),
        }


REAL = (
    "bertsmall_h100",
    "bertsmall_mi300",
    "timesformer_h100",
    "timesformer_mi300",
    "transformer_h100_run1",
    "transformer_h100_run2",
    "falconsai_h100",
)


def recorded(name):
    """(the steps' host windows, the memory events) of a trace, read without us; the whole file where it has no step."""
    path = trace(name)
    with gzip.open(path) if path.name.endswith(".gz") else open(path, "rb") as file:
        events = json.load(file)["traceEvents"]
    windows = sorted(
        {
            (float(e["ts"]), float(e["ts"]) + float(e["dur"]))
            for e in events
            if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep")
        }
    )
    return windows or [(float("-inf"), float("inf"))], [e for e in events if e["name"] == "[memory]"]


@needs_traces
@pytest.mark.parametrize("name", REAL)
def test_real_traces_have_the_recorded_totals(name):
    windows, events = recorded(name)
    profile = real_profile(name)
    checked = 0
    for k in range(len(profile.step_numbers)):
        for (device,), values in rows(profile, "memory", k).items():
            mine = [
                e["args"] | {"at": float(e["ts"])}
                for e in events
                if (int(e["args"]["Device Type"]) == 0) == (device == "host")
            ]
            inside = [{a: int(v) for a, v in e.items()} for e in mine if windows[k][0] <= e["at"] < windows[k][1]]
            if not inside:
                continue
            checked += 1
            first = inside[0]["Total Allocated"] - inside[0]["Bytes"]
            assert values[0] == max(first, *(e["Total Allocated"] for e in inside))
            assert values[1] == max(e["Total Reserved"] for e in inside)
            assert values[2] == inside[-1]["Total Allocated"]
            assert values[3] == sum(max(e["Bytes"], 0) for e in inside)
            assert values[5:7] == (sum(e["Bytes"] > 0 for e in inside), sum(e["Bytes"] < 0 for e in inside))
            holders = {key[2]: v[0] for key, v in rows(profile, "memory_holders", k).items() if key[0] == device}
            assert sum(v[0] for key, v in rows(profile, "memory_holders", k).items() if key[0] == device) == values[0]
            assert NO_EVENT not in holders
            assert device == "host" or NOWHERE not in holders
    assert checked


@needs_traces
def test_the_peak_of_a_real_step_is_in_the_modules_that_hold_it():
    profile = real_profile("transformer_h100_run1")
    found = {(o, m.removeprefix("SimpleTransformerLayer/")): size for (o, m, _), (size, _) in held(profile).items()}
    assert found == {
        (BEFORE, ""): 50_358_272,
        ("aten::addmm", "Sequential/Linear[0]"): 16 << 20,  # [1024, 4096] float32
        ("aten::clamp_min", "Sequential/ReLU"): 16 << 20,
        ("aten::addmm", "MultiheadAttention"): 5 << 20,
        ("aten::native_layer_norm", "LayerNorm"): 4 << 20,
        ("aten::sum", "MultiheadAttention"): 1 << 20,
    }


@needs_traces
@pytest.mark.parametrize("name", ["resnet50_workers0", "resnet50_workers4"])
def test_old_real_traces_tell_who_allocates(name):
    profile = real_profile(name)
    for k in range(len(profile.step_numbers)):
        holders = rows(profile, "memory_holders", k)
        for (device,), values in rows(profile, "memory", k).items():
            assert sum(v[2] for key, v in holders.items() if key[0] == device) == values[3]
            assert holders[device, "", NO_ADDRESS, ""][0] == values[0]
        assert not any(key[0].startswith("GPU") and key[2] == NOWHERE for key in holders)


def test_tables_without_rows_keep_their_columns(tmp_path):
    path = write(tmp_path / "none.json", document([step(1, 0, 100), op("aten::mm", 10, 10)]))
    frame = tracediff.compare(path, path, tables=["memory"]).table("memory")
    assert frame.empty
    assert {"device", "control_peak_bytes", "test_peak_bytes", "control_churn"} <= set(frame)
    assert {"device", "peak_bytes"} <= set(tracediff.analyze(path, tables=["memory"]).table("memory"))
