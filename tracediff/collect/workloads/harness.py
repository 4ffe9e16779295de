"""What the workloads share: `Workload`, steps of inference and training, batches."""

from collections.abc import Callable, Iterator
from functools import wraps
from itertools import chain, repeat
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

from tracediff.collect.variant import Task, Variant

BATCHES = 10_000
"""Batches per epoch: more than a measurement needs, so that no step restarts the loader."""


class Workload(NamedTuple):
    """A step that ``tracediff collect --workload`` runs.

    Attributes:
        title: one line that describes the step.
        sizes: tiny, small and full → keyword arguments of ``make``.
        variants: the default variants; the others are compared with the first.
        own: names of the workload's own variants, such as "loop" and "vmap".
        make: (variant, device, **size) → the step.
    """

    title: str
    sizes: dict[str, dict[str, Any]]
    variants: tuple[str, ...]
    own: tuple[str, ...]
    make: Callable[..., Task]


def described(
    title: str, names: str, *, variants: tuple[str, ...], own: tuple[str, ...] = (), **values: tuple[Any, ...]
) -> Callable[[Callable[..., Task]], Workload]:
    """Makes a `Workload` of the function that makes its step; ``values`` are those of its arguments called ``names``
    at each size.
    """
    sizes = {size: dict(zip(names.split(), row, strict=True)) for size, row in values.items()}
    return lambda make: Workload(title, sizes, variants, own, on_device(make))


def on_device(make: Callable[..., Task]) -> Callable[..., Task]:
    """``make``, whose tensors and modules are on its device unless it says otherwise."""

    @wraps(make)
    def made(variant: Variant, device: str, **size: Any) -> Task:
        with torch.device(device):
            return make(variant, **size)

    return made


def current_device() -> str:
    """The device on which `on_device` has tensors made."""
    return str(torch.get_default_device())


def calling(
    variant: Variant,
    function: Callable[..., Any],
    *inputs: Any,
    model: Any = None,
    items: int | None = None,
    gradients: bool = True,
) -> Task:
    """A step that calls ``function``, which the variant has transformed."""
    device = current_device()

    def step() -> Any:
        with torch.set_grad_enabled(gradients), variant.autocast(device):
            return function(*inputs)

    return Task(step, model, items)


def inference(variant: Variant, model: Any, x: Tensor, items: int | None = None) -> Task:
    """A step that runs ``model`` on ``x`` without gradients."""
    return calling(variant, variant(model, x), x, model=model, items=items, gradients=False)


def training(
    variant: Variant,
    model: Any,
    optimizer: Any,
    loss: Callable[..., Tensor],
    batches: Iterator[Any],
    items: int | None = None,
) -> Task:
    """A step that fetches a batch and trains ``model`` on its ``loss``."""
    device = current_device()
    update = variant.update(optimizer, device)

    def step() -> Tensor:
        batch = next(batches)
        optimizer.zero_grad(set_to_none=True)
        with variant.autocast(device):
            value = loss(*batch)
        update(value)
        return value

    return Task(step, model, items)


def classification(variant: Variant, model: Any, optimizer: Any, batches: Iterator[Any], example: Tensor) -> Task:
    """A step that trains a classifier with cross-entropy; its items are those of a batch, as of the ``example``."""
    forward = variant(model, example)

    def loss(x: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(forward(x), labels)

    return training(variant, model, optimizer, loss, batches, len(example))


def moved(batches: Iterator[Any]) -> Iterator[Any]:
    """The batches on the device."""
    device = current_device()
    return ([part.to(device, non_blocking=True) for part in batch] for batch in batches)


def loaded(samples: Dataset[Any], batch: int, workers: int = 0, **options: Any) -> Iterator[Any]:
    """Batches of a DataLoader without end, on the device."""
    options = {"pin_memory": current_device().startswith("cuda"), **options}
    loader = DataLoader(samples, batch, num_workers=workers, persistent_workers=workers > 0, **options)
    return moved(chain.from_iterable(repeat(loader)))


class IndexedSamples(Dataset[Any]):
    """Samples that ``make`` makes of their index on access, enough for `BATCHES` batches."""

    def __init__(self, batch: int, make: Callable[[int], Any]) -> None:
        self.batch, self.make = batch, make

    def __len__(self) -> int:
        """Number of samples per epoch."""
        return BATCHES * self.batch

    def __getitem__(self, index: int) -> Any:
        """The sample."""
        return self.make(index)
