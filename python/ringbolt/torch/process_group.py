"""A process group of torch.distributed over a group of ranks. What c10d calls by the name of a process group's
method, from Python and from C++ (DDP's reducer), begins here."""

from __future__ import annotations

import errno
import time
from datetime import timedelta

import torch

from .._group_library import library, milliseconds
from .collectives import Collectives
from .connection import Connection
from .errors import DistributedError, failure
from .work import Work

_c10d = torch._C._distributed_c10d
_UNSET = timedelta(milliseconds=-1)  # c10d's: the group's own limit
_BARRIER_TAG = -(2**62)  # of messages of monitored_barrier
_GRACE_S = 5.0


class ProcessGroup(Collectives, _c10d.ProcessGroup):
    """Made by torch.distributed.init_process_group("ringbolt") and new_group(). Collectives (collectives.py) are called by all
    ranks in the same order. Thread-safe, if threads keep to one order on all ranks."""

    def __init__(self, connection: Connection, timeout: timedelta):
        _c10d.ProcessGroup.__init__(self, connection.rank, connection.size)
        self.connection, self._timeout = connection, timeout
        self._n, self._self = connection.size, connection.rank
        self._all_reduce_start = library().all_reduce_start
        self._words: dict[str, str] = {}
        self._backend = _backend_of(self)

    def __del__(self):
        connection = getattr(self, "connection", None)
        if connection is not None:
            connection.close()

    # What it is.

    def getBackendName(self) -> str:
        return "ringbolt"

    _get_backend_name = name = getBackendName

    def _get_backend(self, _device):
        return self

    def rank(self) -> int:
        return self._self

    def size(self) -> int:
        return self._n

    getRank, getSize = rank, size

    def getGroupName(self) -> str:
        return self._words.get("name", "")

    def setGroupName(self, name: str) -> None:
        self._words["name"] = name

    def getGroupDesc(self) -> str:
        return self._words.get("description", "")

    def setGroupDesc(self, description: str) -> None:
        self._words["description"] = description

    def set_timeout(self, timeout: timedelta) -> None:
        """Of later calls that say nothing of their own."""
        self.connection.timeout_ms, self._timeout = milliseconds(timeout.total_seconds()), timeout

    _set_default_timeout = set_timeout

    def report(self) -> str:
        """Devices, cables, ways and figures, for people."""
        return self.connection.group.report()

    # How it ends.

    def shutdown(self) -> None:
        """Gives it back; the other ranks learn of it. destroy_process_group() calls this, or drops the group."""
        self.connection.close()

    def abort(self) -> None:
        """Every call fails on all ranks, those under way and later ones."""
        self.connection.abort(f"rank {self._self} has aborted the process group")

    # Messages.

    def send(self, tensors, dst: int, tag: int = 0) -> Work:
        [tensor] = tensors
        return self.connection.mailbox.send(tensor, self._rank_of(dst), tag, self.connection.timeout_ms)

    def recv(self, tensors, src: int, tag: int = 0) -> Work:
        [tensor] = tensors
        return self.connection.mailbox.receive(tensor, [self._rank_of(src)], tag, self.connection.timeout_ms)

    def recv_anysource(self, tensors, tag: int = 0) -> Work:
        [tensor] = tensors
        peers = [rank for rank in range(self._n) if rank != self._self] or [self._self]
        return self.connection.mailbox.receive(tensor, peers, tag, self.connection.timeout_ms)

    recvAnysource = recv_anysource

    def _rank_of(self, rank: int) -> int:
        if not 0 <= rank < self._n:
            raise ValueError(f"there is no rank {rank}: this process group has {self._n}")
        return rank

    def monitored_barrier(self, timeout: timedelta = None, wait_all_ranks: bool = False) -> None:
        """A barrier that says which ranks have not come. Fails on all that have. wait_all_ranks: names all of them, else the
        first one."""
        limit = (self._timeout if timeout is None or timeout == _UNSET else timeout).total_seconds()
        mailbox, flags = self.connection.mailbox, torch.zeros(self._n, dtype=torch.uint8)
        if self._self == 0:
            flags = self._gather_all(limit, wait_all_ranks)
        else:
            limit_ms = milliseconds(limit + _GRACE_S)
            mailbox.send(flags, 0, _BARRIER_TAG, limit_ms).wait()
            mailbox.receive(flags, [0], _BARRIER_TAG, limit_ms).wait()
        missing = flags.nonzero().flatten().tolist()
        if missing:
            who = f"rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing))}"
            raise failure(errno.ETIMEDOUT, f"monitored_barrier: {who} did not come within {limit:g} s")

    def _gather_all(self, limit_s: float, wait_all_ranks: bool) -> torch.Tensor:
        """Which have not come, as rank 0 tells all others."""
        mailbox, until = self.connection.mailbox, time.monotonic() + limit_s
        missing, told = torch.zeros(self._n, dtype=torch.uint8), torch.zeros(self._n, dtype=torch.uint8)
        for rank in range(1, self._n):
            left_s = until - time.monotonic() if wait_all_ranks or not missing.any() else 0
            try:
                mailbox.receive(torch.empty_like(missing), [rank], _BARRIER_TAG, max(50, int(left_s * 1000))).wait()
            except DistributedError:
                missing[rank] = 1
                told[rank] = 1 if wait_all_ranks or not told.any() else 0
        for rank in range(1, self._n):
            if not missing[rank]:
                mailbox.send(told, rank, _BARRIER_TAG, milliseconds(_GRACE_S)).wait()
        return told


if hasattr(_c10d, "Backend"):
    class _Backend(_c10d.Backend):
        """torch 2 asks a process group for a backend of each device here and there. Nothing goes through it: calls come to the
        process group itself, which is the shorter way."""

        def getBackendName(self) -> str:
            return "ringbolt"

        def shutdown(self) -> None:
            pass


def _backend_of(group: ProcessGroup) -> object | None:
    if not hasattr(_c10d, "Backend"):
        return None
    backend, kind = _Backend(group.rank(), group.size()), _c10d.ProcessGroup.BackendType.CUSTOM
    for device in ("cpu", "cuda"):
        group._register_backend(torch.device(device), kind, backend)
    group._set_default_backend(kind)
    return backend
