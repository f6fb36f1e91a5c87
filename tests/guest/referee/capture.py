"""Whole frames off a network device, and the forms they are kept in: text for people, pcap for other programs."""

from __future__ import annotations

import ctypes
import dataclasses
import pathlib
import socket
import struct
import threading
import time
from types import TracebackType
from typing import Iterable, Optional

_ETH_P_ALL = 0x0003
_SO_ATTACH_FILTER = 26
_FRAME_BYTES = 65536
# UDP to port 4791 over IPv4 and IPv6, as `tcpdump -dd 'udp dst port 4791'` gives it: code, jump if true, if false,
# constant.
_ROCE_FILTER = (
    (0x28, 0, 0, 12), (0x15, 0, 4, 0x86DD), (0x30, 0, 0, 20), (0x15, 0, 11, 17), (0x28, 0, 0, 56), (0x15, 8, 9, 4791),
    (0x15, 0, 8, 0x0800), (0x30, 0, 0, 23), (0x15, 0, 6, 17), (0x28, 0, 0, 20), (0x45, 4, 0, 0x1FFF), (0xB1, 0, 0, 14),
    (0x48, 0, 0, 16), (0x15, 0, 1, 4791), (0x06, 0, 0, _FRAME_BYTES), (0x06, 0, 0, 0))


@dataclasses.dataclass(frozen=True)
class Frame:
    """An Ethernet frame and when it was seen, in microseconds since the first of its capture."""

    time_us: int
    data: bytes


class Capture:
    """The RoCEv2 frames that cross a device while the context lasts, at most `limit` of them. Not thread-safe."""

    def __init__(self, device: str, limit: int) -> None:
        self.frames: list[Frame] = []
        self._limit = limit
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self._attach_filter()
        self._socket.bind((device, _ETH_P_ALL))
        self._socket.settimeout(0.05)
        self._is_over = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Capture:
        self._reader.start()
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._is_over.set()
        self._reader.join()
        self._socket.close()

    def _attach_filter(self) -> None:
        code = b"".join(struct.pack("HBBI", *step) for step in _ROCE_FILTER)
        buffer = ctypes.create_string_buffer(code)
        program = struct.pack("HL", len(_ROCE_FILTER), ctypes.addressof(buffer))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)

    def _read(self) -> None:
        started = 0.0
        while len(self.frames) < self._limit:
            try:
                data = self._socket.recv(_FRAME_BYTES)
            except TimeoutError:
                if self._is_over.is_set():  # and nothing is waiting
                    return
                continue
            now = time.monotonic()
            started = started or now
            self.frames.append(Frame(round((now - started) * 1e6), data))


def write_text(path: pathlib.Path, about: Iterable[str], frames: Iterable[Frame]) -> None:
    """Writes a capture as text: lines of comment, then a line per frame with its time and its bytes in hexadecimal."""
    lines = [f"# {line}".rstrip() for line in about]
    lines += [f"{frame.time_us} {frame.data.hex()}" for frame in frames]
    path.write_text("\n".join(lines) + "\n")


def read_text(path: pathlib.Path) -> list[Frame]:
    """Reads what write_text wrote."""
    frames = []
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            time_us, data = line.split()
            frames.append(Frame(int(time_us), bytes.fromhex(data)))
    return frames


def write_pcap(path: pathlib.Path, frames: Iterable[Frame]) -> None:
    """Writes a capture as other programs read it (pcap 2.4, Ethernet)."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, _FRAME_BYTES, 1))
        for frame in frames:
            seconds, microseconds = divmod(frame.time_us, 1_000_000)
            file.write(struct.pack("<IIII", seconds, microseconds, len(frame.data), len(frame.data)) + frame.data)
