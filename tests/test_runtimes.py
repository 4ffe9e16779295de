"""Vendors' runtimes: what their names mean, that all who ask agree, and that a vendor is one record."""

from __future__ import annotations

import ast
import csv
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from build_trace import call, document, kernel, op, step, write
from traces import needs_traces, trace

import tracediff
from tracediff import runtimes
from tracediff.analysis import analyze_set
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.read import read_trace
from tracediff.profile.kernels.families import COMMUNICATION, DEFAULT
from tracediff.profile.placement.gpu_events import gpu_events
from tracediff.profile.placement.steps import find_steps
from tracediff.runtimes import CPU, CUDA, HIP, RUNTIMES

SOURCES = Path(tracediff.__file__).parent
KERNELS_OF_REAL_TRACES = [
    row["match name"]
    for row in csv.DictReader(
        (Path(__file__).parent / "profile/display_names.tsv").open(), ["match name", "shown"], delimiter="\t"
    )
]
COMMUNICATES = (
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
    "mscclKernel_Sum_half_Simple",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals, vllm::Signal*)",
    "void sglang::cross_device_reduce_2stage<__half, 8>(sglang::RankData*, sglang::RankSignals)",
    "void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<half>, half>(half const*)",
    "quick_reduce_kernel",
    "multimem_one_shot_all_reduce_kernel",
    "multimem_two_shot_all_reduce_kernel",
    "void multimem_all_gather_kernel<16>(char*)",
    "two_shot_all_reduce_kernel",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<8>(int)",
    "void deep_ep::intranode::dispatch<8, 768>(int4*)",
    "void nvshmem_all_to_all_kernel(int)",
    "oneccl_allreduce_small",
    "hcom_broadcast__816_0",
)
DOES_NOT = (
    "triton_poi_fused_all_reduce_wait_tensor_3",
    "triton_red_fused__to_copy_all_gather_into_tensor_add_mean_0",
    "fsdp::all_gather_copy_in_kernel(float*)",
    "void at::native::(anonymous namespace)::split_with_sizes_copy_out_contiguous_no_cast_kernel<4>(char**)",
    "void at::native::(anonymous namespace)::chunk_cat_cuda_kernel<float, float>(float**)",
    "void softmax_warpAllReduce_forward<float>(float*)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(int)",
    "void at::native::vectorized_scatter_gather_kernel<16, long>(char*)",
    "volta_sgemm_128x64_nn",
)


@pytest.mark.parametrize("name", COMMUNICATES)
def test_collectives_of_libraries_and_of_serving_engines_communicate(name: str) -> None:
    assert runtimes.is_communication(name)


@pytest.mark.parametrize("name", DOES_NOT)
def test_what_only_prepares_a_collective_does_not(name: str) -> None:
    assert not runtimes.is_communication(name)


@pytest.mark.parametrize("launched_by", [None, "c10d::allreduce_", "fsdp::all_gather_copy_in", "aten::add"])
def test_the_family_of_a_kernel_is_communication_exactly_where_its_state_is(launched_by: str | None) -> None:
    names = [*KERNELS_OF_REAL_TRACES, *COMMUNICATES, *DOES_NOT]
    assert len(names) > 500
    for name in names:
        families = DEFAULT.of_kernel(name, launched_by), DEFAULT.of_event("kernel", name)
        assert [f == COMMUNICATION for f in families] == [runtimes.is_communication(name)] * 2, name


def test_a_custom_all_reduce_is_communication_in_every_account(tmp_path: Path) -> None:
    name = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)"
    events = [
        step(1, 0, 100),
        op("c10d::allreduce_", 5, 20),
        call("cudaLaunchKernel", 6, 2, 1),
        kernel(name, 20, 30, 1),
    ]
    found = analyze_set(tracediff.load(write(tmp_path / "t.json", document(events)), tables=["all"]))
    states = {share.name: share.ns for share in found.states}
    assert states["gpu_comm"] > 0
    assert states["gpu_compute"] == 0
    assert {share.name for share in found.views["family"]} == {COMMUNICATION}


def test_operators_that_communicate_are_communication_too() -> None:
    for name in ("c10d::allreduce_", "record_param_comms", "All2All_Pooled_Wait", "gloo:all_reduce", "nccl:broadcast"):
        assert DEFAULT.of_name(name) == COMMUNICATION


