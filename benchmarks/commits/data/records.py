"""Reads records, and makes batches of them."""

import torch


def parse(line):
    return [int(word) for word in line.split(",")]


def lines_of(number, length=32):
    return [",".join(str((number * 31 + row * 7 + column) % 97) for column in range(length)) for row in range(64)]


def padded(rows, length=48):
    return [row + [0] * (length - len(row)) for row in rows]


def batch_of(number):
    rows = padded([parse(line) for line in lines_of(number)])
    return torch.tensor(rows)


def summary(rows):
    """For logs."""
    return f"{len(rows)} rows"
