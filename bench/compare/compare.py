#!/usr/bin/env python3
"""Compares Ringbolt with the shared-memory paths of UCX, Open MPI, MPICH, libfabric and TCP on this machine.

Both sides stay resident, take turns in blocks, and are pinned to core 0 and core 1; see docs/performance.md."""

import argparse
import os
import signal
import sys
from dataclasses import replace

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from cases import select  # noqa: E402
from interleave import Interleaver, summarize  # noqa: E402
from machine import describe  # noqa: E402
from peers import Peers  # noqa: E402
from report import show, status_of  # noqa: E402
from resident import PeerError  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="build folder with bench/ and lib/ringbolt/")
    parser.add_argument("--library-dir", help="folder of another libibverbs.so.1 to measure")
    parser.add_argument("--cases", default="", help="comma-separated ids, such as P2,P4 (default: all)")
    parser.add_argument("--only", default="", help="comma-separated peers to compare with (default: all)")
    parser.add_argument("--rounds", type=int, default=15, help="blocks per peer and case (default 15)")
    parser.add_argument("--block-ms", type=float, default=50, help="length of a block (default 50)")
    parser.add_argument("--json", metavar="FILE", help="write everything as JSON too ('-': instead of the table)")
    parser.add_argument("--markdown", action="store_true", help="print the table for a document")
    parser.add_argument("--enforce", action="store_true", help="exit with 1 when a demanded ratio is missed")
    parser.add_argument("--smoke", action="store_true",
                        help="only see that our side works: one short block of each case, beside TCP")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.rounds, options.block_ms = 1, 5
    return options


def chosen_cases(options):
    cases = select([name for name in options.cases.split(",") if name])
    only = ["tcp"] if options.smoke else [name for name in options.only.split(",") if name]
    if not only:
        return cases
    reduced = [replace(case, rivals=tuple(rival for rival in case.rivals if rival.peer in only)) for case in cases]
    return [case for case in reduced if case.rivals or options.smoke]


def main(arguments):
    options = parse(arguments)
    try:
        cases = chosen_cases(options)
    except ValueError as unknown:
        print(f"compare: {unknown}", file=sys.stderr)
        return 2
    if os.cpu_count() < 2 or not {0, 1} <= os.sched_getaffinity(0):
        print("compare: needs cores 0 and 1; run it where both are allowed (taskset -p says)", file=sys.stderr)
        return 2

    def say(text):
        if not options.quiet:
            print(text, file=sys.stderr, flush=True)

    # Whoever ends us ends our workers too: they are closed on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    peers = Peers(options.build, options.library_dir)
    machine = describe()
    results = []
    try:
        interleaver = Interleaver(peers, options.block_ms / 1e3, options.rounds, say)
        for case in cases:
            say(f"{case.id}: {case.title}")
            results.append(summarize(case, *interleaver.run(case)))
        output = {"machine": machine, "peers": peers.descriptions(), "block_ms": options.block_ms,
                  "rounds": options.rounds, "probes_ns": interleaver.probes_ns, "cases": results}
    except PeerError as problem:
        print(f"compare: {problem}", file=sys.stderr)
        return 2
    finally:
        peers.close()
    show(options, output)
    return status_of(options, results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
