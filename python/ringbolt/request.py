"""Calls that are under way, and how coroutines wait for them."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from ._group_library import GroupError, library

_SLICE_MS = 200  # between looks at Python's signals
_SLICE_S = _SLICE_MS / 1000


class Request:
    """A call under way. Its arrays stay as they are until it is done. One thread at a time. In asyncio: `await request`."""

    def __init__(self, group: Any, pointer: int | None, kept: tuple, result: Any):
        self._group, self._kept, self._result = group, kept, result
        self._pointer: int | None = pointer
        self._failure: GroupError | None = None

    def done(self) -> bool:
        """Whether it has ended. Does not wait."""
        return self._pointer is None or library().test(self._pointer) == 1

    def wait(self) -> Any:
        """Waits until it has ended, at the latest at its limit of time. The array with the result. Raises GroupError."""
        try:
            while self._pointer is not None and library().wait_for(self._pointer, _SLICE_MS) == 0:
                pass  # here Python handles signals
        except BaseException:  # Ctrl-C: nobody will wait for it any more
            self.cancel()
            raise
        return self._finish()

    def cancel(self) -> None:
        """Gives it up, on all ranks: those that are not done raise GroupError with ECANCELED."""
        if self._pointer is not None:
            library().cancel(self._pointer)

    def _finish(self) -> Any:
        if self._pointer is not None:
            pointer, self._pointer = self._pointer, None
            code = library().wait(pointer)
            if code != 0:
                self._failure = GroupError(code, library().text_of(code))
            self._kept = ()
        if self._failure is not None:
            raise self._failure
        return self._result

    def __await__(self):
        if not self.done():
            yield from self._group.progress().ended(self).__await__()
        return self._finish()

    def __del__(self):
        if getattr(self, "_pointer", None) is not None:
            library().cancel(self._pointer)
            library().wait(self._pointer)


class Progress:
    """Tells coroutines of one event loop which requests have ended, by the group's descriptor."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop):
        self._fd, self.loop = fd, loop
        self._waiting: dict[Request, asyncio.Future] = {}

    async def ended(self, request: Request) -> None:
        future = self.loop.create_future()
        if not self._waiting:
            self.loop.add_reader(self._fd, self._look)
        self._waiting[request] = future
        try:
            while not request.done():  # in a group of one rank no thread tells of deadlines
                await asyncio.wait([future], timeout=_SLICE_S)
        except asyncio.CancelledError:
            request.cancel()
            raise
        finally:
            del self._waiting[request]
            if not self._waiting:
                self.loop.remove_reader(self._fd)

    def _look(self):
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            pass  # the event loop of another thread has taken it; both look
        for request, future in self._waiting.items():
            if request.done() and not future.done():
                future.set_result(None)

    def close(self):
        if self._waiting and not self.loop.is_closed():
            self.loop.remove_reader(self._fd)
