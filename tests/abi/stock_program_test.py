#!/usr/bin/env python3
"""Programs linked against the system's library, started on ours.

    stock_program_test.py PROGRAM LIBRARY_DIR SYSTEM_LIBRARY [PROVIDER...]

* The loader takes our library for them, by name and versions alone.
* The functions that need no device answer as the system's do, for every argument.
* The system's own vendor libraries (PROVIDER: libmlx5.so.1, libefa.so.1) load on ours, all names bound at once: what
  happens to a program when our folder holds the verbs library only.
"""

import os
import pathlib
import subprocess
import sys
import tempfile


def run(command: list[str], library_dir: str, **extra: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "LD_LIBRARY_PATH": library_dir, **extra}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    program, ours, system, *providers = sys.argv[1:]
    found = []

    where = run([program, "where"], ours)
    if where.returncode != 0 or pathlib.Path(where.stdout.strip()).parent != pathlib.Path(ours):
        found.append(f"loaded from '{where.stdout.strip()}', not from {ours}: {where.stderr}")

    answers = run([program], ours)
    reference = run([program], str(pathlib.Path(system).parent))
    if not reference.stdout or reference.returncode != 0:
        found.append(f"the system's library gives no answers: {reference.stderr}")
    for mine, theirs in zip(answers.stdout.splitlines(), reference.stdout.splitlines()):
        if mine != theirs:
            found.append(f"ours says '{mine}', the system's '{theirs}'")
    if len(answers.stdout) != len(reference.stdout):
        found.append(f"{len(answers.stdout)} bytes of answers, the system's library gives {len(reference.stdout)}")

    with tempfile.TemporaryDirectory() as alone:
        pathlib.Path(alone, "libibverbs.so.1").symlink_to(pathlib.Path(ours, "libibverbs.so.1"))
        for provider in providers:
            loaded = run([program], alone, LD_PRELOAD=provider, LD_BIND_NOW="1")
            if loaded.returncode != 0 or loaded.stderr:
                found.append(f"{provider} does not load on ours: {loaded.stderr}")

    print("\n".join(found) if found else f"{len(answers.stdout.splitlines())} answers alike, {len(providers)} providers load")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
