"""init_method="ringbolt://": the ranks meet as those of ringbolt.join() do, whoever has started them (`ringbolt run`, mpirun,
srun, mlx.launch), and no MASTER_ADDR and no port has to be chosen."""

from __future__ import annotations

import os
from datetime import timedelta

import torch.distributed as distributed

from .._group_library import JoinError
from ..joining import join
from .errors import failure

_PORT_BYTES = 2


def register() -> None:
    try:
        distributed.register_rendezvous_handler("ringbolt", _meet)
    except RuntimeError:
        pass  # it is one already


def _meet(url: str, timeout: timedelta = timedelta(minutes=5), **_):
    """Yields (store, rank, size). Rank 0 serves the store at a free port, which the others learn over the cables."""
    limit_s = timeout.total_seconds()
    try:
        with join(join_timeout=limit_s, timeout=limit_s) as group:
            rank, size, store = group.rank, group.size, None
            port = bytearray(_PORT_BYTES)
            if rank == 0:
                store = distributed.TCPStore(_host(), 0, None, True, timeout, False)
                port[:] = store.port.to_bytes(_PORT_BYTES, "little")
            group.broadcast(port)
            if store is None:
                store = distributed.TCPStore(_host(), int.from_bytes(port, "little"), None, False, timeout, False)
            group.barrier()  # rank 0 keeps its group until all have found the store
    except JoinError as problem:
        raise failure(problem.errno, problem.strerror) from problem
    yield store, rank, size


def _host() -> str:
    """Where all ranks reach rank 0."""
    coordinator = os.environ.get("RINGBOLT_COORDINATOR", "").rpartition(":")[0].strip("[]")
    host = coordinator or os.environ.get("RINGBOLT_MEETING_HOST") or os.environ.get("MASTER_ADDR")
    if host:
        return host
    if "RINGBOLT_CLUSTER" in os.environ:
        return "127.0.0.1"  # its nodes are this machine
    raise failure(22, "init_method=\"ringbolt://\": nothing says where rank 0 is: set RINGBOLT_COORDINATOR=HOST:PORT, an address of "
                      "rank 0 that all ranks reach, or use env:// with MASTER_ADDR and MASTER_PORT")
