"""One of two NIXL agents: the client writes into the server's memory and reads it back, and the server looks at what came."""

from __future__ import annotations

import base64

import numpy as np
from nixl_cu12._api import nixl_agent, nixl_agent_config
from peers import LARGEST, SIZES, check, meet, pattern, until

ROUNDS = 3


def move(agent, how: str, ours, theirs, peer: str, note: bytes) -> None:
    handle = agent.initialize_xfer(how, ours, theirs, peer, note)
    state = agent.transfer(handle)

    def is_done() -> bool:
        nonlocal state
        if state == "ERR":
            raise SystemExit(f"{how} failed")
        if state != "DONE":
            state = agent.check_xfer_state(handle)
        return state == "DONE"

    until(how, is_done)
    agent.release_xfer_handle(handle)


def main() -> None:
    peer = meet()
    name = "client" if peer.is_client else "server"
    # Without its progress thread, which spins and holds UCX's lock: where cores are few, the main thread would hardly get it.
    agent = nixl_agent(name, nixl_agent_config(enable_prog_thread=False, backends=["UCX"]))
    notes: list[bytes] = []

    def progress() -> None:
        notes.extend(agent.get_new_notifs().get("client", []))

    def has_come(note: bytes) -> bool:
        progress()
        return note in notes

    memory = np.zeros(2 * LARGEST, dtype=np.uint8)
    region = agent.register_memory([(memory.ctypes.data, memory.nbytes, 0, "")], "DRAM")
    other = agent.add_remote_agent(base64.b64decode(peer.swap(base64.b64encode(agent.get_agent_metadata()).decode())))
    peer.meanwhile = progress
    base = peer.swap(memory.ctypes.data)

    def pieces(start: int, length: int) -> list[tuple[int, int, int]]:
        """One descriptor; for long ones three that are not beside each other."""
        if length < 4096:
            return [(start, length, 0)]
        third = length // 3
        return [(start, third, 0), (start + third + 64, third, 0), (start + 2 * third + 128, length - 2 * third, 0)]

    def joined(length: int) -> np.ndarray:
        parts = [memory[start - memory.ctypes.data:][:size] for start, size, _ in pieces(memory.ctypes.data, length)]
        return np.concatenate(parts)

    for number in range(ROUNDS):
        for size in SIZES:
            seed = 7 * number + size
            note = f"{number} {size}".encode()
            if not peer.is_client:
                until(f"the note of {size} bytes", lambda: has_come(note))
                check(f"written {size}", joined(size), pattern(size, seed))
                memory[:] = 0
                for (start, length, _), part in zip(pieces(0, size), np.split(
                        pattern(size, seed + 1), np.cumsum([length for _, length, _ in pieces(0, size)])[:-1])):
                    memory[start:start + length] = part
                peer.tell("look")
                peer.hear()
                continue
            whole = pattern(size, seed)
            at = 0
            for start, length, _ in pieces(0, size):
                memory[start:start + length] = whole[at:at + length]
                at += length
            ours = agent.get_xfer_descs(pieces(memory.ctypes.data, size), "DRAM")
            theirs = agent.get_xfer_descs(pieces(base, size), "DRAM")
            move(agent, "WRITE", ours, theirs, other, note)
            peer.hear()
            memory[:] = 0
            move(agent, "READ", ours, theirs, other, b"")
            check(f"read {size}", joined(size), pattern(size, seed + 1))
            peer.tell("next")
    if peer.is_client:
        print(f"{2 * ROUNDS * len(SIZES)} transfers of 1 B to 3 MiB, every byte checked", flush=True)
    peer.swap("end")
    agent.deregister_memory(region)


if __name__ == "__main__":
    main()
