#!/usr/bin/env python3
"""What clang's thread-safety analysis needs in order to see anything, outside of src/base:

* locks are those of base: the standard library's carry no annotations;
* each lock is named by an annotation that says what it guards, or which calls take it, or says itself by which role
  annotations know it.

    locks.py ROOT         prints each place that is not so as FILE:LINE, exit 1 if there is one
    locks.py --self-test  the rules against a few lines
"""

import pathlib
import re
import sys

BARE = re.compile(r"std::(?:(?:recursive_|shared_|timed_|recursive_timed_|shared_timed_)?mutex|lock_guard|scoped_lock|"
                  r"unique_lock|shared_lock|condition_variable(?:_any)?|adopt_lock|defer_lock|try_to_lock)\b")
LOCK = re.compile(r"^\s+(?:mutable )?(?:base::)?(?:Mutex|SharedMutex|AdaptiveMutex) (\w+)\b")
SAYS_WHAT = re.compile(r"RINGBOLT_(?:PT_GUARDED_BY|GUARDED_BY|REQUIRES|REQUIRES_SHARED|ACQUIRE|EXCLUDES)\(([^()]*(?:\([^()]*\))?[^()]*)\)|"
                       r"RINGBOLT_RETURNS_LOCK\(\w+\) \{ return (\w+);")


def findings(name: str, lines: list[str], named: set[str]) -> list[str]:
    """`named`: the last names of all locks that annotations of the folder mention."""
    found = []
    for number, line in enumerate(lines, 1):
        code = line.split("//", 1)[0]
        if bare := BARE.search(code):
            found.append(f"{name}:{number}: {bare.group()}: take the one of src/base")
        if (lock := LOCK.match(code)) and lock.group(1) not in named and "RINGBOLT_HELD_AS(" not in code:
            found.append(f"{name}:{number}: {lock.group(1)}: no annotation says what it guards")
    return found


def names_in(text: str) -> set[str]:
    names = set()
    for match in SAYS_WHAT.finditer(text):
        for argument in (match.group(1) or match.group(2)).split(","):
            if words := re.findall(r"\w+", argument):
                names.add(words[-1])
    return names


def self_test() -> int:
    guarded = "  base::Mutex mutex_;\n  int n_ RINGBOLT_GUARDED_BY(mutex_);\n"
    cases = ((guarded, 0), ("  base::Mutex mutex_;\n  int n_;\n", 1), ("  std::mutex mutex_;\n", 1),
             ("// std::mutex is not ours\n", 0), ("  base::Mutex mutex RINGBOLT_HELD_AS(role);\n", 0),
             ("  base::Mutex mutex;\nvoid f() RINGBOLT_ACQUIRE(registry().mutex);\n", 0))
    wrong = [text for text, expected in cases if len(findings("x", text.splitlines(), names_in(text))) != expected]
    print(*(wrong or ["the rules hold"]), sep="\n")
    return 1 if wrong else 0


def main() -> int:
    if sys.argv[1] == "--self-test":
        return self_test()
    root = pathlib.Path(sys.argv[1])
    found = []
    for top in ("src", "tools"):
        files = [file for file in sorted((root / top).rglob("*")) if file.suffix in {".h", ".cpp"}]
        texts = {file: file.read_text() for file in files if root / "src/base" not in file.parents}
        folders: dict[pathlib.Path, set[str]] = {}
        for file, text in texts.items():
            folders.setdefault(file.parent, set()).update(names_in(text))
        for file, text in texts.items():
            found += findings(str(file.relative_to(root)), text.splitlines(), folders[file.parent])
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
