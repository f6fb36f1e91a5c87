"""Ports: of the programs' side channels over TCP, chosen by the kernel, and of rdma_cm; awaited by looking at the listener."""

from __future__ import annotations

import os
import pathlib
import socket
import time

from harness.leaks import files_of_slots
from harness.processes import Child, session_members


def free_port() -> int:
    """A TCP port that nobody listens on now. Another program may still take it first: callers try again then."""
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
        probe.bind(("::", 0))
        return int(probe.getsockname()[1])


def wait_listening(child: Child, port: int, limit_s: float) -> bool:
    """Waits until a process of the child's session listens on `port`; False when it ended or the time is over."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        inodes = _listeners(child.pid, port)
        if inodes and any(_owns_socket(pid, inodes) for pid in session_members(child.pid)):
            return True
        if child.has_ended:
            return False
        child.pause(0.003)
    return False


def wait_serving(runtime: pathlib.Path, server: Child, port: int, limit_s: float) -> bool:
    """Waits until some process of the runtime folder listens at the port of an rdma_cm port space; False when the server
    ended or the time is over."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and not server.has_ended:
        for path in (path for path in files_of_slots(runtime) if path.suffix == ".services"):
            try:
                lines = path.read_text().splitlines()
            except OSError:
                continue
            for words in (line.split() for line in lines):
                if words[0] == "service" and int(words[1], 16) & 0xFFFF == port and words[3].endswith("l"):
                    return True
        server.pause(0.02)
    return False


def _listeners(pid: int, port: int) -> set[str]:
    """Inodes of the sockets that listen on a port in the network namespace of a process (state 0A is LISTEN)."""
    inodes = set()
    for table in (f"/proc/{pid}/net/tcp", f"/proc/{pid}/net/tcp6"):
        try:
            with open(table, encoding="ascii") as file:
                rows = file.read().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(fields[9])
    return inodes


def _owns_socket(pid: int, inodes: set[str]) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")
        except OSError:
            continue
        if target.startswith("socket:[") and target[8:-1] in inodes:
            return True
    return False
