#!/usr/bin/env python3
"""One of libibverbs.so.1 and librdmacm.so.1 is ours and the other the system's: one line says so, with the remedy.

    companions_test.py LIBRARY_DIR

Exit status 77: the system has no such libraries.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

# Both are loaded, and the devices are asked for twice: what is said is said once.
PROGRAM = """
import ctypes
cm = ctypes.CDLL("librdmacm.so.1")
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list(None)
cm.rdma_create_event_channel()
verbs.ibv_get_device_list(None)
"""
BOTH = ("libibverbs.so.1", "librdmacm.so.1")


def said(folder: pathlib.Path) -> list[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
                          capture_output=True, text=True, timeout=60, check=False)
    lines = done.stderr.splitlines()
    return lines if done.returncode == 0 else [*lines, f"exit status {done.returncode}"]


def main() -> int:
    ours = pathlib.Path(sys.argv[1]).resolve()
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False,
                            env={**os.environ, "PATH": os.environ["PATH"] + ":/sbin:/usr/sbin"}).stdout
    if not all(name in listed for name in BOTH):
        print("skip: the system has no libibverbs.so.1 or no librdmacm.so.1")
        return 77
    found = []
    for names in (BOTH[:1], BOTH[1:], BOTH):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for library in names:
                (folder / library).symlink_to(ours / library)
            # Of the system's own words, which has no card, only ours count.
            lines = [line for line in said(folder) if "ringbolt" in line.lower() or "exit status" in line]
        if names == BOTH:
            expected = not lines
        else:
            missing = BOTH[1] if names == BOTH[:1] else BOTH[0]
            expected = len(lines) == 1 and missing in lines[0] and str(folder) in lines[0] and "build everything" in lines[0]
        if not expected:
            found.append(f"ours: {', '.join(names)}: said {lines}")
    # A whole folder of ours, of which somebody else's librdmacm.so.1 is loaded before.
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        system = next(line.split("=> ")[1] for line in listed.splitlines() if BOTH[1] in line)
        (folder / BOTH[1]).symlink_to(system)
        lines = [line for line in said(pathlib.Path(f"{folder}:{ours}")) if "ringbolt" in line]
        if len(lines) != 1 or f"put {ours} first on LD_LIBRARY_PATH" not in lines[0]:
            found.append(f"the system's librdmacm before ours: said {lines}")
    print("\n".join(found) or "each mixture is said in one line")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
