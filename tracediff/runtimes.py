"""The vendors' runtimes, one record per vendor: event categories, names of calls and communication kernels, and event
arguments.

No other module spells such names. To add a vendor, add a record to `RUNTIMES`. Categories of the profiler itself
(``cpu_op``, ``user_annotation``, …) are in `tracediff.ingest.model.categories`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain
from typing import Literal

from msgspec import field

from tracediff.patterns import NAMES_KEPT, late
from tracediff.structs import FrozenStruct

KERNEL, MEMCPY, MEMSET = DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories of the work on a device, whatever a vendor calls them."""


class ArgumentNames:
    """The names under which a `Trace` keeps the arguments of calls and device events, whatever a vendor calls them.

    Attributes:
        correlation: joins a call to the device events that it launched.
        device, stream: where an event runs.
        grid, block: launch dimensions of a kernel.
        size: bytes of a copy or memset.
        awaited_stream, awaited_event, awaited_record: for a record of a wait, the awaited stream and event, and the
            correlation of the call that recorded the event.
        sync_kind: the kind of wait, as a number.
    """

    correlation = "correlation"
    device = "device"
    stream = "stream"
    grid = "grid"
    block = "block"
    size = "bytes"
    awaited_stream = "wait_on_stream"
    awaited_event = "wait_on_cuda_event_id"
    awaited_record = "wait_on_cuda_event_record_corr_id"
    sync_kind = "cuda_sync_kind_id"


ARGUMENT = ArgumentNames()


Role = Literal[
    "launches",
    "graph_launches",
    "allocations",
    "releases",
    "capture_begins",
    "captured_copies",
    "synchronising",
    "waiting_copies",
    "copy_calls",
    "stream_waits",
    "queries",
    "copy_events",
    "memset_events",
    "awaited_copies",
]
"""What calls and device events of some names do.

- launches: calls that launch a kernel. graph_launches: calls that replay a graph.
- allocations, releases: calls that get memory from the driver, and give it back.
- capture_begins: calls that begin to capture a graph.
- captured_copies: calls that copy or set memory, in a graph, too.
- synchronising: calls in which the host waits for the device. waiting_copies: copy calls that always wait.
- copy_calls: copy calls that may wait, since copies of pageable memory do.
- stream_waits: calls by which a stream waits for an event. queries: calls that ask whether the device is done.
- copy_events: device events that copy, with groups ``source`` and ``target``. memset_events: device events that set
  memory. awaited_copies: those copies whose call waits for them.
"""


class Runtime(FrozenStruct):
    """One vendor's runtime. Names are regular expressions matched from the start; empty means none known.

    Attributes:
        name: as the vendor writes it.
        device: its devices' name in tables. device_types: their numbers in torch's allocator events (c10::DeviceType).
        prefix: of its own categories.
        processes: names of processes below which it files its events, without a category.
        calls: categories of its API calls on the host. call_prefix: what the names of its calls begin with.
        device_work: its categories of device work that have names of their own → the one of `DEVICE_CATEGORIES`.
        syncs: category of records of waits of calls and streams. counters: category of hardware counters.
        names: of its calls and device events, by what they do.
        communication: kernels that move data between ranks; searched in the whole name, ignoring case.
        scopes: prefixes of collective annotations, before the colon.
        driver_version, runtime_version: keys in the trace's metadata.
        device_events: category of all its device events, whatever they do.
        flows: categories of arrows to device events from calls, and from operators.
        translated: arguments from which its events get Kineto's categories (`tracediff.ingest.vendors`).
        arguments: its names of arguments → those of `ARGUMENT`. text_arguments: call arguments that may contain text.
    """

    name: str
    device: str = "GPU"
    device_types: tuple[int, ...] = ()
    prefix: str = ""
    processes: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    call_prefix: str = ""
    device_work: dict[str, str] = field(default_factory=dict)
    syncs: str = ""
    counters: str = ""
    names: dict[Role, str] = field(default_factory=dict)
    communication: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    driver_version: str = ""
    runtime_version: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    text_arguments: tuple[str, ...] = ()
    device_events: str = ""
    flows: tuple[str, ...] = ()
    translated: tuple[str, ...] = ()


