#!/usr/bin/env python3
"""Trains the model of model.py on the machine's licences, data parallel: each rank has its share of every batch, and torch's
DistributedDataParallel averages the gradients over Ringbolt.

    ringbolt run -- python3 examples/llm/train.py --save build/llm/model.pt
    python3 examples/llm/train.py --alone 4         # one process plays four ranks: the same numbers, to the last bit
"""

import argparse
import json
import pathlib
import sys
import time

from model import Model, Size, digest, functional, sample, text, torch

PIECES = 4  # of a rank and step


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", default="small", choices=["small", "tiny"])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--alone", type=int, default=0, metavar="N", help="one process, which does the work of N ranks")
    parser.add_argument("--backend", default="ringbolt")
    parser.add_argument("--save", type=pathlib.Path, help="write the model there")
    parser.add_argument("--json", type=pathlib.Path, help="write losses and digest there")
    return parser.parse_args()


def loss_of(model, pieces, target, size: Size) -> torch.Tensor:
    return functional.cross_entropy(model(pieces).view(-1, 256), target.reshape(-1))


def train_alone(model, optimizer, of, step: int, ranks: int, size: Size) -> float:
    """The shares of all ranks one after the other: gradients are added up in the order in which Ringbolt adds them."""
    total = torch.zeros(())
    for rank in range(ranks):
        loss = loss_of(model, *sample(of, step * ranks + rank, PIECES, size.context), size)
        (loss / ranks).backward()
        total += loss.detach()
    return (total / ranks).item()


def train_together(model, optimizer, of, step: int, size: Size) -> float:
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    loss = loss_of(model, *sample(of, step * ranks + rank, PIECES, size.context), size)
    loss.backward()
    total = loss.detach().clone()
    torch.distributed.all_reduce(total)
    return (total / ranks).item()


def main() -> None:
    wanted = arguments()
    size, of = Size(wanted.size), text()
    torch.manual_seed(1)
    whole = model = Model(size)
    rank, ranks = 0, wanted.alone
    if not wanted.alone:
        import ringbolt.torch  # noqa: F401  (the backend, and where its ranks meet)
        torch.distributed.init_process_group(wanted.backend)
        rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
        model = torch.nn.parallel.DistributedDataParallel(whole)
    optimizer = torch.optim.AdamW(whole.parameters(), lr=1e-3)
    losses, begin = [], time.monotonic()
    for step in range(wanted.steps):
        optimizer.zero_grad()
        if wanted.alone:
            losses.append(train_alone(model, optimizer, of, step, ranks, size))
        else:
            losses.append(train_together(model, optimizer, of, step, size))
        optimizer.step()
        if rank == 0 and (step % 20 == 0 or step + 1 == wanted.steps):
            print(f"step {step}: loss {losses[-1]:.4f}, {(time.monotonic() - begin) / (step + 1):.2f} s a step", flush=True)
    result = {"ranks": ranks, "parameters": sum(p.numel() for p in whole.parameters()), "losses": losses,
              "digest": digest(whole), "seconds": time.monotonic() - begin}
    print(f"rank {rank} of {ranks}: {result['parameters']} parameters, digest {result['digest']}")
    if rank == 0 and wanted.json:
        wanted.json.write_text(json.dumps(result))
    if rank == 0 and wanted.save:
        wanted.save.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"size": wanted.size, "parameters": whole.state_dict()}, wanted.save)
    if not wanted.alone:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
