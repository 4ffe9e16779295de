"""Runs `tracediff collect` on a user's own code, as a shell would."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from with_torch import collect_with_torch

ROOT = Path(__file__).resolve().parents[1]
SHORT = ["--device", "cpu", "--wait", "0", "--warmup", "1", "--active", "3", "--timed", "3"]
ONCE = [*SHORT, "--attempts", "1"]
"""Disturbed runs stay as they are: their times do not matter."""


def written(folder: Path) -> dict[str, Any]:
    """The manifest in ``folder`` with all that was written, also what tracediff does not read."""
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return manifest


TRAIN = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x))

class Trainer:
    def __init__(self, variant, size):
        self.model = Net()
        self.forward = variant(self.model)
        self.x = torch.randn(size, 8)

    def step(self):
        self.forward(self.x).sum().backward()

def make_step(variant, size="4"):
    return Trainer(variant, int(size))

def breaks(variant):
    kept = {}
    def function(x):
        y = x.sin()
        kept["sum"] = y.sum().item()
        return y.cos()
    compiled = variant(function)
    x = torch.randn(8)
    return lambda: compiled(x)

def fails(variant):
    def step():
        if variant.compiles:
            raise RuntimeError("the step fell over")
    x = torch.ones(2)
    return (lambda: x + 1) if not variant.compiles else step

def no_step(variant):
    return 3
"""


def collect(folder, *arguments, **environment):
    (folder / "train.py").write_text(TRAIN)
    path = f"{ROOT}{os.pathsep}{ROOT / 'cli'}"
    return collect_with_torch(folder, [*map(str, arguments)], {"PYTHONPATH": path, "NO_COLOR": "1", **environment})
