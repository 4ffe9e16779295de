"""Builds small synthetic traces, event by event, as Kineto writes them.

Every function returns one plain event (a dict); times are microseconds. `document` makes a trace of events, `write` a
file of it:

    events = [step(1, 0, 100), op("aten::mm", 10, 20), call("cudaLaunchKernel", 12, 3, correlation=1), kernel("gemm",
    40, 25, correlation=1)]
    path = write(tmp_path / "trace.json", document(events))
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Event = dict[str, Any]
Document = dict[str, Any]

PROCESS, MAIN, BACKWARD = 100, 100, 101
"""Process id, and ids of its main and its autograd thread."""


def event(cat: str, name: str, ts: Any, dur: Any, pid: Any = PROCESS, tid: Any = MAIN, **args: Any) -> Event:
    """A complete event of any category; ``args`` are its arguments (``**{"External id": 1}`` for names with spaces)."""
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def op(name: str, ts: Any, dur: Any, tid: Any = MAIN, **args: Any) -> Event:
    """An operator, such as ``aten::mm``; ``**{"Input Dims": [[2, 3], [3, 4]]}`` gives it shapes."""
    return event("cpu_op", name, ts, dur, tid=tid, **args)


def call(name: str, ts: Any, dur: Any, correlation: int | None = None, tid: Any = MAIN, **args: Any) -> Event:
    """A CUDA or HIP runtime call; with a correlation it launches the GPU events of the same correlation."""
    return event(
        "cuda_runtime", name, ts, dur, tid=tid, **({} if correlation is None else {"correlation": correlation}), **args
    )


def kernel(
    name: str,
    ts: Any,
    dur: Any,
    correlation: int | None = None,
    stream: int = 7,
    device: int = 0,
    cat: str = "kernel",
    **args: Any,
) -> Event:
    """A kernel on the GPU."""
    launched = {} if correlation is None else {"correlation": correlation}
    return event(cat, name, ts, dur, pid=device, tid=stream, **{"device": device, "stream": stream, **launched, **args})


def memcpy(
    name: str, ts: Any, dur: Any, correlation: int | None = None, stream: int = 7, device: int = 0, **args: Any
) -> Event:
    """A copy on the GPU, such as ``Memcpy HtoD (Pageable -> Device)``."""
    return kernel(name, ts, dur, correlation, stream, device, cat="gpu_memcpy", **args)


def memset(ts: Any, dur: Any, correlation: int | None = None, stream: int = 7, device: int = 0, **args: Any) -> Event:
    """A memset on the GPU."""
    return kernel("Memset (Device)", ts, dur, correlation, stream, device, cat="gpu_memset", **args)


def annotation(name: str, ts: Any, dur: Any, tid: Any = MAIN, **args: Any) -> Event:
    """A user annotation, such as ``Optimizer.step#Adam.step`` or
    ``enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__``.
    """
    return event("user_annotation", name, ts, dur, tid=tid, **args)


def step(number: int, ts: Any, dur: Any, tid: Any = MAIN) -> Event:
    """The host's ``ProfilerStep#number``."""
    return annotation(f"ProfilerStep#{number}", ts, dur, tid)


def python(
    name: str, ts: Any, dur: Any, number: int, parent: int | None = None, module: int | None = None, tid: Any = MAIN
) -> Event:
    """A Python function, such as ``model.py(12): forward`` or ``nn.Module: Linear_0``."""
    args = {"Python id": number, "Python parent id": parent, "Python module id": module}
    return event(
        "python_function",
        name,
        ts,
        dur,
        tid=tid,
        **{k: v for k, v in args.items() if v is not None or k == "Python parent id"},
    )


def memory(
    ts: Any, allocated: int, total: int, device: int = 0, tid: Any = MAIN, name: str = "[memory]", **args: Any
) -> Event:
    """An allocation (a negative one frees); ``args`` are further arguments or other ones."""
    args = {"Total Allocated": total, "Bytes": allocated, "Addr": 4096, "Device Id": device, "Device Type": 1} | args
    return {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": name,
        "pid": PROCESS,
        "tid": tid,
        "ts": ts,
        "args": args,
    }


