"""Changes of a trace whose cause is known: each takes a real trace and says what becomes longer, shorter, new or gone.

A plant returns None for a trace in which it is impossible.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from retime import CALL_CATEGORIES, SCOPE, Change, Event, Trace, union, without

from tracediff.profile.kernels.families import DEFAULT
from tracediff.profile.kernels.match_names import table_name

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
ENDS = 0.001
"""µs: less than the resolution of a trace."""


@dataclass
class Truth:
    """What was planted, in µs per step.

    Attributes:
        gpu: raw name of GPU events → longer or shorter by. host: (names around it, longer or shorter by).
        operators: by which all operators together are longer. fact: that must be stated, with its ratio.
        effects: what lines may say of it; empty for anything. is_noise: whether no line may claim more than noise.
    """

    gpu: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    host: list[tuple[frozenset[str], float]] = field(default_factory=list)
    operators: float = 0.0
    fact: str = ""
    ratio: float = 1.0
    effects: tuple[str, ...] = ()
    is_noise: bool = False


@dataclass
class Planted:
    """A variant: its change, and what is true of it. turned: whether it is compared as control."""

    change: Change
    truth: Truth
    turned: bool = False


Plant = Callable[[Trace, random.Random], Planted | None]
SLOWER = ("speed", "time")


# ---- GPU time ----


def _family(trace: Trace, i: int) -> str:
    return DEFAULT.of_kernel(trace.events[i]["name"], None)


def _kernels(trace: Trace) -> list[int]:
    """The kernels of the used steps, without communication."""
    return [
        i
        for i in trace.gpu
        if str(trace.events[i]["cat"]).lower() == "kernel" and trace.is_used(i) and _family(trace, i) != "communication"
    ]


def _time(trace: Trace, some: Iterable[int]) -> float:
    return sum(float(trace.events[i]["dur"]) for i in some)


def _other_durations(trace: Trace, durations: dict[int, float], effects: tuple[str, ...] = SLOWER) -> Planted:
    truth = Truth(effects=effects)
    for i, new in durations.items():
        if trace.is_used(i):
            truth.gpu[trace.events[i]["name"]] += (new - trace.events[i]["dur"]) / len(trace.steps)
    return Planted(Change(durations=durations), truth)


def family_slower(trace: Trace, rng: random.Random) -> Planted | None:
    """All kernels of one family take longer."""
    by_family: dict[str, list[int]] = defaultdict(list)
    some = _kernels(trace)
    for i in some:
        by_family[_family(trace, i)].append(i)
    large = sorted(
        f for f, mine in by_family.items() if _time(trace, mine) >= 0.1 * _time(trace, some) and f != "other"
    )
    if not large:
        return None
    factor = rng.uniform(1.15, 1.6)
    return _other_durations(
        trace, {i: trace.events[i]["dur"] * factor * rng.gauss(1, 0.01) for i in by_family[rng.choice(large)]}
    )


def kernel_slower(trace: Trace, rng: random.Random) -> Planted | None:
    """One kernel takes 1.5 to 3 times as long."""
    by_name: dict[str, list[int]] = defaultdict(list)
    some = _kernels(trace)
    for i in some:
        by_name[table_name(trace.events[i]["name"])].append(i)
    large = sorted(n for n, mine in by_name.items() if _time(trace, mine) >= 0.05 * _time(trace, some))
    if not large:
        return None
    factor = rng.uniform(1.5, 3)
    return _other_durations(trace, {i: trace.events[i]["dur"] * factor for i in by_name[rng.choice(large)]})


def other_memory(trace: Trace, rng: random.Random) -> Planted | None:
    """Copies to the device come from pageable memory instead of pinned and take longer, or the other way round."""
    copies = [i for i in trace.gpu if "HtoD" in trace.events[i]["name"] and trace.is_used(i)]
    for kind, other, factor in (
        ("Pinned", "Pageable", rng.uniform(2, 4)),
        ("Pageable", "Pinned", rng.uniform(0.25, 0.5)),
    ):
        some = [i for i in copies if kind in trace.events[i]["name"]]
        if some and _time(trace, some) >= 0.02 * _time(trace, trace.gpu):
            out = _other_durations(trace, {i: trace.events[i]["dur"] * factor for i in some})
            for i in some:
                name = trace.events[i]["name"].replace(kind, other)
                out.change.edits[i] = {"name": name}
                out.truth.gpu[name] = out.truth.gpu[trace.events[i]["name"]]
            return out
    return None


def kernels_renamed(trace: Trace, rng: random.Random) -> Planted | None:
    """5 % of the kernels have other names and take as long."""
    names = sorted({trace.events[i]["name"] for i in _kernels(trace)})
    if not names:
        return None
    some = set(rng.sample(names, max(1, len(names) // 20)))
    edits = {
        i: {"name": trace.events[i]["name"].replace("128", "256") + "_v2"}
        for i in trace.gpu
        if trace.events[i]["name"] in some
    }
    return Planted(Change(edits=edits), Truth(is_noise=True))


# ---- the host ----


def _is_operator(event: Event) -> bool:
    return str(event["cat"]).lower() in ("cpu_op", "operator") and not SCOPE.match(str(event["name"]))


def _busy(trace: Trace) -> list[tuple[float, float]]:
    """Where operators or calls are open."""
    calls = set(trace.calls)
    return union((trace.start(i), trace.end(i)) for i in trace.host if i in calls or _is_operator(trace.events[i]))


def _loading(trace: Trace) -> list[tuple[float, float]]:
    return union((trace.start(i), trace.end(i)) for i in trace.host if "DataLoader" in str(trace.events[i]["name"]))


def _in_steps(trace: Trace, spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(max(a, low), min(b, high)) for a, b in spans for low, high in trace.steps if min(b, high) > max(a, low)]


def _waiting(trace: Trace) -> list[tuple[float, float]]:
    return [(trace.start(call), trace.end(call)) for call, _ in trace.waits]


def _operator_time(trace: Trace) -> list[tuple[float, float]]:
    """Where operators or calls are open in the used steps, and none waits for the GPU or loads data."""
    return without(_in_steps(trace, _busy(trace)), [*_waiting(trace), *_loading(trace)])


def _operators_longer(trace: Trace, factor: float) -> Planted | None:
    spans = _operator_time(trace)
    longer = sum(b - a for a, b in spans) * (factor - 1)
    if not longer:
        return None
    truth = Truth(operators=longer / len(trace.steps))
    return Planted(Change(host=[(a, b, (b - a) * (factor - 1)) for a, b in spans]), truth)


def operators_slower(trace: Trace, rng: random.Random) -> Planted | None:
    """All operators and calls of the host take longer."""
    return _operators_longer(trace, rng.uniform(1.2, 1.8))


def to_host(trace: Trace, rng: random.Random) -> Planted | None:
    """The operators of a step that waits for the GPU become so slow that it waits for the host."""
    gpu = sum(b - a for a, b in union((trace.start(i), trace.end(i)) for i in trace.gpu if trace.is_used(i)))
    length = sum(b - a for a, b in trace.steps)
    host = sum(b - a for a, b in _operator_time(trace))
    if gpu < 0.3 * length or not host:
        return None
    return _operators_longer(trace, 1 + rng.uniform(1.3, 2) * max(gpu, length) / host)


def from_host(trace: Trace, rng: random.Random) -> Planted | None:
    """The other way round."""
    out = to_host(trace, rng)
    return Planted(out.change, out.truth, turned=True) if out else None


def _around(trace: Trace, instant: float, thread: Any) -> frozenset[str]:
    """Names of all that is open at ``instant``, on the thread or, of calls, on any."""
    return frozenset(
        str(trace.events[i]["name"])
        for i in trace.host
        if trace.start(i) <= instant < trace.end(i) and (trace.events[i]["pid"], trace.events[i]["tid"]) == thread
    )


def _stretched(trace: Trace, instant: float, us: float, names: frozenset[str]) -> Planted:
    truth = Truth(host=[(names, us / len(trace.steps))])
    return Planted(Change(host=[(instant, instant, us)]), truth)


def _step_us(trace: Trace) -> float:
    return sum(b - a for a, b in trace.steps) / len(trace.steps)


def one_long_call(trace: Trace, rng: random.Random) -> Planted | None:
    """One call that waits for nothing takes 0.2 to 1 steps longer, once."""
    waiting = {call for call, _ in trace.waits}
    calls = [i for i in trace.calls if i not in waiting and trace.is_used(i) and trace.events[i]["dur"] >= 1]
    if not calls:
        return None
    call = rng.choice(calls)
    event = trace.events[call]
    instant = trace.start(call) + event["dur"] / 2
    names = _around(trace, instant, (event["pid"], event["tid"]))
    return _stretched(trace, instant, rng.uniform(0.2, 1) * _step_us(trace) * len(trace.steps), names)


def _outermost(trace: Trace) -> list[int]:
    """Operators in no other, in the used steps."""
    found, last = [], {}
    operators = (i for i in trace.host if _is_operator(trace.events[i]))
    for i in sorted(operators, key=lambda i: (trace.start(i), -trace.end(i))):
        thread = trace.events[i]["tid"]
        if trace.start(i) >= last.get(thread, -1.0):
            last[thread] = trace.end(i)
            if trace.is_used(i):
                found.append(i)
    return found


def stretch_of_python(trace: Trace, rng: random.Random) -> Planted | None:
    """Python takes 0.2 to 1 steps longer before one operator, once."""
    gaps = {round(b, 3): b - a for a, b in without(trace.steps, [*_busy(trace), *_loading(trace)])}
    some = [i for i in _outermost(trace) if gaps.get(round(trace.start(i), 3), 0) >= 2]
    if not some:
        return None
    following = rng.choice(some)
    event = trace.events[following]
    instant = trace.start(following) - 0.5
    names = _around(trace, instant, (event["pid"], event["tid"])) | {event["name"], "not recorded"}
    names |= {f"{name} (annotation)" for name in _annotations(trace, instant)}
    return _stretched(trace, instant, rng.uniform(0.2, 1) * _step_us(trace) * len(trace.steps), names)


def _annotations(trace: Trace, instant: float) -> set[str]:
    """What is open then on any thread (of some old files annotations are operators), its numbers left out."""
    open_then = (trace.events[i] for i in trace.host if trace.start(i) <= instant < trace.end(i))
    return {re.sub(r"\d+", "#", event["name"]) for event in open_then}


def loader_wait(trace: Trace, rng: random.Random) -> Planted | None:
    """Each step begins with a wait for the DataLoader."""
    steps = [i for i in trace.host if str(trace.events[i]["name"]).startswith("ProfilerStep")]
    if not steps:
        return None
    wait = rng.uniform(0.2, 0.5) * _step_us(trace)
    change = Change(host=[(low + ENDS, low + 2 * ENDS, wait) for low, _ in trace.steps])
    place = {key: trace.events[steps[0]][key] for key in ("pid", "tid", "cat")}
    change.added = [(-1, {**place, "ph": "X", "name": LOADER, "ts": low + ENDS, "dur": ENDS}) for low, _ in trace.steps]
    return Planted(change, Truth(host=[(frozenset({"loading data"}), wait)]))


# ---- operators ----


def operator_added(trace: Trace, rng: random.Random) -> Planted | None:
    """Each step runs a new operator with one kernel."""
    behind: dict[Any, list[int]] = defaultdict(list)
    for i in _kernels(trace):
        if (call := trace.launch[i]) is not None:
            behind[call].append(i)
    whole = _time(trace, _kernels(trace)) / len(trace.steps)
    busy = _busy(trace)
    gpu_us, host_us = rng.uniform(0.05, 0.2) * whole, rng.uniform(0.05, 0.2) * _step_us(trace)
    change, names = Change(), ("my::new_operator", "my_new_kernel(float*)")
    at_top = _outermost(trace)
    for number, (low, high) in enumerate(trace.steps):
        some = [
            i for i in at_top if low < trace.start(i) < high and not any(a < trace.start(i) - ENDS < b for a, b in busy)
        ]
        calls = sorted(call for call in behind if low <= trace.start(call) < high)
        if not some or not calls:
            return None
        op = rng.choice(some)
        later = [call for call in calls if trace.start(call) > trace.start(op)]
        if not later:
            return None
        model = min((i for call in later for i in behind[call]), key=trace.start)
        instant = trace.start(op) - ENDS
        call = trace.events[trace.launch[model]]
        place = {"ph": "X", "pid": trace.events[op]["pid"], "tid": trace.events[op]["tid"]}
        shared = {"correlation": 900_000_000 + number}
        change.host.append((instant, instant + ENDS, host_us))
        width = ENDS / host_us
        change.added += [
            (-1, {**place, "cat": trace.events[op]["cat"], "name": names[0], "ts": instant, "dur": ENDS, "args": {}}),
            (-1, {**call, **place, "ts": instant + width, "dur": 5 * width,
             "args": {**(call.get("args") or {}), **shared}}),
            (model, {**trace.events[model], "name": names[1], "dur": gpu_us, "launched": instant + width,
                     "args": {**trace.events[model]["args"], **shared}}),
        ]  # fmt: skip
    truth = Truth(host=[(frozenset({names[0], call["name"]}), host_us)], effects=("presence",))
    truth.gpu[names[1]] = gpu_us
    return Planted(change, truth)


def operator_removed(trace: Trace, rng: random.Random) -> Planted | None:
    """The calls of one outermost operator are gone, with what they launched."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for i in _outermost(trace):
        by_name[trace.events[i]["name"]].append(i)
    host = sum(trace.events[i]["dur"] for some in by_name.values() for i in some)
    waiting = [trace.start(call) for call, _ in trace.waits]
    names = sorted(
        n
        for n, some in by_name.items()
        if 0.02 * host <= _time(trace, some) <= 0.4 * host
        and not any(trace.start(i) <= t < trace.end(i) for i in some for t in waiting)
    )
    if not names:
        return None
    some = by_name[rng.choice(names)]
    inside = {(trace.events[i]["pid"], trace.events[i]["tid"], trace.start(i), trace.end(i)) for i in some}
    change, truth = Change(), Truth(effects=("presence", "amount"))
    gone: set[str] = set()
    for i in trace.host:
        event = trace.events[i]
        if any(
            (event["pid"], event["tid"]) == (pid, tid) and low <= trace.start(i) and trace.end(i) <= high
            for pid, tid, low, high in inside
        ) and str(event["cat"]).lower() in ("cpu_op", "operator", "python_function", *CALL_CATEGORIES):
            change.removed.add(i)
            gone.add(event["name"])
    for i in trace.gpu:
        if trace.launch[i] in change.removed:
            change.removed.add(i)
            truth.gpu[trace.events[i]["name"]] -= trace.events[i]["dur"] / len(trace.steps)
    spans = union((low, high) for _, _, low, high in inside)
    change.host = [(low, high, low - high) for low, high in spans]
    truth.host = [(frozenset(gone), sum(low - high for low, high in spans) / len(trace.steps))]
    return Planted(change, truth)


