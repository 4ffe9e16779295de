"""What `torch.cuda.graph_annotations` recorded of the kernels of a graph, from which the exporter puts arguments on the
events of each replay.

A text is ``str`` in torch 2.12 and 2.13, ``name`` later, ``annotation`` where the CUPTI monitor exports it; graph
compilers give the module's qualified name. Scopes that overlap are merged by torch, so one text is left, the inner.
"""

from __future__ import annotations

import json
import re

import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.times import Int64
from tracediff.ingest.trace import Trace
from tracediff.profile.placement.calls import ANNOTATION, MODULE
from tracediff.profile.placement.captures import CallPath

TEXTS = ("name", "str", "annotation")
QUALIFIED_NAME, PHASE = "module_fqn", "autograd_phase"
BACKWARD = "backward"
"""The only value of `PHASE`: work that autograd did for what was annotated."""
DEEPEST = 100
"""Modules beyond which a qualified name is not taken apart."""
GRAPH_ANNOTATIONS = (*TEXTS, QUALIFIED_NAME, PHASE)
PART = re.compile(r"[^.]+(?:\.\d+)*")
"""A module in a qualified name, with the number of the instance: ``layers.3`` of ``layers.3.attention``."""


def annotated_paths(trace: Trace, rows: Int64) -> dict[int, CallPath]:
    """Position in ``rows``, of GPU events of graph replays → where their annotation places them; none without one."""
    columns = {name: _texts(trace, name, rows) for name in GRAPH_ANNOTATIONS}
    known: dict[tuple[int, ...], CallPath] = {}
    paths: dict[int, CallPath] = {}
    codes = np.stack(list(columns.values()))
    for position in np.flatnonzero((codes >= 0).any(axis=0)).tolist():
        key = tuple(codes[:, position].tolist())
        if key not in known:
            known[key] = _path({n: trace.texts[c] if c >= 0 else "" for n, c in zip(columns, key, strict=True)})
        paths[position] = known[key]
    return paths


def _texts(trace: Trace, argument: str, rows: Int64) -> Int64:
    """int64[n] code of the argument of each event, −1 where it has none."""
    codes: Int64 = np.stack([trace.text_column(argument, category)[rows] for category in cat.GPU]).max(axis=0)
    return codes


def _listed(text: str) -> dict[str, str]:
    """The arguments in a list of dictionaries, which the CUPTI monitor writes as JSON; else none."""
    try:
        found = json.loads(text) if text.startswith("[{") else []
    except (ValueError, RecursionError):
        return {}
    return {
        name: value
        for each in found
        if isinstance(each, dict)
        for name, value in each.items()
        if name in GRAPH_ANNOTATIONS and isinstance(value, str)
    }


def _path(arguments: dict[str, str]) -> CallPath:
    arguments = arguments | _listed(arguments["annotation"])
    scopes = [(ANNOTATION, BACKWARD)] if arguments[PHASE] == BACKWARD else []
    scopes += [(ANNOTATION, text) for name in TEXTS if (text := arguments[name])][:1]
    modules = PART.findall(arguments[QUALIFIED_NAME])
    scopes += [(MODULE, part) for part in (modules if len(modules) <= DEEPEST else [arguments[QUALIFIED_NAME]])]
    return CallPath(tuple((kind, name, "", "", "", "", 0) for kind, name in scopes))