def flow(phase: str, number: int, ts: Any, tid: Any = MAIN, cat: str = "ac2g") -> Event:
    """One end of an arrow: phase ``s`` starts it, ``f`` ends it."""
    return {
        "ph": phase,
        "id": number,
        "pid": PROCESS,
        "tid": tid,
        "ts": ts,
        "cat": cat,
        "name": cat,
        **({"bp": "e"} if phase == "f" else {}),
    }


def process_name(name: str, pid: Any = PROCESS, ts: Any = 0) -> Event:
    """A metadata event."""
    return {"name": "process_name", "ph": "M", "ts": ts, "pid": pid, "tid": 0, "args": {"name": name}}


def document(events: Iterable[Event], **meta: Any) -> Document:
    """A trace of ``events``; ``meta`` are further top-level keys, in front of the events (``distributedInfo={"rank":
    1}``).
    """
    return {"schemaVersion": 1, **meta, "traceEvents": list(events)}


def as_kineto(trace: Document) -> str:
    """As Kineto pretty-prints: one event over several lines, arguments indented, ``traceName`` behind the events."""
    head = "".join(f"  {json.dumps(k)}: {json.dumps(v)},\n" for k, v in trace.items() if k != "traceEvents")
    return (
        f'\n{{\n{head}  "traceEvents": [\n'
        + ",\n".join(map(_kineto_event, trace["traceEvents"]))
        + '\n  ],\n  "traceName": "/tmp/trace.json"\n}\n'
    )


def _kineto_event(event_: Event) -> str:
    base = ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in event_.items() if k != "args")
    if "args" not in event_:
        return f"  {{\n    {base}\n  }}"
    args = ",\n      ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in event_["args"].items())
    return f'  {{\n    {base},\n    "args": {{\n      {args}\n    }}\n  }}'


LAYOUTS: dict[str, Callable[[Document], str]] = {
    "kineto": as_kineto,
    "compact": lambda trace: json.dumps(trace, separators=(",", ":")),
    "spaced": json.dumps,
    "indent": lambda trace: json.dumps(trace, indent=2),
    "crlf": lambda trace: json.dumps(trace, indent=4).replace("\n", "\r\n"),
    "list": lambda trace: json.dumps(trace["traceEvents"]),
}
"""The ways in which traces in use are laid out; "list" is torch 1.8's, without metadata."""


def text(trace: Document, layout: str = "kineto") -> bytes:
    """The JSON text of a trace."""
    return LAYOUTS[layout](trace).encode()


def write(path: Path, trace: Document, layout: str = "kineto") -> Path:
    """Write a trace to ``path``, packed where it ends in ``.gz``; folders are made. Returns ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text(trace, layout)
    path.write_bytes(gzip.compress(content, 1) if path.name.endswith(".gz") else content)
    return path


def rows(trace: Any) -> list[tuple[Any, ...]]:
    """What a `Trace` holds, event by event, without codes: (ts, dur, name, category, pid, tid, phase, arguments)."""
    columns = (trace.ts, trace.dur, trace.name, trace.category, trace.pid, trace.tid, trace.phase)
    tables = (None, None, trace.names, trace.categories, trace.ids, trace.ids, trace.phases)
    values = [c.tolist() if t is None else [t[i] for i in c.tolist()] for c, t in zip(columns, tables, strict=True)]
    return [(*row, trace.arguments_of(i)) for i, row in enumerate(zip(*values, strict=True))]


def noted(trace: Any) -> dict[str, int]:
    """How many events each health note of a `Trace` concerns, by code."""
    out: dict[str, int] = {}
    for note in trace.notes:
        out[note.code] = out.get(note.code, 0) + note.count
    return out
