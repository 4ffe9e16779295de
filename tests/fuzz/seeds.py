"""Small valid traces with everything that readers and accounts look at."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

from build_trace import (
    BACKWARD,
    MAIN,
    annotation,
    call,
    document,
    flow,
    kernel,
    memcpy,
    memory,
    memset,
    op,
    python,
    step,
)

OPS = ("aten::mm", "aten::add", "aten::copy_", "aten::convolution", "autograd::engine::evaluate_function: MmBackward0")
KERNELS = (
    "ampere_sgemm_128x64_tn",
    "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float const*, float&>>(int)",
    "triton_poi_fused_add_mul_0",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long)",
    "cunn_SoftMaxForward",
)
COPIES = ("Memcpy HtoD (Pageable -> Device)", "Memcpy DtoD (Device -> Device)")
META = {
    "schemaVersion": 1,
    "distributedInfo": {"rank": 0, "world_size": 2, "backend": "nccl"},
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "numSms": 132}],
    "record_shapes": 1,
    "baseTimeNanoseconds": 1700000000000000000,
    "trace_id": "0",
}


def trace(random: Random) -> dict[str, Any]:
    """A document of one to four steps, with or without a GPU, of about 5 to 60 events."""
    has_gpu = random.random() < 0.8
    events: list[dict[str, Any]] = []
    for number in range(1, random.randint(2, 5)):
        begin = 1000 * number
        events.append(step(number, begin, random.choice((600, 900, 1000))))
        events += _calls(random, begin, has_gpu)
        events += _beside(random, begin)
    return document(events, **deepcopy(META))  # what spoils it must not spoil the next one


def _calls(random: Random, begin: int, has_gpu: bool) -> list[dict[str, Any]]:
    """Operators of a step, each with a launch and its GPU work."""
    events: list[dict[str, Any]] = []
    for k in range(random.randint(1, 5)):
        at, correlation = begin + 10 + 100 * k, begin + k
        shapes = {"Input Dims": [[8, 16], [16, 4]], "Input type": ["float", "float"], "Sequence number": k}
        tid = random.choice((MAIN, MAIN, BACKWARD))
        events.append(op(random.choice(OPS), at, 80, tid, **{"External id": correlation, **shapes}))
        if not has_gpu:
            continue
        events.append(call("cudaLaunchKernel", at + 5, 10, correlation, tid))
        work = random.choice((kernel, kernel, memcpy, memset))
        if work is kernel:
            events.append(kernel(random.choice(KERNELS), at + 30, random.randint(1, 150), correlation))
        elif work is memcpy:
            events.append(memcpy(random.choice(COPIES), at + 30, 20, correlation, bytes=4096))
        else:
            events.append(memset(at + 30, 2, correlation))
        events += [flow("s", correlation, at + 5, tid), flow("f", correlation, at + 30)]
    return events


def _beside(random: Random, begin: int) -> list[dict[str, Any]]:
    """What profiles may have besides: annotations, Python frames, memory, waits."""
    every = [
        annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", begin + 1, 6),
        python("nn.Module: Linear_0", begin + 5, 300, begin, None),
        python("train.py(12): forward", begin + 6, 200, begin + 1, begin),
        memory(begin + 12, 512, 1024),
        call("cudaDeviceSynchronize", begin + 500, 50),
        annotation("## Call CompiledFxGraph abc ##", begin + 7, 100),
    ]
    return [event for event in every if random.random() < 0.4]
