"""One of two transfer engines of Mooncake over its rdma protocol; they find each other by its own handshake, without a
metadata service. The client writes into the server's memory and reads it back, and the server looks at what came.

mooncake_peer.py DEVICE HOST -p PORT [ADDRESS]: HOST is the address under which this engine is known.
"""

from __future__ import annotations

import sys

import numpy as np
from mooncake.engine import TransferEngine
from peers import LARGEST, SIZES, check, meet, pattern

ROUNDS = 3
BATCH = 16


def must(what: str, status: int) -> None:
    if status != 0:
        raise SystemExit(f"{what} returned {status}")


def main() -> None:
    device, host = sys.argv[1:3]
    del sys.argv[1:3]
    peer = meet()
    engine = TransferEngine()
    must("initialize", engine.initialize(host, "P2PHANDSHAKE", "rdma", device))
    memory = np.zeros(LARGEST, dtype=np.uint8)
    own = memory.ctypes.data
    must("register_memory", engine.register_memory(own, memory.nbytes))
    other_name, base = peer.swap([f"{host}:{engine.get_rpc_port()}", own])

    def turn(size: int, seed: int, write, read) -> None:
        """A write, looked at by the server, and a read of what the server then put there."""
        if peer.is_client:
            memory[:size] = pattern(size, seed)
            must(f"write of {size}", write())
            peer.swap("written")
            memory[:] = 0
            must(f"read of {size}", read())
            check(f"read {size}", memory[:size], pattern(size, seed + 1))
            peer.tell("next")
        else:
            peer.hear()
            check(f"written {size}", memory[:size], pattern(size, seed))
            memory[:] = 0
            memory[:size] = pattern(size, seed + 1)
            peer.tell("look")
            peer.hear()

    for number in range(ROUNDS):
        for size in SIZES:
            turn(size, 7 * number + size, lambda: engine.transfer_sync_write(other_name, own, base, size),
                 lambda: engine.transfer_sync_read(other_name, own, base, size))
    piece = 5000  # no multiple of a page or of a packet
    ours = [own + i * piece for i in range(BATCH)]
    theirs = [base + i * piece for i in range(BATCH)]
    turn(BATCH * piece, 3, lambda: engine.batch_transfer_sync_write(other_name, ours, theirs, [piece] * BATCH),
         lambda: engine.batch_transfer_sync_read(other_name, ours, theirs, [piece] * BATCH))
    if peer.is_client:
        print(f"{2 * ROUNDS * len(SIZES)} transfers of 1 B to 3 MiB and batches of {BATCH}, every byte checked", flush=True)
    peer.swap("end")
    must("unregister_memory", engine.unregister_memory(own))


if __name__ == "__main__":
    main()
