"""Cases of ranks that die or stop in init_process_group: the others are told who it was, and where.

    arrivals.py FOLDER SCALE"""

import errno
import os
import signal
import socket
import sys
import time
from datetime import timedelta

import torch.distributed as dist

import ringbolt.torch  # noqa: F401  (registers the backend)
from ringbolt.torch import store_exchange
from arrival import LATE, SCALE, SOON, die, die_when_met, is_in_time, play, with_others

FOLDER, RANK, SIZE = sys.argv[1], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LAST = SIZE - 1
WHO = f"rank {LAST} is process [0-9]+ on {socket.gethostname()}"


def told(self, mine):
    """The victim's exchange: it dies once it has told."""
    self._store.set(f"{self._life}/1/{self._rank}", f"{mine.hex()} {self._who}")
    self._store.add(f"{self._life}/1/{self._rank}+", 1)
    die(SIGNAL)


def begun(self, *arguments):
    """The victim reaches the store, and tells nothing."""
    made(self, *arguments)
    die(SIGNAL)


made = store_exchange.StoreExchange.__init__
SIGNAL = signal.SIGKILL


def survive(name, store, limit_s, words, codes):
    """What the others hear."""
    start = time.monotonic()
    try:
        dist.init_process_group("ringbolt", store=store, rank=RANK, world_size=SIZE, timeout=timedelta(seconds=limit_s))
    except RuntimeError as problem:
        took_s, text = time.monotonic() - start, str(problem)
        for some in words:
            assert store_exchange.re.search(some, text), f"{name}: no {some!r} in: {text}"
        assert problem.errno in codes, f"{name}: errno {problem.errno}: {text}"
        assert is_in_time(limit_s, took_s), f"{name}: {took_s:.1f} s"
        return
    raise AssertionError(f"{name}: rank {RANK} has joined")


def file_store(name):
    """Which outlives any rank."""
    return dist.FileStore(f"{FOLDER}/{name}.store", SIZE)


def store_of_rank_0(name):
    """Which all have reached when this returns: before that PyTorch's own words tell what is wrong. At a free port, which rank 0
    tells the others in a file."""
    path, limit = f"{FOLDER}/{name}.port", timedelta(seconds=10 * SCALE)
    if RANK == 0:
        store = dist.TCPStore("127.0.0.1", 0, SIZE, True, limit, wait_for_workers=False)
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(str(store.port))
        os.rename(path + ".new", path)
        store.wait([f"here/{rank}" for rank in range(1, SIZE)])
        return store
    while not os.path.exists(path):  # play() has an end for it
        time.sleep(0.005)
    with open(path, encoding="ascii") as file:
        store = dist.TCPStore("127.0.0.1", int(file.read()), SIZE, False, limit, wait_for_workers=False)
    store.set(f"here/{RANK}", "")
    return store


def case(name, victim, prepare, limit_s, words, codes, with_signal=signal.SIGKILL, make_store=file_store):
    """prepare(): what the victim does before it calls init_process_group."""
    def body():
        global SIGNAL
        SIGNAL = with_signal
        store = make_store(name)
        if RANK == victim:
            prepare()
        survive(name, store, limit_s, words, codes)
    play(FOLDER, RANK, SIZE, name, victim, body)


def patch(name, function):
    return lambda: setattr(store_exchange.StoreExchange, name, function)


def come_late():
    """One of the ranks comes late, by more than a second; all join."""
    store = store_of_rank_0("late")
    if RANK == LAST:
        time.sleep(1.6)
    dist.init_process_group("ringbolt", store=store, rank=RANK, world_size=SIZE, timeout=timedelta(seconds=LATE))
    dist.barrier()
    dist.destroy_process_group()
    store.add("left", 1)
    while RANK == 0 and store.add("left", 0) < SIZE:  # it keeps the store
        time.sleep(0.005)


play(FOLDER, RANK, SIZE, "late", None, come_late)
MISSING = rf"ranks? {with_others(LAST)} of {SIZE} (has|have) not come"
# The last rank, with a store that outlives it.
case("before", LAST, lambda: die(signal.SIGKILL), SOON,
     [f"{MISSING} within {SOON:g} s", f"rank {LAST} has never reached the store"], [errno.ETIMEDOUT])
case("begun", LAST, patch("__init__", begun), SOON,
     [MISSING, f"{WHO}, has begun to join and told nothing since"], [errno.ETIMEDOUT])
case("told", LAST, patch("__call__", told), SOON, [f"rank {LAST}", WHO], [errno.ETIMEDOUT, errno.ECONNABORTED])
case("met", LAST, lambda: die_when_met(FOLDER, signal.SIGKILL), LATE,
     [rf"rank {LAST} was lost( in \S+ \d+)?:", "it was at 127.0.0.1:", WHO], [errno.ECONNRESET])
case("met_stopped", LAST, lambda: die_when_met(FOLDER, signal.SIGSTOP), SOON,
     [f"it waits for rank {with_others(LAST)} .stopped", WHO], [errno.ETIMEDOUT, errno.ECONNABORTED], signal.SIGSTOP)
# Rank 0, which keeps the store.
case("store_gone", 0, patch("__call__", told), LATE, ["rank 0 (keeps it|has ended)"], [errno.ECONNRESET, errno.ECONNREFUSED],
     make_store=store_of_rank_0)
case("store_stopped", 0, patch("__call__", told), SOON,
     ["rank 0 (keeps it|does not answer)|ranks? 0(, [0-9]+)* of 3 (has|have) not come"], [errno.ETIMEDOUT], signal.SIGSTOP,
     make_store=store_of_rank_0)
print("ok", flush=True)
