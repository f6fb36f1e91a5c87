"""What the cases of torch_rank.py share: the group, data that tell rank and place, and what must be refused."""

import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import ringbolt.torch  # noqa: F401  (registers the backend; gives nodes of a cluster the variables of torchrun)

STORE, EXTENT = sys.argv[1:3]
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
RIGHT, LEFT = (RANK + 1) % SIZE, (RANK - 1) % SIZE
LIMIT = timedelta(seconds=20)


def begin(store, backend="ringbolt", timeout=LIMIT):
    dist.init_process_group(backend, init_method=f"file://{store}", rank=RANK, world_size=SIZE, timeout=timeout)


def data(count, dtype=torch.float32, of=None, shape=None):
    """Small numbers, so that products fit; none alike nearby."""
    of = RANK if of is None else of
    places = torch.arange(count, dtype=torch.int64)
    made = (places * 7 + of * 3) % 5 + 1
    if dtype.is_floating_point or dtype.is_complex:
        made = made.to(torch.float64) + 0.3 * ((places + of) % 3)
    made = (made % 2 == 0) if dtype is torch.bool else made.to(dtype)
    return made if shape is None else made.view(shape)


def same(found, expected, words=""):
    found, expected = list(found), list(expected)
    assert len(found) == len(expected), f"{words}: {len(found)} results instead of {len(expected)}"
    for one, other in zip(found, expected):
        kinds = [(each.dtype, each.shape) for each in (one, other)]
        assert kinds[0] == kinds[1], f"{words}: {kinds}"
        assert torch.equal(one, other), f"{words}: {one.flatten()[:8]} instead of {other.flatten()[:8]}"


def near(found, expected, words=""):
    """Of floating-point numbers that were added up in another order: so many roundings as there are ranks at most."""
    for one, other in zip(found, expected):
        if not one.dtype.is_floating_point:
            same([one], [other], words)
            continue
        bound = 2 * SIZE * torch.finfo(one.dtype).eps
        assert torch.allclose(one.double(), other.double(), rtol=bound, atol=0), f"{words}: {one[:8]} instead of {other[:8]}"


def refused(call, kinds, words, within_s=10.0, where=0):
    """Rank `where` raises one of `kinds` with these words; the others hear of it; the group goes on."""
    start = time.monotonic()
    try:
        call()
    except Exception as problem:
        if RANK == where:
            assert isinstance(problem, kinds) and words in str(problem), repr(problem)
        else:
            assert isinstance(problem, RuntimeError), repr(problem)
        assert time.monotonic() - start < within_s, f"{words}: {time.monotonic() - start:.1f} s"
    else:
        raise AssertionError(f"rank {RANK}: {words} was taken")
    one = torch.ones(1)
    dist.all_reduce(one)
    assert one.item() == SIZE
