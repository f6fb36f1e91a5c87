#!/usr/bin/env python3
"""Makes the build's share of the drop-in libraries from symbols.txt: one version map and one source file per library.

    generate.py symbols.txt OUT_DIR LIBRARY

writes OUT_DIR/LIBRARY.map and OUT_DIR/LIBRARY.cpp. The linker takes no notice of a name in the map that nobody defines;
tests/abi does.
"""

import argparse
import pathlib
import re
import sys
from typing import NamedTuple

COLUMNS = 6
KINDS = ("real", "refuse", "private", "legacy")
RETURNS = {
    "errno": ("int", "return {errno};"),
    "minus1": ("long", "return -1;"),
    "minuserr": ("int", "return -{errno};"),
    "null": ("void*", "return nullptr;"),
    "zero": ("unsigned long long", "return 0;"),
    "false": ("bool", "return false;"),
    "void": ("void", "return;"),
}


class Symbol(NamedTuple):
    library: str
    name: str
    node: str
    kind: str
    errno: str
    returns: str
    further: tuple[str, ...] = ()  # nodes that have the name besides, where it is not the default version

    def generated_name(self, node: str) -> str:
        """Of a generated function that is not the default version."""
        return f"ringbolt_{'legacy' if self.kind == 'legacy' else 'again'}_{node.replace('.', '_')}_{self.name}"


def parse(text: str) -> list[Symbol]:
    """All lines of symbols.txt, checked. Raises ValueError that names the line."""
    symbols = []
    seen = set()
    defaults = set()
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("#", 1)[0].split()
        if not fields:
            continue
        where = f"symbols.txt:{number}"
        if len(fields) != COLUMNS:
            raise ValueError(f"{where}: {len(fields)} columns, {COLUMNS} wanted")
        node, *numbers = fields[2].split(",")
        further = tuple(re.sub(r"\d+$", number, node) for number in numbers)
        symbol = Symbol(*fields[:2], node, *fields[3:], further)
        if symbol.kind not in KINDS:
            raise ValueError(f"{where}: kind '{symbol.kind}' is none of {', '.join(KINDS)}")
        if symbol.kind == "real":
            if (symbol.errno, symbol.returns) != ("-", "-"):
                raise ValueError(f"{where}: a real function has no generated failure: write - -")
        elif symbol.returns not in RETURNS:
            raise ValueError(f"{where}: returns '{symbol.returns}' is none of {', '.join(RETURNS)}")
        elif (symbol.errno == "-") != (symbol.returns == "false"):
            raise ValueError(f"{where}: an errno is wanted, and only 'false' goes without")
        key = (symbol.library, symbol.name, symbol.node)
        if key in seen:
            raise ValueError(f"{where}: {symbol.name}@{symbol.node} for the second time")
        seen.add(key)
        if symbol.kind != "legacy":
            if key[:2] in defaults:
                raise ValueError(f"{where}: {symbol.name} has two default versions")
            defaults.add(key[:2])
        symbols.append(symbol)
    return symbols


def node_order(node: str) -> tuple:
    """Numbered nodes by number. The private ones last, for they inherit from all others, and downwards: what names has that
    no node lists must not be the last one, which hides them."""
    numbers = [int(number) for number in re.findall(r"\d+", node)]
    return "PRIVATE" in node, [-number for number in numbers] if "PRIVATE" in node else numbers


def version_map(symbols: list[Symbol]) -> str:
    """A linker version script. Each node inherits from the one before; what no node names stays hidden.

    The hiding pattern stands in the last node: in an earlier one GNU ld also applies it to the legacy names, which
    that node does not list, when a later node lists their namesakes.
    """
    out = ["/* Generated from symbols.txt by generate.py. */"]
    previous = ""
    nodes = sorted({node for symbol in symbols for node in (symbol.node, *symbol.further)}, key=node_order)
    for node in nodes:
        out.append(f"{node} {{")
        # A legacy name enters its node by a .symver line in the source; to list it here as well would make it default.
        names = sorted(s.name for s in symbols if s.node == node and s.kind != "legacy")
        if names:
            out.append("  global:")
            out += [f"    {name};" for name in names]
        if node == nodes[-1]:
            out += ["  local:", "    *;"]
        out.append(f"}}{' ' + previous if previous else ''};")
        previous = node
    return "\n".join(out) + "\n"


def refusing_function(symbol: Symbol, name: str, attributes: str = "") -> str:
    """A function that ignores its arguments: the C calling convention lets a callee take fewer than it is passed."""
    kind, statement = RETURNS[symbol.returns]
    set_errno = f"errno = {symbol.errno}; " if symbol.errno != "-" else ""
    return f"{attributes}{kind} {name}() {{ {set_errno}{statement.format(errno=symbol.errno)} }}"


def source(symbols: list[Symbol]) -> str:
    out = ["// Generated from symbols.txt by generate.py.", "#include <cerrno>", "", 'extern "C" {']
    for symbol in symbols:
        if symbol.kind in ("refuse", "private"):
            out.append(refusing_function(symbol, symbol.name))
        if symbol.kind != "real":  # a real function's source says so itself: only there can it be named again
            for node in (symbol.node,) if symbol.kind == "legacy" else symbol.further:
                name = symbol.generated_name(node)
                out.append(refusing_function(symbol, name, "[[gnu::used]] "))
                out.append(f'asm(".symver {name}, {symbol.name}@{node}");')
    out.append('}  // extern "C"')
    return "\n".join(out) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("symbols", type=pathlib.Path)
    parser.add_argument("out_dir", type=pathlib.Path)
    parser.add_argument("library")
    arguments = parser.parse_args()
    try:
        symbols = [s for s in parse(arguments.symbols.read_text()) if s.library == arguments.library]
    except (OSError, ValueError) as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 2
    if not symbols:
        print(f"generate.py: {arguments.symbols} names no symbol of {arguments.library}", file=sys.stderr)
        return 2
    arguments.out_dir.mkdir(parents=True, exist_ok=True)
    (arguments.out_dir / f"{arguments.library}.map").write_text(version_map(symbols))
    (arguments.out_dir / f"{arguments.library}.cpp").write_text(source(symbols))
    return 0


if __name__ == "__main__":
    sys.exit(main())
