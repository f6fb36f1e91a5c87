"""Archives that the kernel unpacks as its first root file system.

The format is cpio "newc": Documentation/driver-api/early-userspace/buffer-format.rst of the kernel.
"""

from __future__ import annotations

import stat


class Archive:
    """A cpio archive in memory. Not thread-safe."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._inode = 0

    def add_folder(self, name: str) -> None:
        self._add(name, stat.S_IFDIR | 0o755, b"")

    def add_file(self, name: str, content: bytes, mode: int = 0o644) -> None:
        self._add(name, stat.S_IFREG | mode, content)

    def add_character_device(self, name: str, major: int, minor: int) -> None:
        self._add(name, stat.S_IFCHR | 0o600, b"", major, minor)

    def finished(self) -> bytes:
        """The whole archive; nothing may be added afterwards."""
        self._add("TRAILER!!!", 0, b"")
        return b"".join(self._parts)

    def _add(self, name: str, mode: int, content: bytes, major: int = 0, minor: int = 0) -> None:
        self._inode += 1
        links = 2 if stat.S_ISDIR(mode) else 1
        encoded = name.encode() + b"\0"
        fields = (self._inode, mode, 0, 0, links, 0, len(content), 0, 0, major, minor, len(encoded), 0)
        header = b"070701" + b"".join(b"%08x" % field for field in fields)
        self._parts += [_padded(header + encoded), _padded(content)]


def _padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % 4)
