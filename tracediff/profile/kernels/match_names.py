"""Names of kernels and ops: raw (as recorded) and match (what must agree between two runs); `readable` makes those for
eyes.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tracediff.ingest.times import MISSING
from tracediff.runtimes import copy_direction, is_memset

GENERATED = re.compile(r"^(triton_|graph_\d+_|cpp_fused|triton_helpers)|_fused_")
WRAPPER = re.compile(
    r"^(CompiledFunction|Torch-Compiled Region|autograd::engine::|TorchDynamo|Pregraph bytecode|AOTDispatcher"
    r"|## Call CompiledFxGraph|CompiledFxGraph|inductor|torch::dynamo)"
)
COPY, MEMSET = "Memcpy", "Memset"
"""What match names call a copy, before its direction, and a memset."""
ADDRESS = re.compile(r"(?<!\d)0x[0-9a-fA-F]+")
"""An address; no `0x` of a tile such as 160x128."""
COUNTER = re.compile(r"_\d+(?:d\w*)?$")
GRAPH = re.compile(r"^graph_\d+_")
HASH = re.compile(r"(?<![A-Za-z0-9])(?=[a-z0-9]*\d)(?=[a-z0-9]*[a-z])[a-z0-9]{40,}(?![A-Za-z0-9])")
STEP = re.compile(r"^ProfilerStep\s*#\s*\d+$")


def is_wrapper(name: str) -> bool:
    """Whether an op of this name only wraps others (compiled regions, autograd nodes, dynamo and AOT scopes)."""
    return WRAPPER.match(name) is not None


@lru_cache(maxsize=1 << 16)
def is_generated(name: str) -> bool:
    """Whether a kernel of this name was written by a compiler, whose counters tell nothing."""
    return GENERATED.search(name) is not None


@lru_cache(maxsize=1 << 16)
def match_name(raw: str) -> str:
    """``raw`` less addresses, hashes, ids, step numbers and the trailing counter of generated kernels; of a copy its
    direction only.
    """
    direction = copy_direction(raw)
    if direction:
        return f"{COPY} {direction}"
    if is_memset(raw):
        return MEMSET
    if STEP.match(raw):
        return "ProfilerStep#"
    name = HASH.sub("#", ADDRESS.sub("0x#", raw))
    if is_generated(name):
        name = COUNTER.sub("", GRAPH.sub("", name))
    return name or raw


def table_name(raw: str) -> str:
    """The name under which occurrences of one run stand together in a table: the match name; of generated kernels the
    raw one,
    since their counters may tell two kernels apart."""
    return raw if is_generated(raw) else match_name(raw)


def numbered(what: str, number: int) -> str:
    """``GPU 0``; ``GPU`` where the number is not recorded."""
    return f"{what} {number}" if number != MISSING else what
