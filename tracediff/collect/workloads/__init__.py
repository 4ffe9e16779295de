"""Built-in workloads: models and steps that published tutorials measure, in plain PyTorch with random weights.

A workload is a function that makes its step, described by `harness.described`, in a file with others like it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tracediff.collect.record import check_torch
from tracediff.errors import check_choice

if TYPE_CHECKING:  # the harness imports torch
    from tracediff.collect.workloads.harness import Workload

FILES = {
    "vit": "transformers",
    "vit-distill": "transformers",
    "graph-breaks": "graph_breaks",
    "graph-breaks-allreduce": "graph_breaks",
    "dynamic-shapes": "transformers",
    "sincos": "functions",
    "resnet18": "vision",
    "resnet50": "vision",
    "bert": "transformers",
    "numpy": "functions",
    "mlp": "functions",
    "conv-bn": "vision",
    "ensemble": "transforms",
    "per-sample-grad": "transforms",
    "jacobian": "transforms",
    "hessian": "transforms",
    "hvp": "transforms",
    "forward-ad": "transforms",
    "dataloader": "vision",
}
"""Workload → its file."""
NAMES = tuple(FILES)


def workload(name: str) -> Workload:
    """The workload ``name``.

    Raises:
        TracediffError: there is none; or torch, which all of them need, is not installed.
    """
    check_choice(name, NAMES, f"--workload {name}", "unknown workload", f"workloads: {', '.join(NAMES)}")
    check_torch("collect")
    return getattr(import_module(f"tracediff.collect.workloads.{FILES[name]}"), name.replace("-", "_"))
