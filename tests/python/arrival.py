"""Ranks that die or stop while they meet. Each case runs in a child of each rank's process, so that the interpreter, and what it
has loaded, starts once for all cases. Programs that use this are called with a folder that all share, and SCALE."""

import os
import pathlib
import signal
import sys
import threading
import time
import traceback

SCALE = int(sys.argv[2])  # of each limit: a sanitizer makes programs so many times slower
SOON, LATE = 1.5 * SCALE, 60.0 * SCALE  # limits of joining in seconds: one that passes, and one that nobody waits for
_PATIENCE_S = 60 * SCALE


def is_in_time(limit_s, took_s):
    """Whether that is short for a case whose limit passes, or that does not wait for it."""
    return took_s < (LATE / 2 if limit_s == LATE else SOON + 10 * SCALE)


def with_others(rank):
    """A pattern of a list of ranks that `rank` is in: of those that wait, some may be late, too."""
    return rf"(?:\d+, )*{rank}(?:, \d+)*"


def die(with_signal):
    os.kill(os.getpid(), with_signal)


def die_when_met(folder, with_signal):
    """When the side channel to the others is made, and the cables are not: bring-up loads the verbs library then. Here that is a
    pipe, which nobody opens but this rank, so that it goes no further."""
    path = f"{folder}/verbs.{os.getpid()}"
    os.mkfifo(path)
    os.environ["RINGBOLT_VERBS"] = path

    def look():
        with open(path, "wb"):  # comes back when the loader has opened it, and then waits for bytes
            die(with_signal)
    threading.Thread(target=look, daemon=True).start()


def _wait_for_all(folder, what, rank, size):
    """Until each rank's process is here."""
    (folder / f"{what}.{rank}").touch()
    until = time.monotonic() + _PATIENCE_S
    while not all((folder / f"{what}.{other}").exists() for other in range(size)):
        assert time.monotonic() < until, f"rank {rank}: not all ranks' processes are at {what}"
        time.sleep(0.005)


def play(folder, rank, size, name, victim, body):
    """body(): what each rank does. The victim's child is killed or stopped in it, and stays so until the others are done; theirs
    must come to the end. `folder`: an empty one that all share."""
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    _wait_for_all(folder, f"{name}.begin", rank, size)
    child = os.fork()
    if child == 0:
        try:
            body()
            os._exit(0)
        except BaseException:  # whatever it is, it is the case's end
            traceback.print_exc()
            os._exit(1)
    status = 0
    try:
        status = _status_of(child, name)
        if rank == victim:
            assert os.WIFSIGNALED(status) or os.WIFSTOPPED(status), f"{name}: the victim came to its end"
        else:
            assert status == 0, f"{name}: rank {rank} ended with {status}"
        _wait_for_all(folder, f"{name}.end", rank, size)
    finally:
        if os.WIFSTOPPED(status):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _status_of(child, name):
    """Of waitpid(2), once it has ended or is stopped. It is killed when patience ends."""
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WUNTRACED | os.WNOHANG)
        if pid != 0:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError(f"{name}: no end within {_PATIENCE_S} s")
