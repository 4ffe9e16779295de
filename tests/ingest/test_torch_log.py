"""Logs of torch.compile: real ones of four versions of torch, damaged ones, and any bytes."""

import gzip
import json

import pytest
from build_torch_log import CODE, GRAPH, PREFIX, artifact, record, stack
from formats import FOLDER, needs_formats
from hypothesis import given, strategies as st
from properties import examples

from tracediff.errors import TracediffError
from tracediff.ingest.discover import find_logs, logs_beside
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.manifest import GraphBreak
from tracediff.ingest.model.health import Notes
from tracediff.ingest.torch_log import STACKS, read_log

REAL = FOLDER / "torch_trace"


def read(path, data=None):
    if data is not None:
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    notes = Notes()
    return read_log(TraceFile(str(path)), notes), [note.message for note in notes.list()]


def real(name):
    log, notes = read(REAL / name)
    assert notes == []
    return log


@needs_formats
def test_a_log_before_stacks_were_recorded_names_lines_by_nodes():
    log = real("inductor_provenance_jit_cuda_log.txt.gz")
    assert {k.name: (k.ops, [line.partition("(")[2] for line in k.lines]) for k in log.kernels} == {
        "triton_poi_fused_addmm_relu_sigmoid_0": (
            ("aten.addmm", "aten.relu", "aten.sigmoid"), ["29): forward", "30): forward", "31): forward"]),
        "triton_poi_fused_mul_1": (("aten.mul",), ["32): forward"]),
        "triton_poi_fused_addmm_gelu_2": (("aten.addmm", "aten.gelu"), ["33): forward", "34): forward"]),
    }  # fmt: skip
    assert {k.phase for k in log.kernels} == {"inference"}
    assert log.compile_us == (8540315, 8298424, 5170353, 2666778)


@needs_formats
def test_the_calls_of_operators_have_lines_of_nodes():
    log = real("inductor_provenance_jit_cuda_log.txt.gz")
    assert [(call.name, [line.partition("(")[2] for line in call.lines]) for call in log.calls] == [
        ("aten::mm", []), ("aten::mm", ["32): forward"])]  # fmt: skip
    assert {len(call.graph) for call in log.calls} == {52}
    names = [call.name for call in real("rank_0.log.gz").calls]
    assert names[:4] == ["aten::mm", "_c10d_functional::all_reduce_", "_c10d_functional::wait_tensor", "aten::mm"]
    assert [(call.name, call.lines) for call in real("rank_0.log.gz").calls] == [
        (call.name, call.lines) for call in real("rank_4.log.gz").calls
    ]


@needs_formats
def test_a_log_without_code_names_lines_by_stacks():
    lines = {k.name: k.lines for k in real("inductor_provenance_extended_log.txt.gz").kernels}
    assert lines["triton_poi_fused_view_3"] == ("layer.py(255): forward",)
    assert lines["triton_kernel"] == ()
    assert len(lines) == 5


@needs_formats
@pytest.mark.parametrize("rank", [0, 4])
def test_ranks_of_a_job_say_the_same(rank):
    log = real(f"rank_{rank}.log.gz")
    assert log.rank == rank
    assert log.recompiles == (GraphBreak("external_utils.py", 66, "___check_obj_id(fn, …)"),) * 3
    assert {k.name: k.lines for k in log.kernels}["triton_poi_fused_relu_1"] == ("test2.py(114): graph_two",)
    assert [k[:1] + k[2:] for k in map(tuple_of, log.kernels)] == [
        k[:1] + k[2:] for k in map(tuple_of, real("rank_0.log.gz").kernels)
    ]


def tuple_of(kernel):
    return kernel.name, kernel.graph, kernel.phase, kernel.ops, kernel.lines


@needs_formats
def test_damage_elsewhere_changes_nothing():
    assert real("simple_corrupted_json.log.gz") == real("simple.log.gz")


@needs_formats
def test_a_graph_from_the_cache_counts_once():
    log = real("cache_hit_miss.log.gz")
    assert [k.name for k in log.kernels] == ["triton_tem_fused_0"] * 2
    assert len({k.graph for k in log.kernels}) == 2


