"""Features of a batch."""

import torch

BUCKETS = 16


def normalised(batch):
    values = batch.float()
    return (values - values.mean(dim=1, keepdim=True)) / (values.std(dim=1, keepdim=True) + 1e-6)


def histogram(batch):
    return torch.nn.functional.one_hot(batch % BUCKETS, BUCKETS).sum(dim=1).float()


def features_of(batch):
    return torch.cat([normalised(batch), histogram(batch)], dim=1)
