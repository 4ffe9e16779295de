"""A small convolutional network."""

from torch import nn


class Stage(nn.Module):
    def __init__(self, before, after, kernel=3):
        super().__init__()
        self.convolution = nn.Conv2d(before, after, kernel, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(after)
        self.pool = nn.MaxPool2d(2)

    def forward(self, images):
        return self.pool(self.norm(self.convolution(images)).relu())


class Network(nn.Module):
    def __init__(self, widths=(16, 32, 64), classes=10):
        super().__init__()
        self.stages = nn.Sequential(*(Stage(a, b) for a, b in zip((3, *widths), widths, strict=False)))
        self.dropout = nn.Dropout(0.1)
        self.head = Head(widths[-1], classes)

    def forward(self, images):
        return self.head(self.dropout(self.stages(images)))


class Head(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.linear = nn.Linear(width, classes)

    def forward(self, images):
        return self.linear(images.mean((2, 3)))
