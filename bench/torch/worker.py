"""One of two ranks of torch_bench.py: STORE ROUNDS BLOCK_MS BYTES... Rank 0 prints a line for each block: side, bytes,
microseconds."""

import os
import sys
import time

import torch
import torch.distributed as dist

import ringbolt.torch  # noqa: F401

STORE, ROUNDS, BLOCK_S = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) / 1000
RANK = int(os.environ["RINGBOLT_NODE"])
torch.set_num_threads(1)
dist.init_process_group("ringbolt", init_method=f"file://{STORE}", rank=RANK, world_size=2)
gloo = dist.new_group(backend="gloo")
group = dist.group.WORLD.connection.group
WAYS = {"gloo": lambda tensor: dist.all_reduce(tensor, group=gloo), "ringbolt": dist.all_reduce, "group": group.all_reduce}


def block(way, tensor):
    """Microseconds of a call, and whether the first one gave the sum."""
    tensor.fill_(RANK + 1)
    way(tensor)
    if tensor[0].item() != 3 or tensor[-1].item() != 3:
        raise RuntimeError(f"{tensor[0].item()} instead of 3")
    tensor.zero_()
    dist.barrier()
    start = time.perf_counter()
    n = 1
    while True:  # both ranks make as many calls: as many as have taken a tenth of the block, ten times
        for _ in range(n):
            way(tensor)
        took = torch.tensor([time.perf_counter() - start])
        dist.broadcast(took, 0)
        if took.item() > BLOCK_S / 10:
            break
        n *= 2
    dist.barrier()
    start = time.perf_counter()
    for _ in range(5 * n):
        way(tensor)
    return (time.perf_counter() - start) / (5 * n) * 1e6


for _ in range(ROUNDS):
    for size in map(int, sys.argv[4:]):
        tensor = torch.empty(size // 4)
        for side, way in WAYS.items():
            figure = block(way, tensor)
            if RANK == 0:
                print(side, size, figure, flush=True)
dist.destroy_process_group()
