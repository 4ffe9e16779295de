"""Scores matching on graph replays with known partners: a real replay, and a variant as of another batch size.

python benchmarks/matching/variants.py [--seeds N] prints the matched share and the precision per replay.

A variant changes what another batch size changes: durations (by one factor per role), grids, the counters of generated
kernels, the algorithm of matrix products, some lists of fused operators, the order of neighbouring products; some
generated kernels are split in two or merged, some products and attentions run in parts that another kernel combines.
The origin of each event is known, so that the pairs are scored event by event.
"""

from __future__ import annotations

import argparse
import os
import random
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from tracediff.aggregate.averages import call_tree, weighted_files
from tracediff.aggregate.call_tree import CallTree, Work
from tracediff.diff.matching.call_pairs import pair_calls
from tracediff.diff.matching.cascade import cascade
from tracediff.diff.matching.items import Origins, inherited, items_of
from tracediff.engine import load_sets
from tracediff.profile.kernels.families import DEFAULT
from tracediff.structs import Pair

ROOT = Path(__file__).resolve().parents[2]
TRACES = Path(os.environ.get("TRACEDIFF_TRACES") or ROOT.parent / "shared" / "traces")
REPLAYS = ("tinylm_cudagraph", "vllm_graph_mi300", "sglang_decode_mi300")
BATCH = 8
"""The variant's batch is larger by this factor."""
SPLIT = MERGED = 0.05
"""Share of generated kernels that are split in two; of neighbours that are merged."""
SWAPPED = 0.3
"""Share of neighbouring matrix products of the backward phase that are swapped."""
RENAMED, REFUSED = 0.7, 0.1
"""Share of roles of matrix products with another algorithm; of roles of generated kernels with another operator."""
JITTER = 0.05
PARTS = {"gemm": 0.2, "attention": 0.5}
"""Share of roles of these families that run in parts, which another kernel combines."""
SPLIT_K = "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float>(cublasLt::cublasSplitKParams<float>)"
FLASH, COMBINE = "flash_fwd_splitkv_kernel", "flash_fwd_splitkv_combine_kernel"
COUNTER = re.compile(r"_(\d+)$")
FUSED = re.compile(r"^(?P<kind>triton_(?:poi|red|per)_fused)_(?P<ops>.+)$")
PRODUCTS = ("ampere_sgemm_{0}x{1}_{2}", "void cutlass::Kernel2<cutlass_80_simt_sgemm_{0}x{1}_8x4_{2}_align1>",
            "Cijk_Ailk_Bljk_SB_MT{0}x{1}x16_SN_1LDSB0_{2}")  # fmt: skip


@dataclass(frozen=True)
class Score:
    """Shares of events and time of the control side.

    Attributes:
        events, time: correctly matched, relative to all with a partner. precision: correctly matched, relative to the
            time matched one to one.
        wide: time in groups of several events.
        parts: of the events that run as several there, those that are grouped with all of them.
    """

    events: float
    time: float
    precision: float
    wide: float
    parts: float


