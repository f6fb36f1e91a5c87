"""What the two ends of a transfer need between them: a line each way over TCP, and bytes that depend on place and sender.

Run by the Python of a referee's environment.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import time

import numpy as np

SIZES = (1, 8, 100, 4096, 65536, 1 << 20, 3 << 20)
LARGEST = SIZES[-1]
LIMIT_S = 60.0


class Peer:
    """The other end. `is_client`: we write and read its memory, and it looks at it."""

    def __init__(self, connection: socket.socket, is_client: bool) -> None:
        self.is_client = is_client
        self.meanwhile = lambda: None  # called again and again while we wait: what moves data in here, if nothing else does
        self._connection = connection
        self._incoming = b""

    def tell(self, what: object) -> None:
        self._connection.sendall(json.dumps(what).encode() + b"\n")

    def hear(self) -> object:
        until("a word of the peer", self._has_line)
        line, _, self._incoming = self._incoming.partition(b"\n")
        return json.loads(line)

    def swap(self, what: object) -> object:
        self.tell(what)
        return self.hear()

    def _has_line(self) -> bool:
        self.meanwhile()
        if b"\n" not in self._incoming and select.select([self._connection], [], [], 0)[0]:
            part = self._connection.recv(1 << 16)
            if not part:
                raise SystemExit("the peer closed its connection before its end")
            self._incoming += part
        return b"\n" in self._incoming


def meet() -> Peer:
    """By the command line: `-p PORT` listens, `-p PORT ADDRESS` connects."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-p", "--port", type=int, required=True)
    parser.add_argument("address", nargs="?")
    arguments, _ = parser.parse_known_args()
    if arguments.address is not None:
        connection = socket.create_connection((arguments.address, arguments.port), LIMIT_S)
    else:
        with socket.create_server(("", arguments.port)) as listener:
            listener.settimeout(LIMIT_S)
            connection, _ = listener.accept()
    connection.settimeout(LIMIT_S)
    return Peer(connection, arguments.address is not None)


def pattern(length: int, seed: int) -> np.ndarray:
    """Bytes that no shift and no repetition of 251 bytes leaves as they are."""
    index = np.arange(length, dtype=np.uint64)
    return ((index * 31 + index // 251 * 17 + seed) % 253).astype(np.uint8)


def check(what: str, got: np.ndarray, wanted: np.ndarray) -> None:
    """Ends the process at the first byte that differs."""
    wrong = np.flatnonzero(got != wanted)
    if wrong.size:
        raise SystemExit(f"{what}: {wrong.size} of {wanted.size} bytes differ, the first is number {wrong[0]}")


def until(what: str, is_done) -> None:
    """Waits for `is_done`, with a limit."""
    deadline = time.monotonic() + LIMIT_S
    while not is_done():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} did not end within {LIMIT_S:.0f} s")
        time.sleep(0.0005)  # the other process needs the cores, too
