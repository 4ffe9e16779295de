"""Which original ops, modules and phase a compiled kernel comes from: a pass over inductor's graphs writes it down."""

from __future__ import annotations

from typing import Any


class Provenance:
    """Collects, per inductor graph, its nodes' original op, module path and phase.

    Attributes:
        graphs: one list of nodes a compiled graph, in order of compilation.
    """

    def __init__(self) -> None:
        self.graphs: list[list[dict[str, Any]]] = []

    def attach(self) -> None:
        """Add the pass to inductor; where this torch has no such hook, nothing is collected."""
        try:
            from torch._inductor import config
            from torch._inductor.custom_graph_pass import CustomGraphPass
        except ImportError:
            return
        graphs = self.graphs

        class Reader(CustomGraphPass):
            """Reads, changes nothing."""

            def __call__(self, graph: Any) -> None:
                """One graph after inductor's own passes."""
                graphs.append([_described(node) for node in graph.nodes if node.op == "call_function"])

            def uuid(self) -> Any:
                """The same for all graphs: caches stay valid."""
                return "tracediff-provenance-1"

        config.post_grad_custom_post_pass = Reader()

    def kernels(self) -> list[list[dict[str, Any]]]:
        """The graphs' nodes: name, op, module and phase of each."""
        return self.graphs


def _described(node: Any) -> dict[str, Any]:
    forward = node.meta.get("nn_module_stack")
    backward = node.meta.get("fwd_nn_module_stack")
    stack = forward or backward or {}
    original = node.meta.get("original_aten")
    return {
        "name": node.name,
        "op": str(original) if original is not None else str(node.target),
        "module": next((str(path) for path, _ in reversed(list(stack.values()))), "").replace("L['self'].", ""),
        "phase": "backward" if backward is not None or node.meta.get("partitioner_tag") == "is_backward" else "forward",
    }
