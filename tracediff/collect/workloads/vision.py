"""Convolutional networks: residual networks, batch norms that FX can fold, training on images prepared by the CPU."""

from collections.abc import Sequence
from functools import partial
from inspect import signature
from itertools import chain, pairwise, repeat
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate
from torch.utils.data import DataLoader

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import IndexedSamples, classification, described, inference, loaded


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    """A convolution with padding that keeps the size (divided by the stride), and a batch norm."""
    return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs)]


class Residual(nn.Module):
    """A body of convolutions beside a shortcut."""

    def __init__(self, body: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.body, self.shortcut, self.relu = body, shortcut, nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """Images [batch, channels, h, w] → images."""
        return self.relu(self.body(x) + self.shortcut(x))


def basic(inputs: int, width: int, stride: int) -> tuple[list[nn.Module], int]:
    """The body of ResNet-18's blocks, and its output channels."""
    return [*convolution(inputs, width, 3, stride), nn.ReLU(inplace=True), *convolution(width, width, 3)], width


def bottleneck(inputs: int, width: int, stride: int) -> tuple[list[nn.Module], int]:
    """The body of ResNet-50's blocks, and its output channels."""
    reduced = [
        *convolution(inputs, width, 1),
        nn.ReLU(inplace=True),
        *convolution(width, width, 3, stride),
        nn.ReLU(inplace=True),
    ]
    return [*reduced, *convolution(width, 4 * width, 1)], 4 * width


class ResNet(nn.Sequential):
    """A ResNet with a stage for each of ``depths``, its number of blocks: bottlenecks or basic blocks."""

    def __init__(self, depths: Sequence[int], bottlenecks: bool, width: int = 64, classes: int = 1000) -> None:
        layers = [*convolution(3, width, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        channels = width
        for stage, depth in enumerate(depths):
            for block in range(depth):
                stride = 2 if stage and not block else 1
                body, outputs = (bottleneck if bottlenecks else basic)(channels, width << stage, stride)
                same = stride == 1 and channels == outputs
                shortcut = nn.Identity() if same else nn.Sequential(*convolution(channels, outputs, 1, stride))
                layers.append(Residual(nn.Sequential(*body), shortcut))
                channels = outputs
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def residual_net(variant: Variant, image: int, batch: int, **size: Any) -> tuple[ResNet, Tensor]:
    """The net, and images for it in the variant's memory format."""
    model, images = ResNet(**size), torch.randn(batch, 3, image, image)
    if variant.has("channels_last"):
        images = images.to(memory_format=torch.channels_last)
    return model, images


@described(
    "inference of ResNet-18",
    "image width depths batch",
    tiny=(64, 16, (1, 1), 8),
    small=(224, 64, (2, 2, 2, 2), 4),
    full=(224, 64, (2, 2, 2, 2), 128),
    variants=("eager", "compile", "channels_last", "compile+channels_last"),
)
def resnet18(variant: Variant, **size: Any) -> Task:
    """The inference step."""
    model, images = residual_net(variant, bottlenecks=False, **size)
    return inference(variant, model.eval(), images, len(images))


@described(
    "training step of ResNet-50 (cross-entropy, SGD with momentum)",
    "image width depths batch",
    tiny=(64, 16, (1,), 4),
    small=(128, 64, (3, 4, 6, 3), 8),
    full=(224, 64, (3, 4, 6, 3), 64),
    variants=("eager", "channels_last", "channels_last+amp", "compile+channels_last+amp"),
)
def resnet50(variant: Variant, **size: Any) -> Task:
    """The training step."""
    model, images = residual_net(variant, bottlenecks=True, **size)
    labels = torch.randint(0, 1000, (len(images),))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return classification(variant, model, optimizer, repeat((images, labels)), images)


@described(
    "inference of convolution, batch norm, ReLU in a row",
    "image width depth batch",
    tiny=(32, 32, 6, 8),
    small=(112, 64, 8, 8),
    full=(224, 64, 16, 64),
    variants=("eager", "fx_fused"),
)
def conv_bn(variant: Variant, image: int, width: int, depth: int, batch: int) -> Task:
    """The inference step."""
    layers = ((nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU()) for i, o in pairwise([3] + depth * [width]))
    model = nn.Sequential(*chain.from_iterable(layers))
    images = torch.randn(batch, 3, image, image)
    with torch.no_grad():
        model(images)  # so that the running statistics are not trivial
    return inference(variant, model.eval(), images, batch)


UNORDERED: dict[str, Any] = {"in_order": False} if "in_order" in signature(DataLoader).parameters else {}
"""In order, one step can unpack two batches and a later one none. The option exists since torch 2.6."""


def prepared(raw: Tensor, image: int, index: int) -> tuple[Tensor, int]:
    """One of the ``raw`` images, converted, brightened, resized and normalised [3, h, w], and its label."""
    label = index % len(raw)
    pixels = raw[label].float().div(255).pow(0.8)
    scaled = interpolate(pixels[None], size=(image, image), mode="bilinear", antialias=True)[0]
    return (scaled - scaled.mean()) / scaled.std(), label


@described(
    "training step of a small ResNet on images that the CPU prepares (SGD)",
    "raw image width batch",
    tiny=(256, 32, 8, 8),
    small=(512, 128, 16, 16),
    full=(1024, 224, 64, 64),
    variants=("workers0", "workers4"),
    own=("workers0", "workers4"),
)
def dataloader(variant: Variant, raw: int, image: int, width: int, batch: int) -> Task:
    """The training step, including the fetch of a batch; every batch has the same images."""
    model = ResNet((1, 1, 1, 1), bottlenecks=False, width=width)
    images = torch.randint(0, 256, (batch, 3, raw, raw), dtype=torch.uint8, device="cpu")
    workers = int(variant.choice(*dataloader.own).removeprefix("workers"))
    batches = loaded(IndexedSamples(batch, partial(prepared, images, image)), batch, workers, **UNORDERED)
    example = torch.randn(batch, 3, image, image)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return classification(variant, model, optimizer, batches, example)
