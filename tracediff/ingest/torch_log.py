"""Logs of torch.compile (``TORCH_TRACE``; folders of ``TORCH_COMPILE_DEBUG``): the lines of code and operators that
each compiled kernel computes, graph breaks, recompilations, and the time that compiling took.

Logs are text from elsewhere: paths and code in them are never opened or run.
"""

import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import msgspec
from msgspec import Struct

from tracediff import bounds
from tracediff.errors import TracediffError
from tracediff.ingest.discover import CODE_NAME, rank_in_name
from tracediff.ingest.files.documents import NOT_JSON
from tracediff.ingest.files.source import TraceFile, open_trace
from tracediff.ingest.manifest import CompiledCall, CompiledKernel, GraphBreak, TorchLog
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.names import innermost_line, line_of_code
from tracediff.ingest.torch_records import CODE, GRAPH, MOST_LINE, Frame, Record, records
from tracediff.patterns import graph_break

TORCH_LOG = "torch-log"
"""Code of the health notes on such logs."""
STACKS = "inductor_provenance_tracking_kernel_stack_traces"
MAPPINGS = "inductor_provenance_tracking_node_mappings"
HIT = "fx_graph_cache_hit"
CACHED = ("fx_graph_cache_miss", HIT)
PHASES = ("Dynamo", "AOTAutograd", "Inductor", "code generation")
"""What the time is of; each contains the next."""
AOT_ID = re.compile(r"# AOT ID: \['\d+_(\w+)'\]")
ORIGINS = re.compile(r"\A# Topologically Sorted Source Nodes: \[([^\]]*)\], Original ATen: \[([^\]]*)\]")
DEFINITION = re.compile(r"\A(\w+) = async_compile\.\w+\(")
HANDLE = re.compile(r"# \[Provenance debug handles\] (\S+)")
CALL = re.compile(r"\A(?:\w+ = )?(?P<name>(?:extern_kernels|torch\.ops\.\w+)\.\w+)(?:\.\w+)?\(")
"""A call of an operator that inductor has no kernel for."""
SAME_OPERATOR = {"bias_addmm": "addmm"}
"""External kernels that call an operator of another name."""
NAME_IN_TRACE = re.compile(r"\bgraph_\d+_\w+")
CODE_AT = "# File: "
NODE = re.compile(r"\A\s*(\w+)(?:: | = )")
COMPILE_ID, OBJECT_ID = re.compile(r"\A\d+/\d+: "), re.compile(r"\d{9,}")


class _Mappings(msgspec.Struct):
    code_to_post: dict[str, list[str]] = msgspec.field(name="cppCodeToPost", default_factory=dict)
    post_to_pre: dict[str, list[str]] = msgspec.field(name="postToPre", default_factory=dict)


class _Cached(msgspec.Struct):
    key: str | None = None


