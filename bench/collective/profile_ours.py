#!/usr/bin/env python3
"""Shows in which functions rank 0 of our side spends a collective: perf, on the workers of the comparison.

The benchmark's own share (writing inputs, checking outputs, waiting for the start) is listed apart."""

import argparse
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "compare")]
# pylint: disable=wrong-import-position
from collective_peers import CollectivePeers  # noqa: E402
from resident import PeerError  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
WORKER = "bench_collective_group"
COMM = WORKER[:15]
# Names of the benchmark's own functions.
BENCH = re.compile(r"ringbolt::bench::|write_words|differing_from")
ROW = re.compile(r"\s*([0-9.]+)%\s+(\S+)\s+\[(.)\]\s+(.*)")


def share_of(lines):
    """(share, library, function) of perf's rows; shares are fractions. The kernel's functions are one row."""
    rows, kernel = [], 0.0
    for line in lines:
        match = ROW.match(line)
        if match and match[3] == "k":
            kernel += float(match[1]) / 100
        elif match:
            rows.append((float(match[1]) / 100, match[2], match[4].strip()))
    return sorted(rows + ([(kernel, "kernel", "all of it")] if kernel else []), reverse=True)


def split(rows):
    """The rows that are not the benchmark's own, as shares of what is left; and the benchmark's share."""
    bench = sum(share for share, _, name in rows if BENCH.search(name))
    left = sum(share for share, _, _ in rows) - bench
    return [(share / left, library, name) for share, library, name in rows if not BENCH.search(name)], bench


def all_ranks_0():
    """Process numbers of all workers that are rank 0 of some cluster, others' too."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/comm", encoding="utf-8") as comm, \
                 open(f"/proc/{entry}/environ", encoding="utf-8", errors="replace") as environment:
                if comm.read().strip() == COMM and "RINGBOLT_NODE=0" in environment.read().split("\0"):
                    found.append(int(entry))
        except OSError:
            continue  # it has ended, or is somebody else's
    return found


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="build folder")
    parser.add_argument("--peer", default="ringbolt", help="ringbolt, ringbolt-ring2, ringbolt-mesh4, ringbolt-ring4")
    parser.add_argument("--operation", default="all_reduce/float32/out", help="as the cases have it")
    parser.add_argument("--sizes", default="64,4096,65536,1048576,16777216", help="bytes of each rank's input")
    parser.add_argument("--seconds", type=float, default=3, help="for each size (default 3)")
    parser.add_argument("--rows", type=int, default=25, help="functions to show (default 25)")
    options = parser.parse_args(arguments)
    before = set(all_ranks_0())
    peers = CollectivePeers(options.build)
    try:
        peer = peers.get(options.peer)
        (pid,) = set(all_ranks_0()) - before
        for size in (int(word) for word in options.sizes.split(",")):
            profile(options, peer, pid, size)
    except PeerError as problem:
        print(f"profile: {problem}", file=sys.stderr)
        return 2
    finally:
        peers.close()
    return 0


def profile(options, peer, pid, size):
    is_touched = options.operation != "barrier"
    iterations = 20
    for seconds in (0.02, 0.2, options.seconds):  # the first calls take longer than the others, and to begin takes a while
        trial = peer.run(options.operation, size, iterations, is_touched)[0]
        iterations = max(20, min(1 << 20, int(iterations * seconds / trial["seconds"])))
    with tempfile.NamedTemporaryFile(prefix="rbperf-") as data:
        perf = subprocess.Popen(["perf", "record", "-q", "-F", "4000", "-p", str(pid), "-o", data.name],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            figures = peer.run(options.operation, size, iterations, is_touched)[0]
        finally:
            perf.terminate()
            perf.wait(timeout=30)
        report = subprocess.run(["perf", "report", "-i", data.name, "--stdio", "--no-children", "-s", "dso,symbol",
                                 "--percent-limit", "0.1"], capture_output=True, text=True, check=False).stdout
    rows, bench = split(share_of(report.splitlines()))
    print(f"\n{options.operation} of {size} bytes: p50 {figures['p50_ns'] / 1e3:.2f} us,"
          f" p99 {figures['p99_ns'] / 1e3:.2f} us, {iterations} calls; the benchmark itself: {bench:.0%} of all samples, which are left out below")
    for share, library, name in rows[:options.rows]:
        print(f"  {share:6.1%}  {library:24}  {name[:120]}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