OWN_COLLECTIVES = (
    r"cross_device_",  # vLLM, SGLang, AITER
    r"quick_?reduce",
    r"multimem_(?:all|one_shot|two_shot)",  # torch symmetric memory
    r"deep_ep::(?:intra|inter)node",
    r"(?<!block)(?<!warp)(?<!block_)(?<!warp_)(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|all2all)"
    r"(?!\w{0,40}copy)",  # FSDP copies into and out of the buffers of a collective
)
"""Communication kernels that serving engines and torch bring along, for any vendor's devices."""

CUDA = Runtime(
    name="CUDA",
    device_types=(1,),
    prefix="cuda_",
    calls=("cuda_runtime", "cuda_driver"),
    call_prefix=r"cu(?:da)?(?=[A-Z])",
    syncs="cuda_sync",
    counters="cuda_profiler_range",
    names={
        "launches": r"cu(?:da)?Launch",
        "graph_launches": r"cu(?:da)?GraphLaunch",
        "allocations": r"cudaMalloc(?:Managed)?$|cuMem(?:Alloc|Create)",
        "releases": r"cudaFree$|cuMem(?:Free|Unmap)",
        "capture_begins": r"cu(?:da)?StreamBeginCapture",
        "captured_copies": r"cu(?:da)?Mem(?:cpy|set)",
        "synchronising": r"cu\w*Synchronize",
        "waiting_copies": r"cudaMemcpy$",
        "copy_calls": r"cu(?:da)?Memcpy(?!.*Peer)",
        "stream_waits": r"cu(?:da)?StreamWaitEvent",
        "queries": r"cu(?:da)?(?:Event|Stream)Query",
        "copy_events": r"(?:Memcpy|Copy)\s*(?P<source>[HDPA])to(?P<target>[HDPA])",
        "memset_events": r"Memset \([\w ]*\)$",
        "awaited_copies": r".*Pageable",
    },
    communication=("nccl", "msccl", "nvshmem", *OWN_COLLECTIVES),
    scopes=("nccl",),
    driver_version="cuda_driver_version",
    runtime_version="cuda_runtime_version",
)

HIP = Runtime(
    name="HIP",
    device_types=(6,),
    calls=CUDA.calls,  # Kineto files HIP's events under CUDA's categories
    call_prefix=r"hip(?=[A-Z])",
    names={
        "launches": r"hip\w*Launch",
        "graph_launches": r"hipGraphLaunch",
        "allocations": r"hipMalloc(?:Managed)?$|hipMemCreate",
        "releases": r"hipFree$|hipMemUnmap",
        "capture_begins": r"hipStreamBeginCapture",
        "captured_copies": r"hipMem(?:cpy|set)",
        "synchronising": r"hip\w*Synchronize",
        "waiting_copies": r"hipMemcpy(?:WithStream)?$",
        "copy_calls": r"hipMemcpy(?!.*Peer)",
        "stream_waits": r"hipStreamWaitEvent",
        "queries": r"hip(?:Event|Stream)Query",
        "copy_events": r"(?:Copy|hipMemcpy)?(?P<source>Host|Device)To(?P<target>Host|Device)",
    },
    communication=("rccl", "msccl", "rocshmem", *OWN_COLLECTIVES),
    scopes=("rccl",),
    driver_version="hip_driver_version",
    runtime_version="hip_runtime_version",
    text_arguments=("stream", "bytes"),
)

XPU = Runtime(  # by the specification of Kineto's XPU plugin: no published trace to test it on
    name="XPU",
    device="XPU",
    device_types=(12,),
    prefix="xpu_",
    calls=("xpu_runtime", "xpu_driver"),
    names={
        "launches": r"(?:ur|pi)EnqueueKernelLaunch|zeCommandListAppendLaunch",
        "synchronising": r"ze\w*Synchronize|(?:ur|pi)(?:QueueFinish|EventWait|EventsWait)",
        "copy_calls": r"(?:ur|pi)Enqueue(?:USM|Mem)\w*Copy|(?:ur|pi)EnqueueUSMMemcpy|zeCommandListAppendMemoryCopy",
    },
    communication=("oneccl",),
    scopes=("xccl",),
)

