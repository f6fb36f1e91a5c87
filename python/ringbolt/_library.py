"""Finds and loads Ringbolt's shared libraries, once for each process."""

import ctypes
import errno
import os
import pathlib
import platform

_MAJOR = 0
_MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of ELF
NATIVE = pathlib.Path(__file__).resolve().parent / "native"  # what a wheel has of programs and libraries


class Library:
    """The functions of one shared library, without their prefix.

    name: "ringbolt", "ringbolt-stream"; prefix: of its functions; signatures: {name: (result, [arguments])}. It is the wheel's
    own, else what the loader finds (LD_LIBRARY_PATH, the system), else what the clone has built. Raises OSError, which says
    where it was looked for."""

    def __init__(self, name, prefix, signatures):
        soname = f"lib{name}.so.{_MAJOR}"
        root = pathlib.Path(__file__).resolve().parents[2]  # of a clone
        own = NATIVE / "lib/ringbolt" / soname
        problems = []
        for path in [own] if own.exists() else [soname, root / "build/release/lib" / soname]:
            try:
                library = ctypes.CDLL(str(path))
                break
            except OSError as problem:
                problems.append(f"{problem}{_foreign(path)}")
        else:
            raise OSError(errno.ENOENT, f"{'; '.join(problems)}. Install Ringbolt, or put the folder of {soname} on "
                          "LD_LIBRARY_PATH")
        for name, (result, arguments) in signatures.items():
            function = getattr(library, prefix + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def text_of(self, code):
        """Of the calling thread's last error."""
        return self.error().decode(errors="replace") or os.strerror(code)

    def check(self, code, kind=OSError):
        """Raises `kind` unless `code`, an errno, is 0."""
        if code != 0:
            raise kind(code, self.text_of(code))


def _foreign(path):
    """The words for a file of another kind of machine."""
    try:
        with open(path, "rb") as file:
            head = file.read(20)
    except OSError:
        return ""
    machine = int.from_bytes(head[18:20], "little") if head[:4] == b"\x7fELF" else None
    if _MACHINES.get(machine) == platform.machine():
        return ""
    return f" (it is for {_MACHINES.get(machine, 'no machine that Ringbolt knows')}, and this is {platform.machine()}: install " \
           "the wheel that pip itself chooses for this machine)"
