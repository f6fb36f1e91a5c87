"""One rank of the tests of Python's package: every call, with data that tell rank and place. Prints "ok", or a traceback.

    group_rank.py CASE"""

import array
import asyncio
import errno
import os
import signal
import sys
import threading
import time
import types

import ringbolt
from ringbolt import GroupError, Type

COUNT = 1000
group = None
rank = size = 0


def datum(of, place):
    return of * 100003 + place


def mine(count=COUNT, of=None):
    of = rank if of is None else of
    return array.array("q", (datum(of, i) for i in range(count)))


def room(count):
    return array.array("q", bytes(8 * count))


def joined(parts):
    return array.array("q", (one for part in parts for one in part))


def need(found, expected):
    assert list(found) == list(expected), f"{list(found)[:8]}... instead of {list(expected)[:8]}..."


def the_sum(count=COUNT):
    return array.array("q", (sum(datum(r, i) for r in range(size)) for i in range(count)))


def collectives():
    need(group.all_reduce(mine()), the_sum())
    out = room(COUNT)
    need(group.all_reduce(mine(), out, "max"), mine(of=size - 1))
    need(group.all_reduce(mine(), out, ringbolt.Reduction.MIN), mine(of=0))
    need(group.all_reduce(array.array("d", [rank + 0.5] * 7), reduction="avg", algorithm="trees", any_order=True, timeout=20),
         array.array("d", [(size - 1) / 2 + 0.5] * 7))
    parts = joined(mine(COUNT) for _ in range(size))
    need(group.reduce_scatter(parts, room(COUNT)), the_sum())
    need(group.all_gather(mine(), room(size * COUNT)), joined(mine(of=r) for r in range(size)))
    counts = [r * 3 for r in range(size)]
    need(group.all_gatherv(mine(3 * rank), room(sum(counts)), counts), joined(mine(3 * r, r) for r in range(size)))
    need(group.broadcast(mine(), root=size - 1), mine(of=size - 1))
    need(group.broadcast(bytes(mine(of=0)) if rank == 0 else bytearray(8 * COUNT)), bytes(mine(of=0)))  # read-only at the root
    reduced = group.reduce(mine(), root=size - 1)
    assert rank != size - 1 or reduced == the_sum()
    gathered = group.gather(mine(), room(size * COUNT) if rank == 0 else None)
    assert rank != 0 or gathered == joined(mine(of=r) for r in range(size))
    need(group.scatter(joined(mine(of=r) for r in range(size)) if rank == 0 else None, room(COUNT)), mine())
    need(group.all_to_all(joined(mine(10, rank * size + s) for s in range(size)), room(10 * size)),
         joined(mine(10, r * size + rank) for r in range(size)))
    sent, received = [rank + s for s in range(size)], [rank + r for r in range(size)]
    need(group.all_to_allv(joined(mine(n, rank * size + s) for s, n in enumerate(sent)), sent, room(sum(received)), received),
         joined(mine(n, r * size + rank) for r, n in enumerate(received)))
    right, left = (rank + 1) % size, (rank - 1) % size
    coming = group.recv_start(room(COUNT), left)
    group.send(mine(), right)
    need(coming.wait(), mine(of=left))
    need(coming.wait(), mine(of=left))  # as often as one likes
    group.barrier()
    group.all_reduce(room(0))  # of nothing


def others():
    """Memory of other kinds, and groups of groups."""
    raw = bytearray(bytes(array.array("f", [rank] * 4)))
    group.all_reduce(raw, type=Type.FLOAT32)
    need(array.array("f", bytes(raw)), array.array("f", [sum(range(size))] * 4))
    assert group.relays(rank) == [] and "rank" in group.report() and "hops" in group.explain("all_reduce", 10)
    half = group.split(rank % 2, -rank)
    assert half.size == len([r for r in range(size) if r % 2 == rank % 2])
    need(half.broadcast(mine(), root=0), mine(of=max(r for r in range(size) if r % 2 == rank % 2)))
    half.leave()
    assert group.split(-1) is None
    ends = [size - 1, 0]
    if rank in ends:
        def exchange(mine_):  # by messages of the group that it is made of
            rooms = [bytearray(len(mine_)) for _ in ends]
            for one in [group.send_start(mine_, r) for r in ends] + [group.recv_start(at, r) for r, at in zip(ends, rooms)]:
                one.wait()
            return rooms
        with group.subgroup(ends, exchange) as pair:
            need(pair.all_reduce(mine()), array.array("q", (datum(0, i) + datum(size - 1, i) for i in range(COUNT))))
    results = []
    requests = [group.all_reduce_start(mine()) for _ in range(20)]
    for request in requests:
        results.append(request.wait())
    assert all(one == the_sum() for one in results)


