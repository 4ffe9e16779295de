"""Workloads: what the field's tutorials measure, in plain PyTorch with random weights. One file each.

A workload module has

    TITLE     one line: what runs
    SIZES     {"tiny": {...}, "small": {...}, "full": {...}}, keyword arguments of `make`
    OWN       names of its own variants ("loop", "vmap"), () where it has none
    VARIANTS  the variants that are measured by default, the first is what the others are compared with
    make      (variant: Variant, device: str, **size) -> Task
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tracediff.errors import TracediffError

NAMES = (
    "vit",
    "vit-distill",
    "graph-breaks",
    "graph-breaks-allreduce",
    "dynamic-shapes",
    "sincos",
    "resnet18",
    "resnet50",
    "bert",
    "numpy",
    "mlp",
    "conv-bn",
    "ensemble",
    "per-sample-grad",
    "jacobian",
    "hessian",
    "hvp",
    "forward-ad",
    "dataloader",
)


def workload(name: str) -> Any:
    """The module of the workload ``name``.

    Raises:
        TracediffError: there is none; the message lists them.
    """
    if name not in NAMES:
        raise TracediffError(f"--workload {name}", "unknown workload", f"known are {', '.join(NAMES)}")
    return import_module(f"tracediff.collect.workloads.{name.replace('-', '_')}")
