"""When the events of a trace happen after some of its work has become longer, shorter, new or gone.

The host has one clock; GPU events begin when they are launched and what they wait for is done; the host waits for the
GPU only in calls in which it did. Nothing else moves, so GPU time that the host runs ahead of stays hidden.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tracediff.runtimes import is_synchronising, may_wait

Event = dict[str, Any]
GPU_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")
CALL_CATEGORIES = ("cuda_runtime", "cuda_driver", "runtime")
STEP = re.compile(r"ProfilerStep\s*#\s*(\d+)")
SCOPE = re.compile(r"ProfilerStep|Optimizer\.|enumerate\(DataLoader\)|## ")
"""Names of annotations, which old traces have as operators."""
SLACK = 3.0
"""µs by which clocks of host and GPU may differ."""
SOON = 20.0
"""µs after another stream's event within which an event has waited for it."""
LATENCY, GAP = 5.0, 1.0
"""µs from a launch, and from the event before, to the start of an event, where nothing tells more."""
LEAST_WAIT = 2.0
"""µs that a call takes which has nothing to wait for."""


@dataclass
class Change:
    """What is planted.

    Attributes:
        durations: event → µs, of GPU events. host: (from, until, µs): this stretch of the host becomes longer; a single
            instant where both are equal. removed: events. edits: event → fields. added: (launch instant, event after
            which it runs, event) of new GPU events; new host events have −1 as the event after which they run.
        renamed: every event's name.
    """

    durations: dict[int, float] = field(default_factory=dict)
    host: list[tuple[float, float, float]] = field(default_factory=list)
    removed: set[int] = field(default_factory=set)
    edits: dict[int, Event] = field(default_factory=dict)
    added: list[tuple[int, Event]] = field(default_factory=list)


