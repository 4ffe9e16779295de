"""The step account, slow and plain, straight from the JSON: what docs/concepts.md says, one instant after the other.
Checks the fast path.
"""

from __future__ import annotations

import gzip
import json
import re
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

from tracediff.profile.kernels.families import family_of

CATEGORY = {
    "Operator": "cpu_op",
    "Kernel": "kernel",
    "Runtime": "cuda_runtime",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
}
GPU = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
HOST = ("cpu_op", *CALLS, "user_annotation", "python_function")
STATES = (
    "gpu_compute",
    "gpu_comm",
    "gpu_copy",
    "gpu_queued",
    "data_loading",
    "synchronising",
    "launching",
    "op",
    "python",
)


def ns(value: Any) -> int:
    return value * 1000 if isinstance(value, int) else int(Decimal(str(value)) * 1000)


def read(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    root = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, parse_float=str)
    events = [
        e
        for e in (root if isinstance(root, list) else root["traceEvents"])
        if e.get("ph") == "X" and e.get("dur") is not None
    ]
    for e in events:
        e["ts"], e["dur"] = ns(e["ts"]), ns(e["dur"])
        e["end"] = e["ts"] + e["dur"]
        e["cat"] = CATEGORY.get(e.get("cat"), e.get("cat"))
        if e["cat"] == "cpu_op" and e["name"].startswith(("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)")):
            e["cat"] = "user_annotation"
        e["args"] = e.get("args") or {}
    return events


def step_windows(events: list[dict[str, Any]]) -> tuple[list[tuple[int, int, int]], bool]:
    """[(number, start, end)] in order, without an empty last one; and whether the file has no step and is taken
    whole.
    """
    first: dict[int, dict[str, Any]] = {}
    for e in sorted((e for e in events if e["cat"] in ("user_annotation", "cpu_op", None)), key=lambda e: e["ts"]):
        match = re.match(r"ProfilerStep\s*#\s*(\d+)", e["name"])
        if match:
            first.setdefault(int(match[1]), e)
    if not first:
        whole = [e for e in events if e["cat"] in HOST + GPU]
        return [(0, min(e["ts"] for e in whole), max(e["end"] for e in whole))], True
    steps = [(n, e["ts"], e["end"]) for n, e in first.items()]
    _, start, end = steps[-1]
    inside = [
        e for e in events if e["cat"] in HOST and start <= e["ts"] < end and not e["name"].startswith("ProfilerStep")
    ]
    return (steps[:-1] if len(steps) > 1 and not inside else steps), False


def account(path: Path) -> tuple[list[int], list[int], list[dict[str, int]]]:
    """(step numbers, periods in ns, per step state → ns)."""
    events = read(path)
    steps, whole = step_windows(events)
    launch = {
        e["args"]["correlation"]: e
        for e in sorted(events, key=lambda e: e["ts"])
        if e["cat"] in CALLS and "correlation" in e["args"]
    }
    gpu = [(e, launch.get(e["args"].get("correlation"))) for e in events if e["cat"] in GPU]
    completions = [drained(steps, gpu) if not whole else steps[0][1]]
    for _, start, end in steps:
        launched = [
            e["end"]
            for e, launch_call in gpu
            if whole or (launch_call is not None and start <= launch_call["ts"] < end)
        ]
        completions.append(max([end, completions[-1], *launched]))
    holding = _intervals(events, gpu)
    if not gpu:
        holding = [h for h in holding if h[2] != "op"] + _innermost_ops(events, steps)
    holding += [(start, end, "waits") for start, end in collective_waits(events)]
    return [n for n, _, _ in steps], [b - a for a, b in pairwise(completions)], _swept(holding, completions)


