"""A job of torchrun. In its first attempt the last rank dies in the middle; the others hear of it, torchrun starts all anew, and
that attempt ends well. Writes what each rank of each attempt saw.

    elastic_worker.py FOLDER"""

import os
import pathlib
import signal
import sys
import time

import torch
import torch.distributed as dist

import ringbolt.torch  # noqa: F401

attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("ringbolt")
rank, size = dist.get_rank(), dist.get_world_size()
note = pathlib.Path(sys.argv[1]) / f"{attempt}.{rank}"
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
for step in range(5):
    if attempt == 0 and step == 3 and rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    try:
        model(torch.ones(2, 4) * rank).sum().backward()
        total = torch.ones(1)
        dist.all_reduce(total)
    except RuntimeError as problem:
        note.write_text(f"after {time.monotonic() - start:.1f} s: {problem}")
        raise
note.write_text(f"done {int(total)}")
dist.destroy_process_group()
