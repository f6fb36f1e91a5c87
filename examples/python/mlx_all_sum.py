#!/usr/bin/env python3
"""Gradients of a small model averaged over all ranks, as with MLX's own distributed package but for one import:
`ringbolt run -- python3 examples/python/mlx_all_sum.py`, with the folder python of a clone on PYTHONPATH."""

import mlx.core as mx

import ringbolt.mlx as distributed  # instead of: from mlx.core import distributed

group = distributed.init()
total = distributed.all_sum(mx.full((1000,), group.rank() + 1.0))
print(f"rank {group.rank()} of {group.size()}: every element is {total[0].item():g}, to the last {total[-1].item():g}")

weights = {"layer": {"weight": mx.zeros((4, 3)), "bias": mx.zeros((3,))}}
inputs = mx.random.normal((8, 4), key=mx.random.key(group.rank()))  # each rank its own part of the data


def loss(weights, inputs):
    return mx.square(inputs @ weights["layer"]["weight"] + weights["layer"]["bias"] - 1).mean()


for _ in range(20):
    value, gradients = mx.value_and_grad(loss)(weights, inputs)
    gradients = distributed.average_gradients(gradients)
    for name, gradient in gradients["layer"].items():
        weights["layer"][name] -= 0.5 * gradient
everyone = distributed.all_gather(distributed.all_sum(value).reshape(1) / group.size())
print(f"rank {group.rank()} of {group.size()}: the loss of all is {everyone[0].item():.4f}, the same on all: "
      f"{bool(mx.all(everyone == everyone[0]))}")
