"""Every kind of finding: its code, where the outputs link to, and its row in docs/findings.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FindingKind:
    """What all findings of one code have in common.

    Attributes:
        code: stable short name, the one in every output.
        meaning: when the finding is raised, with its thresholds.
        computed_from: states, groups or columns that the rule reads; Markdown, links are relative to docs/.
        advice: what to do about it.
        section: id of the section of the HTML report with the evidence.
        page: page of the dashboard with the evidence.
        tab: tab of the dashboard's page "changes", if that is the page.
    """

    code: str
    meaning: str
    computed_from: str
    advice: str
    section: str = "work"
    page: str = "changes"
    tab: str = "groups"


DATA_LOADING = FindingKind(
    "data-loading",
    "waiting for the DataLoader makes up ≥ 25 % of the step's change",
    "state data_loading",
    "tune workers, prefetching and storage; kernels are not the reason",
    section="step",
    page="timeline",
)
LAUNCH_BOUND = FindingKind(
    "launch-bound",
    "waiting for kernel launches makes up ≥ 25 % of the step's change",
    "states launching and gpu_queued",
    "launch fewer, larger kernels; use CUDA graphs",
    section="timeline",
    page="timeline",
)
HOST_TIME = FindingKind(
    "host-time",
    "the host's own work while the GPU is idle makes up ≥ 25 % of the step's change",
    "states op and python, where there is a GPU",
    "read the operators and Python functions of the host",
    section="changes",
    tab="ops",
)
EXPOSED_COMMUNICATION = FindingKind(
    "exposed-communication",
    "communication that no kernel overlaps makes up ≥ 25 % of the step's change",
    "state gpu_comm",
    "overlap it, change the bucket size, look for stragglers",
    section="timeline",
    page="timeline",
)
SYNCHRONISATION = FindingKind(
    "synchronisation",
    "the host is in a synchronising call while the GPU is idle, for ≥ 25 % of the step; only `analyze`",
    "state synchronising",
    "look for calls that read from the device",
    section="timeline",
    page="timeline",
)
HOST_BOUND = FindingKind(
    "host-bound",
    "the GPU is idle for ≥ 50 % of the step on both sides",
    "states other than gpu_compute, gpu_comm and gpu_copy",
    "speed up the host; kernel times hardly count",
    section="step",
    page="timeline",
)
GPU_BOUND = FindingKind(
    "gpu-bound",
    "the GPU is idle for ≤ 10 % of the step on both sides",
    "states other than gpu_compute, gpu_comm and gpu_copy",
    "speed up kernels; host time hardly counts",
    section="step",
    page="timeline",
)
NEW_SYNC = FindingKind(
    "new-sync",
    "the number of calls per step that wait for the device changed by ≥ 1",
    "runtime calls that synchronise, and copies that wait",
    "look for `.item()`, `.cpu()` and printed tensors",
    section="changes",
    tab="ops",
)
OUTLIER_STEP = FindingKind(
    "outlier-step",
    "a used step is more than 5 robust standard deviations from its run's median; only runs of five steps or more",
    "step periods",
    "look at that step; it counts in the mean, not in the median",
    section="distributions",
    page="ranks",
)
FUSED = FindingKind(
    "fused",
    "operators that one compiled kernel computes on the other side",
    "groups of level fusion",
    "nothing, or read which operators were not fused",
)
ALGORITHM_SWAP = FindingKind(
    "algorithm-swap",
    "the same operators run other kernels, and their time changed by ≥ 1 % of all work",
    "groups of level op, by family",
    "check dtype, layout and library versions",
)
CUDNN_CHOICE = FindingKind(
    "cudnn-choice",
    "convolutions run other kernels and take as long as before (< 15 % of their time)",
    "groups of level op, by family",
    "nothing: it does not explain the change",
)
SLOWER_KERNEL = FindingKind(
    "slower-kernel",
    "the same kernel below the same calls takes ≥ 5 % more time, ≥ 1 % of all work, and with three runs or more per "
    "side significantly more",
    "groups of level exact and sequence, without communication",
    "check clocks, memory traffic of concurrent work, and the hardware",
)
FASTER_KERNEL = FindingKind(
    "faster-kernel",
    "the same kernel below the same calls takes ≥ 5 % less time, ≥ 1 % of all work, and with three runs or more per "
    "side significantly less",
    "groups of level exact and sequence, without communication",
    "check clocks, memory traffic of concurrent work, and the hardware",
)
EFFICIENCY = FindingKind(
    "efficiency",
    "the same shapes of one kind of work and dtype attain a share of the device's peak (without a known peak: a rate) "
    "that differs by ≥ 10 %, and the better rate would save ≥ 1 % of all work; only with the table `rates`",
    "[work and its rate](tables/rates.md)",
    "check kernels, dtypes, layouts and alignment of these shapes, and clocks",
    section="tables",
)
COUNT_CHANGE = FindingKind(
    "count-change",
    "work that only one side does makes up ≥ 1 % of all work",
    "groups added and removed",
    "read which work was added and removed",
)
NEW_COPIES = FindingKind(
    "new-copies",
    "the number of copies per step in one direction changed by ≥ 1, and their time by ≥ 1 % of all work",
    "memcpys",
    "look for `.to()`, `.cpu()` and offloading",
    section="changes",
    tab="kernels",
)
DTYPE_CHANGE = FindingKind(
    "dtype-change",
    "the same operators on the same shapes get inputs of another dtype",
    "`Input type`",
    "expected under autocast; otherwise find the cast",
)
LAYOUT_CHANGE = FindingKind(
    "layout-change",
    "the same operators on the same shapes get inputs with other strides",
    "`Input Strides`",
    "check channels_last, views and `contiguous()`",
)
SHAPE_CHANGE = FindingKind(
    "shape-change",
    "1–10 % of the work has shapes that do not occur on the other side",
    "`Input Dims`; not between compiled and uncompiled code",
    "check the inputs",
)
WORKLOAD_CHANGED = FindingKind(
    "workload-changed",
    "≥ 10 % of the work has shapes that do not occur on the other side: the workloads differ",
    "`Input Dims`; not between compiled and uncompiled code",
    "compare like with like first",
)
TENSOR_CORE_SHARE = FindingKind(
    "tensor-core-share",
    "the share of kernel time on tensor cores (MFMA on AMD) changed by ≥ 5 points, by kernel name",
    "[families](families.md)",
    "check dtypes and alignment",
    tab="kernels",
)
GRAPH_BREAKS = FindingKind(
    "graph-breaks",
    "the number of graph breaks (manifest) or of compiled regions per step changed",
    "manifest, `Torch-Compiled Region`",
    "remove the break named",
    section="changes",
    tab="scopes",
)
COMPILE_IN_WINDOW = FindingKind(
    "compile-in-window",
    "torch.compile ran during the used steps",
    "scopes `(dynamo_timed)`",
    "record more warm-up steps",
    section="changes",
    tab="scopes",
)
RECOMPILE_IN_WINDOW = FindingKind(
    "recompile-in-window",
    "recompiled versions of compiled regions run",
    "the number after the slash in `Torch-Compiled Region: 0/1`",
    "make the guard hold, or use `dynamic=True`",
    section="changes",
    tab="scopes",
)
CUDA_GRAPH = FindingKind(
    "cuda-graph",
    "the number of graph launches per step changed",
    "runtime calls that launch a graph",
    "see whether the step itself changed",
    section="changes",
    tab="ops",
)
STRAGGLER = FindingKind(
    "straggler",
    "waiting in communication differs between ranks by ≥ 10 % of the step: the rank with the shortest wait arrives "
    "last",
    "communication kernels by rank",
    "look at what that rank does before its collectives",
    section="ranks",
    page="ranks",
)
SPILLED_KERNELS = FindingKind(
    "spilled-kernels",
    "GPU events were launched before the capture began",
    "GPU events whose launch is not in the file",
    "do not compare totals over whole traces; per-step numbers exclude these events",
    section="health",
    page="health",
)
OFF_PATH = FindingKind(
    "off-path",
    "the time of a kernel, operator or call changed by ≥ 1 % of the step, and at most a tenth of that on the critical "
    "path; only with the table `critical`",
    "the [critical path](tables/critical.md) of both sides",
    "nothing: it is off the critical path and does not explain the change",
    section="tables",
    page="timeline",
)
MEMORY_PEAK = FindingKind(
    "memory-peak",
    "a device's peak of allocated memory changed by ≥ 5 % and ≥ 1 MiB; only with the table `memory`",
    "`[memory]` events ([memory](tables/memory.md))",
    "read which operators and modules hold the peak",
    section="tables",
    page="memory",
)

KINDS = tuple(kind for kind in list(globals().values()) if isinstance(kind, FindingKind))
"""All kinds, in the order of docs/findings.md."""
