#!/usr/bin/env python3
"""Every header compiles alone: who includes one must not have to know what else it needs. A source or test of the same
name that includes it before everything else proves that where each is built alone (house.sources_alone); all other
headers are compiled here.

    headers.py ROOT COMPILER FOLDER[,FOLDER...] [compiler flags...]

Public headers (include/ringbolt) get no include path but include/: they must not lean on src/.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys


def is_proven(root: pathlib.Path, header: pathlib.Path) -> bool:
    """A public header must also do without src/, which no source shows."""
    if header.relative_to(root).parts[0] == "include" or "#pragma once" not in header.read_text():
        return False
    for source in (header.with_suffix(".cpp"), header.with_name(header.stem + "_test.cpp")):
        first = re.search(r'^#include [<"]([^>"]+)[>"]', source.read_text(), re.MULTILINE) if source.exists() else None
        if first and str(header).endswith("/" + first.group(1)):
            return True
    return False


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
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    root, compiler, tops, flags = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3].split(","), sys.argv[4:]
    headers = [file for top in tops for file in sorted((root / top).rglob("*.h"))]
    unproven = [header for header in headers if not is_proven(root, header)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda header: (header, compile_alone(root, header, compiler, flags)), unproven)
    complaints = {header: complaint for header, complaint in results if complaint}
    for header, complaint in complaints.items():
        print(f"{header.relative_to(root)} does not compile alone:\n{complaint}")
    print(f"{len(headers) - len(complaints)} of {len(headers)} headers compile alone, {len(unproven)} of them here")
    return 1 if complaints or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
