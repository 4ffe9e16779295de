"""Trains the network on random images, and records some steps: train.py FOLDER."""

import sys

import torch
from images import loader
from network import Network
from torch.nn import functional

import tracediff


def train_step(network, optimizer, images, labels):
    optimizer.zero_grad(set_to_none=True)
    loss = functional.cross_entropy(network(images), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


def report(loss):
    """Called after the recorded steps only."""
    print(f"loss {loss:.3f}")


def main(folder):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    with tracediff.record_steps(folder, warmup=2, active=4, with_stack=True) as recorder:
        for _, (images, labels) in zip(range(8), loader(32), strict=False):
            loss = train_step(network, optimizer, images, labels)
            recorder.step()
    report(loss)


if __name__ == "__main__":
    main(sys.argv[1])
