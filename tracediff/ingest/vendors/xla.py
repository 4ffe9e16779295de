"""TPUs in the Chrome traces of XProf, which JAX writes: events have no category, but a process and a thread.

- ``/device:TPU:0``, thread "XLA Ops": the instructions that a core runs, one after the other: the work. An instruction
  that contains others (a loop) is not work of its own.
- "XLA Modules", "Steps": programs and steps as a whole: annotations on the device.
- Its other threads ("Async XLA Ops", name scopes, counters) show the same time again, or what runs beside the core.
- ``/host:CPU``: Python's functions begin with ``$``, and those around the work are cut to it; a step has a
  ``step_num``; the rest are annotations.

A program has the ``run_id`` of the host's call that enqueued it, and each instruction belongs to the program around it.
"""

import re
from functools import lru_cache

import numpy as np

from tracediff.arrays import MISSING, Bools, Int64, codes_of, int64_of, last_begun, values_at
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.names import bounded, process_labels, thread_names
from tracediff.ingest.model.trace import Trace
from tracediff.ingest.vendors import id_numbers, note_marks, rows_apart
from tracediff.patterns import NAMES_KEPT
from tracediff.runtimes import ARGUMENT, TPU, device_of_process, is_communication

OPS = "XLA Ops"
WHOLES = ("XLA Modules", "Steps")
"""Threads of programs and steps."""
MARKS = f"{TPU.prefix}marks"
"""Category of events that are not work."""
CALL = re.compile("|".join(TPU.names.values()))
NUMBER = re.compile(r"^/device:\w+:(\d{1,9})$")
PYTHON_FUNCTION = re.compile(r"^\$(?P<file>[^:]*):(?P<line>\d+) (?P<function>.*)$", re.DOTALL)
OPERATOR = re.compile(r"aten::[\w.]+")
ROUNDING = 2
"""ns by which neighbours may overlap since starts and durations are rounded."""


def translate_xla(trace: Trace, notes: Notes) -> None:
    """Categories, devices, streams and correlations of instructions, programs and the calls that enqueue them."""
    labels = process_labels(trace)
    devices = np.array([device_of_process(names) == TPU.device for names in labels], bool)
    threads = {place: name for place, name in thread_names(trace).items() if devices[place[0]]}
    if OPS not in threads.values():
        return
    rows = rows_apart(trace)
    on_device = devices[trace.pid[rows]]
    ops, wholes = (rows[on_device & _on_threads(trace, rows, threads, names)] for names in ((OPS,), WHOLES))
    if not len(ops):
        return
    contains = _contain_others(trace, ops)
    work = ops[~contains]
    host = rows[np.array([device_of_process(names) == "" for names in labels], bool)[trace.pid[rows]]]
    is_call = trace.name_matches(CALL.match, host)
    is_python = trace.name_matches(lambda name: name.startswith("$"), host)

    category = trace.category.copy()
    category[rows] = mark = trace.category_code(MARKS)
    category[work] = cat.KERNEL
    category[wholes] = cat.GPU_ANNOTATION
    category[host] = np.where(is_call, cat.KNOWN.index(TPU.calls[0]), np.where(is_python, cat.PYTHON, cat.ANNOTATION))
    marks = np.count_nonzero(category[rows] == mark) - contains.sum()

    outside, cut = _cut(trace, host[is_python], np.concatenate((work, wholes, host[~is_python])))
    category[outside] = mark

    run, ordinal, step = (trace.integers(argument) for argument in ("run_id", "device_ordinal", "step_num"))
    device = int64_of([_number(names) for names in labels])[trace.pid]
    descriptions = (trace.texts_of(argument, work) for argument in ("hlo_category", "tf_op"))
    new_names = list(map(_instruction_name, trace.names_of(work), *descriptions))
    trace.refile(category)
    trace.rename(work, new_names)
    trace.rename(host[is_python], list(map(_python_name, trace.names_of(host[is_python]))))
    steps = host[~is_call & ~is_python & (step[host] >= 0)]
    trace.rename(steps, [f"ProfilerStep#{number}" for number in step[steps].tolist()])
    placed = np.sort(np.concatenate((work, wholes)))
    trace.set_integers(ARGUMENT.device, placed, device[placed])
    trace.set_integers(ARGUMENT.stream, placed, id_numbers(trace, trace.tid[placed]))  # the number of their thread
    _join(trace, work, wholes, host[is_call], device, np.where(ordinal == MISSING, device, ordinal), run)
    note_marks(notes, TPU.name, contains.sum(), "instructions that contain others, such as loops,")
    note_marks(notes, TPU.name, marks, f"events outside the threads {', '.join((OPS, *WHOLES))}")
    note_marks(notes, "Python", len(outside), "functions before the first and after the last event of XLA")
    message = "Python functions were cut to the time from the first to the last event of XLA"
    notes.add("cut-python", message, cut)


