"""A loop in which data is most of the work, and records some steps: loop.py FOLDER."""

import sys

import torch
from features import features_of
from records import batch_of

import tracediff


class Scorer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, 8)

    def forward(self, features):
        return self.linear(features).softmax(dim=-1)


def best(scores, count=4):
    return torch.topk(scores.max(dim=1).values, count).indices


def step(scorer, number, seen):
    batch = batch_of(number)
    with torch.no_grad():
        chosen = best(scorer(features_of(batch)))
    seen.append(int(chosen.sum()))


def main(folder):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    scorer, seen = Scorer(features_of(batch_of(0)).shape[1]), []
    with tracediff.record_steps(folder, warmup=2, active=6, with_stack=True) as recorder:
        for number in range(10):
            step(scorer, number, seen)
            recorder.step()


if __name__ == "__main__":
    main(sys.argv[1])
