"""The command `ringbolt`, as the wheel has it: also `python3 -m ringbolt`."""

import os
import sys

from ._library import NATIVE


def main() -> None:
    """Becomes that program; comes back only as an error."""
    program = str(NATIVE / "bin/ringbolt")
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as problem:
        sys.exit(f"ringbolt: {program}: {problem.strerror}. The command comes with a wheel of Ringbolt; in a clone it is "
                 "build/release/bin/ringbolt")


if __name__ == "__main__":
    main()
