"""One run of one variant in its own process: build, first step, steps without and with the profiler, measurements."""

import json
import os
import random
import re
import sys
import time
import traceback
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any

from tracediff import bounds
from tracediff.collect.apply import OnnxModel, check_compiler
from tracediff.collect.compiler import CompileLog, CompileTrace
from tracediff.collect.measure import (
    GpuWatch,
    Samples,
    StepTimer,
    allow_tf32,
    computed,
    dtype_of,
    environment,
    load_average,
    occupancy,
    peak_memory,
    random_state,
    reset_peak_memory,
    synchronise,
    timing_pass,
    use_device,
    waited,
    waiting_ns,
)
from tracediff.collect.modules import annotate_fx, annotate_modules, is_scripted, losing_format, names_in_call_order
from tracediff.collect.provenance import Provenance
from tracediff.collect.record import FLAGS, log_of_compiling, recording
from tracediff.collect.user_code import make_user_task
from tracediff.collect.variant import Task, Variant, parse_variant
from tracediff.collect.workloads import workload
from tracediff.errors import TracediffError

Spec = SimpleNamespace
"""The settings of `Collection`, and variant, trace, rank and phase_file."""
DETAIL = {"timing": FLAGS[:1], "structure": FLAGS[:3], "all": FLAGS}
"""``--detail`` → options of torch.profiler."""

FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
SETTLING = 3
"""Warm-up steps after the first step, before anything is measured."""
SETTLING_S = 1.0
"""Further ones on a GPU, whose clocks rise with the load."""


def run(spec: Spec) -> dict[str, Any]:
    """Run the steps that ``spec`` describes, write the trace to ``spec.trace`` and return the measurements.

    Args:
        spec: what to run.

    Raises:
        TracediffError: the device, variant or workload is not available. Exceptions of the step are not caught.
    """
    import torch

    torch.set_num_threads(spec.threads)
    _seed(spec.seed)
    _use(spec.device)
    variant = parse_variant(spec.variant, workload(spec.workload).own if spec.workload else ())
    if variant.has("tf32"):
        if not spec.device.startswith("cuda"):
            reason, remedy = "tf32 has no effect on the CPU", "leave it out, or collect on a GPU"
            raise TracediffError(f"--variant {spec.variant}", reason, remedy)
        allow_tf32()
    if variant.compiles and not spec.device.startswith("cuda"):
        check_compiler(variant.text, dict(variant.options))
    with log_of_compiling(Path(spec.trace), spec.rank, spec.provenance) as compile_trace:
        return _measured(spec, variant, compile_trace)


def _measured(spec: Spec, variant: Variant, compile_trace: CompileTrace | None) -> dict[str, Any]:
    """Run the steps of ``variant``, and keep ``compile_trace`` beside their trace; see `run`."""
    log, provenance = CompileLog(), Provenance()
    if variant.compiles:
        log.attach()
    if variant.compiles and spec.provenance:
        provenance.attach()
    start = time.perf_counter()
    task = _task(spec, variant)
    fx_nodes = _annotate(task, spec.annotate, variant) if spec.annotate else {}
    build_s = time.perf_counter() - start
    first_step_s, results = _first_steps(spec, task, variant)
    lost_format = losing_format(task.step) if variant.has("channels_last") and not variant.compiles else {}
    _settle(task, spec.device)
    reset_peak_memory(spec.device)
    _enter("timing", spec)
    with GpuWatch(spec.device) as gpu:
        before = waiting_ns()
        unprofiled = timing_pass(task.step, spec.timed, spec.device)
        waiting = waited(before, waiting_ns(), unprofiled, spec.threads)
        memory = peak_memory(spec.device)
        _enter("record", spec)
        profiled, profiled_waiting = _profiled(spec, task, compile_trace)
    return {
        "build_s": build_s,
        "first_step_s": first_step_s,
        "unprofiled_steps": unprofiled,
        "profiled_steps": profiled,
        "occupancy": occupancy(unprofiled, spec.threads),
        "profiled_occupancy": occupancy(profiled, spec.threads),
        "waiting": waiting,
        "profiled_waiting": profiled_waiting,
        "load_average": load_average(),
        "clocks": gpu.summary(),
        "clocks_error": gpu.error,
        "peak_memory_bytes": memory,
        "results": results,
        "compile": log.summary() if variant.compiles else None,
        "items": task.items,
        "lost_format": lost_format,
        "fx_nodes": fx_nodes,
        "modules": _modules(task, variant),
        "provenance": provenance.graphs,
        "environment": environment(spec.device, spec.threads),
    }


def _use(device: str) -> None:
    """Make ``device`` the current one.

    Raises:
        TracediffError: it is not available.
    """
    import torch

    if not device.startswith("cuda"):
        return
    if not torch.cuda.is_available():
        reason, remedy = "torch finds no CUDA or ROCm device", "use --device cpu, or collect on a GPU host"
        raise TracediffError(f"--device {device}", reason, remedy)
    use_device(device)


def _first_steps(spec: Spec, task: Task, variant: Variant) -> tuple[float, dict[str, Any]]:
    """(seconds of the first step, what the first and the fourth step computed)."""
    state, start = random_state(), time.perf_counter()
    returned = task.step()
    synchronise(spec.device)
    first_step_s = time.perf_counter() - start
    results: dict[str, Any] = {"dtype": dtype_of(returned, variant), "is_random": random_state() != state}
    results["first"] = computed(returned, task, variant)
    _enter("warm-up", spec)
    for _ in range(SETTLING):
        returned = task.step()
    results["later"] = computed(returned, task, variant)
    return first_step_s, results


