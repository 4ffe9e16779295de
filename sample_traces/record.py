"""Records the sample traces: one training step of a small vision transformer, eager and compiled.

    python sample_traces/record.py            # both variants, two runs each, interleaved, each in its own process
    python sample_traces/record.py eager      # one run of one variant in this process
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE / "vit_tiny"
VARIANTS = ("eager", "compiled")


def make_step(variant):
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            self.heads = heads

        def forward(self, x):
            b, n, w = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
            attended = nn.functional.scaled_dot_product_attention(q, k, v)
            x = x + self.proj(attended.transpose(1, 2).reshape(b, n, w))
            return x + self.mlp(self.norm2(x))

    class Vit(nn.Module):
        def __init__(self, width=192, depth=3, heads=3, patch=8, size=64, classes=100):
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.position = nn.Parameter(torch.zeros(1, (size // patch) ** 2, width))
            self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

        def forward(self, images):
            x = self.patches(images).flatten(2).transpose(1, 2) + self.position
            return self.head(self.norm(self.blocks(x)).mean(1))

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Vit()
    forward = torch.compile(model) if variant == "compiled" else model
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    images, labels = torch.randn(16, 3, 64, 64), torch.randint(0, 100, (16,))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(forward(images), labels).backward()
        optimizer.step()

    return step


def record(variant):
    os.environ["TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE"] = "1"  # compiled CPU kernels have no events without it
    import tracediff

    step = make_step(variant)
    for _ in range(3):  # compile outside the recording
        step()
    with tracediff.record_steps(OUT / variant, wait=1, warmup=2, active=4) as p:
        for _ in range(7):
            step()
            p.step()
    print(p.path.relative_to(HERE))


def main():
    if len(sys.argv) > 1:
        record(sys.argv[1])
        return
    shutil.rmtree(OUT, ignore_errors=True)
    for variant in (*VARIANTS, *reversed(VARIANTS)):
        subprocess.run([sys.executable, __file__, variant], check=True)


if __name__ == "__main__":
    main()
