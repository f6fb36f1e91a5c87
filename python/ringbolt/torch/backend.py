"""How torch comes to know the backend, and how the ranks of a process group meet: by the store that c10d hands over."""

from __future__ import annotations

import errno
import inspect
import ipaddress
import os
import socket
import time
import zlib
from datetime import timedelta

import torch.distributed as distributed

from .._group_library import GroupError, milliseconds
from ..group import Group
from ..joining import join
from .connection import Connection
from .errors import failure
from .process_group import ProcessGroup

_NAME = "ringbolt"
_ROUND_S = 1.0


def register() -> None:
    """Makes "ringbolt" a backend of torch.distributed, if it is none yet. The entry point of torch.distributed.backends."""
    plugins = distributed.Backend._plugins
    if _NAME.upper() in plugins:
        return
    _say_who_is_who()
    takes_devices = "devices" in inspect.signature(distributed.Backend.register_backend).parameters
    distributed.Backend.register_backend(_NAME, _create, extended_api=True,
                                         **({"devices": ["cpu", "cuda"]} if takes_devices else {}))


def _say_who_is_who() -> None:
    """A program of `ringbolt run` without a launcher of torch's: a rank for each node of the emulated cluster. The
    store's port is made up, alike on all."""
    env = os.environ
    if not {"RINGBOLT_CLUSTER", "RINGBOLT_NODE", "RINGBOLT_NODES"} <= env.keys() or "RANK" in env or "MASTER_ADDR" in env:
        return
    made_up = zlib.crc32(f"torch {env['RINGBOLT_CLUSTER']} {env.get('RINGBOLT_RUNTIME_DIR')}".encode())
    env.update(RANK=env["RINGBOLT_NODE"], WORLD_SIZE=env["RINGBOLT_NODES"],
               MASTER_ADDR=env.get("RINGBOLT_MEETING_HOST", "127.0.0.1"), MASTER_PORT=str(20000 + made_up % 10000))


def _create(options, _unused) -> ProcessGroup:
    """What c10d calls on each rank of a new process group."""
    limit_s = options.timeout.total_seconds()
    exchange = _StoreExchange(options.store, options.group_rank, options.group_size, limit_s)
    ranks = list(options.global_ranks_in_group)
    try:
        parent = _default_connection() if ranks else None
        if parent is not None and parent.pointer is not None:
            group = parent.group.subgroup(ranks, exchange)
        else:
            group = _join(options, exchange, limit_s)
    except (GroupError, TimeoutError) as problem:
        raise failure(problem.errno, problem.strerror) from problem
    return ProcessGroup(Connection(group, milliseconds(limit_s)), options.timeout)


def _default_connection() -> Connection | None:
    default = distributed.group.WORLD
    return default.connection if isinstance(default, ProcessGroup) else None


def _join(options, exchange, limit_s: float) -> Group:
    if "RINGBOLT_CLUSTER" in os.environ and "RINGBOLT_NODE" not in os.environ and "LOCAL_RANK" in os.environ:
        os.environ["RINGBOLT_NODE"] = os.environ["LOCAL_RANK"]  # torchrun on one machine that plays several: a node for each
    host = _own_address() if options.group_rank == 0 and "RINGBOLT_COORDINATOR" not in os.environ else None
    return join(rank=options.group_rank, size=options.group_size, exchange=exchange, timeout=limit_s, join_timeout=limit_s,
                meeting=(host, 0) if host is not None else None)


def _own_address() -> str | None:
    """Of this machine, as those reach it that reach the one with torch's store. None: nothing says where that is, or it is
    this machine for all."""
    host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT", "1")
    if not host or not port.isdecimal():
        return None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)  # of UDP: nothing is sent
            own = probe.getsockname()[0]
    except OSError:
        return None
    return None if ipaddress.ip_address(own.split("%")[0]).is_loopback else own


class _StoreExchange:
    """Gives some bytes to all ranks and takes those of each, by c10d's store, within a limit of time for all of it."""

    def __init__(self, store, rank: int, size: int, limit_s: float):
        self._store, self._rank, self._size = store, rank, size
        self._until = time.monotonic() + limit_s
        self._limit_s, self._n_calls = limit_s, 0
        # A store outlives process groups, whose names come again.
        self._life = store.add(f"lives/{rank}", 1)

    def __call__(self, mine: bytes) -> list[bytes]:
        self._n_calls += 1
        prefix = f"{self._life}/{self._n_calls}/"
        self._store.set(f"{prefix}{self._rank}", mine.hex())
        return [bytes.fromhex(self._of(rank, f"{prefix}{rank}")) for rank in range(self._size)]

    def _of(self, rank: int, key: str) -> str:
        while True:
            left_s = self._until - time.monotonic()
            try:
                self._store.wait([key], timedelta(seconds=max(0.01, min(_ROUND_S, left_s))))
                return self._store.get(key).decode()
            except RuntimeError as problem:  # the store's way to say that it is not there yet; or that the store is gone
                if left_s <= 0:
                    raise TimeoutError(errno.ETIMEDOUT, f"rank {rank} of {self._size} has not come within {self._limit_s:g} s: "
                                       f"{problem}") from None
                if not _is_late(problem):
                    raise


def _is_late(problem: RuntimeError) -> bool:
    text = str(problem).lower()
    return "timeout" in text or "timed out" in text
