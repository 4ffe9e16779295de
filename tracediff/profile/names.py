"""The three names of a kernel or op: raw (as recorded), match (what must agree between two runs), readable (for eyes)."""

from __future__ import annotations

import re
from functools import lru_cache

COMMUNICATION = re.compile(r"nccl|rccl|oneccl|msccl|nvshmem", re.IGNORECASE)
GENERATED = re.compile(r"^(triton_|graph_\d+_|cpp_fused|triton_helpers)|_fused_")
WRAPPER = re.compile(
    r"^(CompiledFunction|Torch-Compiled Region|autograd::engine::|TorchDynamo|Pregraph bytecode|AOTDispatcher"
    r"|## Call CompiledFxGraph|CompiledFxGraph|inductor|torch::dynamo)"
)
COPY = re.compile(r"^(?:Memcpy|Copy)\s*(?P<short>[HDPA]to[HDPA])|^(?:Copy|hipMemcpy)?(?P<src>Host|Device)To(?P<dst>Host|Device)", re.IGNORECASE)
ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
COUNTER = re.compile(r"_\d+(?:d\w*)?$")
GRAPH = re.compile(r"^graph_\d+_")
HASH = re.compile(r"(?<![A-Za-z0-9])(?=[a-z0-9]*\d)(?=[a-z0-9]*[a-z])[a-z0-9]{40,}(?![A-Za-z0-9])")
STEP = re.compile(r"^ProfilerStep\s*#\s*\d+$")


def is_communication(name: str) -> bool:
    """Whether a kernel of this name moves data between ranks."""
    return COMMUNICATION.search(name) is not None


def is_wrapper(name: str) -> bool:
    """Whether an op of this name only wraps others (compiled regions, autograd nodes, dynamo and AOT scopes)."""
    return WRAPPER.match(name) is not None


def is_generated(name: str) -> bool:
    """Whether a kernel of this name was written by a compiler, whose counters tell nothing."""
    return GENERATED.search(name) is not None


@lru_cache(maxsize=1 << 16)
def match_name(raw: str) -> str:
    """``raw`` less addresses, hashes, ids, step numbers and the trailing counter of generated kernels; of a copy its direction only."""
    copy = COPY.match(raw)
    if copy:
        direction = copy["short"] or f"{copy['src'][0]}to{copy['dst'][0]}"
        return f"Memcpy {direction[0].upper()}to{direction[-1].upper()}"
    if STEP.match(raw):
        return "ProfilerStep#"
    name = HASH.sub("#", ADDRESS.sub("0x#", raw))
    if is_generated(name):
        name = COUNTER.sub("", GRAPH.sub("", name))
    return name or raw


@lru_cache(maxsize=1 << 16)
def readable(raw: str) -> str:
    """A short form of ``raw`` for tables: no return type, parameters or namespaces; what distinguishes a template stays in brackets. Never empty."""
    name = raw.strip()
    if "(" not in name and "<" not in name:
        return name or "(no name)"
    if not re.match(r"^[\w:~<>(){},&*\s.\[\]=+-]+$", name) or name.startswith(("Memcpy", "Memset", "enumerate", "nn.Module")) or re.search(r"\(\d+\): ", name):
        return name
    name = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    plain, arguments = _split_template(name)
    short = plain.split("::")[-1].strip()
    if not short:
        return raw
    functors = _distinguishing(arguments)
    return f"{short}<{', '.join(functors)}>" if functors else short


def _split_template(name: str) -> tuple[str, str]:
    """(name without template arguments and parameters, the outermost template arguments)."""
    depth, plain, inside = 0, [], []
    for c in name:
        if c == "(" and depth == 0:
            break
        if c == "<":
            depth += 1
        if depth == 0:
            plain.append(c)
        elif not (c == "<" and depth == 1) and not (c == ">" and depth == 1):
            inside.append(c)
        if c == ">":
            depth -= 1
    return "".join(plain), "".join(inside)


def _distinguishing(arguments: str) -> list[str]:
    """The words of template arguments that tell kernels apart: functors, ops and the kernels they wrap."""
    words = re.findall(r"[A-Za-z_][\w]*(?:Functor|Ops?|_kernel(?:_cuda|_impl)?|Kernel|gemm\w*|fprop\w*|dgrad\w*|wgrad\w*)\b|cutlass_\w+", arguments)
    return list(dict.fromkeys(w for w in words if w not in ("Op", "Ops", "Kernel", "gpu_kernel_impl", "gpu_kernel_impl_nocast")))[:2]


def table_name(raw: str) -> str:
    """The name under which occurrences of one run stand together in a table: the match name; of generated kernels the raw one,
    since their counters may tell two kernels apart."""
    return raw if is_generated(raw) else match_name(raw)
