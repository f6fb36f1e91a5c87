"""One of two ranks, by mpi4py: blocking, non-blocking, one-sided and collective, in every byte checked."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from peers import SIZES, check, pattern

ROUNDS = 2
WINDOW = 8


def two_sided(world: MPI.Comm, rank: int, size: int, seed: int) -> None:
    ours, theirs = pattern(size, seed + rank), pattern(size, seed + 1 - rank)
    got = np.zeros(size, dtype=np.uint8)
    if rank == 0:
        world.Send(ours, 1, 5)
        world.Recv(got, 1, 6)
    else:
        world.Recv(got, 0, 5)
        world.Send(ours, 0, 6)
    check(f"rank {rank}: received {size}", got, theirs)
    several = [np.zeros(size, dtype=np.uint8) for _ in range(WINDOW)]
    outgoing = [pattern(size, seed + rank + 3 * i) for i in range(WINDOW)]
    requests = [world.Irecv(several[i], 1 - rank, i) for i in range(WINDOW)]
    requests += [world.Isend(outgoing[i], 1 - rank, i) for i in range(WINDOW)]
    MPI.Request.Waitall(requests)
    for i in range(WINDOW):
        check(f"rank {rank}: message {i} of {size}", several[i], pattern(size, seed + 1 - rank + 3 * i))


def one_sided(world: MPI.Comm, rank: int, size: int, seed: int) -> None:
    memory = np.zeros(size, dtype=np.uint8)
    ours, got = pattern(size, seed + rank), np.zeros(size, dtype=np.uint8)
    window = MPI.Win.Create(memory, 1, comm=world)
    window.Fence()
    window.Put(ours, 1 - rank)
    window.Fence()
    check(f"rank {rank}: put {size}", memory, pattern(size, seed + 1 - rank))
    window.Get(got, 1 - rank)
    window.Fence()
    check(f"rank {rank}: got {size}", got, ours)
    window.Free()


def collective(world: MPI.Comm, rank: int, count: int) -> None:
    total = np.zeros(count, dtype=np.int64)
    world.Allreduce(np.arange(count, dtype=np.int64) * (rank + 1), total)
    check(f"rank {rank}: sum of {count}", total, np.arange(count, dtype=np.int64) * 3)
    both = np.zeros(2 * count, dtype=np.int64)
    world.Allgather(np.arange(count, dtype=np.int64) + rank * count, both)
    check(f"rank {rank}: all of {count}", both, np.arange(2 * count, dtype=np.int64))


def main() -> None:
    world = MPI.COMM_WORLD
    rank = world.Get_rank()
    if world.Get_size() != 2:
        raise SystemExit(f"{world.Get_size()} ranks, 2 wanted: each process was started as a job of its own")
    for number in range(ROUNDS):
        for size in SIZES:
            two_sided(world, rank, size, 11 * number + size)
            one_sided(world, rank, size, 11 * number + size)
    for count in (1, 1000, 100_000):
        collective(world, rank, count)
    print(f"{MPI.Get_library_version().split(',')[0].split(chr(10))[0]}: rank {rank}: 1 B to 3 MiB, every byte checked", flush=True)


if __name__ == "__main__":
    main()
