#!/usr/bin/env python3
"""Reports how long the files are: more than 300 lines asks whether there are two ideas in one, more than 500 says so.

    lengths.py ROOT

Exit 1 if a file is longer than 500 lines.
"""

import pathlib
import statistics
import subprocess
import sys

ASK_AT = 300
STOP_AT = 500
SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".py", ".sh", ".cmake"}
FOLDERS = {"include", "src", "tools", "tests", "bench", "python", "scripts", "cmake"}


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"],
                            capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = [pathlib.Path(name) for name in listed.stdout.splitlines()]
    else:  # an unpacked archive
        names = [file.relative_to(root) for folder in FOLDERS for file in (root / folder).rglob("*")]
    lengths = {name: len((root / name).read_bytes().splitlines()) for name in names
               if name.suffix in SUFFIXES and name.parts[0] in FOLDERS and (root / name).is_file()}
    long = sorted(((length, name) for name, length in lengths.items() if length > ASK_AT), reverse=True)
    for length, name in long:
        print(f"{length:5} {name}{'   split it' if length > STOP_AT else ''}")
    print(f"{len(lengths)} files, median {statistics.median(lengths.values()):.0f} lines, {len(long)} over {ASK_AT}")
    return 1 if long and long[0][0] > STOP_AT else 0


if __name__ == "__main__":
    sys.exit(main())