def main() -> None:
    """Score each replay over several seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    print(
        "| replay | seeds | events right | time right | precision by time | in wide groups | with all parts |\n"
        "|---|---|---|---|---|---|---|"
    )
    for name in REPLAYS:
        tree = replay(TRACES / name)
        scores = [score(tree, seed) for seed in range(seeds)]
        cells = (
            f"{100 * sum(getattr(s, what) for s in scores) / len(scores):.1f} %"
            for what in ("events", "time", "precision", "wide", "parts")
        )
        print(f"| {name} | {seeds} | {' | '.join(cells)} |")


def replay(folder: Path) -> CallTree:
    """The call tree of a trace with graph replays."""
    (traces,) = load_sets([str(folder)])
    return call_tree(traces, True, weighted_files(traces)[0])


def score(tree: CallTree, seed: int) -> Score:
    """The score of matching ``tree`` with a variant of it."""
    other, partners = variant(tree, random.Random(seed))
    sides = [items_of(t, DEFAULT.of_kernel, Origins(None), {}) for t in (tree, other)]
    matches = cascade(Pair(*sides), Pair(tree, other), pair_calls(tree, other))
    graph = {id(i) for i in sides[0] if i.op is None}
    whole = right = paired = wide = 0.0
    count = good = 0
    for item in sides[0]:
        if id(item) in graph and partners[item.order]:
            whole += item.ns
            count += 1
    for level, (a, b), _ in matches:
        for item in a:
            if id(item) not in graph or not b:
                continue
            hits = sum(1 for j in b if j.order in partners[item.order]) / len(b)
            if level == "sequence":
                paired += item.ns
            if max(len(a), len(b)) > 1:
                wide += item.ns
            right += hits * item.ns
            good += hits > 0.5
    one_to_one = sum(
        i.ns * any(j.order in partners[i.order] for j in b)
        for level, (a, b), _ in matches if level == "sequence" for i in a if id(i) in graph
    )  # fmt: skip
    in_parts = [
        partners[i.order] <= {j.order for j in b}
        for _, (a, b), _ in matches for i in a if id(i) in graph and len(partners[i.order]) > 1
    ]  # fmt: skip
    return Score(
        good / count,
        right / whole,
        one_to_one / max(paired, 1),
        wide / whole,
        sum(in_parts) / max(len(in_parts), 1),
    )


def variant(tree: CallTree, rng: random.Random) -> tuple[CallTree, dict[int, set[int]]]:
    """(the tree of another batch size, order of each event → orders of its partners there)."""
    made: list[tuple[Work, set[int]]] = []
    roles = _Roles(rng)
    works = sorted(tree.work, key=lambda w: w.order)
    skip = False
    for work, following in zip(works, [*works[1:], None], strict=True):
        if skip:
            skip = False
            continue
        bare = tree.op(work.node) is None
        alike = following is not None and bare and FUSED.match(work.name) and FUSED.match(following.name)
        if alike and following is not None and work.node == following.node and rng.random() < MERGED:
            both = roles.changed(replace(work, name=_merged(work.name, following.name), ns=work.ns + following.ns))
            made.append((both, {work.order, following.order}))
            skip = True
        elif bare and FUSED.match(work.name) and rng.random() < SPLIT and "_" in work.name:
            first, second = _halves(work.name)
            halves = (replace(work, name=name, ns=work.ns // 2) for name in (first, second))
            made += [(roles.changed(half), {work.order}) for half in halves]
        elif bare and roles.is_gone(work):
            continue
        else:
            changed = roles.changed(work) if bare else replace(work)
            family = DEFAULT.of_kernel(work.name, None)
            near = {DEFAULT.of_kernel(w.name, None) for w in (following, made[-1][0] if made else None) if w}
            in_parts = bare and roles.is_split(work) and (family == "gemm" or family not in near)
            if in_parts and family == "attention":
                changed = replace(changed, name=FLASH)
            made.append((changed, {work.order}))
            if in_parts:
                name, shape = (SPLIT_K, "[64, 1, 1] × [32, 16, 1]") if family == "gemm" else (COMBINE, None)
                made.append((replace(work, name=name, ns=work.ns // 20, launch_shape=shape), {work.order}))
    phases, _ = inherited(tree, {})
    for k in range(len(made) - 1):
        pair = made[k][0], made[k + 1][0]
        is_backward = all(_is_product(w) and w.node >= 0 and phases[w.node] == "backward" for w in pair)
        if is_backward and rng.random() < SWAPPED:
            made[k], made[k + 1] = made[k + 1], made[k]
    partners: dict[int, set[int]] = defaultdict(set)
    out = []
    for order, (work, sources) in enumerate(made):
        out.append(replace(work, order=order))
        for source in sources:
            partners[source].add(order)
    return CallTree(tree.denominator, tree.calls, _with_ordinals(out), tree.places), partners


class _Roles:
    """What happens to each role: work of one name and launch shape."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._changes: dict[tuple[str, str | None], tuple[float, str, float]] = {}
        self._split: dict[tuple[str, str | None], bool] = {}

    def is_gone(self, work: Work) -> bool:
        """Whether the other batch size does without it: memsets clear what split products add to."""
        return DEFAULT.of_kernel(work.name, None) == "memset" and self._rng.random() < 0.5

    def is_split(self, work: Work) -> bool:
        """Whether it runs in parts there, with a kernel that combines them."""
        share = PARTS.get(DEFAULT.of_kernel(work.name, None), 0)
        return self._split.setdefault((work.name, work.launch_shape), self._rng.random() < share)

    def changed(self, work: Work) -> Work:
        """``work`` as the other batch size has it."""
        key = work.name, work.launch_shape
        if key not in self._changes:
            self._changes[key] = self._new(work)
        factor, name, grid = self._changes[key]
        jitter = self._rng.uniform(1 - JITTER, 1 + JITTER)
        return replace(
            work, name=name, launch_shape=_grown(work.launch_shape, grid), ns=round(work.ns * factor * jitter)
        )

    def _new(self, work: Work) -> tuple[float, str, float]:
        rng, family = self._rng, DEFAULT.of_kernel(work.name, None)
        small = work.ns < 3_000 * max(work.count, 1)
        factor = rng.uniform(1, 2) if small else BATCH * rng.uniform(0.5, 1.1)
        if family == "memset":
            factor = rng.uniform(0.9, 1.2)
        name = work.name
        if _is_product(work) and rng.random() < RENAMED:
            tile = rng.choice((32, 64, 128, 256)), rng.choice((32, 64, 128))
            name = rng.choice(PRODUCTS).format(*tile, rng.choice(("nn", "nt", "tn")))
        elif FUSED.match(name):
            if rng.random() < REFUSED:
                name = COUNTER.sub("", name) + "_" + rng.choice(("clone", "view", "add", "mul"))
            name = f"{COUNTER.sub('', name)}_{rng.randrange(60)}"
        return factor, name, BATCH if rng.random() < 0.8 else rng.choice((1, 2, 4))


def _is_product(work: Work) -> bool:
    return DEFAULT.of_kernel(work.name, None) == "gemm"


def _grown(shape: str | None, factor: float) -> str | None:
    """Grid and block with the grid's first dimension grown."""
    if shape is None:
        return None
    return re.sub(r"^\[(\d+)", lambda m: f"[{round(int(m[1]) * factor)}", shape)


def _halves(name: str) -> tuple[str, str]:
    """The names of two kernels that share the operators of one."""
    found = FUSED.match(name)
    assert found
    words = COUNTER.sub("", found["ops"]).split("_")
    cut = max(len(words) // 2, 1)
    return f"{found['kind']}_{'_'.join(words[:cut])}", f"{found['kind']}_{'_'.join(words[cut:] or words)}"


def _merged(first: str, second: str) -> str:
    """The name of one kernel that computes the operators of two."""
    a, b = FUSED.match(first), FUSED.match(second)
    assert a is not None
    assert b is not None
    return f"{a['kind']}_{COUNTER.sub('', a['ops'])}_{COUNTER.sub('', b['ops'])}"


def _with_ordinals(works: list[Work]) -> list[Work]:
    """Works with ordinals among equals, in order."""
    seen: dict[tuple[object, ...], int] = defaultdict(int)
    out = []
    for work in works:
        key = (work.node, work.category, work.name, work.launch_shape)
        out.append(replace(work, ordinal=seen[key]))
        seen[key] += 1
    return out


if __name__ == "__main__":
    main()
