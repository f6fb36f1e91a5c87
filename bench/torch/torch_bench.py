#!/usr/bin/env python3
"""torch.distributed's all_reduce by the backend "ringbolt" beside gloo, and beside ringbolt.Group's own call, two ranks on this
machine.

The sides take turns in short blocks, in the same two processes; figures are medians of blocks, and ratios of two figures of one
run. Exit status 0; 2: something could not be measured, or wrong usage; 77: no torch."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SIZES = {64: 5, 4096: 5, 65536: 10, 1 << 20: 4, 16 << 20: 2}  # bytes, and how many times faster than gloo it shall be
SIDES = ("gloo", "ringbolt", "group")


def run_ranks(arguments):
    """[(side, bytes, microseconds)] of rank 0."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RINGBOLT_", "LD_"))}
    with tempfile.TemporaryDirectory(prefix="rb", dir="/tmp") as folder:
        environment |= {"RINGBOLT_RUNTIME_DIR": folder, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1",
                        "LD_LIBRARY_PATH": str(arguments.build / "lib"), "PYTHONWARNINGS": "ignore"}
        ringbolt = str(arguments.build / "bin/ringbolt")
        subprocess.run([ringbolt, "up", "--emulate", "line:2"], env=environment, check=True, stdout=subprocess.DEVNULL)
        try:
            done = subprocess.run([ringbolt, "run", "--no-tag", "--", arguments.python, "-B", HERE / "worker.py",
                                   f"{folder}/store", str(arguments.rounds), str(arguments.block_ms), *map(str, SIZES)],
                                  env=environment, text=True, capture_output=True, timeout=600, check=False)
        finally:
            subprocess.run([ringbolt, "down", "--force"], env=environment, check=True, stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        sys.exit(2)
    return [(side, int(size), float(figure)) for side, size, figure in map(str.split, done.stdout.splitlines())]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--python", default="/usr/bin/python3", help="one that has torch")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--block-ms", type=int, default=50)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if subprocess.run([arguments.python, "-c", "import torch.distributed"], capture_output=True, check=False).returncode != 0:
        print(f"skip: {arguments.python} has no torch")
        sys.exit(77)
    try:
        figures = run_ranks(arguments)
    except (OSError, ValueError, subprocess.SubprocessError) as problem:
        print(f"torch_bench.py: {problem}", file=sys.stderr)
        sys.exit(2)
    rows = []
    for size, goal in SIZES.items():
        gloo, ours, group = (statistics.median(us for one, of, us in figures if (one, of) == (side, size)) for side in SIDES)
        rows.append({"bytes": size, "gloo_us": gloo, "ringbolt_us": ours, "ratio": gloo / ours, "goal": goal, "group_us": group,
                     "overhead_us": ours - group})
    print(f"{'all_reduce':>12} {'gloo us':>10} {'ringbolt us':>12} {'ratio':>7} {'goal':>5}   "
          f"{'Group us':>10} {'overhead us':>12}")
    for row in rows:
        print(f"{row['bytes']:10} B {row['gloo_us']:10.1f} {row['ringbolt_us']:12.1f} {row['ratio']:7.2f} {row['goal']:5}   "
              f"{row['group_us']:10.1f} {row['overhead_us']:12.1f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


main()
