#!/usr/bin/env python3
"""No name of a built test shows the raw bytes of its parameter: give the parameter's type a PrintTo.

    names.py BUILD

Reads the lists that ctest has made of the tests' programs, and asks only those programs that it starts whole. Exit 1 and
one example of each test if there are any; 77 if no test is built.
"""

import pathlib
import re
import subprocess
import sys

RAW = re.compile(r"\d+-byte object <")


def discovered(build: pathlib.Path) -> tuple[list[str], set[pathlib.Path]]:
    """The names in ctest's lists, and the programs that they were made of."""
    names, programs = [], set()
    for file in build.rglob("*_tests.cmake"):
        for name, program in re.findall(r"^add_test\(\[=\[(.*?)\]=\]\s+\"?([^\"\s]+)", file.read_text(), re.MULTILINE):
            names.append(name)
            programs.add(pathlib.Path(program))
    return names, programs


def listed(program: pathlib.Path) -> list[str]:
    lines = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, errors="replace",
                           stdin=subprocess.DEVNULL, timeout=20, check=False).stdout.splitlines()
    suite, names = "", []
    for line in lines:
        if line.startswith("  "):
            names.append(suite + line.strip())
        else:
            suite = line.strip()
    return names


def main() -> int:
    build = pathlib.Path(sys.argv[1])
    names, programs = discovered(build)
    for file in sorted((build / "bin").iterdir() if (build / "bin").is_dir() else []):
        if file not in programs and b"gtest_list_tests" in file.read_bytes():
            names += [f"{file.name}: {name}" for name in listed(file)]
    if not names:
        print("skip: no test is built")
        return 77
    raw = {re.sub(r"/[^/]*# GetParam.*", "", name): name for name in names if RAW.search(name)}
    for name in raw.values():
        print(name)
    print(f"{len(names)} names, {len(raw)} tests with raw bytes in theirs")
    return 1 if raw else 0


if __name__ == "__main__":
    sys.exit(main())
