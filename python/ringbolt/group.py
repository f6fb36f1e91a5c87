"""Collectives over directly cabled machines (docs/python.md): libringbolt.so for Python, by ctypes.

    with ringbolt.join() as group:
        group.all_reduce(gradients)          # in place; a NumPy array, a torch tensor on the CPU, an array.array ...

Arrays lie in a row, in memory (memory.py says which kinds do). Times are in seconds; None: the group's own limit, 300 s unless
it was joined with another one; nothing waits for ever. A signal of Python's (Ctrl-C) is handled within 0.2 s: the call is then
given up on all ranks. What fails raises GroupError, the same on all ranks that took part; a rank whose arguments make no sense
raises ValueError or TypeError, and the call fails on the others with EPROTO or ECANCELED instead of waiting for that rank.

Thread-safe: several threads may have calls under way, if they keep to one order on all ranks."""

from __future__ import annotations

import asyncio
import ctypes
import enum
import errno
from typing import Any, Callable, Iterable, Mapping, Sequence

from ._group_library import Call, Exchange, GroupError, Operation, check, library, milliseconds
from .memory import Memory, Type
from .request import Progress, Request

_ANY_ORDER = 1
_NONE = 0x7FFFFFFF
_CALL_BYTES, _UINT8 = ctypes.sizeof(Call), int(Type.UINT8)


