#!/usr/bin/env python3
"""Refuses a function at the C border that an exception could leave: see src/base/c_border.h.

    border.py ROOT

Every `real` line of src/abi/symbols.txt, and every RINGBOLT_PUBLIC function of libringbolt and libringbolt-stream, is a function-try-block that
ends in `catch (...)`, or calls nothing that throws. Tables of functions are filled by base::put() alone. What
base::guarded_within<> names does nothing but jump into such a function-try-block.

Prints each offender as FILE:LINE, exit 1 if there is one.
"""

import pathlib
import re
import sys

SOURCES = {"libibverbs.so.1": ("src/abi",), "librdmacm.so.1": ("src/rdmacm", "src/rsocket"),
           "libringbolt.so": ("src/group",), "libringbolt-stream.so": ("src/stream",)}
DATA = {"verbs_allow_disassociate_destroy"}
# Words before a parenthesis that call nothing, and what is known to throw nothing.
HARMLESS = {"if", "for", "while", "switch", "return", "sizeof", "memcpy", "memset", "free", "htons", "htobe16", "of", "result",
            "name_or", "source_port", "destination_port", "size", "data", "rank", "is_done", "last_error", "c_str", "is_reason", "name_of",
            "words_of"}
# Each ends in a handler of its own that keeps words for the program: src/group/c_border.h, src/stream/c_border.h.
GUARDS_OF_OURS = {"on", "with", "guarded", "begin", "refuse", "write_words"}
DEFINITION = r"^(?!\s|return\b)(?:[\w:<>*& ]+[ *&])?{name}\((?P<arguments>[^;{{}}]*?)\)\s*(?P<rest>[^;{{}}]*){{"
TABLE_PLACE = re.compile(r"\b(?:ops|known|ex)(?:\.|->)(\w+) = (\w+)")


def body_of(text: str, start: int) -> str:
    """From the opening brace at `start` to its end, with the handlers of a function-try-block."""
    at = depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if text[at] == "}" and depth == 0 and not text.startswith("} catch", at):
            break
    return text[start:at + 1]


def calls(body: str) -> set[str]:
    return set(re.findall(r"(\w+)\(", body))


def definition(text: str, name: str) -> re.Match | None:
    return None if f"{name}(" not in text else re.search(DEFINITION.format(name=re.escape(name)), text, re.MULTILINE)


def is_guarded(found: re.Match) -> bool:
    body = body_of(found.string, found.end() - 1)
    return found["rest"].strip() == "try" and re.search(r"\} catch \(\.\.\.\) \{", body) is not None


class House:
    def __init__(self, root: pathlib.Path):
        self.root = root
        self.texts = {file: file.read_text() for folder in ("src/abi", "src/rdmacm", "src/rsocket", "src/group", "src/stream", "src/device")
                      for file in sorted((root / folder).glob("*.cpp")) if not file.name.endswith("_test.cpp")}
        self.headers = "".join(file.read_text() for file in sorted((root / "src/device").glob("*.h")))
        lines = [line.split("#", 1)[0].split() for line in (root / "src/abi/symbols.txt").read_text().splitlines()]
        self.exported = [(line[0], line[1]) for line in lines if line and line[3] == "real" and line[1] not in DATA]
        self.names = {name for _, name in self.exported}
        self.complaints: list[str] = []

    def complain(self, file: pathlib.Path, at: int, words: str) -> None:
        line = self.texts[file].count("\n", 0, at) + 1
        self.complaints.append(f"{file.relative_to(self.root)}:{line}: {words}")

    def in_folders(self, folders: tuple[str, ...]) -> list[pathlib.Path]:
        return [file for file in self.texts if file.parent.relative_to(self.root).as_posix() in folders]

    def check_exports(self) -> None:
        for library, name in self.exported:
            found = [(file, match) for file in self.in_folders(SOURCES[library])
                     if (match := definition(self.texts[file], name))]
            # The connection manager has functions of the same name that pass a call on to libibverbs.
            if not found:
                self.complaints.append(f"src/abi/symbols.txt: {name} of {library} is defined nowhere")
            for file, match in found:
                unknown = calls(body_of(match.string, match.end() - 1)) - HARMLESS - self.names
                if not is_guarded(match) and unknown:
                    self.complain(file, match.start(), f"{name} calls {', '.join(sorted(unknown))} without a guard")

    def check_public(self) -> None:
        for file in self.in_folders(SOURCES["libringbolt.so"] + SOURCES["libringbolt-stream.so"]):
            for match in re.finditer(r"^RINGBOLT_PUBLIC [^;{}]*?(\w+)\([^;{}]*\) (?:try )?\{", self.texts[file], re.MULTILINE):
                unknown = calls(body_of(match.string, match.end() - 1)) - HARMLESS
                if unknown and not unknown & GUARDS_OF_OURS and " try {" not in match[0]:
                    self.complain(file, match.start(), f"{match[1]} calls {', '.join(sorted(unknown))} without a guard")

    def check_tables(self) -> None:
        for file in self.in_folders(SOURCES["libibverbs.so.1"]):
            for match in TABLE_PLACE.finditer(self.texts[file]):
                if match[2] != "nullptr" and definition(self.texts[file], match[2]):
                    self.complain(file, match.start(), f"{match[0]}: fill a table with base::put()")

    def check_within(self) -> None:
        """guarded_within<name>: `return X.impl->method(...)`, whose definition in src/device is guarded, or does nothing
        but call a part's method that is."""
        for file, text in self.texts.items():
            for match in re.finditer(r"guarded_within<(\w+)>", text):
                jumps = [jump for other in self.in_folders(SOURCES["libibverbs.so.1"])
                         if (jump := re.search(rf"^int {match[1]}\([^)]*\) \{{\s*return \w+::of\(\w+\)\.impl->(\w+)\([^()]*\);\s*\}}",
                                               self.texts[other], re.MULTILINE))]
                target = jumps[0][1] if jumps else match[1]
                hop = re.search(rf"^  int {target}\([^)]*\) \{{ return \w+_\.(\w+)\([^()]*\); \}}", self.headers, re.MULTILINE)
                target = hop[1] if hop else target
                wholes = [whole for device in self.in_folders(("src/device",))
                          if (whole := re.search(rf"^(?:\[\[gnu::\w+\]\] )?int (?:CompletionQueue|QueuePair|SendQueue|SharedReceiveQueue)::{target}\("
                                                 r"[^;{}]*\)\s*(?P<rest>[^;{}]*)\{", self.texts[device], re.MULTILINE))]
                if not jumps or not wholes or not all(is_guarded(whole) for whole in wholes):
                    self.complain(file, match.start(), f"{match[0]}: does not only jump into a guarded function")


def main() -> int:
    house = House(pathlib.Path(sys.argv[1]))
    house.check_exports()
    house.check_public()
    house.check_tables()
    house.check_within()
    print("\n".join(house.complaints), end="\n" if house.complaints else "")
    return 1 if house.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
