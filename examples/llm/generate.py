#!/usr/bin/env python3
"""Goes on with a text, tensor parallel: each rank has some heads and columns of every layer (uneven where they do not divide),
and the parts are added up over Ringbolt twice a layer. Rank 0 writes the text.

    ringbolt run -- python3 examples/llm/generate.py --model build/llm/model.pt --tokens 400
    ... --compare gloo      # tokens a second beside another backend, in turns
    ... --resume FILE       # keeps what was written in FILE, and goes on from there
"""

import argparse
import json
import os
import pathlib
import sys
import time

from model import Model, Size, torch

import ringbolt.torch  # noqa: F401  (the backend, and where its ranks meet)
import torch.distributed as distributed

BEGIN = "The Program is "
BOUND = 2e-4  # by how much logits may differ from those of one process: float32, sums in another order
BLOCK = 32  # tokens of a turn, where backends take turns


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=pathlib.Path, help="as train.py --save wrote it; none: one that has learned nothing")
    parser.add_argument("--size", default="tiny", choices=["small", "tiny"], help="without --model")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--begin", default=BEGIN)
    parser.add_argument("--compare", metavar="BACKEND", help="of torch: gloo")
    parser.add_argument("--check", action="store_true", help="compare logits with one process")
    parser.add_argument("--resume", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def load(wanted) -> tuple[Size, dict]:
    if wanted.model:
        read = torch.load(wanted.model, map_location="cpu")
        return Size(read["size"]), read["parameters"]
    torch.manual_seed(1)
    size = Size(wanted.size)
    return size, Model(size).state_dict()


class Writer:
    """The text so far, on all ranks; rank 0 keeps it in a file, if one was named."""

    def __init__(self, wanted):
        self.file = wanted.resume if distributed.get_rank() == 0 else None
        self.text = bytearray(wanted.begin.encode())
        held = [bytes(self.text)]
        if self.file and self.file.exists() and self.file.read_bytes():
            held = [self.file.read_bytes()]
        distributed.broadcast_object_list(held, 0)  # ranks that were started anew learn where the text stands
        self.text[:] = held[0]

    def add(self, byte: int) -> None:
        self.text.append(byte)
        if self.file:
            part = self.file.with_suffix(".part")
            part.write_bytes(self.text)
            part.replace(self.file)  # whole at any time, whoever dies


def next_logits(model: Model, text: bytes, past: list) -> torch.Tensor:
    """[256], for the byte behind `text`. The window moves on in halves, so that most steps read one byte only."""
    half = model.size.context // 2
    begin = max(0, (len(text) - half) // half * half)
    seen = past[0][0].shape[2] if past[0] else 0
    if begin + seen + 1 != len(text) or seen + 1 > model.size.context:
        for one in past:
            one.clear()
        seen = 0
    return model(torch.tensor([list(text[begin + seen:])]), past)[0, -1]


def generate(model: Model, writer: Writer, n: int, on_token=lambda logits: None) -> None:
    past = [[] for _ in model.blocks]
    for _ in range(n):
        logits = next_logits(model, writer.text, past)
        on_token(logits)
        writer.add(int(logits.argmax()))


def total_over(group):
    def total(x: torch.Tensor) -> torch.Tensor:
        distributed.all_reduce(x, group=group)
        return x
    return total


@torch.no_grad()
def main() -> int:
    wanted = arguments()
    distributed.init_process_group("ringbolt")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    size, whole = load(wanted)
    groups = {"ringbolt": None}
    if wanted.compare:
        groups[wanted.compare] = distributed.new_group(backend=wanted.compare)
    models = {}
    for name, group in groups.items():
        models[name] = Model(size, rank, ranks, total_over(group)).eval()
        models[name].load_shard(whole)
    writer = Writer(wanted)
    wanted_length = len(wanted.begin.encode()) + wanted.tokens
    print(f"rank {rank} of {ranks}: process {os.getpid()}, {models['ringbolt'].blocks[0].heads} of {size.heads} heads, "
          f"text stands at {len(writer.text)} of {wanted_length} bytes", flush=True)
    result = {"ranks": ranks, "tokens": wanted.tokens, "tokens_per_s": {}, "largest_difference": 0.0}

    alone = Model(size).eval()
    alone.load_state_dict(whole)
    kept = [[] for _ in alone.blocks]

    def compare(logits: torch.Tensor) -> None:
        difference = (logits - next_logits(alone, writer.text, kept)).abs().max().item()
        result["largest_difference"] = max(result["largest_difference"], difference)

    begin = time.monotonic()
    try:
        if wanted.compare:
            spent = dict.fromkeys(models, 0.0)
            for turn in range(max(1, wanted.tokens // BLOCK) * len(models)):
                name = list(models)[turn % len(models)]
                distributed.barrier()
                turn_began = time.monotonic()
                generate(models[name], writer, BLOCK)
                spent[name] += time.monotonic() - turn_began
            n = max(1, wanted.tokens // BLOCK) * BLOCK
            result["tokens_per_s"] = {name: n / seconds for name, seconds in spent.items()}
        else:
            n = max(0, wanted_length - len(writer.text))
            generate(models["ringbolt"], writer, n, compare if wanted.check else lambda logits: None)
            result["tokens_per_s"] = {"ringbolt": n / (time.monotonic() - begin)}
    except RuntimeError as problem:
        print(f"rank {rank}: after {len(writer.text)} bytes, at {time.time():.3f}: {problem}", flush=True)
        return 3
    if rank == 0:
        result["text"] = writer.text.decode(errors="replace")
        print(result["text"])
        print(", ".join(f"{name}: {rate:.0f} tokens/s" for name, rate in result["tokens_per_s"].items()))
        if wanted.check:
            print(f"logits differ from those of one process by {result['largest_difference']:.1e} at most (bound {BOUND:.0e})")
        if wanted.json:
            wanted.json.write_text(json.dumps(result))
    distributed.destroy_process_group()
    return 1 if result["largest_difference"] > BOUND else 0


if __name__ == "__main__":
    sys.exit(main())