MTIA = Runtime(
    name="MTIA",
    device="MTIA",
    device_types=(19,),
    prefix="mtia_",
    calls=("mtia_runtime",),
    names={
        "launches": r"runFunction",
        "synchronising": r"synchronize",
        "copy_calls": r"enqueueCommand memcpy",
        "stream_waits": r"enqueueCommand waitOnEvent",
        "copy_events": r"dma_request \((?P<source>HOST|DEVICE)_TO_(?P<target>HOST|DEVICE)",
    },
    arguments={"stream_id": ARGUMENT.stream},
    device_events="mtia_ccp_events",
    translated=("direction", "size"),
)

ASCEND = Runtime(
    name="Ascend",
    device="NPU",
    prefix="privateuse1_",  # torch_npu is a PrivateUse1 backend; its own files give events no category
    processes=("Ascend Hardware", "HCCL", "Overlap Analysis", "CANN"),
    calls=("privateuse1_runtime", "privateuse1_driver"),
    names={
        "launches": r"Node@launch|Enqueue$",
        "synchronising": r"AscendCL@aclrtSynchronize",
        "waiting_copies": r"AscendCL@aclrtMemcpy$",
        "copy_calls": r"AscendCL@aclrtMemcpy",
        "stream_waits": r"AscendCL@aclrtStreamWaitEvent",
    },
    communication=("hccl", "hcom_"),
    scopes=("hccl",),
    arguments={
        "connection_id": ARGUMENT.correlation,
        "Physic Stream Id": ARGUMENT.stream,
        "size(Byte)": ARGUMENT.size,
    },
    flows=("HostToDevice", "async_npu"),
    translated=("Task Type", "correlation_id"),
)

TPU = Runtime(  # as XProf's Chrome traces have it: JAX, or PyTorch through torchax
    name="TPU",
    device="TPU",
    prefix="xla_",
    calls=("xla_runtime",),
    names={
        "launches": r"DoEnqueue(?:Continuation)?Program",
        "synchronising": r"np\.asarray\(jax\.Array\)",
    },
    communication=(
        r"(?<![\w-])(?:all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute"
        r"|collective-broadcast)",  # instructions of XLA, whose names have hyphens
    ),
    translated=("hlo_category", "tf_op", "run_id", "device_ordinal", "step_num"),
)

MPS = Runtime(name="MPS", device="MPS", device_types=(13,))
"""Apple's GPUs: the profiler records only their allocator."""

CPU = Runtime(name="CPU", device="host", device_types=(0,), scopes=("gloo", "mpi", "ucc"))
"""The host as a device: its collectives run under annotations."""

RUNTIMES = (CUDA, HIP, XPU, MTIA, ASCEND, TPU, MPS, CPU)


NOTHING = "(?!)"
"""A pattern that matches no name."""


def _distinct(*fields: str) -> tuple[str, ...]:
    """What the runtimes have in ``fields``, in their order."""
    values = (getattr(r, field) for r in RUNTIMES for field in fields)
    names = chain.from_iterable([value] if isinstance(value, str) else value for value in values)
    return tuple(dict.fromkeys(filter(None, names)))


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """One pattern for all of ``patterns``; matches nothing if there is none."""
    return late("|".join(f"(?:{pattern})" for pattern in patterns) or NOTHING)


def _beginning(pattern: str) -> re.Pattern[str]:
    """``pattern`` of names that begin so."""
    return late(f"^(?:{pattern})")


def _is_matched(*roles: Role) -> Callable[[str], bool]:
    """Whether a name is one of a runtime's in one of ``roles``."""
    pattern = _any_of(r.names[role] for r in RUNTIMES for role in roles if role in r.names)
    return lru_cache(NAMES_KEPT)(lambda name: pattern.match(name) is not None)


