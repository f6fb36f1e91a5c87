#!/usr/bin/env python3
"""Compares src/group/symbols.txt with what libringbolt.so exports and with what include/ringbolt/ringbolt.h declares: each
way, so that nothing comes, goes or changes without a line of that file. Likewise of other libraries of ours for C.

    group_symbols_test.py symbols.txt ringbolt.h libringbolt.so
"""

import pathlib
import re
import sys

import exports_test

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
FUNCTION = re.compile(r"^(?!typedef|enum)[\w* ]+?\b(ringbolt_\w+)\([^;]*\);", re.MULTILINE)
ENUM = re.compile(r"enum(?: \w+)? \{([^}]*)\}")
STRUCT = re.compile(r"typedef struct (\w+) \{([^}]*)\}")
CALLBACK = re.compile(r"^typedef [^;{]*\(\*[^;]*;", re.MULTILINE)


def one_line(text: str) -> str:
    return " ".join(text.split())


def enumerators(body: str) -> list[str]:
    lines, value = [], -1
    for entry in filter(None, map(str.strip, body.split(","))):
        name, _, given = map(str.strip, entry.partition("="))
        value = int(given, 0) if given else value + 1
        lines.append(f"enum {name} = {value:#x}" if value > 99 else f"enum {name} = {value}")
    return lines


def declared(header: str) -> list[str]:
    """A line for each function, enumerator, type of callback, and struct with its members in their order."""
    header = COMMENT.sub("", header)
    lines = [one_line(match[0]) for match in FUNCTION.finditer(header)]
    lines += [line for match in ENUM.finditer(header) for line in enumerators(match[1])]
    lines += [f"struct {name} {{ {one_line(body)} }}" for name, body in STRUCT.findall(header)]
    return lines + [one_line(match[0]) for match in CALLBACK.finditer(header)]


def differences(name: str, have: list[str], wanted: list[str]) -> list[str]:
    found = [f"missing in {name}: {line}" for line in wanted if line not in have]
    return found + [f"not in symbols.txt: {line}" for line in have if line not in wanted]


def main() -> int:
    symbols, header, library = map(pathlib.Path, sys.argv[1:4])
    wanted = [line for line in symbols.read_text().splitlines() if line and not line.startswith("#")]
    names = [match[1] for line in wanted if (match := FUNCTION.match(line))]
    found = differences(header.name, declared(header.read_text()), wanted)
    found += differences(library.name, sorted(exports_test.exported(library)), names)
    if len(set(wanted)) != len(wanted):
        found.append("symbols.txt: a line is there twice")
    print(f"{len(names)} functions and {len(wanted) - len(names)} other lines, {len(found)} objections")
    print("".join(f"  {line}\n" for line in found), end="")
    return 1 if found or not names else 0


if __name__ == "__main__":
    sys.exit(main())
