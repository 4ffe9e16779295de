"""Records pairs on a GPU that differ by one known change: what a comparison of each must say first.

python benchmarks/gpu/planted.py OUT [--device cpu] [--only NAME] writes OUT/NAME/{before,after} and OUT/truth.tsv.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

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

    def make(self) -> Callable[[], None]:
        """The step, its weights and its data."""
        torch.manual_seed(0)
        model = nn.Sequential(*(Block(self) for _ in range(self.layers))).to(self.device)
        kinds = {"foreach": {"foreach": True}, "single": {"foreach": False}, "fused": {"fused": True}}
        optimizer = torch.optim.Adam(model.parameters(), capturable=self.graph, **kinds[self.optimizer])
        loader = torch.utils.data.DataLoader(Data(self), batch_size=None)
        batches = iter(loader)
        static = torch.randn(self.batch, self.tokens, self.width, device=self.device)

        def update() -> torch.Tensor:
            optimizer.zero_grad(set_to_none=not self.graph)
            with torch.autocast(self.device, torch.bfloat16) if self.reduced else nullcontext():
                loss = model(static).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        run = replay(update) if self.graph else update

        def step() -> None:
            batch = next(batches)
            if self.pinned:
                batch = batch.pin_memory()
            batch.to(self.device, non_blocking=self.pinned)
            run()
            if self.collected:
                gc.collect()
            if self.emptied:
                torch.cuda.empty_cache()

        return step


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


def pairs(device: str) -> Iterator[tuple[str, str, Program, Program]]:
    """Name, what the comparison must say, before, after."""
    large = Program(device) if device == "cuda" else Program(device, width=64, tokens=32, batch=2)
    small = replace(large, width=256, tokens=64, batch=4, layers=8)
    yield "same", "no difference that is significant", large, large
    yield "batch", "the work differs: twice the elements", large, replace(large, batch=2 * large.batch)
    yield "bf16", "GEMMs run in bf16 and take less", large, replace(large, reduced=True)
    yield "attention", "softmax and products are fused into attention", replace(large, attention="plain"), large
    yield "clone", "a copy per layer is new", large, replace(large, cloned=True)
    yield "sync", "the host waits for the GPU in every layer (item)", small, replace(small, synchronised=True)
    yield "loader", "loading data takes 20 ms more", large, replace(large, load_s=0.02)
    yield (
        "optimizer",
        "Adam: one fused kernel for loops over parameters",
        replace(small, optimizer="single"),
        replace(small, optimizer="fused"),
    )
    yield (
        "collected",
        "Python collects garbage in every step; nothing of the GPU's work differs",
        small,
        replace(small, collected=True),
    )
    wide = replace(large, load_mb=128)
    yield "copied", "the copy to the GPU is 128 times as large", large, wide
    if device == "cuda":
        yield (
            "pinned",
            "the host pins the batch, and its copy to the GPU is faster",
            wide,
            replace(wide, pinned=True),
        )
        yield "emptied", "memory is returned and allocated again in every step", large, replace(large, emptied=True)
        yield "graph", "the kernels of a step are one graph launch", small, replace(small, graph=True)


def main() -> None:
    """Record the runs of both sides in turn, in one process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    truths = []
    for name, truth, before, after in pairs(asked.device):
        if asked.only and asked.only != name:
            continue
        steps = {"before": before.make(), "after": after.make()}
        for _ in range(RUNS):
            for side, step in steps.items():
                for _ in range(3):
                    step()
                with record_steps(asked.out / name / side, active=3, with_stack=True) as recorder:
                    for _ in range(6):
                        step()
                        recorder.step()
                times = []
                for _ in range(10):
                    start = time.perf_counter()
                    step()
                    if asked.device == "cuda":
                        torch.cuda.synchronize()
                    times.append(time.perf_counter() - start)
                truths.append(f"{name}\t{side}\t{sorted(times)[5] * 1e3:.3f}\t{truth}")
        (asked.out / "truth.tsv").write_text("pair\tside\tstep_ms\ttruth\n" + "\n".join(truths) + "\n")


if __name__ == "__main__":
    main()
