"""Byte streams over RDMA as Valkey speaks them (docs/stream.md): libringbolt-stream.so for Python, by ctypes.

Times are in seconds; None: no limit. A call that waits may be interrupted by a signal of Python's (Ctrl-C) within 0.2 s.
What can't be done raises OSError with the errno and the words of the library, in the kinds that Python has for it:
TimeoutError when a time limit passed, BlockingIOError where a limit of 0 allowed no waiting, ConnectionRefusedError and so on.

Thread-safe: one thread may read while another writes, and close() may be called while others are in a call, which then
raise or see the end. Objects do not survive fork(): a child makes its own, and the parent's only fall away there.
"""

import ctypes
import errno
import math
import os
import threading
import time

from ._library import Library

READABLE, WRITABLE, ENDED, CONNECTED = 1, 2, 4, 8

_SLICE_S, _SLICE_MS = 0.2, 200
_CONNECT_S = 5.0  # as in the library


class _ServiceOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("verbs", ctypes.c_char_p), ("memory_budget_bytes", ctypes.c_uint64),
                ("service_interval_ms", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


class _StreamOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t),
                *((name, ctypes.c_uint32) for name in
                  ("receive_bytes", "receive_buffers", "max_send_bytes", "spin_us", "keepalive_ms", "connect_timeout_ms",
                   "flags", "reserved")),
                ("receive_memory", ctypes.c_void_p), ("receive_memory_bytes", ctypes.c_size_t)]


class _ListenerOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("stream", ctypes.POINTER(_StreamOptions)),
                ("allowed", ctypes.POINTER(ctypes.c_char_p)), ("max_streams", ctypes.c_uint32), ("backlog", ctypes.c_uint32)]


class _Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


_COUNTERS = ("bytes_sent", "bytes_received", "messages_sent", "messages_received", "announcements_sent",
             "announcements_received", "stalls", "stall_ns", "keepalives_sent", "keepalives_skipped", "keepalives_received",
             "receives_reposted", "bytes_arrived")


class _Statistics(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), *((name, ctypes.c_uint64) for name in _COUNTERS)]


_HANDLE, _SIZE, _MS = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64
_OUT, _BYTES = ctypes.c_void_p, ctypes.c_void_p
_SIGNATURES = {
    "version": (ctypes.c_uint32, []),
    "error": (ctypes.c_char_p, []),
    "reason_name": (ctypes.c_char_p, [ctypes.c_int]),
    "service_create": (ctypes.c_int, [ctypes.POINTER(_ServiceOptions), _OUT]),
    "service_destroy": (None, [_HANDLE]),
    "connect": (ctypes.c_int, [_HANDLE, ctypes.c_char_p, ctypes.c_uint16, ctypes.POINTER(_StreamOptions), _MS, _OUT]),
    "listen": (ctypes.c_int, [_HANDLE, ctypes.c_char_p, ctypes.c_uint16, ctypes.POINTER(_ListenerOptions), _OUT]),
    "listener_destroy": (None, [_HANDLE]),
    "listener_port": (ctypes.c_int, [_HANDLE, _OUT]),
    "listener_fd": (ctypes.c_int, [_HANDLE, _OUT]),
    "accept": (ctypes.c_int, [_HANDLE, _MS, _OUT]),
    "close": (ctypes.c_int, [_HANDLE, _MS]),
    "destroy": (None, [_HANDLE]),
    "read": (ctypes.c_int, [_HANDLE, _BYTES, _SIZE, _MS, _OUT]),
    "peek": (ctypes.c_int, [_HANDLE, _MS, _OUT]),
    "write": (ctypes.c_int, [_HANDLE, _BYTES, _SIZE, _MS, _OUT]),
    "fd": (ctypes.c_int, [_HANDLE, _OUT]),
    "want": (ctypes.c_int, [_HANDLE, ctypes.c_uint32]),
    "wait": (ctypes.c_int, [_HANDLE, ctypes.c_uint32, _MS, _OUT]),
    "ended": (ctypes.c_int, [_HANDLE, _OUT]),
    "words": (_SIZE, [_HANDLE, ctypes.c_char_p, _SIZE]),
    "device": (_SIZE, [_HANDLE, ctypes.c_char_p, _SIZE]),
    "peer": (_SIZE, [_HANDLE, ctypes.c_char_p, _SIZE]),
    "get_statistics": (ctypes.c_int, [_HANDLE, ctypes.POINTER(_Statistics)]),
}