def other_program(trace: Trace, rng: random.Random) -> Planted | None:
    """Other operators, with other kernels that take longer, for at least half of the calls."""
    outermost = _outermost(trace)
    if len({trace.events[i]["name"] for i in outermost}) < 4 or not trace.gpu:
        return None
    names = sorted({trace.events[i]["name"] for i in outermost})
    rng.shuffle(names)
    replaced: set[str] = set()
    while sum(trace.events[i]["name"] in replaced for i in outermost) < 0.5 * len(outermost):
        replaced.add(names.pop())
    factor = rng.uniform(1.3, 2)
    change, truth = Change(), Truth(fact="other-program")
    spans: dict[Any, list[tuple[float, float]]] = defaultdict(list)
    for i in trace.host:
        event = trace.events[i]
        if event["name"] in replaced and _is_operator(event):
            change.edits[i] = {"name": f"my::{event['name'].split('::')[-1]}"}
            spans[event["tid"]].append((trace.start(i), trace.end(i)))
    for i in trace.gpu:
        call = trace.launch[i]
        if call is None or not any(a <= trace.start(call) < b for a, b in spans[trace.events[call]["tid"]]):
            continue
        name = f"other_{trace.events[i]['name']}"
        change.edits[i] = {"name": name}
        change.durations[i] = trace.events[i]["dur"] * factor
        if trace.is_used(i):
            for side in (name, trace.events[i]["name"]):
                truth.gpu[side] += trace.events[i]["dur"] * (factor - 1) / len(trace.steps)
    truth.host = [(frozenset({*replaced, *(e["name"] for e in change.edits.values())}), 0.0)]
    return Planted(change, truth)