CALL_CATEGORIES = _distinct("calls")
FLOW_CATEGORIES = _distinct("flows")
SYNC_CATEGORIES = _distinct("syncs")
COUNTER_CATEGORIES = _distinct("counters")
READ_CATEGORIES = _distinct("prefix")
"""Category prefixes of the runtimes, whose further events, such as waits, are not work on a device."""
RENAMED_ARGUMENTS = {theirs: ours for r in RUNTIMES for theirs, ours in r.arguments.items()}
"""A vendor's name of an argument → the one of `ARGUMENT`."""
PLACES = {
    *(ARGUMENT.device, ARGUMENT.stream, "device id", "device_id", "stream id"),
    *(theirs for theirs, ours in RENAMED_ARGUMENTS.items() if ours in (ARGUMENT.device, ARGUMENT.stream)),
}
"""Arguments, whoever spells them, that only events on a device, and calls, have."""
TRANSLATED_ARGUMENTS = frozenset(_distinct("translated"))
"""Arguments from which events of a category of their own get one of Kineto's."""
OF_OWN_CATEGORIES = PLACES | TRANSLATED_ARGUMENTS
"""Arguments that such events keep, whatever else is asked for."""
RENAMED_CATEGORIES = {theirs: ours for r in RUNTIMES for theirs, ours in r.device_work.items()}
"""A vendor's category of device work → the one of `DEVICE_CATEGORIES`."""

STREAM_WAIT, STREAM_SYNC, EVENT_SYNC, CONTEXT_SYNC = "Stream Wait Event", "Stream Sync", "Event Sync", "Context Sync"
"""Records of waits, in `SYNC_CATEGORIES`: of a stream for an event, of a call for a stream, an event, and a device."""
CALL_WAITS = (STREAM_SYNC, EVENT_SYNC)
"""Records of a call that waits for one stream or event."""
UNSTREAMED_WAITS = (EVENT_SYNC, CONTEXT_SYNC)
"""Records of waits on no stream."""

TEXT_ARGUMENTS = frozenset(_distinct("text_arguments"))
"""Arguments of calls that are text under some vendor and numbers under another."""

DRIVER_VERSIONS = _distinct("driver_version")
VERSIONS = (*DRIVER_VERSIONS, *_distinct("runtime_version"))
"""Keys of versions in the metadata of a trace."""
DEVICE_NAMES = {number: r.device for r in RUNTIMES for number in r.device_types}
"""torch's device type → name of such devices in tables."""

_COPIES = tuple(late(r.names["copy_events"], re.IGNORECASE) for r in RUNTIMES if "copy_events" in r.names)
_PREFIXES = {r.name: _beginning(r.call_prefix) for r in RUNTIMES if r.call_prefix}
_ROLES = {
    r.name: {
        "GraphLaunch": _beginning(r.names["graph_launches"]),
        "LaunchKernel": _beginning(r.names["launches"]),
        "Memcpy": _beginning(r.names["copy_calls"]),
    }
    for r in RUNTIMES
    if r.call_prefix
}
_COMMUNICATION = _any_of(_distinct("communication"))
"""In names in lower case, in which Python searches faster than ignoring case."""
_SCOPES = frozenset(_distinct("scopes"))
_PROCESSES = frozenset(name for r in RUNTIMES for name in r.processes)
_DEVICES = dict.fromkeys((*(r.device for r in RUNTIMES if r is not CPU), "HPU"))
_DEVICE = late(rf"(?:/device:)?({'|'.join(_DEVICES)})(?:[ :]\d+)?")
"""What labels the processes of devices: ``GPU 0``, ``NPU``, ``/device:TPU:1``."""
_HOST = frozenset(("CPU", "/host:CPU"))
_COMPILED = late(r"(?:graph_\d+_)?(?:triton_|cpp_fused)")
"""torch.compile names a kernel after its operators, among them a collective whose buffers it only fills."""


is_synchronising = _is_matched("synchronising", "waiting_copies")
"""Whether the host always waits for the device in a call of this name."""
may_wait = _is_matched("synchronising", "copy_calls", "releases")
"""Whether the host may wait for the device in a call of this name. Includes copies, as those of pageable memory wait,
and what gives memory back, which nothing may use any more.
"""
is_launch = _is_matched("launches", "graph_launches")
"""Whether a call of this name launches kernels or a graph."""
is_graph_launch = _is_matched("graph_launches")
"""Whether a call of this name replays a graph."""
is_allocation = _is_matched("allocations")
"""Whether a call of this name gets memory from the driver, which a caching allocator does while it grows."""
is_release = _is_matched("releases")
"""Whether a call of this name gives memory back to the driver."""
is_capture_begin = _is_matched("capture_begins")
"""Whether a call of this name begins to capture a graph."""
is_captured_copy = _is_matched("captured_copies")
"""Whether a call of this name copies or sets memory, which a graph does in its replay."""
is_stream_wait = _is_matched("stream_waits")
"""Whether a call of this name makes a stream wait for an event."""
is_query = _is_matched("queries")
"""Whether a call of this name asks whether the device is done, which a host that polls does while it waits."""
is_memset = _is_matched("memset_events")
"""Whether a device event of this name is a memset."""
is_awaited_copy = _is_matched("awaited_copies")
"""Whether the call behind a device event of this name, a copy of pageable memory, returns after it."""


