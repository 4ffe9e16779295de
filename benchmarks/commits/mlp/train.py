"""Trains the compiled model on random numbers, and records some steps: train.py FOLDER."""

import sys

import torch
from mlp import MLP, loss_of

import tracediff

ROWS = 128


def augmented(values):
    return values + 0.01 * torch.randn_like(values)


def train_step(model, optimizer, values):
    optimizer.zero_grad()
    loss = loss_of(model(augmented(values)), values)
    loss.backward()
    optimizer.step()
    return loss


def main(folder):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = MLP()
    compiled = torch.compile(model, mode="default")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    values = torch.randn(ROWS, 256)
    with tracediff.record_steps(folder, wait=2, warmup=2, active=4, with_stack=True) as recorder:
        for _ in range(9):
            train_step(compiled, optimizer, values)
            recorder.step()


if __name__ == "__main__":
    main(sys.argv[1])
