#!/usr/bin/env python3
"""Threads of src are started by base/start_thread.h, which blocks the program's signals in them: its handlers must not run
in threads that it does not know. Tests start theirs as they like.

    threads.py ROOT         prints each place that is not so as FILE:LINE, exit 1 if there is one
    threads.py --self-test  the rules against a few lines
"""

import pathlib
import re
import sys

# A thread that is made: std::thread(...), std::thread name(...), std::jthread, std::async, pthread_create(), and members
# named after threads that are given something to run.
MADE = re.compile(r"std::j?thread\s*(?:\w+\s*)?[({]|std::jthread\b|std::async\b|pthread_create\s*\(|\b(?!start_thread\b)\w*threads?_?(?:\.emplace_back)?\s*[({]\s*\[")
# These block signals themselves.
OWN = {"src/base/start_thread.h", "src/base/file_turn.cpp"}


def findings(name: str, lines: list[str]) -> list[str]:
    found = []
    for number, line in enumerate(lines, 1):
        if made := MADE.search(line.split("//", 1)[0]):
            found.append(f"{name}:{number}: {made.group()}: take base::start_thread()")
    return found


def self_test() -> int:
    cases = (("  thread_ = std::thread([this] { run(); });\n", 1), ("  std::thread thread(run, bench);\n", 1),
             ("  std::thread one{run};\n", 1), ("      thread_([this] { run(); }) {}\n", 1),
             ("      worker_thread_([this] { run(); }) {}\n", 1), ("  threads_.emplace_back([this] { run(); });\n", 1),
             ("  const int error = ::pthread_create(&thread, &small, run, nullptr);\n", 1),
             ("  std::thread thread_;\n", 0), ("  std::thread thread = base::start_thread([] {});\n", 0),
             ("  std::vector<std::thread> all;\n", 0), ("  // std::thread(run) is not ours\n", 0),
             ("      thread_(base::start_thread([this] { run(); })) {}\n", 0),
             ("  return std::max(1U, std::thread::hardware_concurrency());\n", 0))
    wrong = [text for text, expected in cases if len(findings("x", [text])) != expected]
    print(*(wrong or ["the rules hold"]), sep="\n")
    return 1 if wrong else 0


def main() -> int:
    if sys.argv[1] == "--self-test":
        return self_test()
    root = pathlib.Path(sys.argv[1])
    found = []
    for file in sorted((root / "src").rglob("*")):
        name = str(file.relative_to(root))
        is_test = file.stem.endswith("_test") or file.stem.endswith("_test_support")
        if file.suffix in {".h", ".cpp"} and not is_test and name not in OWN:
            found += findings(name, file.read_text().splitlines())
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
