"""Messages with tags, as c10d matches them: by source and tag, in the order in which they were sent.

The library's messages between two ranks keep their order and have no tag, so each is two of them: a header that says tag, type
and size, and the data; short data come with the header. A receiver asks for the next header of a source only while somebody wants something of it; data that came
with another tag than is wanted are kept."""

from __future__ import annotations

import collections
import ctypes
import errno
import struct
import threading
import time

import torch

from .._group_library import library
from ..memory import SIZES, Type
from .errors import DistributedError, failed_now, failure
from .staging import BYTES, Staging, kind_of
from .work import Work, begin, begin_all

_HEADER = struct.Struct("<qQI4x")  # tag, elements, their type
_SHORT_BYTES = 1000  # data that come with their header
_HEADER_BYTES = _HEADER.size + _SHORT_BYTES  # always: the library wants to know beforehand how much will come
_NO_LIMIT_MS = 2**53  # of a header: who wants it gives up by itself, and the next one who wants one goes on waiting for it
_SLICE_MS = 5
_SHORT_SLICE_MS = 1  # where something else is waited for, too
_SIZES = [SIZES[kind] for kind in Type]


class _Source:
    """What comes from one rank. `header`: the request for the next one, if there is one."""

    def __init__(self, rank: int):
        self.rank = rank
        self.wanted: list[Receive] = []
        self.kept: collections.deque[_Kept] = collections.deque()
        self.header: int | None = None
        self.room = ctypes.create_string_buffer(_HEADER_BYTES)


class _Kept:
    """A message that nobody wanted yet. `request`: its data are on their way."""

    def __init__(self, tag: int, count: int, kind: int, data: torch.Tensor, request: int | None):
        self.tag, self.count, self.kind, self.data, self.request = tag, count, kind, data, request


def _is_short(count: int, kind: int) -> bool:
    return count * _SIZES[kind] <= _SHORT_BYTES


def _name_of(kind: int) -> str:
    return Type(kind).name.lower()


class Receive(Work):
    """`sources`: the ranks that it may come from, one or all. `rank` is the one that it has come from."""

    rank: int | None = None

    def __init__(self, connection, sources: list[_Source], tensor: torch.Tensor, tag: int, timeout_ms: int):
        staging = Staging()
        super().__init__(connection, [], [tensor], staging)
        self.target = staging.taken(tensor)
        self.kind, per_element = kind_of(tensor)
        self.count = tensor.numel() * per_element
        self.sources, self.tag = sources, tag
        self.timeout_s = timeout_ms / 1000
        self.until = time.monotonic() + self.timeout_s
        self.turn = 0

    def source_rank(self) -> int:
        return self.rank

    _source_rank = source_rank

    def cancel(self) -> None:
        self._connection.mailbox.give_up(self, failure(errno.ECANCELED, "the receive has been given up"))
        super().cancel()

    def fail(self, problem: BaseException) -> None:
        self._failure = problem

    def take(self, source: _Source, count: int, kind: int) -> None:
        """Its message is next: the data go where they belong. Of another size or type they fail, here and at the sender, unless
        that has sent them all by then."""
        self.rank = source.rank
        self._compare(count, kind)
        if _is_short(count, kind):
            if self._failure is None:
                ctypes.memmove(self.target.data_ptr(), ctypes.addressof(source.room) + _HEADER.size, count * _SIZES[kind])
            return
        self._requests = [begin(library().recv_start, self._connection.pointer,
                                (self.target.data_ptr(), self.count, self.kind, source.rank), self._connection.timeout_ms)]

    def _compare(self, count: int, kind: int) -> None:
        if (count, kind) != (self.count, self.kind):
            self._failure = failure(errno.EPROTO, f"the message of tag {self.tag} from rank {self.rank} has {count} "
                                    f"{_name_of(kind)}, and {self.count} {_name_of(self.kind)} are asked for")

    def take_kept(self, source: _Source, kept: _Kept) -> None:
        self.rank = source.rank
        self._compare(kept.count, kept.kind)
        self._requests = [] if kept.request is None else [kept.request]

        def copy():
            ctypes.memmove(self.target.data_ptr(), kept.data.data_ptr(), kept.data.numel())
        self._staging.after(copy)

    def _await(self, until: float | None) -> bool:
        if self.rank is None and self._failure is None:
            return self._connection.mailbox.await_header(self, until)
        return super()._await(until)

    def _has_ended(self) -> bool:
        if self.rank is None and self._failure is None:
            self._connection.mailbox.advance()
        return self._failure is not None or (self.rank is not None and super()._has_ended())

    def _finish(self) -> None:
        if self._failure is None or self.rank is not None:
            super()._finish()
        else:
            self._settle()


