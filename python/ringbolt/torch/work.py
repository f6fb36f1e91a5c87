"""Calls under way, as torch.distributed knows them."""

from __future__ import annotations

import ctypes
import errno
import threading
import time
from datetime import timedelta
from typing import Any

import torch

from .._group_library import library
from .errors import DistributedError, failed_now, failure
from .staging import Staging

_SLICE_MS = 200  # between looks at Python's signals
_FOR_EVER = timedelta(0)  # c10d's: as long as the call itself may take
_futures = threading.Lock()


_Base = torch._C._distributed_c10d.Work


class Work(_Base):
    """One call, or several that are one. It ends by itself, at the latest at its limit of time; nobody has to wait for it.

    Thread-safe: whoever holds the lock looks after the requests, and finishes when all have ended."""

    def __init__(self, connection, requests: list[int], result: list[torch.Tensor], staging: Staging):
        _Base.__init__(self)
        self._connection, self._requests, self._result, self._staging = connection, requests, result, staging
        self._lock = threading.Lock()
        works = connection.works
        works.add(self)  # kept alive until it has ended, whether anybody keeps it or not
        if len(works) > connection.most:
            connection.sweep()

    _failure: BaseException | None = None
    _is_over = False
    _future: torch.futures.Future | None = None

    # What c10d asks for.

    def wait(self, timeout: timedelta = _FOR_EVER) -> bool:
        """Until it has ended. `timeout`: then this raises, and the call goes on."""
        if not self._is_over:
            self._end(None if timeout is _FOR_EVER else timeout.total_seconds())
        if self._failure is not None:
            raise self._failure
        if self._staging is not None:
            self._staging.order()
        return True

    def is_completed(self) -> bool:
        if not self._is_over and self._lock.acquire(blocking=False):
            try:
                if not self._is_over and self._has_ended():
                    self._finish()
            finally:
                self._lock.release()
        return self._is_over

    def is_success(self) -> bool:
        return self.is_completed() and self._failure is None

    def exception(self) -> BaseException | None:
        return self._failure

    def result(self) -> list[torch.Tensor]:
        return self._result

    def synchronize(self) -> None:
        self.wait()

    block_current_stream = synchronize

    def get_future(self) -> torch.futures.Future:
        """Of the list of results. A thread of the group completes it."""
        with _futures:
            is_new = self._future is None
            if is_new:
                self._future = torch.futures.Future()
            is_over = self._is_over
        if is_new and is_over:
            self._complete()
        elif is_new:
            self._connection.watch(self)
        return self._future

    def let_go(self) -> None:
        """Of its memory: it is over, and nobody asks for results any more."""
        self._result, self._staging = [], None

    def cancel(self) -> None:
        """Gives it up, on all ranks."""
        for request in self._requests:
            library().cancel(request)

    # How it ends. All of these are called with the lock held.

    def _end(self, seconds: float | None) -> None:
        until = None if not seconds or seconds < 0 else time.monotonic() + seconds
        if until is None:
            self._lock.acquire()
        elif not self._lock.acquire(timeout=seconds):
            raise failure(errno.ETIMEDOUT, f"the call has not ended within {seconds:g} s")
        try:
            while not self._is_over:
                if self._await(until):
                    self._finish()
                elif until is not None and time.monotonic() >= until:
                    raise failure(errno.ETIMEDOUT, f"the call has not ended within {seconds:g} s")
        finally:
            self._lock.release()

    def _await(self, until: float | None) -> bool:
        """Waits for a while: whether it has ended."""
        lib, mailbox = library(), self._connection.mailbox
        try:
            for request in self._requests:
                if until is None and mailbox.n_wanted == 0:
                    if lib.wait_for(request, _SLICE_MS) == 0:
                        return False  # here Python handles signals
                    continue
                slice_ms = _SLICE_MS if until is None else max(0, min(_SLICE_MS, int((until - time.monotonic()) * 1000)))
                if mailbox.n_wanted > 0:
                    slice_ms = min(slice_ms, mailbox.slice_ms())
                if lib.wait_for(request, slice_ms) == 0:
                    if mailbox.n_wanted > 0:
                        mailbox.advance()
                    return False
        except BaseException:  # Ctrl-C: nobody will wait for it any more
            self.cancel()
            raise
        return True

    def _has_ended(self) -> bool:
        if self._connection.mailbox.n_wanted > 0:
            self._connection.mailbox.advance()
        return all(library().test(request) == 1 for request in self._requests)

    def _finish(self) -> None:
        requests, self._requests = self._requests, []
        wait = library().wait
        for request in requests:
            code = wait(request)
            if code != 0 and self._failure is None:
                self._failure = failed_now(code)
        self._settle()

    def _settle(self) -> None:
        if self._failure is None and self._staging is not None:
            try:
                self._staging.finish()
            except Exception as problem:  # of torch, when results are copied back
                self._failure = problem
        with _futures:
            self._is_over = True
        self._connection.works.discard(self)
        if self._future is not None:
            self._complete()

    def _complete(self) -> None:
        if self._failure is not None:
            self._future.set_exception(self._failure)
        else:
            self._future.set_result(self._result)


def begin_all(connection, calls: list[tuple], timeout_ms: int, result: list[torch.Tensor], staging: Staging) -> Work:
    """Begins them in their order, as one: (function of the library, its arguments between the group and the limit of time)."""
    requests = []
    try:
        for function, arguments in calls:
            requests.append(begin(function, connection.pointer, arguments, timeout_ms))
    except DistributedError:
        if requests:
            Work(connection, requests, result, staging)  # those that have begun end by themselves
        raise
    return Work(connection, requests, result, staging)


def begin(function: Any, group: int, arguments: tuple, timeout_ms: int) -> int:
    """A request. Raises DistributedError."""
    request = ctypes.c_void_p()
    code = function(group, *arguments, timeout_ms, ctypes.byref(request))
    if code != 0:
        raise failed_now(code)
    return request.value
