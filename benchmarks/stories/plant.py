"""Changes of a trace whose cause is known: each takes the events of a real trace and returns those of a variant.

Time is inserted: at chosen instants the clock stands still for everything but what is open then, so that the step
becomes longer by exactly what was planted, on the host and on the GPU alike.
"""

from __future__ import annotations

import copy
import random
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from tracediff.profile.kernels.families import family_of_kernel
from tracediff.profile.kernels.match_names import table_name

Event = dict[str, Any]
STEP = re.compile(r"ProfilerStep\s*#\s*(\d+)")
LONG_STEP = 400_000.0
"""A launch of 12 ms is no cause of a change in a step longer than this, in µs."""
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@dataclass(frozen=True)
class Planted:
    """A variant.

    Attributes:
        events: of the variant. codes: the findings that name the cause; empty if none may claim a change.
        named: text that the finding or its evidence must contain, in lower case.
    """

    events: list[Event]
    codes: tuple[str, ...]
    named: str = ""


Plant = Callable[[list[Event], random.Random], Planted | None]


def complete(events: Iterable[Event], *categories: str) -> Iterator[Event]:
    """The complete events of ``categories`` with a duration."""
    return (e for e in events if e.get("ph") == "X" and e.get("cat", "").lower() in categories and e.get("dur", 0) > 0)


def kernels(events: Iterable[Event]) -> list[Event]:
    """The kernels that the used steps launched, without communication."""
    windows = steps(events)
    used = {e.get("args", {}).get("correlation") for e in _launch_calls(events) if inside(e, windows)}
    return [
        e
        for e in complete(events, "kernel")
        if e.get("args", {}).get("correlation") in used and family_of_kernel(e["name"], None) != "communication"
    ]


def _launch_calls(events: list[Event]) -> Iterator[Event]:
    return (e for e in _calls(events) if "Launch" in e["name"])


def _calls(events: list[Event]) -> Iterator[Event]:
    return complete(events, "cuda_runtime", "cuda_driver", "runtime")


def gpu_idle(events: list[Event]) -> Callable[[float], bool]:
    """A function that tells whether the GPU has nothing to do at an instant: all that was launched is done."""
    launched = {e.get("args", {}).get("correlation"): e["ts"] for e in _calls(events)}
    busy = sorted(
        (min(e["ts"], launched.get(e.get("args", {}).get("correlation"), e["ts"])), e["ts"] + e["dur"])
        for e in complete(events, "kernel", "gpu_memcpy", "gpu_memset")
    )
    starts, latest = [s for s, _ in busy], [*accumulate((e for _, e in busy), max)]

    def idle(instant: float) -> bool:
        k = bisect_right(starts, instant) - 1
        return k < 0 or latest[k] <= instant

    return idle


def launches(events: list[Event]) -> list[Event]:
    """The calls that launch kernels of the used steps."""
    launched = {e["args"]["correlation"] for e in kernels(events)}
    return [e for e in _launch_calls(events) if e.get("args", {}).get("correlation") in launched]


def steps(events: list[Event]) -> list[tuple[float, float]]:
    """The windows of the used steps; of a file without steps, its span."""
    found = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e.get("ph") == "X" and STEP.match(e["name"])
                   and not str(e.get("cat", "")).startswith("gpu"))  # fmt: skip
    if not found:
        spans = [(e["ts"], e["ts"] + e["dur"]) for e in events if e.get("ph") == "X" and "dur" in e]
        return [(min(s for s, _ in spans), max(e for _, e in spans))]
    return found[1:] if len(found) > 2 else found


def inside(event: Event, windows: list[tuple[float, float]]) -> bool:
    """Whether ``event`` begins in one of ``windows``."""
    return any(low <= event["ts"] < high for low, high in windows)


def inserted(events: list[Event], additions: Iterable[tuple[float, float]]) -> list[Event]:
    """Copies of ``events`` with time inserted: (instant, length) in µs each; what is open at an instant is longer."""
    ordered = sorted(additions)
    instants = [t for t, _ in ordered]
    total = [0.0, *accumulate(d for _, d in ordered)]
    out = []
    for event in events:
        moved = dict(event)
        if isinstance(event.get("ts"), int | float):
            start = bisect_right(instants, event["ts"])
            moved["ts"] = event["ts"] + total[start]
            if isinstance(event.get("dur"), int | float):
                moved["dur"] = event["dur"] + total[bisect_right(instants, event["ts"] + event["dur"])] - total[start]
        out.append(moved)
    return out


