"""Two steps, each of them also with a planted operator of a given size: `@planted` in the variant's name asks for it.

`training` is a training step of a transformer block that has no cumsum; planted, it has one. `inference` is the inference of a convolutional net that
ends in a small erf; planted, that erf is larger.
"""

import os
import statistics
import sys
import time
from itertools import pairwise

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

PLANTED = {"training": "aten::cumsum", "inference": "aten::erf"}
"""The name under which the profiler records the planted operator."""
SMALL = 1 << 14
"""Elements of the erf that `inference` always has."""


def training(variant, size):
    """A training step of a transformer block."""
    planted = _planted(variant)
    block = torch.nn.TransformerEncoderLayer(192, 4, 384, dropout=0.0, batch_first=True)
    optimizer = torch.optim.SGD(block.parameters(), 0.01)
    x, target, values = torch.randn(8, 64, 192), torch.randn(8, 64, 192), torch.rand(int(size))
    forward = variant(block) if callable(variant) else block

    def step():
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(forward(x), target).backward()
        optimizer.step()
        if planted:
            torch.cumsum(values, 0)

    return step


def inference(variant, size):
    """The inference of a small convolutional net."""
    channels = (3, 32, 64, 64, 128)
    layers = [
        layer
        for a, b in pairwise(channels)
        for layer in (torch.nn.Conv2d(a, b, 3, padding=1), torch.nn.BatchNorm2d(b), torch.nn.ReLU(), torch.nn.AvgPool2d(2))
    ]
    net = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(128 * 16, 10)).eval()
    x, values = torch.randn(4, 3, 64, 64), torch.rand(SMALL + (int(size) if _planted(variant) else 0))
    forward = variant(net) if callable(variant) else net

    @torch.no_grad()
    def step():
        forward(x)
        torch.erf(values)

    return step


def _planted(variant):
    return getattr(variant, "text", str(variant)).endswith("@planted")


def size_for(workload, share):
    """(elements that make the planted operator take ``share`` of a step under the profiler, that step's µs)."""
    torch.set_num_threads(1)
    step = {"training": training, "inference": inference}[workload]("base", 0)
    _median_us(step)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True):
        step_us = _median_us(step, 100)
    size = 1 << 16
    for _ in range(4):
        values = torch.rand(size)
        took = _median_us(lambda values=values: torch.cumsum(values, 0) if workload == "training" else torch.erf(values), 100, step)
        size = max(1 << 10, int(size * share * step_us / took))
    return size, step_us


def _median_us(call, times=60, before=lambda: None):
    """Of processor time, as what other processes take does not count; after ``before``, which leaves caches and allocator as a step does."""
    took = []
    for _ in range(times):
        before()
        start = time.process_time_ns()
        call()
        took.append(time.process_time_ns() - start)
    return statistics.median(took[times // 6 :]) / 1000


if __name__ == "__main__":
    print(*size_for(sys.argv[1], float(sys.argv[2])))
