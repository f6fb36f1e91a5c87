"""TCP ports of this machine: one that is free, and whether somebody listens on one."""

import pathlib
import socket

LISTENING = "0A"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listening_inodes(port):
    """Of the sockets that listen there, as text; /proc/PID/fd has them as socket:[inode]."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = pathlib.Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, rows):
            if fields[3] == LISTENING and int(fields[1].rsplit(":", 1)[1], 16) == port:
                found.add(fields[9])
    return found


def is_listening(port):
    return bool(listening_inodes(port))
