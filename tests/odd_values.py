"""A small trace in which every kind of event occurs, and values that no profiler should write: `mutations` puts each
into each field.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

from build_trace import (
    BACKWARD,
    annotation,
    call,
    document,
    event,
    flow,
    kernel,
    memcpy,
    memory,
    memset,
    op,
    process_name,
    python,
    step,
)

DIGITS = "1" * 5000


RAW_TEXT = re.compile(r'"\\ue000((?:[^"\\]|\\.)*?)\\ue000"')


class Raw(str):
    """JSON text that `json.dumps` would not write."""


VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 2**70,
    0.5, -0.5, 1e-320, 1e15, 1e18, 1e19, 1e300, -1e300,
    Raw("1e999"), Raw("-1e999"), Raw("1e999999999999"), Raw("1e-999999999999"), Raw("nan"), Raw("-Infinity"),
    Raw(DIGITS), Raw("-" + DIGITS), Raw("0." + DIGITS), Raw(DIGITS + ".5"), Raw("9" * 400), Raw("-0"),
    "", " ", "0", "-1", "1", "1.5", "1e999", "1e999999999999", "nan", "inf", "²", "٣", "1_0", "0x10", DIGITS, "3" * 30,
    "a" * 5000, "a\x00b", "\n", "\r\n\t", "\x1b[31m", "<script>", "=1+1", Raw('"\\ud800"'), Raw('"\\udc00x"'), "名前",
    "\U0010ffff", "aten::", "aten::mm", "nccl", "/", "[]", "{}", "[[1", "null", "%", "{", "\\", '"', "%s{0}",
    [], [[]], [None], [[2**70, 1]], [[-1, 0]], [["a"]], ["float", 5], [[[[[[1]]]]]], [1, 2], [True], [1.5], ["float"],
    [[0, 0], [0]], [[1] * 100], Raw("[" * 500 + "]" * 500), Raw("[" * 5000 + "]" * 5000), {}, {"a": 1}, {"": [{}]},
)  # fmt: skip
"""Whatever JSON can hold, and some that it cannot."""

NAMES = (
    "ProfilerStep#", f"ProfilerStep#{'3' * 30}", f"ProfilerStep#{DIGITS}", "ProfilerStep#²", "ProfilerStep#-1",
    "ProfilerStep#99999999999999999", "ProfilerStep # 2", f"Torch-Compiled Region: 0/{DIGITS}",
    f"Torch-Compiled Region: {'9' * 30}/1", f"nn.Module: Linear_{DIGITS}", "nn.Module: Linear_²", "nn.Module: ",
    f"nn.Module: Linear_{'9' * 30}", f"L[{DIGITS}]", f"graph_{DIGITS}_k", f"triton_poi_fused_add_{DIGITS}",
    f"_ZN{DIGITS}x", "_Z9999999999x", f"a<{DIGITS}>", f"void k<{'<' * 400}", "(" * 400, "nccl:", "nccl:all_reduce",
    "record_param_comms", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "Memcpy HtoD", "Memcpy ", "Memset", "[memory]",
    "cudaStreamSynchronize", "Optimizer.step#", "enumerate(DataLoader)#", "aten::copy_", f"x.py({DIGITS}): f",
    "autograd::engine::evaluate_function: ", "fx: 0", f"Iteration {DIGITS}", "CompiledFxGraph", f"GPU {DIGITS}",
)  # fmt: skip
"""Names that code takes apart."""


def every_kind() -> dict[str, Any]:
    """A trace of three steps in which every kind of event occurs."""
    events: list[dict[str, Any]] = [process_name("python")]
    tensors = {
        "Input Dims": [[8, 16], [16, 4], []],
        "Input type": ["float", "float", "Scalar"],
        "Input Strides": [[16, 1], [4, 1], []],
        "Concrete Inputs": ["", "", "1"],
    }
    group = {"Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]"}
    comm = {
        "Collective name": "allreduce",
        "In msg nelems": 32,
        "Out msg nelems": 32,
        "Group size": 2,
        "dtype": "Float",
    }
    for i in range(3):
        t, c, n = 1000 * i, 10 * i, 20 * i
        events += [
            step(i + 1, t, 900),
            python("nn.Module: Net_0", t + 5, 700, n + 1),
            python("nn.Module: Linear_0", t + 8, 200, n + 2, n + 1, module=1),
            python("/home/me/model.py(12): forward", t + 9, 190, n + 3, n + 2),
            op("aten::mm", t + 10, 100, **{"External id": n + 1, "Sequence number": i, "Ev Idx": n, **tensors}),
            call("cudaLaunchKernel", t + 20, 5, c + 1, **{"External id": n + 1, "cbid": 211}),
            kernel("void gemm<float, 128>(float*)", t + 60, 100, c + 1, grid=[8, 1, 1], block=[128, 1, 1],
                   **{"External id": n + 1, "blocks per SM": 0.5, "registers per thread": 32, "shared memory": 0}),
            memory(t + 30, 512, 1024, **{"Total Reserved": 4096}),
            memory(t + 640, -512, 512),
            op("Torch-Compiled Region: 0/1", t + 210, 80, **{"External id": n + 2}),
            op("triton_poi_fused_add_0", t + 212, 40, kernel_file="/tmp/a.py", num_warps=4),
            call("cudaMemcpyAsync", t + 300, 30, c + 2),
            memcpy("Memcpy HtoD (Pageable -> Device)", t + 335, 40, c + 2, bytes=4096,
                   **{"memory bandwidth (GB/s)": 1.5}),
            call("cudaMemsetAsync", t + 340, 3, c + 3),
            memset(t + 380, 5, c + 3, bytes=64),
            annotation("nccl:all_reduce", t + 395, 40, **comm),
            op("record_param_comms", t + 400, 20, **{**group, **comm, **tensors}),
            call("cudaLaunchKernel", t + 405, 5, c + 4),
            kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", t + 420, 60, c + 4, 20, **group, **comm),
            op("autograd::engine::evaluate_function: MmBackward0", t + 500, 50, BACKWARD,
               **{"Sequence number": i, "Fwd thread id": 1}),
            annotation("Optimizer.step#SGD.step", t + 560, 30),
            annotation("enumerate(DataLoader)#_Next.__next__", t + 600, 20),
            annotation("my part", t + 620, 60),
            call("cudaStreamSynchronize", t + 700, 100),
            event("cuda_sync", "Stream Sync", t + 700, 90, 0, 7, stream=7, device=0, correlation=c + 9,
                  wait_on_stream=20, wait_on_cuda_event_record_corr_id=c + 4, wait_on_cuda_event_id=1,
                  cuda_sync_kind_id=1),
            event("gpu_user_annotation", "ProfilerStep#1", t + 60, 400, 0, 7),
            flow("s", c + 1, t + 20), flow("f", c + 1, t + 60, 7),
            {"ph": "C", "cat": "counter", "name": "GPU util", "pid": 0, "tid": 0, "ts": t + 50, "args": {"value": i}},
        ]  # fmt: skip
    return document(
        events,
        distributedInfo={"backend": "nccl", "rank": 0, "world_size": 2, "pg_count": 1,
                         "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1]}]},
        deviceProperties=[{"id": 0, "name": "NVIDIA H100", "numSms": 132}],
        baseTimeNanoseconds=1712195495000000000, record_shapes=1, with_stack=1, profile_memory=1,
        cuda_driver_version=12040, torch_version="2.6.0",
    )  # fmt: skip


def fields(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a JSON value, also of the containers."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from fields(inner, (*path, key))


def mutations() -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    """(description, path, value): every field of the second step of `every_kind`, and of its metadata, with each odd
    value.
    """
    trace = every_kind()
    per_step = (len(trace["traceEvents"]) - 1) // 3
    inside = {0, *range(1 + per_step, 1 + 2 * per_step)}
    for path in fields(trace):
        if not path or (path[0] == "traceEvents" and (len(path) == 1 or path[1] not in inside)):
            continue
        for value in (*VALUES, *(NAMES if path[-1] == "name" else ())):
            yield f"{'/'.join(map(str, path))} = {str(value)[:40]!r}", path, value


def mutated(path: tuple[Any, ...], value: Any, everywhere: bool = False) -> bytes:
    """`every_kind` with ``value`` at ``path``; with ``everywhere`` in the same event of every step."""
    trace = every_kind()
    per_step = (len(trace["traceEvents"]) - 1) // 3
    repeated = everywhere and path[0] == "traceEvents" and path[1]
    shifts = (-per_step, 0, per_step) if repeated else (0,)
    for shift in shifts:
        where: Any = trace
        moved = (path[0], path[1] + shift, *path[2:]) if shift else path
        for key in moved[:-1]:
            where = where[key]
        where[moved[-1]] = placed(value)
    return text(trace)


def placed(value: Any) -> Any:
    """``value`` of its own in a document for `text`."""
    return f"\ue000{value}\ue000" if isinstance(value, Raw) else copy.deepcopy(value)


def text(document: Any) -> bytes:
    """``document`` as JSON, with the `placed` raw values as they are."""
    return RAW_TEXT.sub(lambda found: json.loads(f'"{found[1]}"'), json.dumps(document)).encode()
