"""Every kind of finding: its code, where the outputs link to, and its row in docs/findings.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FindingKind:
    """What all findings of one code have in common.

    Attributes:
        code: stable short name, the one in every output.
        meaning: when the finding is raised; for thresholds the names of their constants, as `kinds_table` reads them.
        computed_from: states, groups or columns that the rule reads; Markdown, links are relative to docs/.
        advice: what to do about it.
        section: id of the section of the HTML report with the evidence.
        page: page of the dashboard with the evidence.
        tab: tab of the dashboard's page "changes", if that is the page.
        closer: option of `tracediff compare` that shows more of it; empty for `--explain` of the work that it covers.
    """

    code: str
    meaning: str
    computed_from: str
    advice: str
    section: str = "work"
    page: str = "changes"
    tab: str = "groups"
    closer: str = ""


DATA_LOADING = FindingKind(
    "data-loading",
    "the time in the DataLoader while the GPU is idle makes up ≥ {state_change.PART_OF_CHANGE} of the step's change",
    "state data_loading, table [idle](tables/host.md)",
    "if the process itself loads, use worker processes; otherwise tune workers, prefetching and storage",
    section="step",
    page="timeline",
    closer="--table idle",
)
LAUNCH_BOUND = FindingKind(
    "launch-bound",
    "waiting for kernel launches makes up ≥ {state_change.PART_OF_CHANGE} of the step's change: more launches, or "
    "slower ones",
    "states launching and gpu_queued",
    "launch fewer, larger kernels or use CUDA graphs; look for the slow call",
    section="timeline",
    page="timeline",
    closer="--table launches",
)
HOST_TIME = FindingKind(
    "host-time",
    "the host's own work while the GPU is idle makes up ≥ {state_change.PART_OF_CHANGE} of the step's change; the "
    "operators and Python functions that hold it are named",
    "states op and python, table [idle](tables/host.md)",
    "look at the operators and Python functions that are named",
    section="changes",
    tab="ops",
    closer="--table idle",
)
EXPOSED_COMMUNICATION = FindingKind(
    "exposed-communication",
    "communication that no kernel overlaps makes up ≥ {state_change.PART_OF_CHANGE} of the step's change",
    "state gpu_comm",
    "overlap it with compute kernels, change the bucket size, or look for stragglers",
    section="timeline",
    page="timeline",
    closer="--table collectives",
)
SYNCHRONISATION = FindingKind(
    "synchronisation",
    "the host's time in synchronising calls while the GPU is idle makes up ≥ {state_change.PART_OF_CHANGE} of the "
    "step's change; in `analyze` ≥ {set_findings.PART_OF_STEP} of the step",
    "state synchronising",
    "look for calls that read from the device",
    section="timeline",
    page="timeline",
    closer="--table synchronisations",
)
HOST_BOUND = FindingKind(
    "host-bound",
    "the step became host-bound: the GPU is idle for ≥ {reach.HOST_BOUND} of it, and was for ≤ {reach.GPU_BOUND}; on "
    "both sides alike it is context, not a finding",
    "states other than gpu_compute, gpu_comm and gpu_copy",
    "speed up the host; kernel times hardly count",
    section="step",
    page="timeline",
    closer="--table idle",
)
GPU_BOUND = FindingKind(
    "gpu-bound",
    "the step became GPU-bound: the GPU is idle for ≤ {reach.GPU_BOUND} of it, and was for ≥ {reach.HOST_BOUND}; on "
    "both sides alike it is context, not a finding",
    "states other than gpu_compute, gpu_comm and gpu_copy",
    "speed up kernels; host time hardly counts",
    section="step",
    page="timeline",
    closer="--by family",
)
NEW_SYNC = FindingKind(
    "new-sync",
    "the number of calls per step that wait for the device changed by ≥ 1",
    "runtime calls that synchronise, and copies that wait",
    "look for `.item()`, `.cpu()` and printed tensors",
    section="changes",
    tab="ops",
    closer="--table synchronisations",
)
OUTLIER_STEP = FindingKind(
    "outlier-step",
    "a used step is more than {typical_steps.OUTLIER_SD} robust standard deviations and {typical_steps.OUTLIER_PART} "
    "from its run's median, and not on both sides; only runs of {typical_steps.LEAST_STEPS} steps or more. If such "
    "steps make up {step.ALL_OF_IT} of the step's change or more, the title says so",
    "step periods",
    "look at that step; it counts in the mean, not in the median",
    section="distributions",
    page="ranks",
    closer="--html report.html",
)
FUSED = FindingKind(
    "fused",
    "operators that one compiled kernel computes on the other side",
    "work [matched](matching.md) at level fusion",
    "nothing, or read which operators were not fused",
    closer="--by cause",
)
ALGORITHM_SWAP = FindingKind(
    "algorithm-swap",
    "the same operators run other kernels, and the time of their family changed by ≥ {matched_work.LEAST} of the GPU "
    "time",
    "work [matched](matching.md) at level op, by family",
    "check dtype, layout and library versions",
)
OPERATOR_SWAP = FindingKind(
    "operator-swap",
    "other operators of the same family run in the same place, and their time changed by ≥ "
    "{matched_work.LEAST_RELATIVE}, and by ≥ {matched_work.LEAST} of all work",
    "work [matched](matching.md) whose operators are others on both sides",
    "read what changed in the program",
    closer="--by op",
)
CUDNN_CHOICE = FindingKind(
    "cudnn-choice",
    "convolutions run other kernels and take as long as before (within {replaced.SAME_TIME})",
    "work [matched](matching.md) at level op, by family",
    "nothing: it does not explain the change",
)
SLOWER_KERNEL = FindingKind(
    "slower-kernel",
    "the same kernel takes ≥ {matched_work.LEAST_RELATIVE} more time, ≥ {matched_work.LEAST} of the GPU time, and "
    "with {state_change.TESTED_RUNS} runs or more per side significantly more",
    "[matched](matching.md) work of equal count, without communication",
    "check clocks, memory traffic of concurrent work, and the hardware",
)
FASTER_KERNEL = FindingKind(
    "faster-kernel",
    "the same kernel takes ≥ {matched_work.LEAST_RELATIVE} less time, ≥ {matched_work.LEAST} of the GPU time, and "
    "with {state_change.TESTED_RUNS} runs or more per side significantly less",
    "[matched](matching.md) work of equal count, without communication",
    "check clocks, memory traffic of concurrent work, and the hardware",
)
SLOWER_FAMILY = FindingKind(
    "slower-family",
    "the same kernels of one family together take ≥ {matched_work.LEAST_RELATIVE} more time, ≥ {matched_work.LEAST} "
    "of the GPU time, and no single one of them holds most of it; with {state_change.TESTED_RUNS} runs or more per "
    "side significantly more",
    "[matched](matching.md) work of equal count, without communication",
    "check what they have in common: dtype, layout, library version, clocks",
)
FASTER_FAMILY = FindingKind(
    "faster-family",
    "the same kernels of one family together take ≥ {matched_work.LEAST_RELATIVE} less time, ≥ {matched_work.LEAST} "
    "of the GPU time, and no single one of them holds most of it; with {state_change.TESTED_RUNS} runs or more per "
    "side significantly less",
    "[matched](matching.md) work of equal count, without communication",
    "check what they have in common: dtype, layout, library version, clocks",
)
ALL_KERNELS = FindingKind(
    "all-kernels",
    "the kernels of several families changed by about the same factor, ≥ {matched_work.LEAST_RELATIVE}: kernels with "
    "≥ {kernels.COMMON_PART} of the time lie within {kernels.COMMON_WITHIN} of the common change",
    "[matched](matching.md) work of equal count, without communication",
    "check clocks, power limits, and whether the devices are equal",
    closer="--by family",
)
MODULE_CHANGE = FindingKind(
    "module-change",
    "the instances of one class of modules hold ≥ {kernels.MODULE_PART} of the change of matched work, in several "
    "families",
    "matched work by module",
    "read what changed in this module",
    closer="--by module",
)
EFFICIENCY = FindingKind(
    "efficiency",
    "the same shapes of one kind of work and dtype attain a share of the device's peak (on two devices, or without a "
    "known peak: a rate) that differs by ≥ {work_rate.LEAST_CHANGE}, and the better rate would save ≥ "
    "{work_rate.LEAST_GAIN} of the GPU time; only with the table `rates`",
    "[work and its rate](tables/rates.md)",
    "check kernels, dtypes, layouts and alignment of these shapes, and clocks",
    section="tables",
    closer="--table rates",
)
COUNT_CHANGE = FindingKind(
    "count-change",
    "work that only one side does, or does more often, makes up ≥ {matched_work.LEAST} of the GPU time",
    "work added and removed, and matched work of another count",
    "read which work was added and removed",
)
OPTIMIZER_CHANGE = FindingKind(
    "optimizer-change",
    "the optimizer is another one, or its step runs operators of another kind (per tensor, foreach, fused, compiled), "
    "and its work changed by ≥ {matched_work.LEAST} of all work",
    "`Optimizer.step#…`, and names of operators in the phase `optimizer`",
    "nothing if you asked for it; otherwise look for `foreach`, `fused` and `capturable` of the optimizer",
    closer="--by phase",
)
NEW_COPIES = FindingKind(
    "new-copies",
    "the number of copies per step in one direction changed by ≥ 1, and their time by ≥ {matched_work.LEAST} of the "
    "GPU time",
    "memcpys",
    "look for `.to()`, `.cpu()` and offloading",
    section="changes",
    tab="kernels",
    closer="--table copies",
)
COPY_KIND = FindingKind(
    "copy-kind",
    "copies in one direction use another kind of memory (pageable, pinned, …), and their time changed by ≥ "
    "{matched_work.LEAST} of all work",
    "names of memcpys",
    "use `pin_memory` and `non_blocking`",
    section="changes",
    tab="kernels",
    closer="--table copies",
)
OVERLAP_CHANGE = FindingKind(
    "overlap-change",
    "the part of the time of copies, or of communication, that computation covers changed by ≥ "
    "{work.OVERLAP_CHANGE:points}, which is ≥ {state_change.LEAST_CHANGE} of the step",
    "states gpu_copy and gpu_comm beside the time of these events",
    "read on which streams they run, and what they wait for",
    section="timeline",
    page="timeline",
    closer="--table streams",
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
    "{same_work.LEAST_SHAPES} to {same_work.OTHER_WORKLOAD} of the work has other shapes than on the other side",
    "`Input Dims`; not between compiled and uncompiled code",
    "check the inputs",
)
WORKLOAD_CHANGED = FindingKind(
    "workload-changed",
    "≥ {same_work.OTHER_WORKLOAD} of the work has other shapes than on the other side; or most work with recorded "
    "shapes is of another batch size, or of sizes that differ by one factor; or ≥ {same_work.REPEATED} of the work "
    "is done a whole number of times as often (on the test side: only in files without steps), or in files without "
    "steps ≥ {same_work.MOSTLY} of it in any other ratio: the workloads differ; it comes first",
    "`Input Dims`, not between compiled and uncompiled code; counts of operators",
    "compare like with like first",
    closer="--by op",
)
MISSING_WORK = FindingKind(
    "missing-work",
    "≥ {same_work.LEAST_MISSING} of control's work is matrix products, convolutions or attention that the test side "
    "does not do, nor anything in their place; it comes first",
    "matched work without a counterpart, by [family](families.md)",
    "compare equal work, or check that the result does not need it",
)
TENSOR_CORE_SHARE = FindingKind(
    "tensor-core-share",
    "the share of kernel time on tensor cores (MFMA on AMD) changed by ≥ {work.TENSOR_CORE_CHANGE:points}, by kernel "
    "name",
    "[families](families.md)",
    "check dtypes and alignment",
    tab="kernels",
    closer="--by kernel",
)
GRAPH_BREAKS = FindingKind(
    "graph-breaks",
    "the number of graph breaks (manifest) or of distinct compiled regions changed",
    "manifest, `Torch-Compiled Region`",
    "remove the break named",
    section="changes",
    tab="scopes",
    closer="--device cpu",
)
COMPILED_CALLS = FindingKind(
    "compiled-calls",
    "the host's own time in the calls of compiled code makes up ≥ {state_change.PART_OF_CHANGE} of the step's change "
    "and ≥ {state_change.LEAST_CHANGE} of the step; only without a GPU: beside one, [host-time](#host-time) holds "
    "what of it the GPU waits for",
    "self time of `CompiledFunction`, `Torch-Compiled Region`, `TorchDynamo Cache Lookup` and the like",
    "compile larger regions: fewer graph breaks",
    section="changes",
    tab="scopes",
    closer="--device cpu",
)
COMPILE_IN_WINDOW = FindingKind(
    "compile-in-window",
    "phases of compilation (tracing, lowering, code generation) take ≥ {preflight.COMPILING_PART} of the used steps "
    "of a side; it comes first, because such steps are not steady state",
    "scopes `(dynamo_timed)`",
    "record more warm-up steps",
    section="changes",
    tab="scopes",
    closer="--device cpu",
)
RECOMPILE_IN_WINDOW = FindingKind(
    "recompile-in-window",
    "recompiled versions of compiled regions run",
    "the number after the slash in `Torch-Compiled Region: 0/1`",
    "make the guard hold, or use `dynamic=True`",
    section="changes",
    tab="scopes",
    closer="--device cpu",
)
CUDA_GRAPH = FindingKind(
    "cuda-graph",
    "the number of graph launches per step changed",
    "runtime calls that launch a graph",
    "see whether the step itself changed",
    section="changes",
    tab="ops",
    closer="--table launches",
)
STRAGGLER = FindingKind(
    "straggler",
    "the other ranks wait ≥ {ranks.LATER} of the step longer (or less long) in communication, and these ranks do "
    "not; in `analyze` the waits differ by ≥ {ranks.STRAGGLING} of the step: the ranks with the shortest wait arrive "
    "last",
    "communication kernels and states by rank",
    "look at what these ranks do before their collectives",
    section="ranks",
    page="ranks",
    closer="--table stragglers",
)
SPILLED_KERNELS = FindingKind(
    "spilled-kernels",
    "GPU events were launched before the recording began",
    "GPU events whose launch is not in the file",
    "do not compare totals over whole traces; per-step numbers exclude these events",
    section="health",
    page="health",
    closer="--verbose",
)
OFF_PATH = FindingKind(
    "off-path",
    "the time of a kernel, operator or call changed by ≥ {critical.LEAST} of the step, and at most "
    "{critical.ON_PATH} of that on the critical path; only with the table `critical`",
    "the [critical path](tables/critical.md) of both sides",
    "nothing: it is off the critical path and does not explain the change",
    section="tables",
    page="timeline",
    closer="--table critical",
)
MEMORY_PEAK = FindingKind(
    "memory-peak",
    "a device's peak of allocated memory changed by ≥ {memory.LEAST_RELATIVE} and ≥ {memory.LEAST_BYTES:MiB}; only "
    "with the table `memory`",
    "`[memory]` events ([memory](tables/memory.md))",
    "read which operators and modules hold the peak",
    section="tables",
    page="memory",
    closer="--table memory_holders",
)


def advice_of(kind: FindingKind) -> str:
    """The advice as a sentence."""
    return f"{kind.advice[0].upper()}{kind.advice[1:]}."


KINDS = tuple(kind for kind in list(globals().values()) if isinstance(kind, FindingKind))
"""All kinds, in the order of docs/findings.md."""