@pytest.mark.parametrize(
    ("asked", "yes", "no"),
    [
        (
            runtimes.is_synchronising,
            "cudaStreamSynchronize cuCtxSynchronize hipDeviceSynchronize hipEventSynchronize cudaMemcpy hipMemcpy "
            "hipMemcpyWithStream",
            "cudaMemcpyAsync hipMemcpyAsync cudaLaunchKernel cudaStreamWaitEvent mySynchronize",
        ),
        (
            runtimes.may_wait,
            "cudaStreamSynchronize cudaMemcpyAsync hipMemcpyWithStream cuMemcpyDtoHAsync_v2",
            "cudaMemcpyPeerAsync hipMemcpyPeer cudaMemsetAsync",
        ),
        (runtimes.is_graph_launch, "cudaGraphLaunch hipGraphLaunch cudaGraphLaunch_v10000", "cudaGraphInstantiate"),
        (runtimes.is_stream_wait, "cudaStreamWaitEvent hipStreamWaitEvent", "cudaEventRecord cudaStreamSynchronize"),
    ],
)
def test_calls_are_known_by_their_names(asked, yes: str, no: str) -> None:
    assert [name for name in yes.split() if not asked(name)] == []
    assert [name for name in no.split() if asked(name)] == []


def test_copies_are_known_by_either_vendor_s_name() -> None:
    names = (
        "Memcpy DtoH (Device -> Pageable)",
        "CopyHostToDevice",
        "hipMemcpyDeviceToHost",
        "Memcpy PtoP",
        "Memset (Device)",
    )
    assert [runtimes.copy_direction(name) for name in names] == ["DtoH", "HtoD", "DtoH", "PtoP", None]
    assert [runtimes.is_memset(name) for name in names] == [False, False, False, False, True]
    assert [runtimes.is_awaited_copy(name) for name in names] == [True, False, False, False, False]


@needs_traces
@pytest.mark.parametrize("name", ["hta_control", "tinylm_cudagraph", "vllm_graph_mi300", "triton_mi300"])
def test_every_call_that_launched_work_in_real_traces_is_in_a_record(name: str) -> None:
    events = read_trace(str(trace(name)), only=frozenset((runtimes.ARGUMENT.correlation,)))
    launches = gpu_events(events, find_steps(events, None, Notes()), Notes()).launch
    called = {events.names[code] for code in np.unique(events.name[launches[launches >= 0]]).tolist()}
    known = "|".join(
        f"(?:{p})"
        for r in (CUDA, HIP)
        for p in (r.names["launches"], r.names["graph_launches"], r.names["copy_calls"], r"\w*Memset")
    )
    assert called
    assert [call for call in called if not re.match(known, call)] == []


def test_records_have_names_of_their_own_and_patterns_that_compile() -> None:
    assert len({r.name for r in RUNTIMES}) == len(RUNTIMES)
    assert {r.name for r in RUNTIMES} == {"CUDA", "HIP", "XPU", "MTIA", "Ascend", "TPU", "MPS", "CPU"}
    for record in RUNTIMES:
        for pattern in (*record.names.values(), *record.communication):
            re.compile(pattern)
        assert "(?P<source>" in record.names.get("copy_events", "(?P<source>") or record is runtimes.ASCEND
    assert tuple(cat.KNOWN.index(c) for c in ("kernel", "gpu_memcpy", "gpu_memset")) == cat.GPU
    assert CPU.device == runtimes.DEVICE_NAMES[0]


SPELLED = re.compile(
    r"cuda[A-Z_]|hip[A-Z_]|[nr]ccl|Synchronize|GraphLaunch|StreamWaitEvent|xpu_|mtia_|privateuse1|gloo:"
)
QUOTED = re.compile(r"`[^`]*`")
"""What documentation that is made from the code quotes."""
OTHERS_OWN = ("_cuda_scatter_gather_internal_kernel", "get_cuda_kernel_launch_stats", "cudagraph_skips")


@pytest.mark.slow
def test_no_other_module_spells_a_runtime_s_names() -> None:
    spelled = []
    for path in SOURCES.rglob("*.py"):
        if path.name == "runtimes.py" or "collect" in path.parts:  # which sees torch and the standard library only
            continue
        tree = ast.parse(path.read_text())
        prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        spelled += [
            f"{path.relative_to(SOURCES)}: {node.value}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and id(node) not in prose and isinstance(node.value, str)
            if SPELLED.search(QUOTED.sub("", node.value)) and node.value not in OTHERS_OWN
        ]
    assert spelled == []


