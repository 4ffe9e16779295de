"""Execution traces (torch.profiler.ExecutionTraceObserver): they contain the inputs of every operator, and no times. A
profiler's trace of the same process lacks the inputs if it was recorded without record_shapes. Both number operators
in the same way (record function id).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from tracediff.arrays import int64_of
from tracediff.errors import TracediffError
from tracediff.ingest.files.documents import NOT_JSON
from tracediff.ingest.files.source import TraceFile, open_trace
from tracediff.ingest.json.arguments import json_text, read_inputs
from tracediff.ingest.json.chunks import EventStream
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import Trace
from tracediff.patterns import late

EXECUTION_TRACE = "execution-trace"
"""Code of the health notes on execution traces."""
OPENING = late(rb'\s*\{\s*"schema"\s*:\s*"[^"]*chakra')
"""How such a file begins."""
LINK = "Record function id"
COLUMNS = ("Input Dims", "Input type", "Input Strides")
NO_TENSOR = ("", "Scalar", "ScalarList")
"""Types of inputs without a shape."""


class _Attribute(msgspec.Struct):
    name: str
    value: msgspec.Raw


class _Inputs(msgspec.Struct):
    types: list[str]
    shapes: list[Any]
    strides: list[Any]


class _Node(msgspec.Struct):
    name: str
    inputs: _Inputs
    attrs: list[_Attribute]


_NODES = msgspec.json.Decoder(list[_Node])


def with_inputs(trace: Trace, files: Sequence[TraceFile]) -> Trace:
    """``trace`` with operator inputs from the execution trace of its process in ``files``, if it has none itself."""
    operators = trace.arguments.get(cat.CPU_OP)
    if not files or operators is None or COLUMNS[0] in operators.columns or LINK not in operators.columns:
        return trace
    notes = Notes.of(trace.notes)
    processes = {str(trace.ids[code]) for code in np.unique(trace.pid[operators.rows]).tolist()}
    for file in files:
        filled = _fill(trace, file, processes, notes)
        if filled is not None:
            notes.add(EXECUTION_TRACE, f"shapes of operators were taken from {file.name}", filled)
            break
    return replace(trace, notes=notes.list())


def _fill(trace: Trace, file: TraceFile, processes: set[str], notes: Notes) -> int | None:
    """Give the operators of ``trace`` the inputs of the nodes in ``file`` with their number and name; return how many
    have some, None if the file is of another process or cannot be read.
    """
    operators = trace.arguments[cat.CPU_OP]
    name_codes = {name: code for code, name in enumerate(trace.names)}
    links = operators.columns[LINK]
    numbers = set(links.tolist())
    text_codes: dict[str, int] = {}
    codes_of_node: dict[int, tuple[int, ...]] = {}
    try:
        with open_trace(file) as unpacked:
            stream = EventStream(file, unpacked, _NODES.decode, Notes(), key=b"nodes")
            for batch in stream.batches():
                for number, node in _numbered(batch, numbers):
                    codes_of_node[number] = (name_codes.get(node.name, -1), *_codes(node, text_codes, len(trace.texts)))
        tail, head = (msgspec.json.decode(text, type=dict[str, Any]) for text in (stream.tail, stream.head))
    except (TracediffError, *NOT_JSON):
        notes.add(EXECUTION_TRACE, f"{file.name} is damaged, too large or in an unknown format, and was skipped")
        return None
    if str((tail | head).get("pid")) not in processes:
        return None
    nodes = int64_of([(number, *codes) for number, codes in sorted(codes_of_node.items())]).reshape(
        -1, 2 + len(COLUMNS)
    )
    if not len(nodes):
        return 0
    position = np.minimum(np.searchsorted(nodes[:, 0], links), len(nodes) - 1)
    same = (nodes[position, 0] == links) & (nodes[position, 1] == trace.name[operators.rows])
    trace.texts.extend(text_codes)
    for k, column in enumerate(COLUMNS, start=2):
        operators.columns[column] = np.where(same, nodes[position, k], -1).astype(np.int32)
        read_inputs(column, operators.columns[column], trace.texts, notes)
    return int((operators.columns[COLUMNS[0]] >= 0).sum())


def _numbered(nodes: list[_Node], numbers: set[int]) -> Iterator[tuple[int, _Node]]:
    """The nodes with one of ``numbers``, and it."""
    for node in nodes:
        for attribute in node.attrs:
            if attribute.name == "rf_id":
                number = msgspec.json.decode(attribute.value)
                if isinstance(number, int) and number > 0 and number in numbers:
                    yield number, node
                break


def _codes(node: _Node, codes: dict[str, int], first: int) -> tuple[int, int, int]:
    """Codes of the node's shapes, types and strides as the profiler would write them; −1 if it has no input."""
    inputs = node.inputs
    if not inputs.types:
        return -1, -1, -1
    kinds = [_kind(kind) for kind in inputs.types]
    tensors = [kind not in NO_TENSOR for kind in kinds]
    values: list[Any] = [
        [s if t else [] for s, t in zip(recorded, tensors, strict=False)]
        for recorded in (inputs.shapes, inputs.strides)
    ]
    texts = map(json_text, (values[0], kinds, values[1]))
    dims, types, strides = (codes.setdefault(text, first + len(codes)) for text in texts)
    return dims, types, strides


def _kind(kind: str) -> str:
    """``Tensor(float)`` → ``float``, ``Int`` → ``Scalar``, ``GenericList[Int,Int]`` → ``ScalarList``, as the profiler
    writes them; "" for types that it does not write, such as absent tensors and lists that mix tensors and others.
    """
    if "nullptr" in kind:
        return ""
    if kind.startswith("Tensor("):
        return kind[len("Tensor(") : -1]
    if kind.startswith("GenericList["):
        tensors = [part.startswith("Tensor(") for part in kind[len("GenericList[") : -1].split(",")]
        return "TensorList" if all(tensors) else "" if any(tensors) else "ScalarList"
    return "Scalar" if kind in ("Int", "Bool", "Double", "ComplexDouble", "SymInt") else ""