class _Graph(Struct):
    """One graph as far as the log has described it.

    Attributes:
        code: that inductor generated. key: in inductor's cache. line_of_node: of the graph that Dynamo captured.
        is_cached: whether code and stacks are those of an earlier compilation.
        lines: handle (``triton_poi_fused_add_0:3``) → lines, by its stacks. nodes: handle → nodes of Dynamo's graph.
    """

    code: str = ""
    line_of_node: dict[str, str] = {}
    key: str | None = None
    is_cached: bool = False
    lines: dict[str, list[str]] = {}
    nodes: dict[str, list[str]] = {}

    def describe(self, name: str, payload: str) -> None:
        """Add an artifact.

        Raises: one of NOT_JSON.
        """
        if name == STACKS:
            handles = set(HANDLE.findall(self.code))  # the stacks of graphs before it are repeated
            for handle, stacks in msgspec.json.decode(payload, type=dict[str, list[str]]).items():
                if not handles or handle in handles:
                    self.lines[handle] = list(filter(None, map(innermost_line, stacks)))
        elif name == MAPPINGS:
            mappings = msgspec.json.decode(payload, type=_Mappings)
            for handle, posts in mappings.code_to_post.items():
                self.nodes[handle] = [node for post in posts for node in mappings.post_to_pre.get(post, ())]
        elif name in CACHED:
            self.key, self.is_cached = msgspec.json.decode(payload, type=_Cached).key, name == HIT

    def kernels(self) -> Iterator[CompiledKernel]:
        """The kernels that its code defines; of a graph without code those with a stack."""
        definitions = ((DEFINITION.match(statement.line), statement) for statement in _statements(self.code))
        defined = {match[1]: statement for match, statement in definitions if match}
        names_in_trace = self._names_in_trace
        by_stack, by_mapping = _by_kernel(self._current_lines), _by_kernel(self.nodes)
        phase = AOT_ID.search(self.code)
        for name in defined or by_stack:
            definition = defined.get(name, Statement(""))
            lines = by_stack.get(name) or self._lines_of(by_mapping.get(name, definition.nodes))
            name, where = names_in_trace.get(name, name), phase[1] if phase else ""
            yield CompiledKernel(name, self.key, where, definition.ops, tuple(sorted({*lines})))

    def calls(self) -> Iterator[CompiledCall]:
        """What its code calls, in order; nothing where its key is unknown."""
        names_in_trace, by_stack = self._names_in_trace, self._current_lines
        for statement in _statements(self.code) if self.key else ():
            handle = statement.handle
            if name := _kernel(handle) or ((call := CALL.match(statement.line.strip())) and call["name"]):
                lines = by_stack.get(handle) or self._lines_of(self.nodes.get(handle, statement.nodes))
                operation = names_in_trace.get(name, _operator(name))
                yield CompiledCall(self.key or "", operation, tuple(sorted({*lines})))

    @property
    def _names_in_trace(self) -> dict[str, str]:
        return {name.split("_", 2)[2]: name for name in NAME_IN_TRACE.findall(self.code)}

    @property
    def _current_lines(self) -> dict[str, list[str]]:
        """``lines``, but for those of code that was compiled from a file whose lines have moved since."""
        compiled_lines = {*self.line_of_node.values()}
        has_moved = (
            self.is_cached
            and compiled_lines
            and not compiled_lines.issuperset(chain.from_iterable(self.lines.values()))
        )
        return {} if has_moved else self.lines

    def _lines_of(self, nodes: Iterable[str]) -> list[str]:
        return [self.line_of_node[node] for node in nodes if node in self.line_of_node]


class _Reading:
    """What a log says, collected record by record.

    Attributes:
        rank: that wrote it. damaged: records and payloads that cannot be read.
    """

    def __init__(self) -> None:
        self.rank: int | None = None
        self.records = 0
        self.damaged = 0
        self.graphs: list[_Graph] = []
        self._latest: dict[Frame, _Graph] = {}
        self._line_of_node: dict[Frame, dict[str, str]] = {}
        self._breaks: dict[GraphBreak, None] = {}
        self._reasons: dict[Frame, str] = {}
        self._places: dict[Frame, tuple[str, int]] = {}
        self._compile_us = [0.0] * len(PHASES)

    def log(self) -> TorchLog:
        """All that was read."""
        recompiles = [GraphBreak(*self._places.get(frame, ("", 0)), text) for frame, text in self._reasons.items()]
        kernels = dict.fromkeys(kernel for graph in self.graphs for kernel in graph.kernels())
        calls = chain.from_iterable({graph.key: [*graph.calls()] for graph in self.graphs}.values())
        compile_us = tuple(self._compile_us)
        return TorchLog(tuple(kernels), tuple(self._breaks), tuple(recompiles), compile_us, self.rank, tuple(calls))

    def add(self, record: Record | None, payload: str) -> None:
        """Add a record, or count a damaged one."""
        if record is None:
            self.damaged += 1
            return
        self.records += 1
        self.rank = record.rank if self.rank is None else self.rank
        try:
            self._add_payload(record.frame, record.name, payload)
        except NOT_JSON:
            self.damaged += 1
        for metrics in filter(None, (record.compilation_metrics, record.bwd_compilation_metrics)):
            self._compile_us = [sum(both) for both in zip(self._compile_us, metrics.phases_us, strict=True)]
            if metrics.co_filename:
                self._places[record.frame] = os.path.basename(metrics.co_filename), metrics.co_firstlineno or 0

    def begin_graph(self, frame: Frame, code: str = "") -> _Graph:
        """The graph that what follows on ``frame`` is about."""
        self._latest[frame] = _Graph(code, self._line_of_node.get(frame, {}))
        self.graphs.append(self._latest[frame])
        return self._latest[frame]

    def _add_payload(self, frame: Frame, name: str, payload: str) -> None:
        if name == GRAPH:
            self._line_of_node[frame] = _lines_of_nodes(payload)
        elif name == CODE:
            self.begin_graph(frame, payload)
        elif name == "dynamo_graph_break_reason":
            if break_fields := graph_break(payload):
                self._breaks[GraphBreak(*break_fields)] = None
        elif name == "recompile_reasons":
            reasons = (line.strip(' \t[]",') for line in payload.splitlines())
            reason = COMPILE_ID.sub("", next(filter(None, reasons), ""))[: bounds.LONG_REASON]
            self._reasons[frame] = OBJECT_ID.sub("…", reason.rstrip())
        elif name in (STACKS, MAPPINGS, *CACHED):
            (self._latest.get(frame) or self.begin_graph(frame)).describe(name, payload)


