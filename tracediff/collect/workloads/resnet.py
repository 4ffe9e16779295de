"""Residual networks: the model of the workloads resnet18 and resnet50."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn


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
