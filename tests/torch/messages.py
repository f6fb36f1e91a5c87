"""Cases of torch_rank.py: messages, calls that nobody waits for at once, and groups of some ranks."""

import gc
import threading
import time
import weakref
from datetime import timedelta

import torch
import torch.distributed as dist

from ranks import LEFT, RANK, RIGHT, SIZE, data, same

BIG = 3 << 20  # beyond what a sender gives away before anybody asks


def tags():
    """Messages of several tags, taken in another order; of one tag in the order in which they were sent."""
    if RANK == 0:
        for i, tag in enumerate((1, 2, 1, -5, 2**40)):
            dist.send(data(100 + i, of=i), 1, tag=tag)
        dist.send(data(0), 1, tag=9)
        dist.send(data(BIG // 4, of=7), 1, tag=3)
        dist.send(data(4, of=8), 1, tag=4)
    elif RANK == 1:
        def take(i, count, tag, of=None):
            found = torch.empty(count)
            dist.recv(found, 0, tag=tag)
            same([found], [data(count, of=i if of is None else of)], f"message {i}")
        take(8, 4, 4)  # behind all others
        take(4, 104, 2**40)
        take(1, 101, 2)
        take(3, 103, -5)
        take(0, 100, 1)
        take(2, 102, 1)
        take(7, BIG // 4, 3)
        dist.recv(torch.empty(0), 0, tag=9)
    dist.barrier()


def any_source():
    if RANK == 0:
        seen = set()
        for _ in range(1, SIZE):
            found = torch.empty(10)
            source = dist.recv(found, tag=6)
            same([found], [data(10, of=source)], f"from {source}")
            seen.add(source)
        assert seen == set(range(1, SIZE))
        work = dist.irecv(torch.empty(10), tag=6)
        assert not work.is_completed()
        dist.send(torch.zeros(1), RIGHT, tag=1)
        work.wait()
        assert work._source_rank() == RIGHT
    else:
        dist.send(data(10), 0, tag=6)
        if RANK == 1:
            dist.recv(torch.zeros(1), 0, tag=1)
            dist.send(data(10), 0, tag=6)
    dist.barrier()


def around():
    """All send to the right, more than is given away unasked, before anybody waits for what comes from the left."""
    for count in (5, BIG):
        found = torch.empty(count, dtype=torch.uint8)
        coming = dist.irecv(found, LEFT, tag=1)
        dist.isend(data(count, torch.uint8), RIGHT, tag=1).wait()  # which goes on only if the peer's receive does
        coming.wait()
        same([found], [data(count, torch.uint8, of=LEFT)], "around")
        found.zero_()
        works = dist.batch_isend_irecv([dist.P2POp(dist.isend, data(count, torch.uint8), RIGHT),
                                        dist.P2POp(dist.irecv, found, LEFT)])
        for work in works:
            work.wait()
        same([found], [data(count, torch.uint8, of=LEFT)], "in a batch")
        coming = dist.irecv(found, LEFT, tag=2)
        sending = dist.isend(data(count, torch.uint8), RIGHT, tag=2)
        dist.all_reduce(torch.ones(3))  # behind which both lie
        coming.wait()
        sending.wait()
    column = torch.zeros(10, 2)[:, 0]  # not in a row
    coming = dist.irecv(column, LEFT)
    dist.send(data(20)[::2], RIGHT)
    coming.wait()
    same([column], [data(20, of=LEFT)[::2]], "a column")


def by_thread():
    """Receives of another thread than the one that works."""
    found = [torch.empty(100) for _ in range(10)]

    def receive():
        for i, one in enumerate(found):
            dist.recv(one, LEFT, tag=100 + i)
    thread = threading.Thread(target=receive)
    thread.start()
    other = torch.empty(5)
    coming = dist.irecv(other, LEFT, tag=200)
    for i in reversed(range(10)):
        dist.send(data(100, of=RANK + i), RIGHT, tag=100 + i)
    dist.send(data(5), RIGHT, tag=200)
    coming.wait()
    thread.join(30)
    assert not thread.is_alive()
    same(found, [data(100, of=LEFT + i) for i in range(10)], "of a thread")
    same([other], [data(5, of=LEFT)], "of the main thread")
    dist.barrier()


def futures():
    tensor = data(1000)
    seen = []
    work = dist.all_reduce(tensor, async_op=True)
    doubled = work.get_future().then(lambda future: seen.append(1) or future.value()[0] * 2)
    found = doubled.wait()
    assert seen == [1] and work.is_completed() and work.is_success() and work.exception() is None
    assert torch.equal(found, tensor * 2) and work.result()[0] is tensor and work.wait()
    assert torch.equal(work.get_future().wait()[0], tensor)
    coming = dist.irecv(torch.empty(5), LEFT, tag=3).get_future()  # a thread meets it with its message
    dist.send(data(5), RIGHT, tag=3)
    same(coming.wait(), [data(5, of=LEFT)], "a receive's future")
    opened = dist.group.WORLD.connection.timeout_ms
    dist.group.WORLD.set_timeout(timedelta(seconds=0.3))
    never = dist.irecv(torch.empty(5), LEFT, tag=99).get_future()  # whose limit passes while the thread sleeps
    dist.group.WORLD.set_timeout(timedelta(milliseconds=opened))
    try:
        never.wait()
        raise AssertionError("it came")
    except RuntimeError as problem:
        assert "no message of tag 99" in str(problem), problem
    works = [dist.all_reduce(torch.full((10,), float(i)), async_op=True) for i in range(50)]
    for i, work in reversed(list(enumerate(works))):
        work.wait()
        assert work.result()[0][0].item() == i * SIZE
    kept = [torch.full((10,), 1.0) for _ in range(100)]
    for tensor in kept:
        dist.all_reduce(tensor, async_op=True)  # whose work nobody has
    dist.barrier()
    dist.all_reduce(torch.ones(1))
    assert all(tensor[0].item() == SIZE for tensor in kept)
    if RANK == 0:
        late = dist.all_reduce(torch.ones(1), async_op=True)
        start = time.monotonic()
        try:
            late.wait(timedelta(seconds=0.2))
            raise AssertionError("it ended")
        except RuntimeError as problem:
            assert "has not ended within 0.2 s" in str(problem) and time.monotonic() - start < 5, problem
        dist.send(torch.ones(1), 1, tag=1)
        late.wait()
    else:
        if RANK == 1:
            dist.recv(torch.ones(1), 0, tag=1)
            for other in range(2, SIZE):
                dist.send(torch.ones(1), other, tag=2)
        else:
            dist.recv(torch.ones(1), 1, tag=2)
        dist.all_reduce(torch.ones(1))


def groups():
    """Groups of some ranks, that others need not hear of, which pass on what those send each other."""
    ends = dist.new_group([0, SIZE - 1])
    tail = dist.new_group(list(range(1, SIZE)), timeout=timedelta(seconds=20))
    twin = dist.new_group()
    if RANK in (0, SIZE - 1):
        tensor = data(1000)
        dist.all_reduce(tensor, group=ends)
        same([tensor], [data(1000, of=0) + data(1000, of=SIZE - 1)], "of both ends")
    if RANK > 0:
        out = [torch.empty(3) for _ in range(SIZE - 1)]
        dist.all_gather(out, data(3), group=tail)
        same(out, [data(3, of=r) for r in range(1, SIZE)], "of the tail")
        tensor = data(4) if RANK == 1 else torch.empty(4)
        dist.broadcast(tensor, 1, group=tail)
        same([tensor], [data(4, of=1)], "from the tail's first")
        if RANK == 1 and SIZE > 2:
            dist.send(data(3), SIZE - 1, group=tail)
        elif RANK == SIZE - 1 and SIZE > 2:
            found = torch.empty(3)
            dist.recv(found, 1, group=tail)
            same([found], [data(3, of=1)], "within the tail")
    one, other = data(10), data(10)
    works = [dist.all_reduce(one, async_op=True), dist.all_reduce(other, group=twin, async_op=True)]
    for work in reversed(works):
        work.wait()
    same([one], [other], "two groups of all")
    members = [dist.new_group([r]) for r in range(SIZE)]
    dist.all_reduce(one, group=members[RANK])
    for group in [ends, tail, twin, *members]:
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(group)
    gone = weakref.ref(twin)
    del ends, tail, twin, members, group, work, works
    gc.collect()
    assert gone() is None or gone().connection.pointer is None
    dist.barrier()


def monitored():
    dist.group.WORLD.monitored_barrier(timedelta(seconds=20))
    if RANK == SIZE - 1:
        dist.recv(torch.zeros(1), 0, tag=5)
        return
    start = time.monotonic()
    try:
        dist.group.WORLD.monitored_barrier(timedelta(seconds=1), wait_all_ranks=True)
        raise AssertionError("all came")
    except RuntimeError as problem:
        assert f"rank {SIZE - 1} did not come within 1 s" in str(problem), problem
        assert time.monotonic() - start < 10
    if RANK == 0:
        dist.send(torch.zeros(1), SIZE - 1, tag=5)
