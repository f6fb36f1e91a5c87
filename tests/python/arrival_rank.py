"""Cases of ranks that die or stop while they join: the others are told who it was, and where it was.

    arrival_rank.py FOLDER SCALE [mlx]"""

import errno
import os
import re
import signal
import sys
import time

import ringbolt
from arrival import LATE, SOON, die, die_when_met, is_in_time, play, with_others

FOLDER, RANK, SIZE = sys.argv[1], int(os.environ["RINGBOLT_NODE"]), int(os.environ["RINGBOLT_NODES"])
LAST = SIZE - 1
if sys.argv[3:] == ["mlx"]:
    from ringbolt.mlx import init as join
else:
    from ringbolt import join


def case(name, victim, prepare, limit_s, words, codes):
    """prepare(): what the victim does before it joins."""
    def body():
        if RANK == victim:
            prepare()
        start = time.monotonic()
        try:
            join(join_timeout=limit_s)
        except ringbolt.JoinError as problem:
            took_s = time.monotonic() - start
            assert re.search(words, str(problem)), f"{name}: no {words!r} in: {problem}"
            assert problem.errno in codes, f"{name}: {problem}"
            assert is_in_time(limit_s, took_s), f"{name}: {took_s:.1f} s"
            return
        raise AssertionError(f"{name}: rank {RANK} has joined")
    play(FOLDER, RANK, SIZE, name, victim, body)


ENDED, PASSED = [errno.ECONNRESET], [errno.ETIMEDOUT, errno.ECONNABORTED]
case("never", LAST, lambda: die(signal.SIGKILL), SOON,
     rf"(not come:|waits for) rank {with_others(LAST)} \(not started, ended", PASSED)
case("killed", LAST, lambda: die_when_met(FOLDER, signal.SIGKILL), LATE,
     rf"rank {LAST} was lost( in \S+ \d+)?:.*it was at 127\.0\.0\.1:", ENDED)
case("stopped", LAST, lambda: die_when_met(FOLDER, signal.SIGSTOP), SOON,
     rf"waits for rank {with_others(LAST)} \(stopped, in a debugger", PASSED)
# Rank 0, by which all others talk.
case("none", 0, lambda: die(signal.SIGKILL), SOON, r"rank 0 does not answer; the last try: .*Connection refused", PASSED)
case("root_killed", 0, lambda: die_when_met(FOLDER, signal.SIGKILL), LATE,
     r"rank 0 was lost( in \S+ \d+)?:.*it was at 127\.0\.0\.1:", ENDED)
case("root_stopped", 0, lambda: die_when_met(FOLDER, signal.SIGSTOP), SOON, r"waits for rank 0", PASSED)
print("ok", flush=True)
