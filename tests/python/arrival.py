"""Ranks that die or stop while they meet. Each case runs in a child of each rank's process, so that the interpreter, and what it
has loaded, starts once for all cases."""

import os
import pathlib
import signal
import threading
import time
import traceback

_PATIENCE_S = 60


def die(with_signal):
    os.kill(os.getpid(), with_signal)


def die_when_met(with_signal):
    """As soon as the side channel to the others is made, of which the descriptor of epoll(7) tells; the cables are not yet."""
    def look():
        while True:
            for fd in os.listdir("/proc/self/fd"):
                try:
                    if os.readlink(f"/proc/self/fd/{fd}") == "anon_inode:[eventpoll]":
                        die(with_signal)
                except OSError:
                    pass  # closed meanwhile
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
    try:
        status = os.waitpid(child, os.WUNTRACED)[1]
        if rank == victim:
            assert os.WIFSIGNALED(status) or os.WIFSTOPPED(status), f"{name}: the victim came to its end"
        else:
            assert status == 0, f"{name}: rank {rank} ended with {status}"
        _wait_for_all(folder, f"{name}.end", rank, size)
    finally:
        if rank == victim and os.WIFSTOPPED(status):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
