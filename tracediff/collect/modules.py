"""Modules of a model: their names in the profiler and in the model, record_function scopes for them and FX nodes, and
operators that lose the channels_last memory format.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any


def names_in_call_order(model: Any, step: Callable[[], Any]) -> dict[str, str]:
    """Profiler name (``Linear_7``) → qualified name (``blocks.3.mlp.fc1``).

    Runs one step with hooks: the profiler numbers the instances of a class in the order of their first calls.
    """
    profiler_names: dict[int, str] = {}
    counts: Counter[str] = Counter()
    qualified = {id(module): name for name, module in model.named_modules()}
    names: dict[str, str] = {}

    def hook(module: Any, _inputs: Any) -> None:
        if id(module) not in profiler_names:
            kind = type(module).__name__
            profiler_names[id(module)] = f"{kind}_{counts[kind]}"
            counts[kind] += 1
            names[profiler_names[id(module)]] = qualified[id(module)]

    handles = [module.register_forward_pre_hook(hook) for module in model.modules()]
    try:
        step()
    finally:
        for handle in handles:
            handle.remove()
    return names


def annotate_modules(model: Any) -> None:
    """Wrap the forward of each module in a record_function named ``module:<qualified name>``."""
    import torch

    for name, module in model.named_modules():
        module.forward = _in_scope(f"module:{name or type(module).__name__}", module.forward, torch)


def _in_scope(name: str, function: Callable[..., Any], torch: Any) -> Callable[..., Any]:
    def scoped(*args: Any, **kwargs: Any) -> Any:
        with torch.profiler.record_function(name):
            return function(*args, **kwargs)

    return scoped


def is_scripted(model: Any) -> bool:
    """Whether TorchScript runs the model, in which no scope of Python is recorded."""
    import torch

    return isinstance(model, torch.jit.ScriptModule | torch.jit.ScriptFunction)


def annotate_fx(model: Any) -> dict[str, str]:
    """Run the model as an FX graph whose nodes each have a record_function named ``fx:<node>``.

    Returns:
        Node → what it calls, such as ``call_module Linear``.
    """
    import torch

    class Scoped(torch.fx.Interpreter):
        """Runs each node in a scope named after it."""

        def run_node(self, n: Any) -> Any:
            """Run one node; called by the interpreter."""
            with torch.profiler.record_function(f"fx:{n.name}"):
                return super().run_node(n)

    traced = torch.fx.symbolic_trace(model)
    interpreter = Scoped(traced)
    model.forward = lambda *args: interpreter.run(*args)
    return {node.name: _called(node, traced) for node in traced.graph.nodes}


def _called(node: Any, traced: Any) -> str:
    if node.op == "call_module":
        return f"{node.op} {type(traced.get_submodule(node.target)).__name__}"
    return f"{node.op} {getattr(node.target, '__name__', node.target)}"


def losing_format(step: Callable[[], Any]) -> dict[str, int]:
    """Run a step; operator → how often it had an image in channels_last as an input, and returned one that is not."""
    from torch.utils._python_dispatch import TorchDispatchMode

    counts: Counter[str] = Counter()

    class Watch(TorchDispatchMode):
        """Sees each operator with its inputs and outputs, in the backward pass, too."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            """Run the operator; called by torch."""
            out = func(*args, **(kwargs or {}))
            if any(map(_is_in_format, _images(args))) and not all(map(_is_in_format, _images(out))):
                counts[str(func.name())] += 1
            return out

    with Watch():
        step()
    return dict(counts.most_common())


def _images(value: Any) -> Iterator[Any]:
    """Tensors of four dimensions whose strides determine their format; with one channel or one pixel both are equal."""
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _images(inner)
    elif getattr(value, "ndim", 0) == 4 and value.shape[1] > 1 and value.shape[2] * value.shape[3] > 1:
        yield value


def _is_in_format(image: Any) -> bool:
    import torch

    return bool(image.is_contiguous(memory_format=torch.channels_last))
