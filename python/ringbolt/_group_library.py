"""libringbolt.so by ctypes, and the errors of its calls."""

from __future__ import annotations

import ctypes
import enum
import errno
import math
import threading
from typing import Any, Callable, Iterable

from ._library import Library


class GroupError(OSError):
    """A call of a group has failed. errno: ETIMEDOUT, the limit of time passed; ECONNRESET, a rank died or no cable leads to it
    any more; EHOSTDOWN, a rank is frozen or silent; EPROTO, ranks called different things; ECANCELED, a rank gave the call up;
    EINVAL. strerror names the rank, its device and the cable as far as they are known."""


class JoinError(GroupError):
    """No group came about: strerror says what is missing and what to do."""


class Operation(enum.IntEnum):
    ALL_REDUCE = 0
    REDUCE_SCATTER = 1
    ALL_GATHER = 2
    ALL_GATHERV = 3
    BROADCAST = 4
    REDUCE = 5
    GATHER = 6
    SCATTER = 7
    ALL_TO_ALL = 8
    ALL_TO_ALLV = 9
    BARRIER = 10
    SEND = 11
    RECV = 12


class Call(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("operation", ctypes.c_int), ("type", ctypes.c_int),
                ("reduction", ctypes.c_int), ("rank", ctypes.c_uint32), ("source", ctypes.c_void_p), ("out", ctypes.c_void_p),
                ("count", ctypes.c_size_t), ("counts", ctypes.POINTER(ctypes.c_size_t)), ("n_counts", ctypes.c_size_t),
                ("received", ctypes.POINTER(ctypes.c_size_t)), ("n_received", ctypes.c_size_t), ("timeout_ms", ctypes.c_uint64),
                ("algorithm", ctypes.c_char_p), ("flags", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


EXCHANGE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_HANDLE, _OUT, _MS, _TEXT, _INT = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_int
_COUNT, _RANK = ctypes.c_size_t, ctypes.c_uint32
_SIGNATURES = {
    "version": (ctypes.c_uint32, []),
    "error": (_TEXT, []),
    "options_create": (_INT, [_OUT]),
    "options_destroy": (None, [_HANDLE]),
    "options_set_environment": (_INT, [_HANDLE, ctypes.POINTER(_TEXT)]),
    "options_set_rank": (_INT, [_HANDLE, ctypes.c_uint32, ctypes.c_uint32]),
    "options_set_meeting": (_INT, [_HANDLE, _TEXT, ctypes.c_uint16]),
    "options_set_bind_address": (_INT, [_HANDLE, _TEXT]),
    "options_set_group": (_INT, [_HANDLE, _TEXT]),
    "options_set_secret": (_INT, [_HANDLE, _TEXT]),
    "options_set_join_timeout": (_INT, [_HANDLE, _MS]),
    "options_set_timeout": (_INT, [_HANDLE, _MS]),
    "options_set_verbs": (_INT, [_HANDLE, _TEXT]),
    "options_set_measuring": (_INT, [_HANDLE, _INT]),
    "options_set_checksums": (_INT, [_HANDLE, _INT]),
    "options_set_exchange": (_INT, [_HANDLE, EXCHANGE, ctypes.c_void_p]),
    "join_with": (_INT, [_HANDLE, _OUT]),
    "leave": (None, [_HANDLE]),
    "rank": (ctypes.c_uint32, [_HANDLE]),
    "size": (ctypes.c_uint32, [_HANDLE]),
    "start": (_INT, [_HANDLE, ctypes.POINTER(Call), _OUT]),
    "wait": (_INT, [_HANDLE]),
    "wait_for": (_INT, [_HANDLE, _MS]),
    "test": (_INT, [_HANDLE]),
    "cancel": (_INT, [_HANDLE]),
    "progress_fd": (_INT, [_HANDLE, _OUT]),
    "split": (_INT, [_HANDLE, _INT, _INT, _OUT]),
    "subgroup": (_INT, [_HANDLE, ctypes.POINTER(_RANK), _COUNT, EXCHANGE, ctypes.c_void_p, _OUT]),
    "shrink": (_INT, [_HANDLE, _OUT]),
    "rejoin": (_INT, [_HANDLE, _OUT]),
    "report": (ctypes.c_size_t, [_HANDLE, _TEXT, ctypes.c_size_t]),
    "explain": (ctypes.c_size_t, [_HANDLE, _TEXT, ctypes.c_size_t, _INT, _TEXT, ctypes.c_size_t]),
    "relays": (_INT, [_HANDLE, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32), ctypes.c_size_t, _OUT]),
    "abort": (_INT, [_HANDLE, _TEXT]),
}
# Calls that are begun: what stands between the group and (timeout_ms, request).
_STARTS = {
    "all_reduce": [_HANDLE, _HANDLE, _COUNT, _INT, _INT],
    "reduce_scatter": [_HANDLE, _HANDLE, _COUNT, _INT, _INT],
    "all_gather": [_HANDLE, _HANDLE, _COUNT, _INT],
    "all_gatherv": [_HANDLE, _HANDLE, ctypes.POINTER(_COUNT), _INT],
    "broadcast": [_HANDLE, _COUNT, _INT, _RANK],
    "reduce": [_HANDLE, _HANDLE, _COUNT, _INT, _INT, _RANK],
    "gather": [_HANDLE, _HANDLE, _COUNT, _INT, _RANK],
    "scatter": [_HANDLE, _HANDLE, _COUNT, _INT, _RANK],
    "all_to_allv": [_HANDLE, ctypes.POINTER(_COUNT), _HANDLE, ctypes.POINTER(_COUNT), _INT],
    "barrier": [],
    "send": [_HANDLE, _COUNT, _INT, _RANK],
    "recv": [_HANDLE, _COUNT, _INT, _RANK],
}
_SIGNATURES |= {f"{name}_start": (_INT, [_HANDLE, *arguments, _MS, _OUT]) for name, arguments in _STARTS.items()}

_loading = threading.Lock()
_library = None


def library() -> Any:
    """libringbolt.so, loaded once. OSError says where it was looked for."""
    global _library
    if _library is None:
        with _loading:
            _library = _library or Library("ringbolt", "ringbolt_", _SIGNATURES)
    return _library


def milliseconds(seconds: float | None) -> int:
    """0 stands for the group's own limit."""
    if seconds is None:
        return 0
    if not seconds > 0:
        raise ValueError(f"a time limit of {seconds} s: it must be above 0, or None for the group's own")
    return min(max(1, math.ceil(seconds * 1000)), 2**63)


def check(code: int, kind: type = GroupError) -> None:
    library().check(code, kind)


def version() -> str:
    """Of the library: "major.minor.patch"."""
    number = library().version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


class Exchange:
    """A function of Python's as the library calls it. What it raises must not pass through C: it is kept."""

    def __init__(self, exchange: Callable[[bytes], Iterable[bytes]]):
        self._exchange, self.raised = exchange, None
        self.function = EXCHANGE(self._call)

    def _call(self, _context, mine, all_, length):
        try:
            for i, given in enumerate(self._exchange(ctypes.string_at(mine, length))):
                if len(given) != length:
                    raise ValueError(f"the exchange gave {len(given)} bytes for rank {i}, where {length} were sent")
                ctypes.memmove(all_ + i * length, bytes(given), length)
            return 0
        except BaseException as problem:
            self.raised = problem
            return errno.ECANCELED
