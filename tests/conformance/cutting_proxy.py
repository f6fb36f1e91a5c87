#!/usr/bin/env python3
"""Carries the bytes of a stream between two UNIX sockets, and cuts it again and again: closes both sides after a random
number of bytes, in the middle of whatever is under way, and throws away what it held.

    cutting_proxy.py LISTEN CONNECT SEED

Runs until its standard input ends; then says how often it has cut.
"""

import os
import random
import selectors
import socket
import sys

CHUNK = 30_000


def connect(path: str) -> socket.socket | None:
    peer = socket.socket(socket.AF_UNIX)
    try:
        peer.connect(path)
    except OSError:
        peer.close()
        return None
    return peer


def carry(near: socket.socket, far: socket.socket, limit: int) -> bool:
    """Until `limit` bytes have gone by: True. False: an end has closed, or standard input."""
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
    for one, other in ((near, far), (far, near)):
        selector.register(one, selectors.EVENT_READ, other)
        one.setblocking(True)
    while True:
        for key, _ in selector.select():
            if key.data is None:
                return False
            try:
                data = key.fileobj.recv(min(CHUNK, limit))
                key.data.sendall(data)
            except OSError:
                return False
            if not data:
                return False
            limit -= len(data)
            if limit <= 0:
                return True


def main() -> int:
    listen_at, connect_to, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rng = random.Random(seed)
    cuts = 0
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(listen_at)
    listener.listen(8)
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
    selector.register(listener, selectors.EVENT_READ, True)
    while all(key.data for key, _ in selector.select()):
        near, _ = listener.accept()
        far = connect(connect_to)
        if far is not None:
            cuts += carry(near, far, int(10 ** rng.uniform(3.5, 6.3)))
            far.close()
        near.close()
    os.unlink(listen_at)
    print(f"cut {cuts} times", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