# ---- sizes ----

WEIGHT = {"aten::linear": 1, "aten::addmm": 2, "aten::conv2d": 1, "aten::embedding": 0, "aten::_convolution": 1,
          "aten::conv1d": 1, "aten::conv3d": 1}  # fmt: skip
"""Operator → which of its inputs is the weight."""
INPUT = {"aten::linear": 0, "aten::addmm": 1, "aten::conv2d": 0, "aten::embedding": 1, "aten::_convolution": 0,
         "aten::conv1d": 0, "aten::conv3d": 0, "aten::layer_norm": 0, "aten::native_layer_norm": 0}  # fmt: skip


def _dims(event: Event) -> tuple[str, list[Any]] | None:
    arguments = event.get("args") or {}
    for key in ("Input Dims", "Input dims"):
        if isinstance(arguments.get(key), list):
            return key, arguments[key]
    return None


def other_sizes(trace: Trace, rng: random.Random) -> Planted | None:
    """Another batch: what runs over it, shapes and grids, is r times as large and takes r times as long."""
    batch: set[int] = set()
    fixed = {0, 1}
    for event in trace.events:
        if (found := _dims(event)) is None:
            continue
        for places, values in ((WEIGHT, fixed), (INPUT, batch)):
            at = places.get(event["name"], -1)
            if 0 <= at < len(found[1]) and found[1][at] and isinstance(found[1][at][0], int):
                values.update(found[1][at][: 1 if values is batch else None])
    batch -= fixed
    if not batch:
        return None
    ratio = rng.choice((2, 4, 8))

    def scaled(dims: Any) -> Any:
        return [scaled(d) for d in dims] if isinstance(dims, list) else ratio * dims if dims in batch else dims

    edits: dict[int, Event] = {}
    for i, event in enumerate(trace.events):
        if (found := _dims(event)) and (larger := scaled(found[1])) != found[1]:
            edits[i] = {"args": {**event["args"], found[0]: larger}}
    larger_work = _launched_in(trace, edits)
    if _time(trace, larger_work) < 0.5 * _time(trace, trace.gpu):
        return None
    exponent = rng.uniform(0.85, 1)
    out = _other_durations(trace, {i: trace.events[i]["dur"] * ratio**exponent for i in larger_work}, ("amount",))
    for i in larger_work:
        arguments = trace.events[i].get("args") or {}
        if isinstance(grid := arguments.get("grid"), list):
            edits[i] = {"args": {**arguments, "grid": [ratio * grid[0], *grid[1:]]}}
        elif "bytes" in arguments:
            edits[i] = {"args": {**arguments, "bytes": ratio * arguments["bytes"]}}
    out.change.edits = edits
    out.truth.fact, out.truth.ratio = "work-differs", ratio
    return out


