"""The critical path, slow and plain, straight from the JSON: what docs/tables/critical.md says, one stretch after the
other. Checks the fast path.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import pstdev
from typing import Any

from profile_reference import CALLS, GPU, drained, read, step_windows

from tracediff.profile.kernels.match_names import match_name

Event = dict[str, Any]
ORDER = ("cpu_op", *CALLS)
ON_HOST = ("op", "call", "sync", "python", "annotated", "loading")
BACKWARD_OP = r"^autograd::engine::evaluate_function|^torch::autograd::|^[\w:]*Backward\d*$"


class Walk:
    """One file, and the time on the path by (step, kind, name); `total` is all time of the same labels."""

    def __init__(self, path: Path) -> None:
        self.events = read(path)
        windows, whole_file = step_windows(self.events)
        assert not whole_file
        self.windows = windows
        calls = {
            e["args"]["correlation"]: e
            for e in sorted(self.events, key=lambda e: (e["ts"], e["dur"]))
            if e["cat"] in CALLS and "correlation" in e["args"]
        }
        self.ops = sorted((e for e in self.events if e["cat"] in ORDER), key=self.outer_first)
        main = {
            e["tid"]
            for e in self.events
            if e["cat"] == "user_annotation" and any((e["ts"], e["end"]) == w[1:] for w in windows)
        }
        (self.main,) = main
        self.annotations: list[tuple[int, int, Event]] = []
        for e in sorted(
            (e for e in self.events if e["cat"] == "user_annotation" and e["tid"] == self.main),
            key=lambda e: (e["ts"], -e["dur"], e["name"]),
        ):
            self.annotations.append(
                (e["ts"], min([e["end"], *(end for start, end, _ in self.annotations if start <= e["ts"] < end)]), e)
            )
        roots = [o for o in self.ops if self.root(o) is o]
        engine = {o["tid"] for o in roots if o["cat"] == "cpu_op" and re.search(BACKWARD_OP, o["name"])}
        self.order = [*sorted(engine - main), self.main]
        self.gpu = sorted(
            (e for e in self.events if e["cat"] in GPU),
            key=lambda g: self.canonical(g, calls.get(g["args"].get("correlation"))),
        )
        for g in self.gpu:
            g["launch"] = calls.get(g["args"].get("correlation"))
        self.stream_waits = [e["ts"] for e in self.events if e["cat"] in CALLS and e["name"] == "cudaStreamWaitEvent"]
        self.awaited = [w for c in self.ops if c["cat"] in CALLS for w in self.awaited_by(c)]
        self.unrecorded = self.waits_between_calls()
        self.completions = [drained(windows, [(g, g["launch"]) for g in self.gpu])]
        for _, start, end in windows:
            launched = [g["end"] for g in self.gpu if g["launch"] and start <= g["launch"]["ts"] < end]
            self.completions.append(max([end, self.completions[-1], *launched]))
        recorded = {t for e in self.events for t in (e["ts"], e["end"])}
        self.edges = sorted(recorded | {self.returned(g) for g in self.gpu} | set(self.completions))
        self.path: Counter[tuple[int, str, str]] = Counter()
        self.of_event: Counter[tuple[int, int]] = Counter()
        self.spans: list[tuple[int, int, tuple[str, str], Event | None]] = []
        low, high = self.completions[0], self.completions[-1]
        _, start, end = windows[-1]
        completing = [g for g in self.gpu if g["end"] == high and g["launch"] and start <= g["launch"]["ts"] < end]
        last = completing[-1] if completing else None
        self.walk(low, high, last)
        before = self.completions[-2]
        if len(windows) > 1 and any(b < before <= e and label[0] in ON_HOST for b, e, label, _ in self.spans):
            self.spans, ended = [], max(end, before)
            self.walk(ended, high, last)
            self.walk(low, ended, None)
        for s, (low, high) in enumerate(pairwise(self.completions)):
            for begin, until, label, event in self.spans:
                if (ns := min(until, high) - max(begin, low)) > 0:
                    self.path[s, *label] += ns
                    if event is not None:
                        self.of_event[s, id(event)] += ns

    def outer_first(self, e: Event) -> tuple[Any, ...]:
        return (e["tid"], e["ts"], -e["dur"], ORDER.index(e["cat"]), e["args"].get("External id", -1), e["name"])

    def canonical(self, g: Event, launch: Event | None) -> tuple[Any, ...]:
        return (
            g["end"],
            g["ts"],
            int(g["args"]["device"]),
            int(g["args"]["stream"]),
            g["name"],
            (launch is not None, *(self.outer_first(launch) if launch else ())),
        )

    def root(self, e: Event) -> Event:
        around = [o for o in self.ops if o["tid"] == e["tid"] and o["ts"] <= e["ts"] < o["end"]]
        return min([*around, e], key=self.outer_first)

    def awaited_by(self, c: Event) -> list[tuple[int, Event, Event]]:
        """What the call ``c`` waited for: (when, GPU event, c)."""
        launched = [g for g in self.gpu if g["launch"] is c]
        own = [g for g in launched if self.waits_for(c, g) and g["dur"] and g["ts"] < c["end"]]
        if own:
            last = max(own, key=lambda g: (min(g["end"], c["end"]), self.gpu.index(g)))
            return [(min(last["end"], c["end"]), last, c)]
        before = [g for g in self.gpu if g["launch"] is None or g["launch"]["ts"] < c["ts"]]
        empties = c["name"] == "cudaFree" and all(g["end"] <= c["end"] for g in before)
        if launched or not (self.synchronises(c) or empties):
            return []
        found = [g for g in before if g["dur"] and c["ts"] < g["end"] <= c["end"]]
        return [(found[-1]["end"], found[-1], c)] if found else []

    def waits_between_calls(self) -> list[tuple[int, int, Event]]:
        """What the host waited for while no operator or call was open: (since, until, GPU event)."""
        places: dict[str, list[tuple[int, int, Event | None]]] = {}
        roots = sorted((o for o in self.ops if self.root(o) is o), key=lambda o: o["ts"])
        roots = [o for o in roots if not re.search("(Event|Stream)Query", o["name"])]
        ends = {"name": None, "ts": max(end for *_, end in self.windows)}
        for i, following in enumerate([*roots[1:], *([ends] if roots else [])], 1):
            since, until = max(o["end"] for o in roots[:i]), following["ts"]
            if until - since < 100_000:
                continue
            ended = [g for g in self.gpu if g["dur"] and since < g["end"] <= until]
            busy = sum(
                b - a
                for a, b in pairwise(sorted({since, until, *(t for g in self.gpu for t in (g["ts"], g["end"]))}))
                if since <= a and b <= until and any(g["ts"] <= a and b <= g["end"] for g in self.gpu)
            )
            works = any(g["dur"] and g["ts"] < until <= g["end"] for g in self.gpu)
            fills = bool(ended) and not works and busy >= 0.95 * (until - since)
            places.setdefault(following["name"], []).append((since, until, ended[-1] if fills else None))
        longest, filled = -1, []
        for gaps in places.values():
            some = [(since, until, g) for since, until, g in gaps if g is not None]
            after, lengths = [until - g["end"] for _, until, g in some], [until - since for since, until, _ in some]
            filled += some
            if len(some) > max(1, len(gaps) / 2) and 2 * pstdev(after) <= pstdev(lengths):
                longest = max(longest, *after)
        return [(since, g["end"], g) for since, until, g in filled if until - g["end"] <= 2 * longest]

    def synchronises(self, c: Event) -> bool:
        return bool(re.search("Synchronize", c["name"])) or c["name"] == "cudaMemcpy"

    def waits_for(self, c: Event, g: Event) -> bool:
        """Whether the launch ``c`` of ``g`` returns after it."""
        return self.synchronises(c) or "Pageable" in g["name"]

    def innermost_at(self, tid: int, time: int) -> Event | None:
        """The innermost scope of the thread just before ``time``."""
        return next((o for o in reversed(self.ops) if o["tid"] == tid and o["ts"] < time <= o["end"]), None)

    def doing(self, time: int) -> Event | None:
        """What the host as one does just before ``time``."""
        found = next((o for t in self.order if (o := self.innermost_at(t, time))), None)
        if found:
            return found
        return next((e for start, end, e in reversed(self.annotations) if start < time <= end), None)

    def seen(self, time: int) -> int | None:
        """The thread in whose operator or call the host as one is just before ``time``."""
        doing = self.doing(time)
        return doing["tid"] if doing and doing["cat"] in ORDER else None

    def label(self, e: Event | None) -> tuple[str, str]:
        if e is None:
            return "python", "nothing recorded"
        kind = {"cpu_op": "op", "cuda_runtime": "call", "user_annotation": "python", "kernel": "gpu_compute"}.get(
            e["cat"], "gpu_copy"
        )
        return "gpu_comm" if kind == "gpu_compute" and "nccl" in e["name"] else kind, match_name(e["name"])

    def queue(self, g: Event, _cause: Event | None = None) -> tuple[str, str]:
        return "queue", match_name(g["launch"]["name"]) if g["launch"] else "launch not in the file"

    def returned(self, g: Event) -> int:
        if not g["launch"]:
            return -(1 << 62)
        if not self.waits_for(g["launch"], g):
            return min(g["launch"]["end"], g["ts"])
        before = self.before(g)
        ended = [o["end"] for o in self.gpu if o["dur"] and o["end"] <= g["ts"]] + ([before["end"]] if before else [])
        follows = bool(ended) and g["ts"] - min(max(ended), g["ts"]) <= 20_000
        return min(g["launch"]["ts"] + 20_000, g["ts"]) if follows else g["ts"]

    def before(self, g: Event) -> Event | None:
        """The event before ``g`` on its stream."""
        where = g["args"]["device"], g["args"]["stream"]
        same = [o for o in self.gpu if (o["args"]["device"], o["args"]["stream"]) == where and o["dur"]]
        begun = sorted((o for o in same if o["ts"] < g["ts"]), key=lambda o: o["ts"])
        if begun and begun[-1]["end"] > g["ts"]:
            return begun[-1]  # a dependent launch
        return next((o for o in reversed(same) if o["end"] <= g["ts"]), None)

    def waited_for(self, g: Event) -> Event | None:
        before = self.before(g)
        ready = max(before["end"] if before else -(1 << 62), self.returned(g))
        if g["launch"]:
            for o in reversed(self.gpu):
                if o["dur"] and ready < o["end"] <= g["ts"] and self.held_back(g, o, before):
                    return o
        return before if before and min(before["end"], g["ts"]) >= self.returned(g) else None

    def held_back(self, g: Event, o: Event, before: Event | None) -> bool:
        since = o["launch"]["ts"] if o["launch"] else -(1 << 62)
        if any(e["launch"] and sum(x["launch"] is e["launch"] for x in self.gpu) > 1 for e in (g, o)):
            return since <= g["launch"]["ts"]
        low = before["launch"]["ts"] if before and before["launch"] else -(1 << 62)
        waits_before = [t for t in self.stream_waits if low <= t < g["launch"]["ts"]]
        if waits_before and since < max(waits_before):
            return True
        idle = g["ts"] - max(before["end"] if before else -(1 << 62), self.returned(g))
        return idle > 100_000 and g["ts"] - o["end"] <= 20_000 and since <= g["launch"]["ts"]

    def add(self, label: tuple[str, str], start: int, end: int, low: int, event: Event | None = None) -> int:
        start = max(start, low)
        if end > start:
            self.spans.append((start, end, label, event))
        return min(start, end)

    def walk(self, low: int, time: int, g: Event | None) -> None:
        launch: Event | None = None
        jumped = -1
        while time > low:
            if g is not None:
                time = self.add(self.label(g), g["ts"], time, low, g)
                if time <= low:
                    return
                cause = self.waited_for(g)
                if cause:
                    time, g = self.wait(g, cause, min(cause["end"], time), low), cause
                elif g["launch"]:
                    time, launch, g = self.wait(g, None, self.returned(g), low), g["launch"], None
                else:
                    time = self.add(("unknown", "launch not in the file"), low, time, low)
                continue
            until = max(self.root(launch)["ts"], low) if launch else low
            if time <= until:
                launch = None
                if time <= low:
                    return
                until = low
            jumps = [
                w
                for w in self.awaited
                if w[0] == time != jumped and w[2]["tid"] == (launch["tid"] if launch else self.seen(w[2]["end"]))
            ]
            if not launch:
                jumps += [(until, g, g) for _, until, g in self.unrecorded if until == time != jumped]
            if jumps:
                g, launch, jumped = max((w[1] for w in jumps), key=lambda e: self.gpu.index(e)), None, time
                continue
            doing = self.innermost_at(launch["tid"], time) if launch else self.doing(time)
            start = max([until, *(t for t in self.edges if t < time)])
            time = self.add(self.label(doing), start, time, low, doing)

    def wait(self, g: Event, cause: Event | None, since: int, low: int) -> int:
        """Charge what ``g`` waits ``since`` then: of long waits what occupies the GPU, if something does."""

        def engine(e: Event) -> tuple[Any, ...]:
            return e["args"]["device"], e["cat"] == "kernel"

        others = [o for o in self.gpu if engine(o) == engine(g) and g["ts"] - since > 100_000]
        times = sorted({since, g["ts"], *(t for o in others for t in (o["ts"], o["end"]) if since < t < g["ts"])})
        for a, b in pairwise(times):
            running = min((o for o in others if o["ts"] <= a < o["end"]), key=lambda o: o["ts"], default=None)
            self.add(self.label(running) if running else self.queue(g, cause), a, b, low, running)
        return min(max(since, low), g["ts"])

    def total(self) -> Counter[tuple[int, str, str]]:
        out: Counter[tuple[int, str, str]] = Counter()
        spans = [(g["ts"], g["end"], self.label(g)) for g in self.gpu]
        waits = []
        for g in self.gpu:
            before = self.before(g)
            waits.append(
                (self.returned(g) if g["launch"] else before["end"] if before else g["ts"], g["ts"], self.queue(g))
            )
        for a, b in pairwise(self.edges):
            spans += [(a, b, label) for label in {label for start, end, label in waits if start <= a and b <= end}]
        for a, b in pairwise(self.edges):
            innermost = [self.innermost_at(tid, b) for tid in {o["tid"] for o in self.ops}]
            spans += [(a, b, self.label(scope)) for scope in innermost if scope]
            waits_outside = any(since < b <= until for since, until, _ in self.unrecorded)
            if self.label(self.doing(b))[0] == "python" and not waits_outside:
                spans.append((a, b, self.label(self.doing(b))))
        for s, (low, high) in enumerate(pairwise(self.completions)):
            for start, end, label in spans:
                if min(end, high) > max(start, low):
                    out[s, *label] += min(end, high) - max(start, low)
            out.update({k: v for k, v in self.path.items() if k[0] == s and k[1] == "unknown"})
        return out
