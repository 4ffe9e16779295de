"""Sizes of the model and of the training."""

VOCABULARY = 500
WIDTH = 96
HEADS = 4
LAYERS = 2
CONTEXT = 64
BATCH = 8
RATE = 1e-3
NAME = "small"