_lock = threading.RLock()
_library = None
_default = None


def library():
    """Loads it once. OSError says where it was looked for."""
    global _library
    with _lock:
        _library = _library or Library("ringbolt-stream", "ringbolt_stream_", _SIGNATURES)
        return _library


def _until(timeout, attempt):
    """attempt(milliseconds) -> errno, called in slices between which Python handles signals. Raises what it says."""
    if timeout is None or timeout > _SLICE_S:
        code = attempt(_SLICE_MS)  # the usual way, without a look at the clock
        end = None if timeout is None else time.monotonic() + timeout - _SLICE_S
        while code == errno.ETIMEDOUT and (end is None or time.monotonic() < end):
            code = attempt(_SLICE_MS if end is None else max(1, min(_SLICE_MS, math.ceil((end - time.monotonic()) * 1000))))
    elif timeout < 0:
        raise ValueError(f"a time limit of {timeout} s")
    else:
        code = attempt(math.ceil(timeout * 1000))
    if code != 0:
        library().check(code)


class _Handle:
    """A handle of C, destroyed once it was closed and nobody is in a call with it any more."""

    def __init__(self, pointer, destroy):
        self._pointer, self._destroy = pointer, destroy
        self._lock, self._users, self._is_closed = threading.Lock(), 0, False
        self._pid = os.getpid()

    def __enter__(self):
        with self._lock:
            if self._is_closed:
                raise OSError(errno.EBADF, "it was closed")
            if self._pid != os.getpid():
                raise OSError(errno.EBADF, f"made by process {self._pid}, before fork(): make a new one in this process")
            self._users += 1
            return self._pointer

    def __exit__(self, *_):
        with self._lock:
            self._users -= 1
            is_last = self._is_closed and self._users == 0
        if is_last:
            self._destroy(self._pointer)

    def close(self):
        if self._pid != os.getpid():
            return  # its lock may be held by a thread that is not here, and the handle is the parent's
        with self._lock:
            is_last = not self._is_closed and self._users == 0
            self._is_closed = True
        if is_last:
            self._destroy(self._pointer)

    def __del__(self):
        self.close()


def _made(call, *arguments):
    made = ctypes.c_void_p()
    library().check(call(*arguments, ctypes.byref(made)))
    return made.value


def _options(receive_bytes, receive_buffers, spin_us, connect_s=0.0):
    return _StreamOptions(struct_size=ctypes.sizeof(_StreamOptions), receive_bytes=receive_bytes,
                          receive_buffers=receive_buffers, spin_us=spin_us, connect_timeout_ms=math.ceil(connect_s * 1000))


