"""The leaves of a file, slow and plain, straight from the JSON: the path of `critical_reference` and all that ran, by
what it belongs to. Checks the fast path; for traces without Python functions and compilation.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

from critical_reference import ORDER, Event, Walk

from tracediff.runtimes import may_wait

Key = tuple[str, ...]
"""Kind, name, innermost and outermost operator."""


class LeafWalk(Walk):
    """One file; `path` has the time on the path by (step, *key), `all_time` and `instances` the work of each step."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.all_time: Counter[tuple[Any, ...]] = Counter()
        self.instances: Counter[tuple[Any, ...]] = Counter()
        own = [max([start, *(end for *_, end in self.windows[:s])]) for s, (_, start, _) in enumerate(self.windows)]
        own.append(max(end for *_, end in self.windows))
        for s, (low, high) in enumerate(pairwise(self.completions)):
            self.add_gpu(s, low, high)
            self.add_host(s, own[s], own[s + 1])
        for (s, *key), ns in self.path.items():
            waits = key[0] in ("queue", "between", "unknown") or (key[0] in ("call", "sync") and may_wait(key[1]))
            self.all_time[s, *key] += ns * waits

    def label(self, e: Event | None) -> Key:
        if e is None or (e["cat"] == "user_annotation" and self.is_step(e)):
            return "python", "", "", ""
        if e["cat"] == "user_annotation":
            return "annotated", e["name"], "", ""
        if e["cat"] not in ORDER:
            return "gpu", e["name"], "", ""
        around = [
            o for o in self.ops if o["tid"] == e["tid"] and o["ts"] <= e["ts"] < o["end"] and o["cat"] == "cpu_op"
        ]
        inside = sorted(around if e in around or e["cat"] != "cpu_op" else [*around, e], key=self.outer_first)
        inside = [o for o in inside if self.outer_first(o) <= self.outer_first(e)]
        names = (inside[-1]["name"], inside[0]["name"]) if inside else ("", "")
        kind = "op" if e["cat"] == "cpu_op" else "sync" if self.synchronises(e) else "call"
        return kind, e["name"], *names

    def is_step(self, e: Event) -> bool:
        return any((e["ts"], e["end"]) == (start, end) for _, start, end in self.windows)

    def queue(self, g: Event, cause: Event | None = None) -> Key:
        return "between" if cause else "queue", g["launch"]["name"] if g["launch"] else "", "", ""

    def is_loading(self, time: int) -> bool:
        return any(
            e["ts"] <= time < e["end"] for e in self.events if e["cat"] == "user_annotation" and "Loader" in e["name"]
        )

    def add(self, label: Key, start: int, end: int, low: int, event: Event | None = None) -> int:
        if label[0] == "unknown":
            label = ("unknown", "", "", "")
        if label[0] in ("op", "call", "sync", "python", "annotated") and self.is_loading(max(start, low)):
            label = ("loading", "", "", "")
        return super().add(label, start, end, low, event)

    def add_gpu(self, s: int, low: int, high: int) -> None:
        """The events that the step launched; those that no step launched count in the period in which they ran."""
        for g in self.gpu:
            step = self.step_of(g)
            inside = g["dur"] * (step == s) if step is not None else min(g["end"], high) - max(g["ts"], low)
            if inside > 0 or step == s:
                self.all_time[s, *self.label(g)] += inside
                self.instances[s, *self.label(g)] += step == s or g["ts"] >= low

    def step_of(self, g: Event) -> int | None:
        time = g["launch"]["ts"] if g["launch"] else -1
        return next((s for s, (_, start, end) in enumerate(self.windows) if start <= time < end), None)

    def add_host(self, s: int, low: int, high: int) -> None:
        edges = sorted({low, high, *(t for t in self.edges if low < t < high)})
        for a, b in pairwise(edges):
            if self.is_loading(a):
                self.all_time[s, "loading", "", "", ""] += b - a
                continue
            for tid in {o["tid"] for o in self.ops}:
                scope = self.innermost_at(tid, b)
                if scope and (scope["cat"] == "cpu_op" or not may_wait(scope["name"])):
                    self.all_time[s, *self.label(scope)] += b - a
            if (label := self.label(self.doing(b)))[0] in ("python", "annotated"):
                self.all_time[s, *label] += b - a
        for o in self.ops:
            if low <= o["ts"] < high and not self.is_loading(o["ts"]):
                self.instances[s, *self.label(o)] += 1

    def leaves(self) -> dict[tuple[Any, ...], tuple[int, int]]:
        """(step, *key) → (ns on the path, ns of the step's work)."""
        times = self.path, self.all_time, self.instances
        found = {key for key in set().union(*times) if any(time[key] for time in times)}
        return {key: (self.path[key], self.all_time[key]) for key in found}
