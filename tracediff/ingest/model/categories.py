"""Event categories: today's names, what older profilers called them, and the groups of categories that analyses
use.
"""

from tracediff import runtimes
from tracediff.runtimes import CALL_CATEGORIES, CUDA, DEVICE_CATEGORIES

KNOWN = (
    "cpu_op",
    *CALL_CATEGORIES,
    "user_annotation",
    "python_function",
    *DEVICE_CATEGORIES,
    "gpu_user_annotation",
    "cpu_instant_event",
    "metadata",
    "counter",
    "Trace",
    "instant",
)
"""Category names by code; a file's own further categories follow these."""

CPU_OP, ANNOTATION, PYTHON = map(KNOWN.index, ("cpu_op", "user_annotation", "python_function"))
GPU_ANNOTATION, MEMORY, METADATA, COUNTER, SPAN, INSTANT = range(KNOWN.index("gpu_user_annotation"), len(KNOWN))

CALLS = tuple(map(KNOWN.index, CALL_CATEGORIES))
GPU = KERNEL, MEMCPY, MEMSET = tuple(map(KNOWN.index, DEVICE_CATEGORIES))
OPS = (CPU_OP, *CALLS)
HOST = (*OPS, ANNOTATION, PYTHON)

RENAMED = {
    "Operator": "cpu_op",
    "Kernel": runtimes.KERNEL,
    "Runtime": CUDA.calls[0],
    "Memcpy": runtimes.MEMCPY,
    "Memset": runtimes.MEMSET,
    "Node": "cpu_op",
    "Session": "user_annotation",
} | runtimes.RENAMED_CATEGORIES
"""Names of torch 1.8–1.10, of onnxruntime's profiler, and of vendors' device work, → today's."""

OVERHEAD = "overhead"
"""Category of the profiler's own work; no analysis reads it."""

BY_PHASE = {"M": "metadata", "C": "counter", "i": "instant", "I": "instant"}
"""Category of an event without one, by its phase."""

OLD_ANNOTATIONS = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)")
"""Annotations that torch before 1.11 wrote as operators."""
