"""What one process group has of the library: its group of ranks, the calls under way, and the thread that looks after those that
nobody waits for."""

from __future__ import annotations

import atexit
import collections
import ctypes
import errno
import os
import select
import sys
import threading
import weakref

from .._group_library import Call, Operation, library
from ..group import Group
from .errors import failed_now, failure
from .messages import Mailbox
from .work import Work

_NONE = 0x7FFFFFFF
_SLICE_S = 0.2  # a group of one rank tells nobody of deadlines
_FEW, _MANY = 16, 4096  # works
_open: "weakref.WeakSet[Connection]" = weakref.WeakSet()


class Connection:
    """Thread-safe."""

    def __init__(self, group: Group, timeout_ms: int):
        self.group, self.timeout_ms = group, timeout_ms
        self.pointer = group._alive()
        self.rank, self.size = group.rank, group.size
        self.works: set[Work] = set()  # keeps what was begun alive until it has ended, whether anybody has kept it or not
        self.most = _FEW
        self._swept: collections.deque[Work] = collections.deque(maxlen=_MANY)
        self._process = os.getpid()
        self.mailbox = Mailbox(self)
        self._watcher: Watcher | None = None
        self._making = threading.Lock()
        _open.add(self)

    def alive(self) -> int:
        if self.pointer is None:
            raise failure(errno.EBADF, "this process group was destroyed")
        return self.pointer

    def begin(self, function, arguments: tuple, result: list) -> Work:
        """One call, on tensors that lie as they should."""
        request = ctypes.c_void_p()
        code = function(self.pointer, *arguments, self.timeout_ms, ctypes.byref(request))
        if code != 0:
            self.alive()
            raise failed_now(code)
        return Work(self, [request.value], result, None)

    def sweep(self) -> None:
        """Finishes works that nobody waits for. Those that nobody in Python has may yet be waited for by C++, which in torch 1
        reaches what is Python's of them only as long as that is there."""
        works = list(self.works)
        while works:
            one = works.pop()
            if one.is_completed() and sys.getrefcount(one) == 2:  # this variable, and what is being asked
                one.let_go()
                self._swept.append(one)
        self.most = max(_FEW, 2 * len(self.works))

    def watch(self, work) -> None:
        """Sees to it that it finishes as soon as it has ended."""
        with self._making:
            if self._watcher is None:
                fd = ctypes.c_int()
                library().check(library().progress_fd(self.alive(), ctypes.byref(fd)), OSError)
                self._watcher = Watcher(fd.value)
            self._watcher.add(work)
        work.is_completed()  # it may have ended before the thread has begun to look

    def refuse(self, operation: Operation, n_calls: int) -> None:
        """This rank's arguments make no sense: the library refuses a type that there is none of, and tells the others, who
        would wait for this rank."""
        for _ in range(n_calls):
            call = Call(struct_size=ctypes.sizeof(Call), operation=operation, type=_NONE)
            request = ctypes.c_void_p()
            if self.pointer is not None and library().start(self.pointer, call, ctypes.byref(request)) == 0:
                library().wait(request)

    def abort(self, reason: str) -> None:
        if self.pointer is not None:
            library().abort(self.pointer, reason.encode())

    def close(self) -> None:
        """Gives the group back. Calls under way fail. May be called twice."""
        if self.pointer is None:
            return
        if os.getpid() != self._process:  # a child of fork(): the group is its parent's
            self.pointer = self.group._pointer = None
            return
        if self._watcher is not None:
            self._watcher.stop()
        self.pointer = None
        self.mailbox.close()
        for work in list(self.works):
            work.cancel()
            work._end(None)
        self.group.leave()


class Watcher:
    """A thread that sleeps on the group's descriptor, and finishes what has ended. Knows no group: it holds what it watches
    alone, so that a group that nobody has any more goes."""

    def __init__(self, fd: int):
        self._fd, self._works = fd, []
        self._told, self._tell = os.pipe()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="ringbolt.torch", daemon=True)
        self._thread.start()

    def add(self, work) -> None:
        with self._lock:
            self._works.append(work)
        os.write(self._tell, b"+")  # it may sleep with no limit

    def stop(self) -> None:
        os.write(self._tell, b".")
        if threading.current_thread() is not self._thread:
            self._thread.join()
        os.close(self._tell)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        poll.register(self._told, select.POLLIN)
        while True:
            ready = dict(poll.poll(_SLICE_S * 1000 if self._works else None))
            if self._told in ready and b"." in os.read(self._told, 64):
                os.close(self._told)
                return
            if self._fd in ready:
                try:
                    os.read(self._fd, 8)
                except BlockingIOError:
                    pass  # a thread that waits for a message has taken it
            with self._lock:
                works = list(self._works)
            over = {work for work in works if work.is_completed()}
            with self._lock:
                self._works = [work for work in self._works if work not in over]
            del works, over


@atexit.register
def _close_all() -> None:
    """Others learn that this process has gone in good order, and no thread looks at what is no more."""
    for connection in list(_open):
        connection.close()
