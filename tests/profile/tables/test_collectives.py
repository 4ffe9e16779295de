"""Communication of one file: what each operation is, its bytes and bandwidth, exposed and overlapped."""

import numpy as np
import pytest
from build_trace import annotation, call, document, kernel, op, step, write
from hypothesis import given, strategies as st
from one_file import profile_file
from random_traces import trace_events
from traces import FOLDER, needs_traces

from tracediff import bounds
from tracediff.aggregate.averages import table_average
from tracediff.engine import LoadOptions, load_sets
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.analyses.collective_ops import bus_bytes, size_labels
from tracediff.profile.model.profile import CollectiveKind
from tracediff.profile.tables import table_schema

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
COLUMNS = [c.name for c in table_schema("collectives").columns]


def recorded(name="allreduce", elements=1000, **more):
    """Arguments as torch gives them to NCCL's kernels."""
    return {
        "Collective name": name,
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": 4,
        "Process Group Name": "3",
        "Process Group Description": "default_pg",
        "Process Group Ranks": "[0, 1, 2, 3]",
        "dtype": "Float",
        **more,
    }


def rows(tmp_path, events, **meta):
    path = write(tmp_path / "rank0.json", document([step(1, 0, 1000), op("aten::mm", 1, 2), *events], **meta))
    (traces,) = load_sets([path], LoadOptions(tables=("collectives",)))
    table = table_average(traces, "collectives")
    denominator, found = table.denominator, table.rows
    return {key: dict(zip(COLUMNS, (v // denominator for v in values), strict=True)) for key, values in found.items()}


def test_an_operation_is_what_its_kernel_says(tmp_path):
    events = [call("cudaLaunchKernel", 5, 2, 1), kernel(NCCL, 100, 50, 1, **recorded())]
    assert rows(tmp_path, events) == {
        ("all_reduce", "3 default_pg, 4 ranks", "float32", "≤ 4 KiB"): {
            "time": 50_000,
            "exposed": 50_000,
            "overlapped": 0,
            "operations": 1,
            "moved": 4000,
            "moved_time": 50_000,
            "bus": 6000,
            "bus_time": 50_000,
        }
    }


def test_exposed_is_where_nothing_computes_on_the_same_gpu(tmp_path):
    launches = [call("cudaLaunchKernel", 5 + k, 1, k) for k in range(1, 6)]
    events = [
        *launches,
        kernel(NCCL, 100, 50, 1, stream=20, **recorded()),
        kernel("gemm", 90, 20, 2),
        kernel("gemm", 105, 10, 3, stream=8),
        kernel("gemm", 100, 50, 4, device=1),
        kernel("Memcpy DtoH", 120, 10, 5, cat="gpu_memcpy"),
    ]
    (found,) = rows(tmp_path, events).values()
    assert (found["exposed"], found["overlapped"]) == (35_000, 15_000)


def test_where_the_kernel_says_nothing_the_annotation_around_its_launch_does(tmp_path):
    events = [
        annotation("nccl:all_to_all", 10, 10, **{"Input Dims": [[512, 3]], "Input type": ["c10::BFloat16"]}),
        call("cudaLaunchKernel", 12, 2, 1),
        kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", 50, 10, 1),
        call("cudaLaunchKernel", 30, 2, 2),
        kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", 70, 10, 2),
    ]
    found = rows(tmp_path, events)
    assert found["all_to_all", "unknown", "bfloat16", "≤ 4 KiB"]["moved"] == 3072
    assert found["all_to_all", "unknown", "bfloat16", "≤ 4 KiB"]["bus_time"] == 0
    nothing = found["send_recv", "unknown", "unknown", "unknown"]
    assert (nothing["time"], nothing["moved"], nothing["moved_time"]) == (10_000, 0, 0)


def test_what_is_gathered_is_the_inputs_of_all_ranks(tmp_path):
    event = annotation("gloo:all_gather", 100, 20, tid=7, **{"Input Dims": [[256]], "Input type": ["float"]})
    (unknown,) = rows(tmp_path, [event])
    assert unknown == ("all_gather", "unknown", "float32", "unknown")
    info = {"rank": 0, "world_size": 4, "pg_config": [{"pg_name": "0", "pg_size": 4, "ranks": [0, 1, 2, 3]}]}
    ((known, values),) = rows(tmp_path, [event], distributedInfo=info).items()
    assert known == ("all_gather", "0, 4 ranks", "float32", "≤ 4 KiB")
    assert (values["moved"], values["bus"]) == (4096, 3072)


def test_gloo_is_exposed_where_no_operator_but_its_own_is_open(tmp_path):
    events = [
        annotation("gloo:all_reduce", 100, 100, tid=7, **{"Input Dims": [[256]], "Input type": ["float"]}),
        op("autograd::engine::evaluate_function: AddBackward", 110, 40),
        op("c10d::allreduce_", 115, 10),
        op("aten::mm", 190, 30),
    ]
    ((_, values),) = rows(tmp_path, events).items()
    assert (values["overlapped"], values["exposed"]) == (40_000, 60_000)  # 110–115, 125–150 and 190–200 it computes


@pytest.mark.parametrize(
    "odd",
    [
        {"Input Dims": [[-1]], "Input type": ["float"]},
        {"Input Dims": "no list", "Input type": 7},
        {"Input Dims": [[1 << 60, 1 << 60]], "Input type": ["float"]},
        {"Input Dims": [[2]], "Input type": ["<b>odd</b>"]},
        {"Input Dims": {"a": 1}, "Input type": []},
    ],
)
@pytest.mark.parametrize(
    "groups", [None, "text", [], [{}], [{"pg_name": None}], [{"pg_name": "0", "pg_size": "x", "ranks": 3}], [1]]
)
def test_odd_metadata_is_unknown_and_nothing_fails(tmp_path, odd, groups):
    info = {"rank": 3, "world_size": 4, "pg_config": groups}
    ((key, values),) = rows(
        tmp_path, [annotation("gloo:all_reduce", 100, 20, tid=7, **odd)], distributedInfo=info
    ).items()
    assert key[3] == "unknown"
    assert (values["moved"], values["time"]) == (0, 20_000)


@pytest.mark.parametrize(
    ("collective", "carried"),
    [
        ("all_reduce", 1500),
        ("all_gather", 750),
        ("reduce_scatter", 750),
        ("all_to_all", 750),
        ("broadcast", 1000),
        ("barrier", None),
        ("other", None),
    ],
)
def test_bytes_over_the_bus(collective, carried):
    found = bus_bytes(CollectiveKind(collective, "0", "float32", "", 4), np.array([1000]))
    assert (found if found is None else found.tolist()) == (carried if carried is None else [carried])
    alone = bus_bytes(CollectiveKind(collective, "0", "float32", "", 1), np.array([1000]))
    assert alone is None or collective == "broadcast"


def test_labels_of_sizes():
    sizes = np.array([-1, 0, 1, 2, 3, 1024, 1025, 5 << 20, 1 << 60])
    assert size_labels(sizes) == [
        "unknown",
        "0 B",
        "≤ 1 B",
        "≤ 2 B",
        "≤ 4 B",
        "≤ 1 KiB",
        "≤ 2 KiB",
        "≤ 8 MiB",
        "≤ 1 EiB",
    ]


def test_what_is_beyond_the_bound_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(bounds, "COLLECTIVES", 2)
    events = [annotation("gloo:all_reduce", 100 + 10 * k, 5, tid=7) for k in (3, 0, 2, 1)]
    path = write(tmp_path / "a.json", document([step(1, 0, 1000), op("aten::mm", 1, 2), *events]))
    profile = profile_file(TraceFile(str(path)), tables=("collectives",))
    assert profile.collectives.start.tolist() == [100_000, 110_000]
    assert [(n.code, n.count) for n in profile.notes] == [("many-collectives", 2)]
    assert bounds.bound.table(bounds)["COLLECTIVES"].value == 100_000
    assert profile_file(TraceFile(str(path))).collectives is None


def plain(events):
    """Exposed time of each communication kernel, instant by instant."""
    gpu = [e for e in events if e["cat"] == "kernel"]
    out = []
    for collective in (e for e in gpu if "nccl" in e["name"]):
        others = [e for e in gpu if "nccl" not in e["name"] and e["args"]["device"] == collective["args"]["device"]]
        instants = range(collective["ts"], collective["ts"] + collective["dur"])
        out.append(
            (
                collective["ts"],
                collective["dur"],
                sum(not any(e["ts"] <= t < e["ts"] + e["dur"] for e in others) for t in instants),
            )
        )
    return sorted(out)


@given(trace_events(), st.randoms())
def test_exposed_time_of_any_trace(tmp_path_factory, events, random):
    folder = tmp_path_factory.mktemp("t")
    profile = profile_file(TraceFile(str(write(folder / "a.json", document(events)))), tables=("collectives",))
    found = profile.collectives
    took = found.end - found.start
    assert sorted(
        zip((found.start // 1000).tolist(), (took // 1000).tolist(), (found.exposed // 1000).tolist(), strict=True)
    ) == plain(events)
    random.shuffle(events)
    again = profile_file(TraceFile(str(write(folder / "b.json", document(events)))), tables=("collectives",))
    as_rows = [
        {(*t.keys[k], s): v for k, s, v in zip(t.key.tolist(), t.step.tolist(), t.values.tolist(), strict=True)}
        for t in (profile.tables["collectives"], again.tables["collectives"])
    ]
    assert as_rows[0] == as_rows[1]
    assert all(v[0] == v[1] + v[2] for v in as_rows[0].values())


@needs_traces
def test_of_real_ranks_exposed_is_the_state_of_communication_and_overlap_is_as_hta_says():
    (traces,) = load_sets([FOLDER / "dlrm_8ranks"], LoadOptions(tables=("collectives",), jobs=1))
    # HTA's get_comm_comp_overlap of the same files
    hta = {0: 4.5, 1: 2.47, 2: 7.88, 3: 3.31, 4: 0.56, 5: 0.64, 6: 7.56, 7: 9.51}
    for rank, (profile,) in traces.runs[0].ranks.items():
        collectives = profile.collectives
        took, exposed = int((collectives.end - collectives.start).sum()), int(collectives.exposed.sum())
        assert exposed == profile.state_ns[:, profile.state_names.index("gpu_comm")].sum()
        assert round(100 * (took - exposed) / took, 2) == hta[rank]


@needs_traces
@pytest.mark.parametrize(
    ("name", "operations", "overlapped"),
    [
        ("hta_nccl", 21, 15.61),
        ("hta_control", 60, 46.24),
        ("hta_test", 64, 70.84),
        ("hta_sampled/rank-0.json.gz", 10, 14.95),
    ],
)
def test_overlap_of_whole_files(name, operations, overlapped):
    # percentages of the unions of intervals, computed from the JSON
    (traces,) = load_sets([FOLDER / name], LoadOptions(tables=("collectives",), jobs=1))
    (profile,) = traces.profiles
    collectives = profile.collectives
    took, exposed = int((collectives.end - collectives.start).sum()), int(collectives.exposed.sum())
    assert len(collectives.kind) == operations
    assert round(100 * (took - exposed) / took, 2) == overlapped