def numpy_arrays():
    import numpy
    for kind in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
                 "float64", "complex64"):
        found = group.all_reduce(numpy.full((3, 2), 1, kind), numpy.zeros((3, 2), kind))
        assert (found == (1 if kind == "bool" else size)).all(), (kind, found)

    class OnlyDlpack:  # as an array that has no buffer protocol
        def __init__(self, array):
            self.array = array

        def __dlpack__(self):
            return self.array.__dlpack__()

    class Tensor:  # what the package asks of PyTorch's
        def __init__(self, array, device="cpu"):
            self.array, self.dtype = array, f"torch.{array.dtype}"
            self.device = types.SimpleNamespace(type=device)

        def data_ptr(self):
            return self.array.ctypes.data

        def numel(self):
            return self.array.size

        def is_contiguous(self):
            return self.array.flags.c_contiguous

    for kind in (OnlyDlpack, Tensor):
        assert (group.all_reduce(kind(numpy.ones((3, 5), "float32"))).array == size).all(), kind
        column = kind(numpy.ones((4, 4))[:, 1] if rank == 0 else numpy.ones(4))
        refused(ValueError, lambda one=column: group.all_reduce(one), "in a row")
    refused(TypeError, lambda: group.all_reduce(Tensor(numpy.ones(4), "cuda" if rank == 0 else "cpu")), "on the CPU")
    refused(ValueError, lambda: group.all_reduce(numpy.ones((4, 4))[:, 1] if rank == 0 else numpy.ones(4)), "in a row")
    refused(TypeError, lambda: group.all_reduce(numpy.ones(4, "complex128")), "complex128")
    fixed = numpy.ones(4)
    fixed.flags.writeable = False
    refused(ValueError, lambda: group.all_reduce(fixed if rank == 0 else numpy.ones(4)), "written")
    assert (group.all_reduce(fixed, numpy.empty(4)) == size).all()  # to read from it will do


def coroutines():
    async def one(i):
        await asyncio.sleep(0)
        return await group.all_reduce_start(array.array("q", [i * size + rank]))

    async def everything():
        begun = [asyncio.ensure_future(one(i)) for i in range(50)]
        for i, result in enumerate(await asyncio.gather(*begun)):
            need(result, [sum(i * size + r for r in range(size))])
        never = group.recv_start(room(1), rank)
        try:
            await asyncio.wait_for(never, 0.3)
            raise AssertionError("it came")
        except asyncio.TimeoutError:
            pass
        try:
            never.wait()
        except GroupError as problem:
            assert problem.errno == errno.ECANCELED, problem

    asyncio.run(everything())


def refused(kind, call, *words):
    """Of what makes no sense on rank 0; the others learn of it, and the group goes on."""
    begin = time.monotonic()
    try:
        call()
    except kind as problem:
        assert rank != 0 or all(word in str(problem) for word in words), problem
        assert time.monotonic() - begin < 10
    except GroupError as problem:
        assert rank != 0 and problem.errno in (errno.EPROTO, errno.ECANCELED, errno.EINVAL), problem
        assert time.monotonic() - begin < 10
    else:
        raise AssertionError(f"rank {rank}: {words} was taken")
    need(group.all_reduce(array.array("q", [1])), [size])


