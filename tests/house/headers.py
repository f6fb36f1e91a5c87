#!/usr/bin/env python3
"""Compiles every header alone: who includes one must not have to know what else it needs.

    headers.py ROOT COMPILER [compiler flags...]

Public headers (include/ringbolt) get no include path but include/: they must not lean on src/.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys


def compile_alone(root: pathlib.Path, header: pathlib.Path, compiler: str, flags: list[str]) -> str | None:
    """The compiler's complaint, or None. Inclusion twice must not hurt either."""
    top = header.relative_to(root).parts[0]
    folders = {"include": ["include"], "src": ["src", "include"], "tools": ["tools", "src", "include"]}[top]
    paths = [option for folder in folders for option in ("-I", str(root / folder))]
    text = f'#include "{header}"\n#include "{header}"\n'
    done = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", *flags, *paths, "-"],
        input=text, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    root, compiler, flags = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:]
    headers = [file for top in ("include", "src", "tools") for file in sorted((root / top).rglob("*.h"))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda header: (header, compile_alone(root, header, compiler, flags)), headers)
    complaints = {header: complaint for header, complaint in results if complaint}
    for header, complaint in complaints.items():
        print(f"{header.relative_to(root)} does not compile alone:\n{complaint}")
    print(f"{len(headers) - len(complaints)} of {len(headers)} headers compile alone")
    return 1 if complaints or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
