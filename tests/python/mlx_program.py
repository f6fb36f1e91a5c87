"""A program for mlx.launch: all that came out, alike with each package, as a file for each rank: mlx.launch mixes lines.

    mlx_program.py PACKAGE FOLDER"""

import importlib
import pathlib
import sys

import mlx.core as mx

if sys.argv[1] == "mlx.core.distributed":
    distributed = mx.distributed
else:
    distributed = importlib.import_module(sys.argv[1])

group = distributed.init(strict=True, backend="ring")
rank, size = group.rank(), group.size()
x = mx.arange(6.0).reshape(2, 3).T * (rank + 1)
found = [distributed.all_sum(x), distributed.all_max(x[1:]), distributed.all_min(x, group=group, stream=mx.cpu),
         distributed.all_gather(x), distributed.all_gather(mx.array(rank)), distributed.all_sum(3),
         distributed.all_sum(mx.ones((5,), mx.bfloat16))]
peer = 1 - rank
if rank == 0:
    found.append(distributed.send(x, peer))
    found.append(distributed.recv_like(x[0], peer))
else:
    found.append(distributed.recv(x.shape, x.dtype, peer))
    found.append(distributed.send(x[0], peer))
weights = mx.arange(3.0) + rank
found.append(mx.grad(lambda x: (distributed.all_sum(x * x) * weights).sum())(mx.ones((3,)) * (rank + 2)))
found.append(mx.grad(lambda x: (distributed.all_gather(x * x) * mx.arange(6.0)).sum())(mx.ones((3,)) * (rank + 2)))
found += mx.jvp(lambda x: distributed.all_sum(x * x), [mx.ones((3,))], [weights])[1]
found += mx.jvp(distributed.all_gather, [mx.ones((3,))], [weights])[1]
mx.eval(found)
lines = [f"{size}: {one.dtype} {one.shape} {one.tolist()}" for one in found]
pathlib.Path(sys.argv[2], str(rank)).write_text("\n".join(lines))
