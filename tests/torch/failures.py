"""Cases of torch_rank.py: what goes wrong."""

import gc
import os
import signal
import sys
import threading
import time
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist

from ranks import LEFT, RANK, RIGHT, SIZE, STORE, begin, data, refused, same

WRONG = (TypeError, ValueError)


def bad_input():
    """Of rank 0: all ranks raise, nobody hangs, and the group goes on."""
    bad, group = RANK == 0, dist.group.WORLD
    c10d = torch._C._distributed_c10d
    ones = torch.ones(4)

    def reducing(op):
        opts = c10d.AllreduceOptions()
        opts.reduceOp = op
        return opts
    refused(lambda: group.allreduce([ones, ones] if bad else [ones]).wait(), WRONG, "2 tensors")
    refused(lambda: group.allreduce([torch.ones(4).to_sparse() if bad else ones]).wait(), WRONG, "to_dense")
    odd = torch.quantize_per_tensor(ones, 0.1, 0, torch.qint8)
    refused(lambda: group.allreduce([odd if bad else ones]).wait(), WRONG, "qint8")
    bits = dist.ReduceOp.BAND if bad else dist.ReduceOp.SUM
    refused(lambda: group.allreduce([ones], reducing(bits)).wait(), WRONG, "for integers")
    refused(lambda: dist.all_reduce(torch.ones(5 if bad else 4)), RuntimeError, "called all_reduce of")
    refused(lambda: dist.all_reduce(torch.ones(4, dtype=torch.float64) if bad else ones), RuntimeError, "float64")
    refused(lambda: dist.all_reduce(ones, dist.ReduceOp.MAX if bad else dist.ReduceOp.SUM), RuntimeError, "max")
    refused(lambda: dist.barrier() if bad else dist.all_reduce(ones), RuntimeError, "barrier")
    refused(lambda: group.allgather([[ones] * (SIZE - 1 if bad else SIZE)], [ones]).wait(), WRONG, f"{SIZE - 1} tensors")
    refused(lambda: dist.all_gather_into_tensor(torch.empty(4 * SIZE + bad), ones), WRONG, f"{4 * SIZE + 1} elements")
    sums = c10d.ReduceScatterOptions()
    refused(lambda: group._reduce_scatter_base(torch.empty(4), torch.ones(4 * SIZE + bad), sums).wait(), WRONG,
            f"{4 * SIZE + 1} elements")
    splits = [SIZE + 5] + [0] * (SIZE - 1) if bad else None
    refused(lambda: dist.all_to_all_single(torch.empty(SIZE), torch.ones(SIZE), None, splits), WRONG, "splits")
    refused(lambda: dist.all_to_all_single(torch.empty(SIZE), torch.ones(SIZE + 1 if bad else SIZE)), WRONG, "equal parts")
    three = [torch.ones(2), torch.ones(3), torch.ones(4).to_sparse() if bad else ones]
    refused(lambda: group.allreduce_coalesced(three, c10d.AllreduceCoalescedOptions()).wait(), WRONG, "to_dense")
    opts = c10d.BroadcastOptions()
    opts.rootRank = SIZE + 3 if bad else 0
    refused(lambda: group.broadcast([ones], opts).wait(), RuntimeError, str(SIZE + 3))
    premul = c10d._make_nccl_premul_sum(2.0) if hasattr(c10d, "_make_nccl_premul_sum") else None
    if premul is not None:
        refused(lambda: group.allreduce([ones], reducing(premul if bad else dist.ReduceOp.SUM)).wait(), WRONG, "PREMUL_SUM")
    meta = torch.empty(4, device="meta")
    refused(lambda: group.allreduce([meta if bad else ones]).wait(), (NotImplementedError, RuntimeError, *WRONG), "meta")
    for call in (lambda: group.send([ones], SIZE, 0), lambda: group.recv([ones], -1, 0)):
        try:
            call()
            raise AssertionError("there is no such rank")
        except ValueError as problem:
            assert f"has {SIZE}" in str(problem), problem
    # A message of another size than is asked for: its receiver raises; its sender, too, unless it has sent it all by then.
    for tag, count in ((0, 1 << 18), (1, 4)):
        try:
            if RANK == 0:
                dist.send(torch.ones(count), 1, tag=tag)
            elif RANK == 1:
                dist.recv(torch.ones(5), 0, tag=tag)
                raise AssertionError("the sizes differ")
        except RuntimeError as problem:
            assert RANK == 0 or f"has {count} float32, and 5 float32" in str(problem), problem
    dist.all_reduce(ones)


def late():
    """A rank that does not come: the limit of the process group, or of the call."""
    group = dist.new_group(timeout=timedelta(seconds=1))
    start = time.monotonic()
    try:
        if RANK == 0:
            dist.all_reduce(torch.ones(1), group=group)
        else:
            dist.recv(torch.ones(1), 0, tag=3, group=group)
        raise AssertionError("nobody came")
    except RuntimeError as problem:
        assert problem.errno != 0 and "rank" in str(problem), problem
        assert 0.9 < time.monotonic() - start < 8, time.monotonic() - start
    dist.barrier()
    lone, opts = dist.new_group(), torch._C._distributed_c10d.AllreduceOptions()
    opts.timeout = timedelta(milliseconds=300)
    if RANK == 0:
        start = time.monotonic()
        try:
            lone.allreduce([torch.ones(1)], opts).wait()
            raise AssertionError("nobody came")
        except RuntimeError:
            assert time.monotonic() - start < 5
    dist.barrier()