def read_log(file: TraceFile, notes: Notes) -> TorchLog | None:
    """What a log says, as far as it can be read; None, with a note, for other files."""
    reading = _Reading()
    try:
        with open_trace(file) as stream:
            if CODE_NAME.search(file.path):
                _read_debug_folder(reading, file, stream.read(MOST_LINE))
            else:
                for record, payload in records(stream):
                    reading.add(record, payload)
    except TracediffError as error:
        notes.add(TORCH_LOG, f"{file.name}: {error.reason}; what precedes was read")
    if not reading.records and not reading.graphs:
        notes.add(TORCH_LOG, f"{file.name} is not a log of torch.compile, and was skipped")
        return None
    notes.add(TORCH_LOG, f"records of {file.name} that are damaged were left out", reading.damaged)
    if reading.rank is None:
        reading.rank = rank_in_name(TraceFile(os.path.basename(file.path)))
    return reading.log()


def _read_debug_folder(reading: _Reading, file: TraceFile, code: bytes) -> None:
    """Read the ``output_code.py`` of one graph, and the stacks beside it."""
    reading.begin_graph((None, None), code.decode(errors="replace"))
    stacks = TraceFile(os.path.join(os.path.dirname(file.path), f"{STACKS}.json"))
    if os.path.isfile(stacks.path):
        with open_trace(stacks) as stream:
            reading.add(Record(artifact={"name": STACKS}), stream.read(MOST_LINE).decode(errors="replace"))


def _kernel(handle: str) -> str:
    """The kernel of ``triton_poi_fused_add_0:3``."""
    return handle.partition(":")[0]


def _by_kernel(by_handle: dict[str, list[str]]) -> dict[str, list[str]]:
    """Kernel → what all its handles have."""
    out: dict[str, list[str]] = {}
    for handle, values in by_handle.items():
        out.setdefault(_kernel(handle), []).extend(values)
    return out


def _operator(name: str) -> str:
    """``extern_kernels.mm``, ``torch.ops.aten.sort.stable`` → ``aten::mm``, ``aten::sort``; kernels as they are."""
    namespace, _, rest = name.removeprefix("torch.ops.").partition(".")
    operator = rest.partition(".")[0]
    namespace = "aten" if namespace == "extern_kernels" else namespace
    return f"{namespace}::{SAME_OPERATOR.get(operator, operator)}" if operator else name


class Statement(NamedTuple):
    """A line of generated code, and what the comments before it say: the nodes of Dynamo's graph that it computes, the
    original operators, and the handle of its kernel.
    """

    line: str
    nodes: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    handle: str = ""


def _statements(code: str) -> Iterator[Statement]:
    described = Statement("")
    for line in code.splitlines():
        comment = line.strip()
        if origins := ORIGINS.match(comment):
            nodes, ops = (tuple(filter(None, names.split(", "))) for names in origins.groups())
            described = described._replace(nodes=nodes, ops=ops)
        elif handle := HANDLE.match(comment):
            described = described._replace(handle=handle[1])
        elif not comment.startswith("#"):
            yield described._replace(line=line)
            described = Statement("")


def _lines_of_nodes(graph: str) -> dict[str, str]:
    """Node → line of code, of the text of a graph."""
    out: dict[str, str] = {}
    here = None
    for line in graph.splitlines():
        if line.lstrip().startswith(CODE_AT):
            place, _, function = line.partition(CODE_AT)[2].partition(", code: ")[0].rpartition(" in ")
            file, _, number = place.rpartition(":")
            here = line_of_code(file, number, function) if number.isdigit() else None
        elif here and (node := NODE.match(line)):
            out[node[1]] = here
    return out
