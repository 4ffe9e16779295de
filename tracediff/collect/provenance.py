"""The original operators, modules and phase of compiled kernels, from inductor's graphs and record of fusions."""

from typing import Any


class Provenance:
    """Records the nodes of each inductor graph (original operator, module path, phase) and the nodes of each kernel.

    Attributes:
        graphs: one per compiled graph, in order of compilation: ``{"id": 0, "phase": "forward", "nodes": […],
            "kernels": {"cpp_fused_add_0:1": [node names]}}``; the number after a kernel's name is its position in the
            graph.
    """

    def __init__(self) -> None:
        self.graphs: list[dict[str, Any]] = []
        self._known: set[str] = set()

    def attach(self) -> None:
        """Record every graph that inductor compiles from now on; does nothing if this torch has no such hook."""
        try:
            from torch._inductor import config
            from torch._inductor.custom_graph_pass import CustomGraphPass
        except ImportError:
            return
        graphs, recorded = self.graphs, self._known

        class Reader(CustomGraphPass):
            """A graph pass that records the graph and does not change it."""

            def __call__(self, graph: Any) -> None:
                """Record one graph; called after inductor's own passes."""
                nodes = [_described(node) for node in graph.nodes if node.op == "call_function"]
                backward = any(node.op == "placeholder" and node.name.startswith("tangents") for node in graph.nodes)
                graphs.append(
                    {"id": None, "phase": "backward" if backward else "forward", "nodes": nodes, "kernels": {}}
                )
                recorded.clear()
                recorded.update(_recorded())

            def uuid(self) -> Any:
                """A constant, so that inductor's caches stay valid."""
                return "tracediff-provenance-1"

        config.post_grad_custom_post_pass = Reader()
        self._read_kernels()

    def _read_kernels(self) -> None:
        """Enable inductor's record of the nodes of each kernel, and read it when a graph has been compiled."""
        from torch._inductor import config, debug

        report = getattr(debug, "dump_inductor_provenance_info", None)
        if report is None or not hasattr(config.trace, "provenance_tracking_level"):
            return
        config.trace.provenance_tracking_level = 1

        def read_and_report() -> Any:
            from torch._inductor.virtualized import V

            if self.graphs and not self.graphs[-1]["kernels"]:
                graph = self.graphs[-1]
                graph["kernels"] = {
                    kernel: list(nodes) for kernel, nodes in _recorded().items() if kernel not in self._known
                }
                graph["id"] = getattr(V.graph, "graph_id", None)
            return report()

        debug.dump_inductor_provenance_info = read_and_report


def _recorded() -> dict[str, Any]:
    """Inductor's record so far, of all graphs: kernel → nodes."""
    from torch._inductor import debug

    return dict(getattr(debug, "_inductor_triton_kernel_to_post_grad_node_info", {}))


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