def _enter(phase: str, spec: Spec) -> None:
    """Tell the driver which of `run_progress.PHASES` begins."""
    Path(spec.phase_file).write_text(phase)


def _seed(seed: int) -> None:
    import torch

    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def _task(spec: Spec, variant: Variant) -> Task:
    if spec.workload:
        selected = workload(spec.workload)
        task: Task = selected.make(variant, spec.device, **selected.sizes[spec.size])
    else:
        task = make_user_task(spec.target, variant, spec.arguments)
    if variant.has("compiled_optimizer") and not variant.optimizers:
        raise TracediffError(
            f"--variant {variant.text}",
            "the step has no optimizer to compile",
            "in make_step, write update = variant.update(optimizer, device), and in the step update(loss)",
        )
    return task


def _annotate(task: Task, how: str, variant: Variant) -> dict[str, str]:
    """Record scopes; the nodes of an FX graph with what each calls."""
    if how == "fx" and variant.compiles:
        reason = f"would interpret the model node by node, so that {variant.text} no longer compiles it"
        raise TracediffError("--annotate fx", reason, "use --annotate modules, or variants that do not compile")
    models = variant.captured or [task.model]
    if any(is_scripted(model) for model in models):
        reason = f"{variant.text} runs TorchScript, in which a scope cannot be recorded"
        raise TracediffError(f"--annotate {how}", reason, "use --detail structure, which records its modules")
    if not all(hasattr(model, "named_modules") for model in models):
        raise TracediffError(
            f"--annotate {how}",
            "the step has no model to annotate",
            "return an object with step and model from make_step",
        )
    nodes: dict[str, str] = {}
    for model in models:
        if how == "fx":
            nodes |= annotate_fx(model)
        else:
            annotate_modules(model)
    return nodes


def _profiled(spec: Spec, task: Task, compile_trace: CompileTrace | None) -> tuple[Samples, float | None]:
    """Run the steps under the profiler; the samples of the recorded ones, and the part in which they waited for a
    processor.
    """
    first = spec.wait + spec.warmup
    path = Path(spec.trace)
    path.parent.mkdir(parents=True, exist_ok=True)
    measured = StepTimer(spec.device)
    detail = dict.fromkeys(DETAIL[spec.detail], True)
    with recording(path, spec.wait, spec.warmup, spec.active, detail, compile_trace) as recorder:
        for _ in range(first + spec.active):
            measured.run(task.step)
            recorder.step()
    if spec.device.startswith("cuda") and recorder.device == "cpu":
        remedy = "use --device cpu if the step runs there; else end other profilers of this GPU"
        raise TracediffError(f"--device {spec.device}", "no GPU event was recorded", remedy)
    samples = measured.samples()[first:]
    for i, model in enumerate(OnnxModel.instances):
        model.save_profile(path.with_name(f"rank{spec.rank}{f'-{i}' if i else ''}.onnxruntime.json"))
    return samples, recorder.waiting


def _settle(task: Task, device: str) -> None:
    """Let the clocks of a GPU rise."""
    until = time.perf_counter() + (SETTLING_S if device.startswith("cuda") else 0.0)
    while time.perf_counter() < until:
        task.step()
        synchronise(device)


def _modules(task: Task, variant: Variant) -> dict[str, str]:
    if (
        task.model is None or variant.compiles
    ):  # hooks would cause a recompilation; the names come from the eager variant
        return {}
    try:
        return names_in_call_order(task.model, task.step)
    except Exception:  # a scripted or exported model has no hooks
        return {}


def reason_of(error: BaseException) -> str:
    """Type and first line of an error; of one that torch.compile raised, with the line of the user's code."""
    if isinstance(error, SystemExit):
        return f"its code called sys.exit({repr(error.code)[: bounds.REASON]})"
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    places = FRAME.findall(str(error).partition("from user code:")[2])
    place = f" ({Path(places[-1][0]).name}:{places[-1][1]})" if places else ""
    return f"{type(error).__name__}: {first if len(first) <= bounds.REASON else first[: bounds.REASON] + '…'}{place}"


def _in_step(error: BaseException) -> TracebackType | None:
    """The traceback from the first frame on that is not the collector's."""
    frame = error.__traceback__
    while frame and frame.tb_frame.f_code.co_filename.startswith(str(Path(__file__).parent)):
        frame = frame.tb_next
    return frame or error.__traceback__


def main() -> None:
    """``python -m tracediff.collect.worker SPEC RESULT``: read the JSON file SPEC and write the JSON file RESULT."""
    spec = Spec(**json.loads(Path(sys.argv[1]).read_text()))
    try:
        result = run(spec)
    except TracediffError as error:
        _leave({"error": str(error)})
        sys.exit(2)
    except BaseException as error:  # user code may exit, or raise whatever it likes
        _leave({"error": reason_of(error)})
        traceback.print_exception(error.with_traceback(_in_step(error)))
        sys.exit(1)
    _leave(result)


def _leave(result: dict[str, Any]) -> None:
    """Write the result, whole or not at all."""
    partial = Path(f"{sys.argv[2]}.partial")
    partial.write_text(json.dumps(result, allow_nan=False))
    os.replace(partial, sys.argv[2])


if __name__ == "__main__":
    main()
