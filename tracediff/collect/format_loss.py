"""Operators that lose the channels_last memory format: the layers behind them run in the other one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any


def losing_format(step: Callable[[], Any]) -> dict[str, int]:
    """Run a step; operator → how often it had an image in channels_last as an input, and returned one that is not."""
    from torch.utils._python_dispatch import TorchDispatchMode

    found: Counter[str] = Counter()

    class Watch(TorchDispatchMode):
        """Sees each operator with its inputs and outputs, in the backward pass, too."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            """Run the operator; called by torch."""
            out = func(*args, **(kwargs or {}))
            if any(map(_is_in_format, _images(args))) and not all(map(_is_in_format, _images(out))):
                found[str(func.name())] += 1
            return out

    with Watch():
        step()
    return dict(found.most_common())


def _images(value: Any) -> Iterator[Any]:
    """Tensors of four dimensions whose strides tell their format: with one channel or one pixel, both are the same."""
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _images(inner)
    elif getattr(value, "ndim", 0) == 4 and value.shape[1] > 1 and value.shape[2] * value.shape[3] > 1:
        yield value


def _is_in_format(image: Any) -> bool:
    import torch

    return bool(image.is_contiguous(memory_format=torch.channels_last))
