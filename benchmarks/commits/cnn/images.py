"""Images and their loader."""

import torch
from torch.utils.data import DataLoader, Dataset

SIDE = 32


class Images(Dataset):
    def __init__(self, count=4096):
        self.pixels = torch.rand(count, 3, SIDE, SIDE)

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, index):
        return normalised(self.pixels[index]), index % 10


def normalised(image):
    return (image - 0.5) / 0.25


def collated(items):
    images, labels = zip(*items, strict=True)
    return torch.stack(images), torch.tensor(labels)


def loader(batch):
    return DataLoader(Images(), batch, shuffle=True, collate_fn=collated, drop_last=True)