class Mailbox:
    """Thread-safe: one thread at a time looks at headers. Whoever waits for anything of the group, or asks whether it has
    ended, looks at them, too: what two ranks receive while they send to each other must not wait for the sends."""

    def __init__(self, connection):
        self._connection = connection
        self._lock = threading.RLock()
        self._n_looking = 0
        self._last_look = self._busy_until = 0.0
        self._sources: dict[int, _Source] = {}
        self.n_wanted = 0  # receives that have met no message yet

    def send(self, tensor: torch.Tensor, peer: int, tag: int, timeout_ms: int) -> Work:
        staging = Staging()
        data = staging.given(tensor)
        kind, per_element = kind_of(tensor)
        count = tensor.numel() * per_element
        header = ctypes.create_string_buffer(_HEADER_BYTES)
        _HEADER.pack_into(header, 0, tag, count, kind)
        staging.hold(header)
        is_short = _is_short(count, kind)
        if is_short:
            ctypes.memmove(ctypes.addressof(header) + _HEADER.size, data.data_ptr(), count * _SIZES[kind])
        self._connection.alive()
        with self._lock:  # a header and its data are never parted
            send = library().send_start
            calls = [(send, (ctypes.addressof(header), _HEADER_BYTES, BYTES, peer))]
            if not is_short:
                calls.append((send, (data.data_ptr(), count, kind, peer)))
            return begin_all(self._connection, calls, timeout_ms, [tensor], staging)

    def receive(self, tensor: torch.Tensor, peers: list[int], tag: int, timeout_ms: int) -> Receive:
        self._connection.alive()
        with self._lock:
            sources = [self._sources.get(peer) or self._sources.setdefault(peer, _Source(peer)) for peer in peers]
            receive = Receive(self._connection, sources, tensor, tag, timeout_ms)
            for source in sources:
                for kept in source.kept:
                    if kept.tag == tag:
                        source.kept.remove(kept)
                        receive.take_kept(source, kept)
                        return receive
            for source in sources:
                source.wanted.append(receive)
            self.n_wanted += 1
            self.advance()
        return receive

    def give_up(self, receive: Receive, problem: BaseException) -> None:
        with self._lock:
            if receive.rank is None and receive._failure is None:
                receive.fail(problem)
                self._met(receive)

    def await_header(self, receive: Receive, until: float | None) -> bool:
        """Waits for a while: whether it has failed. That it has met its message its next look finds out."""
        until = receive.until if until is None else min(receive.until, until)
        if self._n_looking > 0:
            time.sleep(0.0005)  # the lock is not fair: let the other thread have it
        try:
            with self._lock:
                self.advance()
                if receive.rank is None and receive._failure is None:
                    source = receive.sources[receive.turn % len(receive.sources)]
                    receive.turn += 1
                    left_ms = int(max(0.0, until - time.monotonic()) * 1000) + 1
                    library().wait_for(source.header, min(left_ms, _SLICE_MS if self.n_wanted == 1 and len(receive.sources) == 1
                                                          else _SHORT_SLICE_MS))
                    self.advance()
                return receive._failure is not None
        except KeyboardInterrupt:
            receive.cancel()
            raise

    def slice_ms(self) -> int:
        """How long to wait for something else before the next look: not at all at first, since what somebody wants comes soon or
        late."""
        now = time.monotonic()
        if now - self._last_look > 0.1:
            self._busy_until = now + 0.001
        self._last_look = now
        return 0 if now < self._busy_until else _SHORT_SLICE_MS

    def advance(self) -> None:
        """Meets messages that have come with those who want them. Does not wait for any."""
        self._n_looking += 1
        with self._lock:
            self._n_looking -= 1
            now = time.monotonic()
            for source in list(self._sources.values()):
                while source.wanted and self._connection.pointer is not None:
                    if source.header is None and not self._ask(source):
                        break
                    if library().test(source.header) != 1:
                        break
                    self._meet(source)
                for receive in list(source.wanted):
                    if now >= receive.until:
                        ranks = ", ".join(str(one.rank) for one in receive.sources)
                        self.give_up(receive, failure(errno.ETIMEDOUT, f"no message of tag {receive.tag} from rank {ranks} "
                                                      f"within {receive.timeout_s:g} s"))

    def _ask(self, source: _Source) -> bool:
        try:
            source.header = begin(library().recv_start, self._connection.pointer,
                                  (ctypes.addressof(source.room), _HEADER_BYTES, BYTES, source.rank), _NO_LIMIT_MS)
            return True
        except DistributedError as problem:
            self._fail(source, problem)
            return False

    def _meet(self, source: _Source) -> None:
        code = library().wait(source.header)
        source.header = None
        if code != 0:
            self._fail(source, failed_now(code))
            return
        tag, count, kind = _HEADER.unpack_from(source.room)
        if kind >= len(_SIZES):
            self._fail(source, failure(errno.EPROTO, f"rank {source.rank} sends elements of type {kind}, which there is not: it has "
                                       "another version of Ringbolt"))
            return
        receive = next((one for one in source.wanted if one.tag == tag), None)
        try:
            if receive is not None:
                receive.take(source, count, kind)
                self._met(receive)
                return
            data = torch.empty(count * _SIZES[kind], dtype=torch.uint8)
            request = None
            if _is_short(count, kind):
                ctypes.memmove(data.data_ptr(), ctypes.addressof(source.room) + _HEADER.size, data.numel())
            else:
                request = begin(library().recv_start, self._connection.pointer, (data.data_ptr(), count, kind, source.rank),
                                self._connection.timeout_ms)
            source.kept.append(_Kept(tag, count, kind, data, request))
        except DistributedError as problem:
            self._fail(source, problem)

    def _fail(self, source: _Source, problem: BaseException) -> None:
        for receive in list(source.wanted):
            receive.rank = None
            receive.fail(problem)
            self._met(receive)

    def _met(self, receive: Receive) -> None:
        for source in receive.sources:
            if receive in source.wanted:
                source.wanted.remove(receive)
        self.n_wanted -= 1

    def close(self) -> None:
        with self._lock:
            for source in self._sources.values():
                requests = [kept.request for kept in source.kept if kept.request is not None] + ([source.header] if source.header is not None else [])
                self._fail(source, failure(errno.ECANCELED, "this process group was destroyed"))
                for request in requests:
                    library().cancel(request)
                    library().wait(request)
                source.kept.clear()
                source.header = None
