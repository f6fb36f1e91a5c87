"""Trains a small model with DistributedDataParallel; each rank has data of its own, and all end with the same weights.

    torchrun --nproc-per-node 3 ddp.py         # or, on an emulated cluster: ringbolt run -- python3 ddp.py"""

import torch
import torch.distributed as dist

import ringbolt.torch  # noqa: F401  (makes "ringbolt" known to torch)

dist.init_process_group("ringbolt")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
inputs = torch.randn(64, 8)
wanted = inputs.sum(1, keepdim=True)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(100):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    loss.backward()  # the gradients' mean over all ranks
    optimizer.step()
worst = loss.detach()
dist.all_reduce(worst, dist.ReduceOp.MAX)
print(f"rank {rank} of {size}: the largest loss of all ranks is {'small' if worst < 1e-3 else 'large'}")
dist.destroy_process_group()