class Reduction(enum.IntEnum):
    """How elements of different ranks become one."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    AVG = 4


class Group:
    """Ranks that work together over the cables between them. Made by join(), split(), shrink(), rejoin().

    Collectives are called by all ranks in the same order with the same sizes, types and roots. `out` may be given, or is left
    out where a call works in place. `timeout`: seconds. `algorithm`: "ring", "trees", ... (docs/algorithms.md), alike on all
    ranks. `any_order`: sums of floating-point numbers may be added in whatever order is fastest; without it every rank, run and
    cabling gives the same bits. Each call has a twin that begins it, with `_start` behind its name, and gives a Request."""

    def __init__(self, pointer: int | None, exchange: Any = None):
        self._pointer: int | None = pointer
        self._exchange = exchange  # is called again by rejoin()
        self._readers: dict[int, Progress] = {}

    # Who is there.

    @property
    def rank(self) -> int:
        """Of this process, from 0."""
        return library().rank(self._alive())

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return library().size(self._alive())

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, *_) -> None:
        self.leave()

    def leave(self) -> None:
        """Gives the group back; the other ranks learn of it. May be called twice. Requests of it that are under way fail.
        No other thread may be in a call of the group."""
        pointer, self._pointer = self._pointer, None
        for progress in self._readers.values():
            progress.close()
        self._readers.clear()
        if pointer is not None:
            library().leave(pointer)

    def __del__(self):
        if getattr(self, "_pointer", None) is not None:
            self.leave()

    # Collectives. Shapes are in elements; n is the group's size.

    def all_reduce_start(self, data, out=None, reduction="sum", **options) -> Request:
        """See all_reduce()."""
        return self._reduced(Operation.ALL_REDUCE, data, out, reduction, lambda count: count, 0, options)

    def all_reduce(self, data, out=None, reduction="sum", **options):
        """out[i] = data of rank 0 [i] op data of rank 1 [i] ...; reduction: "sum", "prod", "max", "min", "avg". Shapes: data,
        out: [count]. Without `out` in place. The array with the result."""
        return self.all_reduce_start(data, out, reduction, **options).wait()

    def reduce_scatter_start(self, data, out, reduction="sum", **options) -> Request:
        """See reduce_scatter()."""
        return self._reduced(Operation.REDUCE_SCATTER, data, out, reduction, lambda count: count // self.size, 0, options)

    def reduce_scatter(self, data, out, reduction="sum", **options):
        """Rank r gets the r-th part of the reduced vector. Shapes: data: [n, count]; out: [count]."""
        return self.reduce_scatter_start(data, out, reduction, **options).wait()

    def reduce_start(self, data, out=None, root=0, reduction="sum", **options) -> Request:
        """See reduce()."""
        if out is None and self.rank != root:
            return self._one_sided(Operation.REDUCE, data, None, root, options, reduction)
        return self._reduced(Operation.REDUCE, data, out, reduction, lambda count: count, root, options)

    def reduce(self, data, out=None, root=0, reduction="sum", **options):
        """As all_reduce(), at the root alone; elsewhere `out` is not used."""
        return self.reduce_start(data, out, root, reduction, **options).wait()

    def all_gather_start(self, data, out, **options) -> Request:
        """See all_gather()."""
        return self._moved(Operation.ALL_GATHER, data, out, lambda given: given * self.size, 0, options)

    def all_gather(self, data, out, **options):
        """The data of all ranks one after the other. Shapes: data: [count]; out: [n, count]."""
        return self.all_gather_start(data, out, **options).wait()

    def all_gatherv_start(self, data, out, counts: Sequence[int], **options) -> Request:
        """See all_gatherv()."""
        return self._uneven(Operation.ALL_GATHERV, data, [counts[self.rank] if self.rank < len(counts) else 0], out, counts,
                            options)

    def all_gatherv(self, data, out, counts: Sequence[int], **options):
        """Likewise with counts[r] elements of rank r. Shapes: data: [counts[rank]]; out: [sum of counts]."""
        return self.all_gatherv_start(data, out, counts, **options).wait()

    def broadcast_start(self, data, root=0, **options) -> Request:
        """See broadcast()."""
        return self._one_sided(Operation.BROADCAST, None, data, root, options, is_read=self.rank == root)

    def broadcast(self, data, root=0, **options):
        """The root's data, to all. Shape: data: [count], read at the root, written elsewhere."""
        return self.broadcast_start(data, root, **options).wait()

    def gather_start(self, data, out=None, root=0, **options) -> Request:
        """See gather()."""
        if self.rank != root:
            return self._one_sided(Operation.GATHER, data, None, root, options)
        return self._moved(Operation.GATHER, data, out, lambda given: given * self.size, root, options)

    def gather(self, data, out=None, root=0, **options):
        """All data one after the other, at the root. Shapes: data: [count]; out, at the root: [n, count]."""
        return self.gather_start(data, out, root, **options).wait()

    def scatter_start(self, data, out, root=0, **options) -> Request:
        """See scatter()."""
        if self.rank != root:
            return self._one_sided(Operation.SCATTER, None, out, root, options)
        return self._moved(Operation.SCATTER, data, out, lambda given: given // self.size, root, options, counts_out=True)

    def scatter(self, data, out, root=0, **options):
        """Part r of the root's data, to rank r. Shapes: data, at the root: [n, count]; out: [count]."""
        return self.scatter_start(data, out, root, **options).wait()

    def all_to_all_start(self, data, out, **options) -> Request:
        """See all_to_all()."""
        return self._moved(Operation.ALL_TO_ALL, data, out, lambda given: given, 0, options, parts=self.size)

    def all_to_all(self, data, out, **options):
        """Part s of rank r's data becomes part r of rank s's output. Shapes: data, out: [n, count]. Not in place."""
        return self.all_to_all_start(data, out, **options).wait()

    def all_to_allv_start(self, data, sent: Sequence[int], out, received: Sequence[int], **options) -> Request:
        """See all_to_allv()."""
        return self._uneven(Operation.ALL_TO_ALLV, data, sent, out, received, options)

    def all_to_allv(self, data, sent: Sequence[int], out, received: Sequence[int], **options):
        """Likewise with sent[s] elements to rank s, and received[s] from it, one after the other."""
        return self.all_to_allv_start(data, sent, out, received, **options).wait()

    def barrier_start(self, **options) -> Request:
        """See barrier()."""
        return self._begin(Operation.BARRIER, options, lambda call: ((), None))

    def barrier(self, **options) -> None:
        """Returns when all ranks have called it."""
        self.barrier_start(**options).wait()

    def send_start(self, data, peer: int, **options) -> Request:
        """See send()."""
        return self._one_sided(Operation.SEND, data, None, peer, options)

    def send(self, data, peer: int, **options) -> None:
        """To one rank, which calls recv() of as many elements. Messages between two ranks keep their order. It may return
        before the peer has called recv()."""
        self.send_start(data, peer, **options).wait()

    def recv_start(self, data, peer: int, **options) -> Request:
        """See recv()."""
        return self._one_sided(Operation.RECV, None, data, peer, options)

    def recv(self, data, peer: int, **options):
        """From one rank. Shape: data: [count]."""
        return self.recv_start(data, peer, **options).wait()

    # Groups of groups.

    def split(self, color: int, key: int = 0) -> "Group | None":
        """Ranks of the same color become a group, in the order of (key, rank); of a negative color: None. All ranks call it."""
        return self._made(library().split, color, key)

    def subgroup(self, ranks: Sequence[int], exchange: Callable[[bytes], Iterable[bytes]]) -> "Group":
        """The group of these ranks of this one, in that order. They alone call it, all with the same list; the others pass on
        what these send each other, as ever. `exchange` gives the bytes of this rank to all of them and returns those of each,
        in that order; it is called several times, by this thread. Raises what it raises, and GroupError."""
        made, carrier = ctypes.c_void_p(), Exchange(exchange)
        code = library().subgroup(self._alive(), (ctypes.c_uint32 * len(ranks))(*ranks), len(ranks), carrier.function, None,
                                  ctypes.byref(made))
        if code != 0 and carrier.raised is not None:
            raise carrier.raised
        check(code, GroupError)
        return Group(made.value, self._exchange)

    def shrink(self) -> "Group":
        """The group of the ranks that are still there, in the same order. All of them call it. This one is still to be left."""
        return self._made(library().shrink)

    def rejoin(self) -> "Group":
        """All ranks meet anew: those that are left call this, those that were started again call join()."""
        return self._made(library().rejoin)

    def abort(self, reason: str) -> None:
        """Makes every call of the group fail on all ranks, those under way and later ones, with these words."""
        check(library().abort(self._alive(), reason.encode()))

    def relays(self, peer: int) -> list[int]:
        """The ranks that pass on what this one sends to `peer`, in order; [] if a cable joins the two."""
        relays, n = (ctypes.c_uint32 * max(self.size, 16))(), ctypes.c_size_t()
        check(library().relays(self._alive(), peer, relays, len(relays), ctypes.byref(n)))
        return list(relays[:n.value])

    def report(self) -> str:
        """Devices, cables, ways and figures, for people."""
        return self._text(library().report)

    def explain(self, operation: str, count: int, type: Type = Type.FLOAT32) -> str:
        """Which algorithm a call of "all_reduce", ... would take, and what else would do, for people."""
        return self._text(library().explain, operation.encode(), count, type)

    # How a call is made.

    def _alive(self) -> int:
        if self._pointer is None:
            raise GroupError(errno.EBADF, "this group was left")
        return self._pointer

    def _made(self, call: Callable, *arguments) -> Any:
        made = ctypes.c_void_p()
        check(call(self._alive(), *arguments, ctypes.byref(made)), GroupError)
        return Group(made.value, self._exchange) if made.value is not None else None

    def _text(self, call: Callable, *arguments) -> str:
        room = ctypes.create_string_buffer(1)
        while True:
            length = call(self._alive(), *arguments, room, len(room))
            if length < len(room):
                return room.value.decode(errors="replace")
            room = ctypes.create_string_buffer(length + 1)

    def progress(self) -> Progress:
        """Of the running event loop; used by Request."""
        loop = asyncio.get_running_loop()
        progress = self._readers.get(id(loop))
        if progress is None or progress.loop is not loop:
            fd = ctypes.c_int()
            check(library().progress_fd(self._alive(), ctypes.byref(fd)))
            progress = self._readers[id(loop)] = Progress(fd.value, loop)
        return progress

    def _begin(self, operation: Operation, options: Mapping[str, Any], fill: Callable) -> Request:
        """fill(call) sets what the operation takes, and gives (what is to be kept alive, the result)."""
        group = self._alive()
        call = Call(_CALL_BYTES, operation, _UINT8)
        pointer = ctypes.c_void_p()
        try:
            if options:
                _take_options(call, operation, options)
            kept, result = fill(call)
        except Exception:
            self._refuse(operation, call.rank)
            raise
        code = library().start(group, call, ctypes.byref(pointer))
        if code != 0:
            check(code)
        return Request(self, pointer.value, (call, kept), result)

    def _refuse(self, operation: Operation, rank: int = 0) -> None:
        """Instead of a call that can't be begun here: tells the others, who would wait for this rank."""
        pointer = ctypes.c_void_p()  # the library refuses a type that there is none of
        call = Call(struct_size=ctypes.sizeof(Call), operation=operation, type=_NONE, rank=rank)
        if library().start(self._alive(), call, ctypes.byref(pointer)) == 0:
            library().wait(pointer)

    def _reduced(self, operation, data, out, reduction, count_of, root, options) -> Request:
        def fill(call):
            _set_rank(call, root)
            result, given, target = _pair(data, data if out is None else out, options)
            call.reduction = _reduction(reduction)
            call.count = _same(operation, count_of(given.count), target.count, given.count)
            call.type, call.source, call.out = given.type, given.address, target.address
            return (given, target), result

        return self._begin(operation, options, fill)

    def _moved(self, operation, data, out, out_of, root, options, parts=1, counts_out=False) -> Request:
        def fill(call):
            _set_rank(call, root)
            if data is None or out is None:
                raise ValueError(f"{operation.name.lower()}: data and out are needed here")
            result, given, target = _pair(data, out, options)
            _same(operation, out_of(given.count), target.count, given.count)
            call.count = target.count if counts_out else given.count // parts
            if given.count % parts != 0:
                raise ValueError(f"{operation.name.lower()}: {given.count} elements are no {parts} equal parts")
            call.type, call.source, call.out = given.type, given.address, target.address
            return (given, target), result

        return self._begin(operation, options, fill)

    def _uneven(self, operation, data, sent, out, received, options) -> Request:
        def fill(call):
            for counts in (sent, received) if operation == Operation.ALL_TO_ALLV else (received,):
                if len(counts) != self.size or min(counts) < 0:
                    raise ValueError(f"{operation.name.lower()}: counts {list(counts)}: one, from 0, for each of "
                                     f"{self.size} ranks")
            result, given, target = _pair(data, out, options)
            _same(operation, sum(sent), given.count, "counts")
            _same(operation, sum(received), target.count, "counts")
            first = received if operation == Operation.ALL_GATHERV else sent
            call.counts, call.n_counts = (ctypes.c_size_t * self.size)(*first), self.size
            if operation == Operation.ALL_TO_ALLV:
                call.received, call.n_received = (ctypes.c_size_t * self.size)(*received), self.size
            call.type, call.source, call.out = given.type, given.address, target.address
            return (given, target), result

        return self._begin(operation, options, fill)

    def _one_sided(self, operation, data, out, rank, options, reduction="sum", is_read=False) -> Request:
        def fill(call):
            _set_rank(call, rank)
            held = Memory(out if data is None else data, data is None and not is_read, options.get("type"))
            call.reduction = _reduction(reduction)
            call.type, call.count = held.type, held.count
            if data is None:
                call.out = held.address
            else:
                call.source = held.address
            return (held,), out

        return self._begin(operation, options, fill)


def _take_options(call: Call, operation: Operation, options: Mapping[str, Any]) -> None:
    unknown = set(options) - {"timeout", "algorithm", "any_order", "type"}
    if unknown:
        raise TypeError(f"{operation.name.lower()} has no option {', '.join(sorted(unknown))}")
    call.timeout_ms = milliseconds(options.get("timeout"))
    call.algorithm = options["algorithm"].encode() if options.get("algorithm") else None
    call.flags = _ANY_ORDER if options.get("any_order") else 0


def _set_rank(call: Call, rank: int) -> None:
    if not 0 <= rank < 2**32:
        raise ValueError(f"there is no rank {rank}")
    call.rank = rank


def _pair(data, out, options) -> tuple[Any, Memory, Memory]:
    given = Memory(data, data is out, options.get("type"))
    target = given if data is out else Memory(out, True, options.get("type"))
    if given.type != target.type:
        raise TypeError(f"data of {given.type.name.lower()}, but out of {target.type.name.lower()}")
    return out, given, target


def _same(operation: Operation, expected: int, found: int, given: Any) -> int:
    if expected != found:
        raise ValueError(f"{operation.name.lower()}: room for {found} elements, where {expected} are needed (data: {given})")
    return expected


_REDUCTIONS = {one.name.lower(): one for one in Reduction}


def _reduction(reduction: str | Reduction) -> Reduction:
    if type(reduction) is str and reduction in _REDUCTIONS:
        return _REDUCTIONS[reduction]
    name = reduction.name if isinstance(reduction, Reduction) else str(reduction).upper()
    if name not in Reduction.__members__:
        raise ValueError(f"reduction {reduction!r}: sum, prod, max, min or avg")
    return Reduction[name]
