#!/usr/bin/env python3
"""Compares the variables that the sources read or set with docs/environment.md, both ways.

    environment.py ROOT
"""

import pathlib
import re
import sys

# A quoted name in C and C++ (RINGBOLT_ADDR_ stands for RINGBOLT_ADDR_K), or one that a shell script reads.
IN_SOURCE = re.compile(r'"((?:RINGBOLT|XDG|SYSFS)_[A-Z_]+)')
IN_SCRIPT = re.compile(r"\$\{?(RINGBOLT_[A-Z_]+)")
IN_PAGE = re.compile(r"`((?:RINGBOLT|XDG|SYSFS)_[A-Z_]+)`")


def found_in_sources(root: pathlib.Path) -> dict[str, str]:
    """Each variable with one file that mentions it."""
    found = {}
    for top in ("src", "tools"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix in {".h", ".c", ".cpp"} and not file.name.endswith("_test.cpp") and str(file.relative_to(root)) != OWN_LIST:
                for name in IN_SOURCE.findall(file.read_text()):
                    found.setdefault(name, str(file.relative_to(root)))
    for name in IN_SCRIPT.findall((root / "test").read_text()):
        if name != "RINGBOLT_RUNTIME_DIR":
            found.setdefault(name, "test")
    return {name + "K" if name.endswith("_") else name: where for name, where in found.items()}


# The list by which slips are found: it mentions every variable, and so stands for no use of one.
OWN_LIST = "src/base/variables.cpp"


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    sources = found_in_sources(root)
    page = set(IN_PAGE.findall((root / "docs" / "environment.md").read_text()))
    missing = [f"{where} uses {name}, which docs/environment.md does not tell of"
               for name, where in sources.items() if name not in page]
    stale = [f"docs/environment.md tells of {name}, which nothing uses" for name in sorted(page - set(sources))]
    listed = {name + "K" if name.endswith("_") else name for name in IN_SOURCE.findall((root / OWN_LIST).read_text())}
    ours = {name for name in page if name.startswith("RINGBOLT_")}
    stale += [f"{OWN_LIST} and docs/environment.md differ in {name}" for name in sorted(ours ^ listed)]
    print("\n".join(missing + stale) or f"{len(page)} variables, all documented")
    return 1 if missing or stale else 0


if __name__ == "__main__":
    sys.exit(main())