NEW_VENDOR = """
ACME = Runtime(
    name="Acme",
    device_types=(77,),
    calls=("acme_api",),
    device_work={"acme_task": KERNEL, "acme_dma": MEMCPY},
    names={
        "launches": r"acmeEnqueue",
        "synchronising": r"acmeWait",
        "copy_events": r"acme (?P<source>host|device) to (?P<target>host|device)",
    },
    communication=("acmelink",),
    scopes=("acl",),
    driver_version="acme_driver",
    arguments={"ticket": ARGUMENT.correlation, "queue": ARGUMENT.stream, "card": ARGUMENT.device},
)
"""
PROGRAM = """
import sys, types
source = open(sys.argv[1]).read().replace("RUNTIMES = (", open(sys.argv[2]).read() + "RUNTIMES = (ACME, ", 1)
import tracediff
module = types.ModuleType("tracediff.runtimes")
sys.modules["tracediff.runtimes"] = tracediff.runtimes = module
exec(compile(source, "runtimes.py", "exec"), module.__dict__)
loaded = tracediff.load(sys.argv[3], tables=["all"])
from tracediff.analysis import analyze_set
found = analyze_set(loaded)
(profile,) = loaded.profiles
print({share.name: share.ns for share in found.states if share.ns})
print({o.raw_name: (o.device, o.category, o.family) for o in found.operations if o.name != "ProfilerStep#"})
print(profile.origin.driver, profile.origin.gpu_count, [n.code for n in profile.notes])
"""


def test_a_vendor_is_one_record(tmp_path: Path) -> None:
    def event(category: str, name: str, ts: int, dur: int, **args: object) -> dict[str, object]:
        return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}

    on_card = {"card": 0, "queue": 3}
    events = [
        step(1, 0, 100),
        event("acme_api", "acmeEnqueue", 5, 5, ticket=1),
        event("acme_api", "acmeEnqueue", 10, 5, ticket=2),
        event("acme_api", "acmeEnqueue", 15, 5, ticket=3),
        event("acme_api", "acmeWait", 70, 20),
        event("acme_task", "sgemm", 20, 10, ticket=1, **on_card),
        event("acme_task", "acmelink_sum", 30, 10, ticket=2, **on_card),
        event("acme_dma", "acme host to device", 40, 10, ticket=3, **on_card),
    ]
    path = write(tmp_path / "acme.json", document(events, acme_driver=7))
    (tmp_path / "record.py").write_text(NEW_VENDOR)
    arguments = [SOURCES / "runtimes.py", tmp_path / "record.py", path]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    states, operations, origin = done.stdout.splitlines()
    states, operations = ast.literal_eval(states), ast.literal_eval(operations)
    assert states["gpu_compute"] == states["gpu_comm"] == states["gpu_copy"]
    assert states["synchronising"] > 0
    assert operations == {
        "acmeEnqueue": ("cpu", "acme_api", "other"),
        "acmeWait": ("cpu", "acme_api", "other"),
        "sgemm": ("gpu", "kernel", "gemm"),
        "acmelink_sum": ("gpu", "kernel", COMMUNICATION),
        "acme host to device": ("gpu", "gpu_memcpy", "copy"),
    }
    assert origin == "7 1 []"


def test_calls_of_two_vendors_that_do_the_same():
    control = ["cudaLaunchKernel", "cuLaunchKernel", "cudaMemcpyAsync", "cudaGraphLaunch", "cudaDeviceSynchronize"]
    test = ["hipExtModuleLaunchKernel", "hipMemcpyWithStream", "hipGraphLaunch", "hipDeviceSynchronize", "hipMalloc"]
    assert runtimes.counterparts(control, test) == {
        "cudaLaunchKernel": "LaunchKernel",
        "cuLaunchKernel": "LaunchKernel",
        "hipExtModuleLaunchKernel": "LaunchKernel",
        "cudaMemcpyAsync": "Memcpy",
        "hipMemcpyWithStream": "Memcpy",
        "cudaGraphLaunch": "GraphLaunch",
        "hipGraphLaunch": "GraphLaunch",
        "cudaDeviceSynchronize": "DeviceSynchronize",
        "hipDeviceSynchronize": "DeviceSynchronize",
        "hipMalloc": "Malloc",
    }
    assert runtimes.counterparts(control, [*test, "cudaMalloc"]) == {}
    assert runtimes.counterparts(control, ["custom"]) == {}