def _launched_in(trace: Trace, operators: Iterable[int]) -> list[int]:
    """The GPU events whose innermost operator with shapes is one of ``operators``."""
    shaped = sorted((i for i in trace.host if _dims(trace.events[i])), key=lambda i: (trace.start(i), -trace.end(i)))
    by_thread: dict[Any, list[int]] = defaultdict(list)
    for i in shaped:
        by_thread[trace.events[i]["tid"]].append(i)
    some, out = set(operators), []
    for i in trace.gpu:
        if (call := trace.launch[i]) is None:
            continue
        mine = by_thread[trace.events[call]["tid"]]
        k = bisect_right(mine, trace.start(call), key=trace.start) - 1
        while k >= 0 and trace.end(mine[k]) < trace.end(call):
            k -= 1
        if k >= 0 and mine[k] in some:
            out.append(i)
    return out


# ---- nothing ----


def nothing(_trace: Trace, _rng: random.Random) -> Planted | None:
    """An exact copy."""
    return Planted(Change(), Truth(is_noise=True))


def noise(trace: Trace, rng: random.Random) -> Planted | None:
    """All that works takes a little longer or shorter, each by itself."""
    durations = {i: trace.events[i]["dur"] * max(rng.gauss(1, 0.02), 0.5) for i in trace.gpu}
    host = [(a, b, (b - a) * max(rng.gauss(0, 0.02), -0.5)) for a, b in _operator_time(trace)]
    return Planted(Change(durations=durations, host=host), Truth(is_noise=True))