def bad_input():
    bad = rank == 0
    refused(TypeError, lambda: group.all_reduce(5 if bad else mine()), "int", "buffer protocol")
    refused(TypeError, lambda: group.all_reduce(array.array("u", "a") if bad else mine()), "format")
    refused(ValueError, lambda: group.all_reduce(b"12345678" if bad else mine()), "written")
    refused(ValueError, lambda: group.all_reduce(memoryview(bytearray(16))[::2] if bad else mine()), "in a row")
    refused(ValueError, lambda: group.all_reduce(mine(), room(1) if bad else room(COUNT)), "1 elements", "1000")
    refused(TypeError, lambda: group.all_reduce(mine(), array.array("d", [0] * COUNT) if bad else room(COUNT)), "float64")
    refused(ValueError, lambda: group.all_reduce(mine(), reduction="most" if bad else "sum"), "most")
    refused(ValueError, lambda: group.all_reduce(mine(), timeout=-1 if bad else None), "-1")
    refused(TypeError, lambda: group.all_reduce(mine(), **({"tiemout": 3} if bad else {})), "tiemout")
    refused(ValueError, lambda: group.all_gatherv(mine(1), room(size), [1] * (size - 1 if bad else size)), "counts")
    refused(ValueError, lambda: group.broadcast(mine(), root=-1 if bad else 0), "-1")
    refused(GroupError, lambda: group.broadcast(mine(), root=size if bad else 0), str(size))
    refused(GroupError, lambda: group.all_reduce(mine(5 if bad else 6)))
    refused(GroupError, lambda: group.all_reduce(array.array("d", [1]) if bad else array.array("q", [1])))
    try:
        group.recv(room(1), (rank + 1) % size, timeout=0.2)
    except GroupError as problem:
        assert problem.errno == errno.ETIMEDOUT and str((rank + 1) % size) in problem.strerror, problem
    group.barrier()


def interrupted():
    """Ctrl-C while it waits for a message that never comes: within a second, and the group lives on."""
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    try:
        group.recv(room(1), rank)
        raise AssertionError("it came")
    except KeyboardInterrupt:
        assert time.monotonic() - begin < 2
    group.barrier()


def killed():
    """The last rank dies; the others hear of it within a second, and go on without it."""
    group.barrier()
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    try:
        while time.monotonic() - begin < 10:
            group.all_reduce(mine())
        raise AssertionError("nobody died")
    except GroupError as problem:
        assert problem.errno in (errno.ECONNRESET, errno.EHOSTDOWN), problem
        assert f"rank {size - 1}" in problem.strerror, problem
        assert time.monotonic() - begin < 3
    with group.shrink() as left:
        assert left.size == size - 1
        need(left.all_reduce(array.array("q", [2])), [2 * left.size])


def alone():
    """Without a launcher: a group of one, by options; what has been left; and whom nobody meets."""
    with ringbolt.join(rank=0, size=1, environment={}) as one:
        need(one.all_reduce(mine()), mine())

        async def late():
            begin = time.monotonic()
            try:
                await one.recv_start(room(1), 0, timeout=0.3)
            except GroupError as problem:
                assert problem.errno == errno.ETIMEDOUT and time.monotonic() - begin < 2, problem
        asyncio.run(late())
    for call in (lambda: one.rank, one.barrier):
        try:
            call()
            raise AssertionError("it was left")
        except GroupError as problem:
            assert "left" in str(problem)
    one.leave()
    with ringbolt.join(rank=0, size=1, environment={}, exchange=lambda bytes_: [bytes_]) as one:
        assert one.size == 1
    for kind, arguments in ((ValueError, {"rank": 3, "size": 2}), (ValueError, {"rank": 0}),
                            (ValueError, {"checksums": "much"}), (ringbolt.JoinError, {}),
                            (ringbolt.JoinError, {"rank": 1, "size": 2, "meeting": ("127.0.0.1", 9), "join_timeout": 0.5})):
        try:
            ringbolt.join(environment={}, **arguments)
            raise AssertionError(f"{arguments} was taken")
        except kind as problem:
            assert str(problem)

    def breaks(_):
        raise KeyError("the exchange broke")
    try:
        ringbolt.join(rank=0, size=2, environment={}, exchange=breaks, join_timeout=5)
        raise AssertionError("joined")
    except KeyError as problem:
        assert "broke" in str(problem)


def main():
    global group, rank, size
    case = globals()[sys.argv[1]]
    if case is alone:
        alone()
    else:
        with ringbolt.join(timeout=30) as group:
            rank, size = group.rank, group.size
            case()
    print("ok", flush=True)


main()
