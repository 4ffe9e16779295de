"""Trains the model on random tokens, and records some steps: train.py FOLDER."""

import sys

import torch
from model import Model
from settings import BATCH, CONTEXT, NAME, RATE, VOCABULARY
from torch.nn import functional

import tracediff


def batch_of(generator):
    tokens = torch.randint(VOCABULARY, (BATCH, CONTEXT + 1), generator=generator)
    return tokens[:, :-1], tokens[:, 1:]


def loss_of(scores, targets):
    return functional.cross_entropy(scores.flatten(0, 1), targets.flatten())


def train_step(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    loss = loss_of(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss


def main(folder):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    print("training", NAME)
    with tracediff.record_steps(folder, warmup=2, active=4, with_stack=True) as recorder:
        for _ in range(8):
            inputs, targets = batch_of(generator)
            train_step(model, optimizer, inputs, targets)
            recorder.step()


if __name__ == "__main__":
    main(sys.argv[1])