PLANTS: dict[str, Plant] = {
    "a family of kernels slower": family_slower,
    "one kernel slower": kernel_slower,
    "an operator added": operator_added,
    "an operator removed": operator_removed,
    "one long call": one_long_call,
    "one stretch of Python": stretch_of_python,
    "another batch": other_sizes,
    "another program": other_program,
    "waiting for the DataLoader": loader_wait,
    "all operators slower": operators_slower,
    "GPU-bound to host-bound": to_host,
    "host-bound to GPU-bound": from_host,
    "pinned or pageable": other_memory,
    "5 % of kernels renamed": kernels_renamed,
    "noise": noise,
    "an exact copy": nothing,
}


def renamed(events: list[Event]) -> list[Event]:
    """``events`` with other names of kernels and Python functions, the same for equal names."""
    out = []
    for event in events:
        name, category = str(event.get("name")), str(event.get("cat", "")).lower()
        if event.get("ph") == "X" and category == "kernel":
            new = re.sub(r"^(void )?", r"\1zq_", name)
            if DEFAULT.of_kernel(new, None) == DEFAULT.of_kernel(name, None):
                event = {**event, "name": new}
        elif event.get("ph") == "X" and category == "python_function" and name.startswith("/"):
            event = {**event, "name": f"{name}_zq"}
        out.append(event)
    return out
