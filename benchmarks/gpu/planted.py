"""Records pairs on a GPU that differ by one known change: what a comparison of each must say first.

python benchmarks/gpu/planted.py OUT [--device cpu] [--only NAME …] writes OUT/NAME/{before,after} and OUT/truth.tsv.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tracediff.collect.record import record_steps

RUNS = 2


@dataclass(frozen=True)
class Program:
    """A training step, with one field per change that is planted."""

    device: str
    width: int = 1024
    layers: int = 4
    batch: int = 16
    tokens: int = 256
    attention: str = "fused"
    reduced: bool = False
    synchronised: bool = False
    cloned: bool = False
    optimizer: str = "foreach"
    load_s: float = 0.0
    load_mb: int = 1
    pinned: bool = False
    collected: bool = False
    emptied: bool = False
    graph: bool = False
    tf32: bool = False
    checkpointed: bool = False
    clipped: bool = False
    dropout: float = 0.0
    micro_batches: int = 1
    logged: bool = False
    prefetched: bool = False

    def make(self) -> Callable[[], None]:
        """The step, its weights and its data."""
        torch.manual_seed(0)
        model = nn.Sequential(*(Block(self) for _ in range(self.layers))).to(self.device)
        kinds = {"foreach": {"foreach": True}, "single": {"foreach": False}, "fused": {"fused": True}}
        optimizer = torch.optim.Adam(model.parameters(), capturable=self.graph, **kinds[self.optimizer])
        loader = torch.utils.data.DataLoader(Data(self), batch_size=None)
        batches = iter(loader)
        static = torch.randn(self.batch, self.tokens, self.width, device=self.device)
        ahead = torch.cuda.Stream() if self.prefetched else None

        def update() -> torch.Tensor:
            optimizer.zero_grad(set_to_none=not self.graph)
            for part in static.chunk(self.micro_batches):
                with torch.autocast(self.device, torch.bfloat16) if self.reduced else nullcontext():
                    loss = self.forward(model, part).square().mean() / self.micro_batches
                loss.backward()
            if self.clipped:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss

        run = replay(update) if self.graph else update

        def step() -> None:
            torch.backends.cuda.matmul.allow_tf32 = self.tf32
            batch = next(batches)
            if self.pinned:
                batch = batch.pin_memory()
            with torch.cuda.stream(ahead) if ahead else nullcontext():
                batch.to(self.device, non_blocking=self.pinned)
            loss = run()
            if self.logged:
                float(loss)
            if self.collected:
                gc.collect()
            if self.emptied:
                torch.cuda.empty_cache()

        return step

    def forward(self, model: nn.Sequential, x: torch.Tensor) -> torch.Tensor:
        """The model's output, of x's shape."""
        for block in model:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
            if self.dropout:
                x = F.dropout(x, self.dropout)
        return x


class Data(torch.utils.data.IterableDataset):
    """Batches that take ``load_s`` to load, of ``load_mb`` MB each."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program

    def __iter__(self) -> Iterator[torch.Tensor]:
        batch = torch.ones(self.program.load_mb * 2**18)
        while True:
            time.sleep(self.program.load_s)
            yield batch


class Block(nn.Module):
    """Attention and a perceptron, both with a residual."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.norm, self.norm2 = nn.LayerNorm(program.width), nn.LayerNorm(program.width)
        self.qkv, self.out = nn.Linear(program.width, 3 * program.width), nn.Linear(program.width, program.width)
        self.up, self.down = nn.Linear(program.width, 4 * program.width), nn.Linear(4 * program.width, program.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output, of x's shape."""
        query, key, value = (
            part.unflatten(-1, (8, -1)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1)
        )
        if self.program.attention == "fused":
            mixed = F.scaled_dot_product_attention(query, key, value)
        else:
            scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
            mixed = scores.softmax(-1) @ value
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        if self.program.cloned:
            x = x.clone()
        if self.program.synchronised:
            x.sum().item()
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def replay(update: Callable[[], torch.Tensor]) -> Callable[[], object]:
    """The update, captured as a CUDA graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            update()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        update()
    return graph.replay


LARGE, SMALL = {"tokens": 256}, {"width": 256, "tokens": 64, "batch": 4, "layers": 8}
REHEARSED = {"width": 64, "tokens": 32, "batch": 2, "layers": 2}
"""Sizes on a GPU: one that is busy, and one that waits for the host; and a size for CPUs."""
WIDE = {"load_mb": 128}


Step = Callable[[], object]


@dataclass(frozen=True)
class Pair:
    """A change: what is true of it, and the step's arguments without it and with it."""

    truth: str
    size: dict[str, Any]
    before: dict[str, Any]
    after: dict[str, Any]
    make: Callable[..., Step] = lambda **given: Program(**given).make()
    needs_gpu: bool = False


