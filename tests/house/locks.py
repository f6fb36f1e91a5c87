#!/usr/bin/env python3
"""Refuses locks other than those of src/base: clang's thread-safety analysis knows only these, and whoever waits for one
of them sleeps, so that a system call may be made under each.

    locks.py ROOT

Prints each as FILE:LINE, exit 1 if there is one.
"""

import pathlib
import re
import sys

BARE = re.compile(r"std::(?:(?:recursive_|shared_|timed_|recursive_timed_|shared_timed_)?mutex|lock_guard|scoped_lock|"
                  r"unique_lock|shared_lock|condition_variable(?:_any)?|adopt_lock|defer_lock|try_to_lock|atomic_flag)\b|"
                  r"\bpthread_spin_\w+|\w*[Ss]pin_?[Ll]ock\w*|\bvoid (?:un)?lock\(\)")


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    found = 0
    for top in ("src", "tools"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in {".h", ".cpp"} or root / "src/base" in file.parents:
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if bare := BARE.search(line.split("//", 1)[0]):
                    print(f"{file.relative_to(root)}:{number}: {bare.group()}: take the one of src/base")
                    found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
