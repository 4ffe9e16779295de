"""Module names: the profiler's ``nn.Module: Linear_7`` ↔ the model's ``blocks.3.mlp.fc1``; and scopes for what has no
events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any


def names_in_call_order(model: Any, step: Callable[[], Any]) -> dict[str, str]:
    """Profiler name (``Linear_7``) → qualified name, by one step with hooks: the profiler counts instances per class in
    order of first call.
    """
    seen: dict[int, str] = {}
    counts: Counter[str] = Counter()
    qualified = {id(module): name for name, module in model.named_modules()}
    named: dict[str, str] = {}

    def hook(module: Any, _inputs: Any) -> None:
        if id(module) not in seen:
            kind = type(module).__name__
            seen[id(module)] = f"{kind}_{counts[kind]}"
            counts[kind] += 1
            named[seen[id(module)]] = qualified[id(module)]

    handles = [module.register_forward_pre_hook(hook) for module in model.modules()]
    try:
        step()
    finally:
        for handle in handles:
            handle.remove()
    return named


def annotate_modules(model: Any) -> None:
    """Wrap every module's forward in a record_function named ``module:<qualified name>``."""
    import torch

    for name, module in model.named_modules():
        module.forward = _in_scope(f"module:{name or type(module).__name__}", module.forward, torch)


def _in_scope(name: str, function: Callable[..., Any], torch: Any) -> Callable[..., Any]:
    def scoped(*args: Any, **kwargs: Any) -> Any:
        with torch.profiler.record_function(name):
            return function(*args, **kwargs)

    return scoped


def annotate_fx(model: Any) -> Any:
    """The model as an FX graph whose every node runs in a record_function named ``fx:<node>``."""
    import torch

    class Scoped(torch.fx.Interpreter):
        """Runs each node in a scope of its name."""

        def run_node(self, n: Any) -> Any:
            """One node."""
            with torch.profiler.record_function(f"fx:{n.name}"):
                return super().run_node(n)

    traced = torch.fx.symbolic_trace(model)
    interpreter = Scoped(traced)
    traced.forward = lambda *args: interpreter.run(*args)
    return traced