class Service:
    """What the streams of a process share: the verbs library, a memory budget, a thread for idle streams.

    verbs: "auto", "system", "soft" or a path; None: RINGBOLT_VERBS, else "auto". memory_budget_bytes: of the buffers of
    all streams; 0: 16 GiB. OSError: there is no RDMA here, and why."""

    def __init__(self, verbs=None, memory_budget_bytes=0):
        options = _ServiceOptions(struct_size=ctypes.sizeof(_ServiceOptions), verbs=verbs.encode() if verbs else None,
                                  memory_budget_bytes=memory_budget_bytes)
        self._handle = _Handle(_made(library().service_create, options), library().service_destroy)

    def connect(self, host, port, timeout=None, receive_bytes=0, receive_buffers=0, spin_us=0):
        """A Stream to `host`, an address or a name. None: within 5 s; 0 begins it alone: wait() for CONNECTED. The
        options are those of docs/stream.md, 0: their defaults. A signal is handled when it is connected or the time is over."""
        timeout = _CONNECT_S if timeout is None else timeout
        options = _options(receive_bytes, receive_buffers, spin_us, timeout)
        with self._handle as service:
            return Stream(_made(library().connect, service, host.encode(), port, options, math.ceil(timeout * 1000)))

    def listen(self, host="", port=0, receive_bytes=0, receive_buffers=0, spin_us=0):
        """A Listener; "": at all addresses; 0: a free port."""
        stream = _options(receive_bytes, receive_buffers, spin_us)
        options = _ListenerOptions(struct_size=ctypes.sizeof(_ListenerOptions), stream=ctypes.pointer(stream))
        with self._handle as service:
            return Listener(_made(library().listen, service, host.encode(), port, options))

    def close(self):
        """Its streams and listeners live on."""
        self._handle.close()


def default_service():
    """The service of this process, made when it is first asked for; a child of fork() has its own. Raises as Service."""
    global _default
    with _lock:
        _default = _default or Service()
        return _default


def _forget():
    """In a child of fork(): the lock may be held by a thread that is not here, and the service is the parent's."""
    global _lock, _default
    _lock, _default = threading.RLock(), None


os.register_at_fork(after_in_child=_forget)


def connect(host, port, timeout=None, **options):
    """A Stream of the default service; see Service.connect."""
    return default_service().connect(host, port, timeout, **options)


class Listener:
    """Takes streams. Made by Service.listen()."""

    def __init__(self, pointer):
        self._handle = _Handle(pointer, library().listener_destroy)
        port = ctypes.c_uint16()
        with self._handle as listener:
            library().check(library().listener_port(listener, ctypes.byref(port)))
        self.port = port.value

    def accept(self, timeout=None):
        """The next Stream. It may not be connected yet: its calls wait for that."""
        made = ctypes.c_void_p()
        with self._handle as listener:
            _until(timeout, lambda ms: library().accept(listener, ms, ctypes.byref(made)))
        return Stream(made.value)

    def fileno(self):
        """For poll and epoll: readable while a request waits."""
        fd = ctypes.c_int()
        with self._handle as listener:
            library().check(library().listener_fd(listener, ctypes.byref(fd)))
        return fd.value

    def close(self):
        """Its streams live on."""
        self._handle.close()