def collective_waits(events: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """From what the host did last, or the start of a collective that a thread of its own carries out, to its end."""
    collectives = [e for e in events if e["cat"] == "user_annotation" and e["name"].startswith("gloo:")]
    others = [
        e
        for e in events
        if e["cat"] in ("cpu_op", *CALLS)
        and e["dur"]
        and not any(c["tid"] == e["tid"] and c["ts"] <= e["ts"] < c["end"] for c in collectives)
    ]
    return [
        (max([c["ts"], *(e["end"] for e in others if e["ts"] < c["end"])]), c["end"]) for c in collectives if c["dur"]
    ]


def drained(steps: list[tuple[int, int, int]], gpu: list[tuple[dict[str, Any], Any]]) -> int:
    """When the GPU has ended what it ran before the first event that the first step launched."""
    _, start, end = steps[0]
    own = [e for e, launch in gpu if launch is not None and start <= launch["ts"] < end]
    if not own:
        return start
    first = min(e["ts"] for e in own)
    in_a_step = [launch is not None and any(a <= launch["ts"] < b for _, a, b in steps) for _, launch in gpu]
    earlier = [e["end"] for (e, _), inside in zip(gpu, in_a_step, strict=True) if not inside and e["ts"] < first]
    return max(start, min(max(earlier, default=start), first))


def _intervals(events: list[dict[str, Any]], gpu: list[tuple[dict[str, Any], Any]]) -> list[tuple[int, int, str]]:
    out = []
    launching = set()
    for e, launch_call in gpu:
        state = (
            "gpu_copy"
            if e["cat"] != "kernel"
            else "gpu_comm"
            if re.search("nccl|rccl|oneccl|msccl|nvshmem", e["name"], re.I)
            else "gpu_compute"
        )
        out.append((e["ts"], e["end"], state))
        if launch_call is not None:
            launching.add(id(launch_call))
            out.append((launch_call["end"], e["ts"], "gpu_queued"))
    for e in events:
        if e["cat"] == "user_annotation" and "DataLoader" in e["name"]:
            out.append((e["ts"], e["end"], "data_loading"))
        if e["cat"] in CALLS and (
            "Synchronize" in e["name"] or e["name"] in ("cudaMemcpy", "hipMemcpy", "hipMemcpyWithStream")
        ):
            out.append((e["ts"], e["end"], "synchronising"))
        if id(e) in launching:
            out.append((e["ts"], e["end"], "launching"))
        if e["cat"] in ("cpu_op", *CALLS):
            out.append((e["ts"], e["end"], "op"))
    return out


def _innermost_ops(events: list[dict[str, Any]], steps: list[tuple[int, int, int]]) -> list[tuple[int, int, str]]:
    """Without a GPU: op:<family> of the innermost op of the step's thread, where that is in none of the next by tid."""
    ops = [e for e in events if e["cat"] in ("cpu_op", *CALLS) and e["dur"]]
    starts = {start for _, start, _ in steps}
    main = {(e["pid"], e["tid"]) for e in events if e["cat"] == "user_annotation" and e["ts"] in starts}
    threads = sorted({(e["pid"], e["tid"]) for e in ops}, key=lambda t: (t not in main, int(t[1])))
    edges = sorted({t for e in ops for t in (e["ts"], e["end"])})
    by_thread = {
        t: sorted((e for e in ops if (e["pid"], e["tid"]) == t), key=lambda e: (e["ts"], -e["dur"])) for t in threads
    }
    open_now: dict[Any, list[dict[str, Any]]] = {t: [] for t in threads}
    next_one = dict.fromkeys(threads, 0)
    out = []
    for a, b in pairwise(edges):
        for t in threads:
            while next_one[t] < len(by_thread[t]) and by_thread[t][next_one[t]]["ts"] <= a:
                open_now[t].append(by_thread[t][next_one[t]])
                next_one[t] += 1
            while open_now[t] and open_now[t][-1]["end"] <= a:
                open_now[t].pop()
        thread = next((t for t in threads if open_now[t]), None)
        if thread is not None:
            out.append((a, b, "op:" + family_of(open_now[thread][-1]["name"])))
    return out


def _swept(holding: list[tuple[int, int, str]], completions: list[int]) -> list[dict[str, int]]:
    names = list(STATES) + sorted({s for _, _, s in holding} - set(STATES))
    order = {s: i for i, s in enumerate(names)}
    changes: dict[int, list[tuple[int, int]]] = {c: [] for c in completions}
    for start, end, state in holding:
        if end > start:
            changes.setdefault(start, []).append((order[state], 1))
            changes.setdefault(end, []).append((order[state], -1))
    open_count = [0] * len(names)
    step, per_step = -1, [dict.fromkeys(names, 0) for _ in completions[1:]]
    times = sorted(changes)
    for now, then in zip(times, times[1:] + times[-1:], strict=True):
        for state, change in changes[now]:
            open_count[state] += change
        while step + 1 < len(completions) - 1 and completions[step + 1] <= now:
            step += 1
        if step >= 0 and now < completions[-1]:
            held = next((s for s in names if s != "python" and open_count[order[s]]), "python")
            per_step[step][held] += then - now
    for states in per_step:
        states["synchronising"] += states.pop("waits", 0)
    return per_step
