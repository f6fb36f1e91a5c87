#!/usr/bin/env python3
"""Compares what the built libraries export with symbols.txt: the exact set, each at its version node, default or not.

    exports_test.py symbols.txt LIBRARY_DIR [--instrumented]

Also: the SONAME, `nodelete`, the further names that lead to each library, and that it needs nothing but the C library
(--instrumented: a sanitizer build needs its own run time, so that is not asked).
"""

import argparse
import pathlib
import re
import subprocess
import sys

# What a drop-in library may need of the machine it runs on: the C library alone.
SYSTEM_LIBRARIES = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
LINKS = {"libibverbs.so.1": ("libibverbs.so", "librdma.dylib"), "libmlx5.so.1": ("libmlx5.so",),
         "libefa.so.1": ("libefa.so",), "librdmacm.so.1": ("librdmacm.so",)}
# Ours among each other: the connection manager is nothing without our device.
COMPANIONS = {"librdmacm.so.1": {"libibverbs.so.1"}}


def readelf(*arguments: str) -> list[list[str]]:
    done = subprocess.run(["readelf", "-W", *arguments], capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def exported(library: pathlib.Path) -> set[str]:
    """NAME@NODE or NAME@@NODE for each dynamic symbol that the library defines, bare NAME for one without a node."""
    names = set()
    for fields in readelf("--dyn-syms", str(library)):
        if len(fields) < 8 or not fields[0].rstrip(":").isdigit() or fields[6] in ("UND", "ABS"):
            continue
        names.add(fields[7])
    return names


def wanted(symbols: pathlib.Path) -> dict[str, set[str]]:
    libraries: dict[str, set[str]] = {}
    for line in symbols.read_text().splitlines():
        fields = line.split("#", 1)[0].split()
        if fields:
            library, name, node, kind = fields[:4]
            node, *numbers = node.split(",")
            names = libraries.setdefault(library, set())
            names.add(f"{name}{'@' if kind == 'legacy' else '@@'}{node}")
            names.update(f"{name}@{re.sub(r'[0-9]+$', number, node)}" for number in numbers)
    return libraries


def check(library: pathlib.Path, names: set[str], is_instrumented: bool) -> list[str]:
    found = []
    have = exported(library)
    found += [f"missing: {name}" for name in sorted(names - have)]
    found += [f"not in symbols.txt: {name}" for name in sorted(have - names)]
    dynamic = readelf("-d", str(library))
    values = {}
    for fields in dynamic:
        if len(fields) > 2:
            values.setdefault(fields[1].strip("()"), []).append(fields[-1].strip("[]"))
    if values.get("SONAME") != [library.name]:
        found.append(f"SONAME {values.get('SONAME')}, wanted {library.name}")
    if not any("NODELETE" in " ".join(fields) for fields in dynamic):
        found.append("not marked nodelete")
    needed = set(values.get("NEEDED", []))
    foreign = needed - SYSTEM_LIBRARIES - COMPANIONS.get(library.name, set())
    if not is_instrumented and foreign:
        found.append(f"needs {', '.join(sorted(foreign))}: programs may not have it, or another one")
    for link in LINKS[library.name]:
        path = library.parent / link
        if not path.exists() or path.resolve() != library.resolve():
            found.append(f"{link} does not lead to it")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("symbols", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--instrumented", action="store_true")
    arguments = parser.parse_args()
    is_good = True
    for name, symbols in wanted(arguments.symbols).items():
        found = check(arguments.directory / name, symbols, arguments.instrumented)
        print(f"{name}: {len(symbols)} symbols wanted, {len(found)} objections")
        print("".join(f"  {line}\n" for line in found), end="")
        is_good = is_good and not found
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