def _on_threads(trace: Trace, rows: Int64, threads: dict[tuple[int, int], str], names: tuple[str, ...]) -> Bools:
    """bool[n]: which events at ``rows`` are on a thread with one of these names."""
    width = len(trace.ids) + 1
    thread_codes = [pid * width + tid for (pid, tid), name in threads.items() if name in names]
    is_on_thread: Bools = np.isin(trace.thread(rows), thread_codes)
    return is_on_thread


def _contain_others(trace: Trace, ops: Int64) -> Bools:
    """bool[n]: within which events at ``ops`` another of their thread begins and ends. Neighbours of no length are not
    within each other.
    """
    out = np.zeros(len(ops), bool)
    place = trace.thread(ops)
    for code in np.unique(place).tolist():
        mine = np.flatnonzero(place == code)
        start, end = trace.spans(ops[mine])
        order = np.lexsort((-end, start))
        start, end = start[order], end[order]
        last = len(order) - 1
        following, later = np.arange(1, len(order) + 1), np.searchsorted(start, start + ROUNDING, side="right")
        for inner in (following, later):
            is_inside, inner = inner <= last, np.minimum(inner, last)
            lasts = (end[inner] > start + ROUNDING) & (end[inner] <= end + ROUNDING)
            out[mine[order]] |= is_inside & lasts & (start[inner] < end - ROUNDING)
    return out


def _cut(trace: Trace, functions: Int64, others: Int64) -> tuple[Int64, int]:
    """Cut ``functions`` to the time from the first to the last of ``others``: those that run when a recording begins or
    ends last as long as the profiler takes to start, to stop and to wait.

    Returns:
        (int64[m] rows of the functions wholly outside of this time, which are as they were; how many others were cut)
    """
    first, last = trace.ts[others].min(), trace.spans(others)[1].max()
    start, end = trace.spans(functions)
    outside = (end <= first) | (start >= last)
    cut = ~outside & ((start < first) | (end > last))
    trace.ts, trace.dur = trace.ts.copy(), trace.dur.copy()
    trace.ts[functions[cut]] = np.maximum(start[cut], first)
    trace.dur[functions[cut]] = np.minimum(end[cut], last) - trace.ts[functions[cut]]
    return functions[outside], cut.sum()


def _number(labels: list[str]) -> int:
    """The number of the device in the name of its process, MISSING without one."""
    return next((int(match[1]) for label in labels if (match := NUMBER.match(label))), MISSING)


@lru_cache(maxsize=NAMES_KEPT)
def _instruction_name(name: str, kind: str, source: str) -> str:
    """``%fusion.12 (loop fusion, aten::mul.Tensor)``: as XLA spells it, its category, and the operator it comes from,
    as far as the name does not say them.
    """
    name = "%" + "_".join(name.removeprefix("%").split())
    operator = _operator(source)
    if is_communication(operator) and not is_communication(f"{name} ({kind})"):
        operator = ""  # what only prepares a collective has the operator of the collective
    redundant = ("", name[1:].partition(".")[0])
    details = ", ".join(dict.fromkeys(detail for detail in (kind, operator) if detail not in redundant))
    return bounded(f"{name} ({details})" if details else name)


def _operator(source: str) -> str:
    """``aten::mul.Tensor`` of ``jit(step)/aten::mul.Tensor/mul:``; without such an operator, the primitive at the end;
    empty where the source is not a path.
    """
    path = source.partition(";")[0].removesuffix(":")
    operators = OPERATOR.findall(path)
    return operators[-1] if operators else path.rpartition("/")[2] if "/" in path else ""


def _python_name(name: str) -> str:
    """``core.py(12): step`` of ``$core.py:12 step``, as Kineto spells it."""
    match = PYTHON_FUNCTION.match(name)
    return f"{match['file']}({match['line']}): {match['function']}" if match else name.removeprefix("$") or name


def _join(
    trace: Trace, work: Int64, programs: Int64, calls: Int64, device: Int64, call_device: Int64, run: Int64
) -> None:
    """Give each call that enqueues, and the instructions of its program, the same correlation.

    Args:
        device: int64[n] of each event's process. called: int64[n] the device that a call is for.
        run: int64[n] of calls and programs; a number of their device's own.
    """
    programs, calls = programs[run[programs] != MISSING], calls[run[calls] != MISSING]
    devices = np.concatenate((device[programs], call_device[calls]))
    code = codes_of(devices, np.concatenate((run[programs], run[calls])))
    trace.set_integers(ARGUMENT.correlation, calls, code[len(programs) :])
    around = _around(trace, work, programs)
    inside = around >= 0
    trace.set_integers(ARGUMENT.correlation, work[inside], code[around[inside]])


def _around(trace: Trace, work: Int64, programs: Int64) -> Int64:
    """int64[n]: the place in ``programs`` of the program that runs in the middle of each instruction, −1 for none."""
    middle = trace.ts[work] + trace.dur[work] // 2
    place = last_begun(trace.pid[programs], trace.ts[programs], trace.pid[work], middle)
    ends = values_at(trace.spans(programs)[1] + ROUNDING, place)
    return np.where((place >= 0) & (middle <= ends), place, -1)
