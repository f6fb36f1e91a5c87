"""Finds and loads Ringbolt's shared libraries, once for each process."""

import ctypes
import errno
import os
import pathlib

_MAJOR = 0


class Library:
    """The functions of one shared library, without their prefix.

    name: "ringbolt", "ringbolt-stream"; prefix: of its functions; signatures: {name: (result, [arguments])}. Raises OSError,
    which says where it was looked for."""

    def __init__(self, name, prefix, signatures):
        soname = f"lib{name}.so.{_MAJOR}"
        root = pathlib.Path(__file__).resolve().parents[2]  # of a clone
        problems = []
        for path in (soname, root / "build/release/lib" / soname):
            try:
                library = ctypes.CDLL(str(path))
                break
            except OSError as problem:
                problems.append(str(problem))
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
