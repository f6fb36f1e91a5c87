"""How ranks meet."""

from __future__ import annotations

import ctypes
from typing import Callable, Iterable, Mapping

from ._group_library import Exchange, JoinError, check, library, milliseconds
from .group import Group

_CHECKSUMS = {"off": 0, "on": 1, "every": 2}


def join(*, rank: int | None = None, size: int | None = None, meeting: tuple[str, int] | None = None,
         bind_address: str | None = None, group: str | None = None, secret: str | None = None,
         join_timeout: float | None = None, timeout: float | None = None, verbs: str | None = None,
         measuring: bool | None = None, checksums: str | None = None,
         exchange: Callable[[bytes], Iterable[bytes]] | None = None,
         environment: Mapping[str, str] | None = None) -> Group:
    """Meets the other ranks, finds the cables, connects them. Waits until all are there, within join_timeout seconds (behind
    an exchange bring-up has at least 30 s, or as much as join_timeout if it is less); a signal is handled after that. What is
    not given the environment says (docs/environment.md): `ringbolt run` and torchrun set it.

    rank, size: of this process, and how many there are. meeting: (host, port) of rank 0. secret: what all ranks know and nobody
    else. timeout: of later calls that give none. verbs: "auto", "system", "soft" or a path. checksums: "off", "on", "every".
    exchange: gives the bytes of this rank to all and returns those of each, in the order of ranks; then no port has to be agreed
    upon. environment: stands for the process's own. Raises JoinError."""
    made, options = ctypes.c_void_p(), ctypes.c_void_p()
    carrier = Exchange(exchange) if exchange is not None else None
    check(library().options_create(ctypes.byref(options)), JoinError)

    def setting(name, *arguments):
        check(getattr(library(), f"options_set_{name}")(options, *arguments), JoinError)

    try:
        if environment is not None:
            lines = [f"{name}={value}".encode() for name, value in environment.items()]
            setting("environment", (ctypes.c_char_p * (len(lines) + 1))(*lines, None))
        if rank is not None and size is not None:
            if not 0 <= rank < size < 2**32:
                raise ValueError(f"rank {rank} of {size}")
            setting("rank", rank, size)
        elif rank is not None or size is not None:
            raise ValueError("rank and size are given together, or neither")
        if meeting is not None:
            setting("meeting", meeting[0].encode(), meeting[1])
        for name, text in (("bind_address", bind_address), ("group", group), ("secret", secret), ("verbs", verbs)):
            if text is not None:
                setting(name, text.encode())
        for name, seconds in (("join_timeout", join_timeout), ("timeout", timeout)):
            if seconds is not None:
                setting(name, milliseconds(seconds))
        if measuring is not None:
            setting("measuring", int(measuring))
        if checksums is not None:
            if checksums not in _CHECKSUMS:
                raise ValueError(f"checksums {checksums!r}: off, on or every")
            setting("checksums", _CHECKSUMS[checksums])
        if carrier is not None:
            setting("exchange", carrier.function, None)
        code = library().join_with(options, ctypes.byref(made))
        if code != 0 and carrier is not None and carrier.raised is not None:
            raise carrier.raised
        check(code, JoinError)
    finally:
        library().options_destroy(options)
    return Group(made.value, carrier)