PAIRS = {
    "same": Pair("no difference that is significant", LARGE, {}, {}),
    "batch": Pair("the work differs: twice the elements", LARGE, {}, {"batch": 32}),
    "bf16": Pair("GEMMs run in bf16 and take less", LARGE, {}, {"reduced": True}),
    "attention": Pair("softmax and products are fused into attention", LARGE, {"attention": "plain"}, {}),
    "clone": Pair("a copy per layer is new", LARGE, {}, {"cloned": True}),
    "sync": Pair("the host waits for the GPU in every layer (item)", SMALL, {}, {"synchronised": True}),
    "loader": Pair("loading data takes 20 ms more", LARGE, {}, {"load_s": 0.02}),
    "optimizer": Pair("Adam: one fused kernel for loops", SMALL, {"optimizer": "single"}, {"optimizer": "fused"}),
    "collected": Pair("Python collects garbage in every step", SMALL, {}, {"collected": True}),
    "copied": Pair("the copy to the GPU is 128 times as large", LARGE, {}, WIDE),
    "checkpointed": Pair("the forward pass runs again in the backward pass", LARGE, {}, {"checkpointed": True}),
    "clipped": Pair("the gradients' norm is computed, and they are scaled", LARGE, {}, {"clipped": True}),
    "dropout": Pair("a dropout per layer is new", LARGE, {}, {"dropout": 0.1}),
    "micro": Pair("the same batch in four parts", LARGE, {}, {"micro_batches": 4}),
    "logged": Pair("the host reads the loss in every step, and waits for the GPU", LARGE, {}, {"logged": True}),
    "tf32": Pair("GEMMs use tensor cores (TF32)", LARGE, {}, {"tf32": True}, needs_gpu=True),
    "pinned": Pair(
        "the host pins the batch, and its copy to the GPU is faster",
        LARGE,
        WIDE,
        WIDE | {"pinned": True},
        needs_gpu=True,
    ),
    "prefetched": Pair(
        "the copy runs on a stream of its own, beside kernels",
        LARGE | WIDE,
        {"pinned": True},
        {"pinned": True, "prefetched": True},
        needs_gpu=True,
    ),
    "emptied": Pair(
        "memory is returned and allocated again in every step", LARGE, {}, {"emptied": True}, needs_gpu=True
    ),
    "graph": Pair("the kernels of a step are one graph launch", SMALL, {}, {"graph": True}, needs_gpu=True),
}


def record(pairs: Mapping[str, Pair], rehearsed: Mapping[str, Any]) -> None:
    """Record the runs of both sides of each pair in turn, in one process; on CPUs with the sizes ``rehearsed``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", nargs="*", help="names of pairs")
    parser.add_argument(
        "--plain", action="store_true", help="one run, without steps, shapes and stacks, as many publish"
    )
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    truths = []
    for name, pair in pairs.items():
        if (asked.only and name not in asked.only) or (pair.needs_gpu and asked.device == "cpu"):
            continue
        print(name, flush=True)
        sizes = pair.size if asked.device == "cuda" else pair.size | rehearsed
        sides = {"before": pair.before, "after": pair.after}
        steps = {side: pair.make(**{"device": asked.device, **sizes, **changes}) for side, changes in sides.items()}
        for _ in range(1 if asked.plain else RUNS):
            for side, step in steps.items():
                for _ in range(3):
                    step()
                (record_plain if asked.plain else record_steps_of)(step, asked.out / name / side)
                ms = 1000 * timed(step, asked.device)
                truths.append(f"{name}\t{side}\t{ms:.3f}\t{pair.truth}")
        (asked.out / "truth.tsv").write_text("pair\tside\tstep_ms\ttruth\n" + "\n".join(truths) + "\n")


def record_steps_of(step: Step, folder: Path) -> None:
    """Three steps with Python stacks as a run of the set ``folder``."""
    with record_steps(folder, active=3, with_stack=True) as recorder:
        for _ in range(6):
            step()
            recorder.step()


def record_plain(step: Step, folder: Path) -> None:
    """Three steps in one file that has no steps."""
    folder.mkdir(parents=True)
    with torch.profiler.profile() as profiler:
        for _ in range(3):
            step()
    profiler.export_chrome_trace(str(folder / "trace.json.gz"))


def timed(step: Step, device: str) -> float:
    """Seconds of the median of ten steps without the profiler."""
    times = []
    for _ in range(10):
        start = time.perf_counter()
        step()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return sorted(times)[5]


if __name__ == "__main__":
    record(PAIRS, REHEARSED)