@needs_formats
@pytest.mark.parametrize("name", sorted(path.name for path in REAL.glob("*.gz")))
def test_the_first_part_of_a_log_says_a_part_of_it(name, tmp_path):
    whole = gzip.decompress((REAL / name).read_bytes())
    complete = {(k.name, k.lines) for k in real(name).kernels} | {(k.name, ()) for k in real(name).kernels}
    for part in range(1, 8):
        log, _ = read(tmp_path / "part.log", whole[: len(whole) * part // 8])
        assert log.compile_us <= real(name).compile_us
        for kernel in log.kernels:
            known = {line for found, lines in complete if found == kernel.name for line in lines}
            assert {kernel.name} <= {found for found, _ in complete}
            assert set(kernel.lines) <= known
    packed = (REAL / name).read_bytes()
    log, notes = read(tmp_path / "part.log.gz", packed[: len(packed) // 2])
    assert log or name.startswith("simple")  # too small for its first block to be read
    assert "part.log.gz: the compressed file is cut off; what precedes was read" in notes


def test_stacks_of_earlier_graphs_are_not_those_of_a_kernel_of_the_same_name(tmp_path):
    stacks = {"triton_poi_fused_mul_relu_0:1": [stack(5)], "triton_poi_fused_mul_relu_0:2": [stack(3, 41)]}
    log, notes = read(
        tmp_path / "a.log", record(CODE, inductor_output_code={}) + artifact(STACKS, stacks) + artifact("unknown", "{")
    )
    assert notes == []
    (kernel,) = log.kernels
    ops = "aten.mul", "aten.relu"
    assert tuple_of(kernel) == ("triton_poi_fused_mul_relu_0", None, "forward", ops, ("model.py(41): forward",))


def test_without_stacks_the_nodes_of_the_frame_name_the_lines(tmp_path):
    graph = record(GRAPH, dynamo_output_graph={})
    code = record(CODE, inductor_output_code={"filename": "../../etc/passwd"})
    key = artifact("fx_graph_cache_miss", {"key": "fabc"})
    assert [k.lines for k in read(tmp_path / "a.log", graph + code)[0].kernels] == [("model.py(41): forward",)]
    (kernel,) = read(tmp_path / "a.log", record(GRAPH, frame=1, dynamo_output_graph={}) + code + key)[0].kernels
    assert (kernel.lines, kernel.graph) == ((), "fabc")  # the graph is of another frame


CALLS = (
    CODE.rpartition("    #")[0]
    + """
def call(args):
    # Topologically Sorted Source Nodes: [x], Original ATen: [aten.mm]
    # [Provenance debug handles] extern_kernels.mm:1
    extern_kernels.mm(a, b, out=buf0)
    del a
    # [Provenance debug handles] triton_poi_fused_mul_relu_0:2
    stream0 = get_raw_stream(0)
    triton_poi_fused_mul_relu_0.run(buf0, 8, stream=stream0)
    # Topologically Sorted Source Nodes: [y], Original ATen: [aten.sort]
    buf1 = torch.ops.aten.sort.stable(buf0, stable=False)
    buf2 = extern_kernels.bias_addmm(buf1, buf0)
    assert_size_stride(buf2, (8, ), (1, ), 'torch.ops.aten.mm.default')
"""
)


def test_what_the_code_of_a_graph_calls_is_in_order(tmp_path):
    stacks = artifact(STACKS, {"extern_kernels.mm:1": [stack(7)], "triton_poi_fused_mul_relu_0:2": [stack(8)]})
    text = record(GRAPH, dynamo_output_graph={}) + record(CALLS, inductor_output_code={}) + stacks
    log, _ = read(tmp_path / "a.log", text + artifact("fx_graph_cache_miss", {"key": "fabc"}))
    assert [(call.name, call.lines) for call in log.calls] == [
        ("aten::mm", ("model.py(7): forward",)),
        ("triton_poi_fused_mul_relu_0", ("model.py(8): forward",)),
        ("aten::sort", ()),  # within torch
        ("aten::addmm", ()),
    ]
    assert {call.graph for call in log.calls} == {"fabc"}
    assert read(tmp_path / "a.log", text)[0].calls == ()


def test_lines_of_a_cached_graph_whose_code_has_moved_since_are_not_used(tmp_path):
    def lines(line, found):
        stacks = artifact(
            STACKS, {"extern_kernels.mm:1": [stack(line)], "triton_poi_fused_mul_relu_0:2": [stack(line)]}
        )
        text = record(GRAPH, dynamo_output_graph={}) + record(CALLS, inductor_output_code={}) + stacks
        log, _ = read(tmp_path / "a.log", text + artifact(f"fx_graph_cache_{found}", {"key": "fabc"}))
        return [*(kernel.lines for kernel in log.kernels), *(call.lines for call in log.calls[:1])]

    known, earlier = ("model.py(41): forward",), ("model.py(40): forward",)
    assert lines(41, "hit") == [known, known]
    assert lines(40, "miss") == [earlier, earlier]
    assert lines(40, "hit") == [known, known]  # by the nodes of Dynamo's graph, which is new


def test_graph_breaks_and_recompilations(tmp_path):
    text = "Graph break in user code at /u/model.py:7\nGraph Break Reason: Unsupported: print\nUser code traceback:\n"
    metrics = {"co_filename": "/u/model.py", "co_firstlineno": 5, "dynamo_cumulative_compile_time_us": 9}
    backward = {"inductor_cumulative_compile_time_us": 4}
    log, notes = read(
        tmp_path / "dedicated_log_torch_trace_rank_3_x.log",
        2 * artifact("dynamo_graph_break_reason", text)
        + artifact("recompile_reasons", ["0/0: L['x'] == 3   "])
        + record(compilation_metrics=metrics)
        + record(bwd_compilation_metrics=backward)
        + artifact("recompile_reasons", "0/1: tensor 'x' size mismatch", frame=1),
    )
    assert notes == []
    assert log.graph_breaks == (GraphBreak("model.py", 7, "Unsupported: print"),)
    assert log.recompiles == (GraphBreak("model.py", 5, "L['x'] == 3"), GraphBreak("", 0, "tensor 'x' size mismatch"))
    assert log.compile_us == (13, 4, 4, 0)
    assert log.rank == 3


@pytest.mark.parametrize("payload", ["{", "[1]", "[" * 100_000, '{"a": 1' + 5000 * "0" + "}", '{"a": ["\\ud800"]}', ""])
@pytest.mark.parametrize("name", [STACKS, "inductor_provenance_tracking_node_mappings", "fx_graph_cache_hit"])
def test_a_damaged_artifact_is_counted(name, payload, tmp_path):
    log, notes = read(tmp_path / "a.log", record(CODE, inductor_output_code={}) + artifact(name, payload))
    assert [k.name for k in log.kernels] == ["triton_poi_fused_mul_relu_0"]
    assert all(note == "records of a.log that are damaged were left out" for note in notes)
    assert notes or payload.startswith('{"a"')


@pytest.mark.parametrize("data", [b"", b"no log", b"\x00\xff" * 1000, b"\t{}\n\t\n", b'{"traceEvents": []}'])
def test_another_file_is_skipped_with_a_note(data, tmp_path):
    log, notes = read(tmp_path / "a.log", data)
    assert log is None
    assert "a.log is not a log of torch.compile, and was skipped" in notes


PARTS = st.sampled_from([
    *(record(text, **{kind: {}}) for text in (CODE, GRAPH) for kind in ("inductor_output_code", "dynamo_output_graph")),
    *(artifact(name, text) for name in (STACKS, "recompile_reasons", "fx_graph_cache_hit") for text in ("", "{}")),
    *(PREFIX, "{", "\t", "\n", "}", artifact("dynamo_graph_break_reason", "in user code at x:1")),
    record(compilation_metrics={"dynamo_cumulative_compile_time_us": -1}),
])  # fmt: skip


@given(
    st.binary(max_size=300) | st.lists(PARTS, max_size=12).map(lambda parts: "".join(parts).encode()),
    st.integers(0, 2000),
)
@examples(200)
def test_any_bytes_are_read(tmp_path_factory, data, cut):
    path = tmp_path_factory.mktemp("logs") / "a.log"
    log, notes = read(path, data[: len(data) - cut % (len(data) + 1)])
    assert log is not None or notes


def test_an_endless_line_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr("tracediff.ingest.torch_records.MOST_LINE", 1000)
    monkeypatch.setattr("tracediff.ingest.torch_records.CHUNK", 100)
    log, notes = read(tmp_path / "a.log", f"{PREFIX}{{{'x' * 100_000}\n{artifact('recompile_reasons', 'why')}")
    assert log.recompiles == (GraphBreak("", 0, "why"),)
    assert notes == ["records of a.log that are damaged were left out"]


def test_the_logs_of_a_folder(tmp_path):
    inside = tmp_path / "torch_trace" / "rank0"
    inside.mkdir(parents=True)
    for name in ("a.log", "b.txt.gz", "c.log.zst", "output_code.py", "notes.md"):
        (inside / name).touch()
    names = [file.name for file in find_logs(str(tmp_path))]
    assert names == ["a.log", "b.txt.gz", "c.log.zst", "output_code.py"]
    beside = logs_beside([TraceFile(str(tmp_path / "t.json")), TraceFile("s3://bucket/t.json")])
    assert [file.name for file in beside] == names[:3]
    for where in ("none", "torch_trace/rank0/none"):
        with pytest.raises(TracediffError, match=r"no log of torch\.compile there"):
            find_logs(str(tmp_path / where))


def test_a_folder_of_torch_compile_debug(tmp_path):
    (tmp_path / "output_code.py").write_text(CODE)
    (tmp_path / f"{STACKS}.json").write_text(json.dumps({"triton_poi_fused_mul_relu_0:2": [stack(41)]}))
    (file,) = find_logs(str(tmp_path))
    log = read_log(file, Notes())
    assert [k.lines for k in log.kernels] == [("model.py(41): forward",)]


def test_an_endless_payload_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr("tracediff.ingest.torch_records.MOST_PAYLOAD", len(CODE) + CODE.count("\n") + 1)
    log, notes = read(tmp_path / "a.log", record(CODE + CODE.replace("_0", "_1"), inductor_output_code={}))
    assert [k.name for k in log.kernels] == ["triton_poi_fused_mul_relu_0"]
    assert notes == []