class Stream:
    """A byte stream to a peer: RDMA and nothing else. Made by connect() and Listener.accept()."""

    def __init__(self, pointer):
        self._library = library()
        self._handle = _Handle(pointer, self._library.destroy)
        self._room, self._room_lock = None, threading.Lock()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def read_into(self, buffer, timeout=None):
        """Up to len(buffer) bytes into a writable buffer: how many, at least one; 0: the peer has closed the stream."""
        size = len(buffer)
        return self._read((ctypes.c_char * size).from_buffer(buffer), size, timeout)

    def _read(self, where, size, timeout):
        n = ctypes.c_size_t()
        out, call = ctypes.byref(n), self._library.read
        with self._handle as stream:
            _until(timeout, lambda ms: call(stream, where, size, ms, out))
        return n.value

    def read(self, size, timeout=None):
        """Likewise, as bytes; b"": the peer has closed the stream."""
        # New memory is zeroed, which takes longer than to read a short answer: one room is kept for who reads alone.
        if not self._room_lock.acquire(blocking=False):
            room = ctypes.create_string_buffer(size)
            return ctypes.string_at(room, self._read(room, size, timeout))
        try:
            if self._room is None or len(self._room) < size:
                self._room = ctypes.create_string_buffer(size)
            return ctypes.string_at(self._room, self._read(self._room, size, timeout))
        finally:
            self._room_lock.release()

    def peek(self, size, timeout=None):
        """A copy of up to `size` unread bytes, at least one, which stay unread; b"": the peer has closed the stream."""
        pieces = (_Piece * 2)()
        with self._handle as stream:
            _until(timeout, lambda ms: library().peek(stream, ms, pieces))
            return b"".join(ctypes.string_at(one.base, min(size, one.length)) for one in pieces if one.length)[:size]

    def write(self, data, timeout=None):
        """Writes bytes or another buffer: how much has found room in time, at least one byte."""
        return self._write(*_memory_of(data), timeout)

    def write_all(self, data, timeout=None):
        """All of it. TimeoutError: the peer did not make room in time, and a part may have been sent."""
        held, size = _memory_of(data)
        began = time.monotonic()
        done = self._write(held, size, timeout) if size else 0
        while done < size:
            left = None if timeout is None else max(0.001, began + timeout - time.monotonic())
            done += self._write(ctypes.cast(held, ctypes.c_void_p).value + done, size - done, left)

    def _write(self, where, size, timeout):
        n = ctypes.c_size_t()
        out, call = ctypes.byref(n), self._library.write
        with self._handle as stream:
            _until(timeout, lambda ms: call(stream, where, size, ms, out))
        return n.value

    def wait(self, events, timeout=None):
        """Waits for READABLE, WRITABLE or CONNECTED, or the end: which are there, with 0 perhaps none."""
        now = ctypes.c_uint32()
        with self._handle as stream:
            _until(timeout, lambda ms: library().wait(stream, events, ms, ctypes.byref(now)))
        return now.value

    def fileno(self):
        """For poll and epoll: readable while an event is there that want() asks for, READABLE at first. It may be
        readable for less: look with wait(..., 0)."""
        fd = ctypes.c_int()
        with self._handle as stream:
            library().check(library().fd(stream, ctypes.byref(fd)))
        return fd.value

    def want(self, events):
        """What fileno() stands for."""
        with self._handle as stream:
            library().check(library().want(stream, events))

    def end(self, timeout=1.0):
        """Waits until all that was written has reached the peer, then ends the stream; close() still frees it."""
        with self._handle as stream:
            library().check(library().close(stream, math.ceil(timeout * 1000)))

    def close(self):
        """Ends it without waiting, and frees it. May be called twice."""
        self._handle.close()

    @property
    def device(self):
        """The RDMA device that carries it."""
        return self._text(library().device)

    @property
    def peer(self):
        """Its address and port."""
        return self._text(library().peer)

    @property
    def words(self):
        """Why it ended, naming peer and device; "" while it has not."""
        return self._text(library().words)

    @property
    def ended(self):
        """"open", "peer-closed", ...: docs/formats/valkey-rdma.md has them all."""
        reason = ctypes.c_int()
        with self._handle as stream:
            library().check(library().ended(stream, ctypes.byref(reason)))
        return library().reason_name(reason.value).decode()

    def statistics(self):
        """A dictionary of counters; times in nanoseconds."""
        counters = _Statistics(struct_size=ctypes.sizeof(_Statistics))
        with self._handle as stream:
            library().check(library().get_statistics(stream, counters))
        return {name: getattr(counters, name) for name in _COUNTERS}

    def _text(self, call):
        # "" once it was closed: who tells of a connection that is over must not fail at it.
        room = ctypes.create_string_buffer(512)
        try:
            with self._handle as stream:
                call(stream, room, len(room))
        except OSError:
            pass
        return room.value.decode(errors="replace")


def _memory_of(data):
    """What ctypes passes as an address, which keeps the memory alive as long as it lives, and how many bytes lie there."""
    if not isinstance(data, bytes):
        data = memoryview(data).cast("B")
        if not data.readonly:
            return (ctypes.c_char * len(data)).from_buffer(data), len(data)
        data = bytes(data)  # ctypes has no way to memory that must not be written but this
    return data, len(data)
