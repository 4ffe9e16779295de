"""Built-in workloads: models and steps that published tutorials measure, in plain PyTorch with random weights.

One file per workload.

A workload module has

    TITLE     one line that describes the step
    SIZES     {"tiny": {...}, "small": {...}, "full": {...}}, keyword arguments of `make`
    OWN       names of the workload's own variants ("loop", "vmap"), () if it has none
    VARIANTS  the default variants; the others are compared with the first
    make      (variant: Variant, device: str, **size) -> Task
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tracediff.collect.record import check_torch
from tracediff.errors import TracediffError, did_you_mean

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
        TracediffError: there is none; or torch, which all of them need, is not installed.
    """
    if name not in NAMES:
        known = f"workloads: {', '.join(NAMES)}"
        raise TracediffError(f"--workload {name}", "unknown workload", did_you_mean(name, NAMES, known))
    check_torch("tracediff collect")
    return import_module(f"tracediff.collect.workloads.{name.replace('-', '_')}")