def interrupted():
    """Ctrl-C while it waits for a message, or for ranks, that never come."""
    for call in (lambda: dist.recv(torch.ones(1), LEFT, tag=1), lambda: dist.all_reduce(torch.ones(1))):
        if RANK == 0:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            start = time.monotonic()
            try:
                call()
                raise AssertionError("it came")
            except KeyboardInterrupt:
                assert time.monotonic() - start < 3
    try:
        if RANK == 0:
            for other in range(1, SIZE):
                dist.send(torch.ones(1), other, tag=2)
        else:
            dist.recv(torch.ones(1), 0, tag=2)
            dist.all_reduce(torch.ones(1))
            raise AssertionError("rank 0 has given it up")
    except RuntimeError as problem:
        assert "cancel" in str(problem).lower(), problem
    dist.barrier()


def aborted():
    """One rank ends every call of all, those under way and later ones."""
    if RANK == 0:
        dist.recv(torch.ones(1), 1)
        dist.group.WORLD.abort()
    elif RANK == 1:
        dist.send(torch.ones(1), 0)
    for _ in range(2):
        start = time.monotonic()
        try:
            dist.all_reduce(torch.ones(1)) if RANK != 0 else dist.barrier()
            raise AssertionError("it was aborted")
        except RuntimeError as problem:
            assert "abort" in str(problem), problem
            assert time.monotonic() - start < 3


def killed():
    """The last rank dies; the others hear of it within a second or two, whatever they wait for."""
    dist.barrier()
    if RANK == SIZE - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    coming = dist.irecv(torch.ones(1), SIZE - 1, tag=4)
    future = dist.irecv(torch.ones(1), SIZE - 1, tag=5).get_future()
    start = time.monotonic()
    for call in (lambda: [dist.all_reduce(torch.ones(1)) for _ in range(100000)], coming.wait, future.wait):
        try:
            call()
            raise AssertionError("nobody died")
        except RuntimeError as problem:
            assert f"rank {SIZE - 1}" in str(problem), problem
            assert time.monotonic() - start < 5


def stopped():
    """The last rank stands still: the others are told so. (RINGBOLT_FROZEN_MS is 1000.)"""
    pids = [None] * SIZE
    dist.all_gather_object(pids, os.getpid())
    if RANK == SIZE - 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    start = time.monotonic()
    try:
        for _ in range(100000):
            dist.all_reduce(torch.ones(1))
        raise AssertionError("nobody stood still")
    except RuntimeError as problem:
        assert RANK == SIZE - 1 or f"rank {SIZE - 1}" in str(problem), problem
        assert time.monotonic() - start < 10
    if RANK == 0:
        os.kill(pids[-1], signal.SIGCONT)


def forked():
    """A child that ends in good order takes no process group of its parent's along."""
    child = os.fork()
    if child == 0:
        gc.collect()
        sys.exit()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    dist.barrier()


def misused():
    """After the end, and a rank that never comes at all."""
    group = dist.group.WORLD
    dist.destroy_process_group()
    group.shutdown()
    for call in (lambda: group.allreduce([torch.ones(1)]), group.barrier, lambda: group.send([torch.ones(1)], 0, 0),
                 lambda: group.recv([torch.ones(1)], 0, 0)):
        try:
            call()
            raise AssertionError("it was destroyed")
        except RuntimeError as problem:
            assert "destroyed" in str(problem)
    start = time.monotonic()
    try:
        dist.init_process_group("ringbolt", init_method=f"file://{STORE}.alone{RANK}", rank=0, world_size=2,
                                timeout=timedelta(seconds=1))
        raise AssertionError("nobody came")
    except RuntimeError as problem:
        assert "rank 1 of 2 has not come" in str(problem) and time.monotonic() - start < 8, problem
    begin(f"{STORE}.next")


def held():
    """What this process has of the system: descriptors, threads, kilobytes."""
    with open("/proc/self/status", encoding="ascii") as status:
        words = dict(line.split(":", 1) for line in status)
    return len(os.listdir("/proc/self/fd")), int(words["Threads"]), int(words["VmRSS"].split()[0])


def lives(n_lives=20):
    """So many process groups one after the other, with futures and messages: nothing is left of them."""
    warnings.simplefilter("ignore")
    dist.destroy_process_group()
    before = None
    for life in range(n_lives):
        begin(f"{STORE}.{life}")
        tensor = data(1000)
        dist.all_reduce(tensor, async_op=True).get_future().wait()
        coming = dist.irecv(tensor, LEFT, tag=1)
        dist.send(data(1000), RIGHT, tag=1)
        coming.wait()
        same([tensor], [data(1000, of=LEFT)], "of this life")
        dist.irecv(torch.ones(1), LEFT, tag=2)  # which never comes
        half = dist.new_group(list(range(SIZE // 2 + 1)))
        dist.barrier()
        del half, coming
        dist.destroy_process_group()
        gc.collect()
        if life == n_lives // 5:
            before = held()
    after = held()
    assert after[:2] == before[:2], f"descriptors and threads: {before} and {after}"
    grown = (after[2] - before[2]) / (n_lives - n_lives // 5)
    assert grown < 8 or n_lives < 200, f"{grown:.1f} KiB more for each process group: {before} and {after}"
    begin(f"{STORE}.last")


def many_lives():
    lives(1000)
