"""Cases of ranks that die or stop in init_process_group: the others are told who it was, and where.

    arrivals.py FOLDER"""

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
from arrival import die, die_when_met, play

FOLDER, RANK, SIZE = sys.argv[1], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LAST = SIZE - 1
SOON, LATE = 1.5, 60.0  # limits in seconds: one that passes, and one that nobody waits for
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
        assert took_s < (LATE / 2 if limit_s == LATE else 10), f"{name}: {took_s:.1f} s"
        return
    raise AssertionError(f"{name}: rank {RANK} has joined")


def file_store(name):
    """Which outlives any rank."""
    return dist.FileStore(f"{FOLDER}/{name}.store", SIZE)


def store_of_rank_0(port):
    """Which all have reached when this returns: before that PyTorch's own words tell what is wrong."""
    store = dist.TCPStore("127.0.0.1", port, SIZE, RANK == 0, timedelta(seconds=3))
    if RANK != 0:
        store.set(f"here/{RANK}", "")
    else:
        store.wait([f"here/{rank}" for rank in range(1, SIZE)])
    return store


def case(name, victim, prepare, limit_s, words, codes, with_signal=signal.SIGKILL, port=None):
    """prepare(): what the victim does before it calls init_process_group."""
    def body():
        global SIGNAL
        SIGNAL = with_signal
        store = file_store(name) if port is None else store_of_rank_0(port)
        if RANK == victim:
            prepare()
        survive(name, store, limit_s, words, codes)
    play(FOLDER, RANK, SIZE, name, victim, body)


def patch(name, function):
    return lambda: setattr(store_exchange.StoreExchange, name, function)


def free_port():
    """Told by rank 0 to the others in a file. Nobody else takes it meanwhile, as far as the kernel gives ports out in turn."""
    path = os.path.join(FOLDER, "port")
    if RANK == 0:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(str(port))
        os.rename(path + ".new", path)
    play(FOLDER, RANK, SIZE, f"port{free_port.n}", None, lambda: None)
    free_port.n += 1
    with open(path, encoding="ascii") as file:
        return int(file.read())


free_port.n = 0

# The last rank, with a store that outlives it.
case("before", LAST, lambda: die(signal.SIGKILL), SOON,
     [f"rank {LAST} of {SIZE} has not come within 1.5 s; rank {LAST} has never reached the store"], [errno.ETIMEDOUT])
case("begun", LAST, patch("__init__", begun), SOON,
     [f"rank {LAST} of {SIZE} has not come", f"{WHO}, has begun to join and told nothing since"], [errno.ETIMEDOUT])
case("told", LAST, patch("__call__", told), SOON, [f"rank {LAST}", WHO], [errno.ETIMEDOUT, errno.ECONNABORTED])
case("met", LAST, lambda: die_when_met(signal.SIGKILL), LATE,
     [f"rank {LAST} was lost in all_gather", "it was at 127.0.0.1:", WHO], [errno.ECONNRESET])
case("met_stopped", LAST, lambda: die_when_met(signal.SIGSTOP), SOON,
     [f"it waits for rank {LAST} .stopped", WHO], [errno.ETIMEDOUT, errno.ECONNABORTED], signal.SIGSTOP)
# Rank 0, which keeps the store.
case("store_gone", 0, patch("__call__", told), LATE, ["rank 0 (keeps it|has ended)"], [errno.ECONNRESET, errno.ECONNREFUSED],
     port=free_port())
case("store_stopped", 0, patch("__call__", told), SOON, ["rank 0 (keeps it|does not answer|of 3 has not come)"],
     [errno.ETIMEDOUT], signal.SIGSTOP, port=free_port())
print("ok", flush=True)