def device_of_process(labels: Iterable[str]) -> str | None:
    """What the device is called whose events are filed below a process of these names and labels; empty for the host,
    None if they name no device.
    """
    labels = tuple(labels)
    if process := next((label for label in labels if label in _PROCESSES), None):
        return process
    if not _HOST.isdisjoint(labels):
        return ""
    return next((match[1] for label in labels if (match := _DEVICE.fullmatch(label))), None)


@lru_cache(maxsize=NAMES_KEPT)
def is_communication(kernel: str) -> bool:
    """Whether a kernel of this name moves data between ranks."""
    return _COMMUNICATION.search(kernel.lower()) is not None and not _COMPILED.match(kernel)


def reads_number(operator: str) -> bool:
    """Whether an operator of this name, that behind ``item()``, waits for the device that has the number."""
    return operator == "aten::_local_scalar_dense"


def copies_tensor(operator: str) -> bool:
    """Whether an operator of this name copies a tensor; from or to the host, it waits unless non_blocking."""
    return operator == "aten::copy_"


def counterparts(control: Iterable[str], test: Iterable[str]) -> dict[str, str]:
    """Call → what it does, the same for calls of either vendor; empty where the sides have a vendor in common."""
    sides = [{call: vendor for call in side if (vendor := _vendor(call))} for side in (control, test)]
    vendors = [set(side.values()) for side in sides]
    if not all(vendors) or vendors[0] & vendors[1]:
        return {}
    return {call: _role(call, vendor) for side in sides for call, vendor in side.items()}


def call_role(call: str) -> str:
    """What a call does, the same for calls of all vendors (``LaunchKernel``); ``call`` itself if no vendor has it."""
    vendor = _vendor(call)
    return _role(call, vendor) if vendor else call


def vendors_of(calls: Iterable[str]) -> frozenset[str]:
    """The vendors whose runtimes have ``calls``."""
    return frozenset(filter(None, map(_vendor, set(calls))))


@lru_cache(maxsize=NAMES_KEPT)
def _vendor(call: str) -> str | None:
    return next((vendor for vendor, prefix in _PREFIXES.items() if prefix.match(call)), None)


def _role(call: str, vendor: str) -> str:
    """What a call does: launches and copies have several names; others are named alike by all vendors."""
    listed_role = next((role for role, pattern in _ROLES[vendor].items() if pattern.match(call)), None)
    return listed_role or _PREFIXES[vendor].sub("", call, count=1)


def copy_direction(event: str) -> str | None:
    """The direction (``HtoD``, …) from the name of a copy event, None for other events."""
    match = next((m for pattern in _COPIES if (m := pattern.match(event))), None)
    return f"{match['source'][0].upper()}to{match['target'][0].upper()}" if match else None


def collective_of_scope(annotation: str) -> str:
    """``all_reduce`` for the annotation ``nccl:all_reduce``, empty for annotations of other kinds."""
    scope, _, collective = annotation.partition(":")
    return collective if scope in _SCOPES else ""


def is_host_collective(annotation: str) -> bool:
    """Whether an annotation of this name is a collective that the host carries out."""
    return annotation.partition(":")[0] in CPU.scopes and ":" in annotation


def version_of(driver: str | None) -> str:
    """A driver's version, of which CUDA and HIP record a number: 12090 is CUDA 12.9, 70226015 HIP 7.2."""
    if driver is None or not driver.isdecimal() or len(driver) not in (5, 8):
        return driver or ""
    number = int(driver)
    return (
        f"CUDA {number // 1000}.{number % 1000 // 10}"
        if len(driver) == 5
        else f"HIP {number // 10**7}.{number // 10**5 % 100}"
    )