class Trace:
    """The events of one trace, µs from its earliest on; `apply` gives those of a variant."""

    def __init__(self, document: Any) -> None:
        self.document = document if isinstance(document, dict) else {}
        events = document["traceEvents"] if isinstance(document, dict) else document
        self.first = min(e["ts"] for e in events if e.get("ph") == "X" and isinstance(e.get("ts"), int | float))
        self.events: list[Event] = [dict(e) for e in events]
        for event in self.events:
            if isinstance(event.get("ts"), int | float):
                event["ts"] = round(float(event["ts"] - self.first), 3)
        timed = [
            (i, str(e.get("cat", "")).lower())
            for i, e in enumerate(self.events)
            if e.get("ph") == "X" and isinstance(e.get("dur"), int | float)
        ]
        self.gpu = sorted(
            (i for i, cat in timed if cat in GPU_CATEGORIES),
            key=lambda i: (self.events[i]["ts"], self.events[i]["dur"]),
        )
        self.calls = sorted((i for i, cat in timed if cat in CALL_CATEGORIES), key=lambda i: self.start(i))
        self.host = [i for i, cat in timed if cat not in GPU_CATEGORIES and not cat.startswith("gpu")]
        by_correlation = {correlation_of(self.events[i]): i for i in self.calls}
        self.launch = {i: by_correlation.get(correlation_of(self.events[i])) for i in self.gpu}

    def start(self, i: int) -> float:
        """Of event i."""
        return float(self.events[i]["ts"])

    def end(self, i: int) -> float:
        """Of event i."""
        return float(self.events[i]["ts"] + self.events[i]["dur"])

    def stream(self, i: int) -> tuple[Any, Any]:
        """(device, stream) of a GPU event."""
        arguments = self.events[i].get("args") or {}
        return arguments.get("device"), arguments.get("stream")

    @cached_property
    def steps(self) -> list[tuple[float, float]]:
        """The windows of the used steps; of a file without steps, its span."""
        found = sorted(
            (self.start(i), self.end(i))
            for i in self.host
            if STEP.match(str(self.events[i]["name"])) and self.events[i]["dur"] > 0
        )
        if not found:
            return [(0.0, max(self.end(i) for i in (*self.host, *self.gpu)))]
        if len(found) > 1 and not any(found[-1][0] <= self.start(i) < found[-1][1] for i in self.calls):
            found = found[:-1]  # a step that is empty
        return found[1:] if len(found) > 2 else found

    def is_used(self, i: int) -> bool:
        """Whether the work of event i is in a used step."""
        at = self.launch.get(i) if i in self.launch else i
        instant = self.start(i if at is None else at)
        if at is None and len(self.steps) == 1 and i in self.launch:
            return True
        return any(low <= instant < high for low, high in self.steps)

    @cached_property
    def bounds(self) -> dict[int, tuple[float, float, int | None, int | None, float]]:
        """GPU event → (µs from its launch, µs from the event before on its stream, that event, an event of another
        stream that it waited for, µs from that), so that the latest of the three is its start.
        """
        last: dict[tuple[Any, Any], int] = {}
        ended: dict[tuple[Any, Any], tuple[list[float], list[int]]] = defaultdict(lambda: ([], []))
        latencies = sorted(
            self.start(i) - self.start(call)
            for i, call in self.launch.items()
            if call is not None and self.start(call) < self.start(i)
        )
        latency = min(latencies[len(latencies) // 20], 2 * LATENCY) if latencies else LATENCY
        out = {}
        for i in self.gpu:
            stream = self.stream(i)
            start, call, before = self.start(i), self.launch[i], last.get(stream)
            own = min(start - self.start(call), latency) if call is not None else 0.0
            gap = min(start - self.end(before), GAP) if before is not None else 0.0
            found = [self.start(call) + own] if call is not None else []
            found += [self.end(before) + gap] if before is not None else []
            missing = start - max(found) if found else 0.0
            other, lag = None, 0.0
            if missing > 0:
                ends = [(at[k], of[k]) for other_stream, (at, of) in ended.items()
                        if other_stream != stream and (k := bisect_right(at, start) - 1) >= 0]  # fmt: skip
                latest, which = max(ends, default=(-1.0, -1))
                if start - latest <= SOON and latest > max(found):
                    other, lag = which, start - latest
                elif call is not None and found[0] == max(found):
                    own += missing
                else:
                    gap += missing
            out[i] = own, gap, before, other, lag
            last[stream] = i
            at, of = ended[stream]
            k = bisect_right(at, self.end(i))
            at.insert(k, self.end(i))
            of.insert(k, i)
        return out

    @cached_property
    def waits(self) -> list[tuple[int, int | None]]:
        """Calls that wait for the GPU, with the event whose end they waited for, None if it had ended before."""
        ends = sorted((self.end(i), i) for i in self.gpu)
        out: list[tuple[int, int | None]] = []
        own = defaultdict(list)
        for i, call in self.launch.items():
            if call is not None:
                own[call].append(i)
        for call in self.calls:
            name, start, end = self.events[call]["name"], self.start(call), self.end(call)
            if is_synchronising(name):
                low, high = bisect_left(ends, (start, -1)), bisect_right(ends, (end + SLACK, len(self.events)))
                out.append((call, ends[high - 1][1] if high > low else None))
            elif may_wait(name):
                mine = [i for i in own[call] if self.start(i) < end]
                if mine:
                    out.append((call, max(mine, key=self.end)))
        return sorted(out, key=lambda wait: self.end(wait[0]))

    def apply(self, change: Change) -> list[Event]:
        """The events of the variant, in µs."""
        return _Clock(self, change).events()


class _Clock:
    """The host's and the GPU's clock of a variant."""

    def __init__(self, trace: Trace, change: Change) -> None:
        self.trace, self.change = trace, change
        self.old: list[float] = [0.0]
        self.new: list[float] = [0.0]
        self.gpu: dict[int, tuple[float, float]] = {}
        self.extra: dict[int, tuple[float, float]] = {}  # added GPU events by their position in change.added
        self.behind: dict[int, list[int]] = defaultdict(list)  # event → added ones that run before it on its stream
        self._run()

    def at(self, instant: float) -> float:
        """When what happened on the host at ``instant`` happens now."""
        k = bisect_right(self.old, instant) - 1
        if k < 0:
            return instant
        if k == len(self.old) - 1:
            return self.new[k] + instant - self.old[k]
        width = self.old[k + 1] - self.old[k]
        return self.new[k] + (instant - self.old[k]) * (self.new[k + 1] - self.new[k]) / width

    def _run(self) -> None:
        trace, change = self.trace, self.change
        todo: list[tuple[float, int, Any]] = [(until, 0, (start, until, us)) for start, until, us in change.host]
        todo += [(trace.start(i), 1, i) for i in trace.gpu if i not in change.removed]
        todo += [(trace.end(call), 2, (call, event)) for call, event in trace.waits if call not in change.removed]
        for k, (event, new) in enumerate(change.added):
            if event >= 0:
                self.behind[event].append(k)
                assert new["launched"] <= trace.start(event)
        for _, kind, what in sorted(todo, key=lambda item: item[:2]):
            if kind == 0:
                self._stretch(what[0], what[1], self.at(what[1]) + what[2])
            elif kind == 1:
                self._begin(what)
            else:
                self._wait(*what)

    def _stretch(self, start: float, end: float, target: float) -> None:
        """Let the stretch of the host from ``start`` on last until ``target``."""
        start = max(start, self.old[-1])
        low = self.at(start)
        if start > self.old[-1]:
            self.old.append(start)
            self.new.append(low)
        self.old.append(max(end, start))
        self.new.append(max(target, low))

    def _begin(self, i: int) -> None:
        trace = self.trace
        own, gap, before, other, lag = trace.bounds[i]
        call = trace.launch[i]
        while before is not None and before in self.change.removed:
            before = trace.bounds[before][2]
        found = []
        for k in self.behind[i]:
            new = self.change.added[k][1]
            ready = [self.at(new["launched"]) + LATENCY]
            ready += [self.gpu[before][1] + GAP] if before is not None else []
            self.extra[k] = max(ready), max(ready) + new["dur"]
            found.append(self.extra[k][1] + GAP)
        if call is not None:
            found.append(self.at(trace.start(call)) + own)
        if before is not None:
            found.append(self.gpu[before][1] + gap)
        if other is not None and other in self.gpu:
            found.append(self.gpu[other][1] + lag)
        start = max(found) if found else self.at(trace.start(i))
        if not found or abs(start - trace.start(i)) < 1e-6:
            start = max(trace.start(i), start)
        self.gpu[i] = start, start + self.change.durations.get(i, trace.events[i]["dur"])

    def _wait(self, call: int, event: int | None) -> None:
        trace = self.trace
        start, end = trace.start(call), trace.end(call)
        now = self.at(end)
        if event is not None and event in self.gpu:
            least = self.at(start) + min(LEAST_WAIT, end - start)
            target = max(least, self.gpu[event][1] + end - trace.end(event))
        else:
            waited = [self.gpu[i][1] for i in self._pending(start)]
            target = max([now, *waited])
        if abs(target - now) > 1e-6:
            self._stretch(start, end, target)

    def _pending(self, start: float) -> list[int]:
        """The last events before ``start`` of all streams: a call that found nothing to wait for may wait for them."""
        last: dict[tuple[Any, Any], int] = {}
        for i in self.gpu:
            if self.trace.start(i) < start:
                last[self.trace.stream(i)] = i
        return list(last.values())

    def events(self) -> list[Event]:
        """All events at their new times."""
        trace, change = self.trace, self.change
        starts = [trace.start(i) for i in self.gpu]
        moved = [self.gpu[i][0] for i in self.gpu]
        places = {
            (trace.events[i].get("pid"), trace.events[i].get("tid"), trace.start(i)): self.gpu[i][0] for i in self.gpu
        }

        def on_gpu(instant: float) -> float:
            k = bisect_right(starts, instant) - 1
            return instant + moved[k] - starts[k] if k >= 0 else instant

        out = []
        for i, event in enumerate(trace.events):
            if i in change.removed:
                continue
            new = {**event, **change.edits.get(i, {})}
            if isinstance(event.get("ts"), float):
                start, length = event["ts"], event.get("dur")
                if i in self.gpu:
                    new["ts"], end = self.gpu[i]
                elif str(event.get("cat", "")).lower().startswith("gpu"):
                    new["ts"], end = on_gpu(start), on_gpu(start + (length or 0))
                elif (place := places.get((event.get("pid"), event.get("tid"), start))) is not None:
                    new["ts"], end = place, place
                else:
                    new["ts"], end = self.at(start), self.at(start + (length or 0))
                new["ts"] = round(new["ts"], 3)
                if isinstance(length, int | float):
                    new["dur"] = round(max(round(end, 3) - new["ts"], 0.0), 3)
            out.append(new)
        for k, (event, new) in enumerate(change.added):
            made = {key: value for key, value in new.items() if key != "launched"}
            start, end = self.extra[k] if event >= 0 else (self.at(new["ts"]), self.at(new["ts"] + new["dur"]))
            start, end = round(start, 3), round(end, 3)
            out.append({**made, "ts": start, "dur": round(end - start, 3)})
        return out


def correlation_of(event: Event) -> Any:
    """What joins a call and its GPU events."""
    return (event.get("args") or {}).get("correlation")


def union(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Disjoint spans."""
    out: list[list[float]] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([start, end])
    return [(a, b) for a, b in out]


def without(spans: Iterable[tuple[float, float]], holes: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Disjoint ``spans`` without ``holes``."""
    out, holes = [], union(holes)
    for start, end in union(spans):
        for low, high in holes:
            if high <= start or low >= end:
                continue
            if low > start:
                out.append((start, low))
            start = max(start, high)
        if start < end:
            out.append((start, end))
    return out
