"""Event categories: today's names, what older profilers called them, and the few groups that the accounts are built
on.
"""

CPU_OP, RUNTIME, DRIVER, ANNOTATION, PYTHON, KERNEL, MEMCPY, MEMSET = range(8)
GPU_ANNOTATION, MEMORY, METADATA, COUNTER, SPAN, INSTANT = range(8, 14)

KNOWN = (
    "cpu_op",
    "cuda_runtime",
    "cuda_driver",
    "user_annotation",
    "python_function",
    "kernel",
    "gpu_memcpy",
    "gpu_memset",
    "gpu_user_annotation",
    "cpu_instant_event",
    "metadata",
    "counter",
    "Trace",
    "instant",
)
"""Category names by code; a file's own further categories follow these."""

RENAMED = {
    "Operator": "cpu_op",
    "Kernel": "kernel",
    "Runtime": "cuda_runtime",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "Node": "cpu_op",
    "Session": "user_annotation",
}
"""Names of torch 1.8–1.10, and of onnxruntime's profiler, → today's."""

BY_PHASE = {"M": "metadata", "C": "counter", "i": "instant", "I": "instant"}
"""Category of an event that states none, by its phase."""

GPU = (KERNEL, MEMCPY, MEMSET)
CALLS = (RUNTIME, DRIVER)
OPS = (CPU_OP, RUNTIME, DRIVER)
HOST = (CPU_OP, RUNTIME, DRIVER, ANNOTATION, PYTHON)

UNREAD_DEVICES = ("mtia_", "xpu_", "privateuse1_")
"""Prefixes of device categories that have no account yet; their events are counted and named in health."""

OLD_ANNOTATIONS = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)")
"""Annotations that torch before 1.11 wrote as operators."""
