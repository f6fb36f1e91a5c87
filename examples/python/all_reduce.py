#!/usr/bin/env python3
"""Ranks add their numbers up: `ringbolt run -- python3 examples/python/all_reduce.py`, with the folder python of a clone on
PYTHONPATH."""

import array

import ringbolt

with ringbolt.join() as group:
    numbers = array.array("f", [group.rank + 1] * 1000)
    group.all_reduce(numbers)  # in place
    print(f"rank {group.rank} of {group.size}: every element is {numbers[0]:g}, to the last {numbers[-1]:g}")
