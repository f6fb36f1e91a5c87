"""Commands in the guest, over one stream to its agent. The frames are described in agent/frame.h."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import struct
import threading
import time
from typing import Optional, Sequence

from harness.processes import Finished

_HEADER = struct.Struct("<IcI")
_CHUNK_BYTES = 32768


class GuestLost(Exception):
    """The guest ended or its agent says nothing any more; the text says what its console said last."""


class GuestCommand:
    """One command in the guest, with the interface of harness.processes.Child. Thread-safe."""

    def __init__(self, channel: Channel, number: int, argv: Sequence[str]) -> None:
        self.argv = list(argv)
        self._channel = channel
        self._number = number
        self._started = time.monotonic()
        self._output = bytearray()
        self._status: Optional[int] = None
        self._ended = threading.Event()

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    def output(self) -> str:
        """All that the command printed so far, stdout and stderr together."""
        return bytes(self._output).decode(errors="replace")

    def pause(self, seconds: float) -> None:
        """Waits until the command ends, at most `seconds`."""
        self._ended.wait(seconds)

    def feed(self, data: bytes) -> None:
        """Gives bytes to stdin; none at all closes it."""
        for start in range(0, max(len(data), 1), _CHUNK_BYTES):
            self._channel.send(self._number, b"I", data[start:start + _CHUNK_BYTES])

    def signal_session(self, number: int) -> None:
        """Sends a signal to the command's process group."""
        self._channel.send(self._number, b"S", bytes([number]))

    def wait(self, limit_s: float) -> Finished:
        """Waits for the end and kills the command at the limit."""
        timed_out = not self._ended.wait(limit_s)
        if timed_out:
            self.kill()
        if self._status is None:
            raise GuestLost(f"{' '.join(self.argv)}: {self._channel.last_words()}")
        return Finished(self.argv, os.waitstatus_to_exitcode(self._status), self.output(), timed_out,
                        time.monotonic() - self._started)

    def kill(self) -> None:
        """Kills the command, if it still runs."""
        if not self.has_ended:
            self.signal_session(signal.SIGKILL)
            self._ended.wait(20)

    def on_frame(self, kind: bytes, payload: bytes) -> None:
        if kind in (b"O", b"X"):
            self._output += payload
        elif kind == b"D":
            self._status = struct.unpack("<i", payload)[0]
            self._ended.set()

    def on_lost(self) -> None:
        self._ended.set()


class Channel:
    """The stream to the agent of one guest. Thread-safe."""

    def __init__(self, stream: socket.socket, last_words) -> None:
        self._stream = stream
        self.last_words = last_words
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._commands: dict[int, GuestCommand] = {}
        self._is_up = threading.Event()
        self._is_lost = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_until_up(self, limit_s: float) -> None:
        """Waits for the agent's first word."""
        if not self._is_up.wait(limit_s) or self._is_lost:
            raise GuestLost(f"the guest was not up after {limit_s:.0f} s: {self.last_words()}")

    def start(self, argv: Sequence[str]) -> GuestCommand:
        """Starts a command and returns at once."""
        number = next(self._numbers)
        command = GuestCommand(self, number, argv)
        self._commands[number] = command
        self.send(number, b"R", b"".join(word.encode() + b"\0" for word in argv))
        return command

    def send(self, number: int, kind: bytes, payload: bytes) -> None:
        try:
            with self._lock:
                self._stream.sendall(_HEADER.pack(number, kind, len(payload)) + payload)
        except OSError as error:
            raise GuestLost(f"{error}: {self.last_words()}") from error

    def close(self) -> None:
        try:
            self._stream.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._reader.join(5)
        self._stream.close()

    def _read(self) -> None:
        buffer = bytearray()
        while True:
            try:
                data = self._stream.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                break
            buffer += data
            while len(buffer) >= _HEADER.size:
                number, kind, length = _HEADER.unpack_from(buffer)
                if len(buffer) < _HEADER.size + length:
                    break
                self._dispatch(number, kind, bytes(buffer[_HEADER.size:_HEADER.size + length]))
                del buffer[:_HEADER.size + length]
        self._is_lost = True
        self._is_up.set()
        for command in list(self._commands.values()):
            command.on_lost()

    def _dispatch(self, number: int, kind: bytes, payload: bytes) -> None:
        if kind == b"H":
            self._is_up.set()
            return
        command = self._commands.get(number)
        if command is not None:
            command.on_frame(kind, payload)
            if command.has_ended:
                del self._commands[number]
