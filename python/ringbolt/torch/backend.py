"""How torch comes to know the backend, and how the ranks of a process group meet."""

from __future__ import annotations

import inspect
import ipaddress
import os
import socket
import zlib

import torch.distributed as distributed

from .._group_library import GroupError, milliseconds
from ..group import Group
from ..joining import join
from .connection import Connection
from .errors import failure
from .process_group import ProcessGroup
from .store_exchange import StoreExchange

_NAME = "ringbolt"


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
    ranks = list(options.global_ranks_in_group)
    exchange = None
    try:
        exchange = StoreExchange(options.store, options.group_rank, options.group_size, limit_s)
        parent = _default_connection() if ranks else None
        if parent is not None and parent.pointer is not None:
            group = parent.group.subgroup(ranks, exchange)
        else:
            group = _join(options, exchange, limit_s)
    except GroupError as problem:
        raise failure(problem.errno, problem.strerror + (exchange.whereabouts(problem.strerror) if exchange else "")) from problem
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