def _slower(events: list[Event], some: list[Event], factor: float) -> list[Event]:
    return inserted(events, ((e["ts"] + e["dur"] / 2, e["dur"] * (factor - 1)) for e in some))


def gemm_slower(events: list[Event], rng: random.Random) -> Planted | None:
    """(a) Every matrix product takes 10 % longer."""
    some = [e for e in kernels(events) if family_of_kernel(e["name"], None) == "gemm"]
    if sum(e["dur"] for e in some) < 0.2 * sum(e["dur"] for e in kernels(events)):
        return None
    factors = {id(e): rng.gauss(1.1, 0.01) for e in some}
    made = inserted(events, ((e["ts"] + e["dur"] / 2, e["dur"] * (factors[id(e)] - 1)) for e in some))
    return Planted(made, ("slower-family", "slower-kernel"), "gemm")


def kernel_doubled(events: list[Event], rng: random.Random) -> Planted | None:
    """(b) One kernel takes twice as long."""
    by_name: dict[str, list[Event]] = defaultdict(list)
    for event in kernels(events):
        by_name[table_name(event["name"])].append(event)
    whole = sum(e["dur"] for e in kernels(events))
    large = sorted(n for n, es in by_name.items() if 0.03 < sum(e["dur"] for e in es) / whole < 0.5)
    if not large:
        return None
    some = by_name[rng.choice(large)]
    family = family_of_kernel(some[0]["name"], None)
    return Planted(_slower(events, some, 2), ("slower-kernel", "slower-family"), family)


def loader_wait(events: list[Event], rng: random.Random) -> Planted | None:
    """(c) Each step begins with a wait for the DataLoader."""
    windows = steps(events)
    wait = rng.uniform(0.2, 0.5) * sum(e - s for s, e in windows) / len(windows)
    idle = gpu_idle(events)
    starts = [s + 0.001 for s, _ in windows]
    if not all(map(idle, starts)):
        return None
    made = inserted(events, ((s, wait) for s in starts))
    step = next((e for e in events if e.get("ph") == "X" and STEP.match(e["name"])), None)
    if step is None:
        return None
    before = 0.0
    for start in starts:
        made.append({"ph": "X", "cat": "user_annotation", "name": LOADER, "pid": step["pid"], "tid": step["tid"],
                     "ts": start + before, "dur": wait - 0.002})  # fmt: skip
        before += wait
    return Planted(made, ("data-loading",))


def slow_launch(events: list[Event], rng: random.Random) -> Planted | None:
    """(d) One launch takes 12 ms."""
    windows = steps(events)
    idle = gpu_idle(events)
    some = [e for e in launches(events) if inside(e, windows) and idle(e["ts"] - 0.5)]
    if not some or max(e - s for s, e in windows) > LONG_STEP:
        return None
    call = rng.choice(some)
    codes = ("launch-bound", "outlier-step") if len(windows) >= 4 else ("launch-bound",)
    return Planted(inserted(events, [(call["ts"] + call["dur"] / 2, 12_000.0)]), codes)


def slow_step(events: list[Event], rng: random.Random) -> Planted | None:
    """(e) One step of many is slow, in no operator."""
    windows = steps(events)
    if len(windows) < 4:
        return None
    idle = gpu_idle(events)
    windows = [w for w in windows if idle(w[0] + 0.001)]
    if not windows:
        return None
    start, end = rng.choice(windows)
    length = rng.uniform(1, 3) * (end - start)
    return Planted(inserted(events, [(start + 0.001, length)]), ("outlier-step",))


def renamed(events: list[Event], rng: random.Random) -> Planted | None:
    """(f) 5 % of the kernels have other names, and take as long."""
    names = sorted({e["name"] for e in kernels(events)})
    some = set(rng.sample(names, max(1, len(names) // 20)))
    out = copy.deepcopy(events)
    for event in out:
        if event.get("name") in some and event.get("cat", "").lower() == "kernel":
            event["name"] = event["name"].replace("128", "256") + "_v2"
    return Planted(out, ())


def operator_added(events: list[Event], rng: random.Random) -> Planted | None:
    """(g) Each step runs a new operator with one kernel, before a kernel at whose start the GPU is idle."""
    windows = steps(events)
    ends = sorted((e["ts"], e["ts"] + e["dur"]) for e in complete(events, "kernel", "gpu_memcpy", "gpu_memset"))
    starts, latest = [s for s, _ in ends], [*accumulate((e for _, e in ends), max)]
    models = {
        e["args"]["correlation"]: e
        for e in kernels(events)
        if (k := bisect_right(starts, e["ts"] - 0.5)) and latest[k - 1] <= e["ts"] - 1
    }
    known = [e for e in launches(events) if e["args"]["correlation"] in models]
    length = rng.uniform(0.05, 0.2) * sum(e["dur"] for e in kernels(events)) / len(windows)
    additions, new = [], []
    for number, window in enumerate(windows):
        some = [e for e in known if inside(e, [window])]
        if not some:
            return None
        call = rng.choice(some)
        model = models[call["args"]["correlation"]]
        additions.append((model["ts"] - 0.75, length))
        shared = {"correlation": 900_000_000 + number}
        place = {"pid": call["pid"], "tid": call["tid"], "ph": "X"}
        new += [
            {**place, "cat": "cpu_op", "name": "my::new_operator", "ts": call["ts"] - 4, "dur": 3, "args": {}},
            {**call, "ts": call["ts"] - 3, "dur": 1.5, "args": {**call["args"], **shared}},
            {**model, "name": "my_new_kernel(float*)", "ts": model["ts"] - 0.5, "dur": length - 0.5,
             "args": {**model["args"], **shared}},
        ]  # fmt: skip
    instants = [t for t, _ in sorted(additions)]
    for event in new:  # a launch before its own kernel is moved only by those of earlier steps
        own = 0.5 if event["name"].startswith("my_new_kernel") else 0.0
        event["ts"] += length * bisect_right(instants, event["ts"] - own)
    return Planted([*inserted(events, additions), *new], ("count-change",), "my")


def pageable(events: list[Event], rng: random.Random) -> Planted | None:
    """(h) Copies to the device come from pageable memory, and take three times as long."""
    some = [e for e in complete(events, "gpu_memcpy") if "HtoD" in e["name"] and "Pinned" in e["name"]]
    if sum(e["dur"] for e in some) < 0.02 * sum(e["dur"] for e in complete(events, "kernel", "gpu_memcpy")):
        return None
    out = _slower(events, some, rng.uniform(2, 4))
    for event in out:
        if event.get("cat", "").lower() == "gpu_memcpy" and "HtoD" in event["name"]:
            event["name"] = event["name"].replace("Pinned", "Pageable")
    return Planted(out, ("copy-kind",))


def another_batch(events: list[Event], rng: random.Random) -> Planted | None:
    """(i) Leading dimensions are doubled, and kernels take 1.9 times as long."""

    def doubled(dims: Any) -> Any:
        if isinstance(dims, list) and dims and all(isinstance(d, int) for d in dims) and len(dims) > 1:
            return [2 * dims[0], *dims[1:]]
        return [doubled(d) for d in dims] if isinstance(dims, list) else dims

    shaped = [e for e in events if isinstance(e.get("args"), dict) and "Input Dims" in e["args"]]
    if not shaped:
        return None
    out = _slower(events, kernels(events), rng.uniform(1.7, 2))
    for event in out:
        if isinstance(event.get("args"), dict) and "Input Dims" in event["args"]:
            event["args"] = {**event["args"], "Input Dims": doubled(event["args"]["Input Dims"])}
    return Planted(out, ("workload-changed",))


PLANTS: dict[str, Plant] = {
    "every gemm 10 % slower": gemm_slower,
    "one kernel twice as slow": kernel_doubled,
    "waiting for the DataLoader": loader_wait,
    "one launch of 12 ms": slow_launch,
    "one slow step": slow_step,
    "5 % of kernels renamed": renamed,
    "an operator added": operator_added,
    "pinned → pageable": pageable,
    "another batch": another_batch,
}
