#!/usr/bin/env python3
"""Compares Ringbolt's collectives with those of Open MPI and MPICH on this machine.

All sides stay resident, take turns in blocks, and are pinned to core 0 and core 1; see docs/performance.md."""

import argparse
import os
import signal
import sys
from dataclasses import replace

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "compare")]
# pylint: disable=wrong-import-position
from cases import select  # noqa: E402
from collective_peers import CollectivePeers  # noqa: E402
from collectives import COLLECTIVES, with_best  # noqa: E402
from interleave import Interleaver, summarize  # noqa: E402
from machine import describe  # noqa: E402
from quiet import Watch  # noqa: E402
from report import show, status_of  # noqa: E402
from resident import PeerError  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
# Rounds, length of a block in milliseconds.
FULL = (15, 50)
QUICK = (8, 30)
SMOKE = (1, 2)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="build folder")
    parser.add_argument("--cases", default="", help="comma-separated ids, such as C3,C8 (default: all)")
    parser.add_argument("--only", default="", help="comma-separated peers to compare with (default: all)")
    parser.add_argument("--ours", default="", metavar="PEER",
                        help="another cabling for 2 ranks: ringbolt-ring2 (two rails)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help=f"{QUICK[0]} rounds of {QUICK[1]} ms: 2 minutes")
    length.add_argument("--smoke", action="store_true", help="only see that it works: one short block of everything")
    parser.add_argument("--rounds", type=int, help=f"blocks per peer and case (default {FULL[0]})")
    parser.add_argument("--block-ms", type=float, help=f"length of a block (default {FULL[1]})")
    parser.add_argument("--json", metavar="FILE", help="write everything as JSON too ('-': instead of the table)")
    parser.add_argument("--markdown", action="store_true", help="print the table for a document")
    parser.add_argument("--enforce", action="store_true", help="exit with 1 when a demanded ratio is missed")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    options = parser.parse_args(arguments)
    rounds, block_ms = SMOKE if options.smoke else QUICK if options.quick else FULL
    options.rounds = rounds if options.rounds is None else options.rounds
    options.block_ms = block_ms if options.block_ms is None else options.block_ms
    return options


def chosen_cases(options):
    """The cases that the options leave, with the rivals that they leave. ValueError for an unknown id."""
    cases = select([name for name in options.cases.split(",") if name], COLLECTIVES)
    if options.ours:
        cases = [replace(case, ours=options.ours) if case.ours == "ringbolt" else case for case in cases]
    if options.smoke:
        cases = [replace(case, block_factor=1) for case in cases]
    only = [name for name in options.only.split(",") if name]
    if only:
        cases = [replace(case, rivals=tuple(rival for rival in case.rivals if rival.peer in only)) for case in cases]
    return [case for case in cases if case.rivals]


def measure(options, cases, peers, say):
    """Everything, as plain data. Raises PeerError if the probe can't be had."""
    machine = describe()
    interleaver = Interleaver(peers, options.block_ms / 1e3, options.rounds, say)
    results = []
    for case in cases:
        say(f"{case.id}: {case.title}")
        results.append(with_best(case, summarize(case, *interleaver.run(case))))
    return {"machine": machine, "peers": peers.descriptions(), "block_ms": options.block_ms,
            "rounds": options.rounds, "probes_ns": interleaver.probes_ns, "cases": results}


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
    watch = Watch()
    peers = CollectivePeers(options.build)
    try:
        output = measure(options, cases, peers, say)
    except PeerError as problem:
        print(f"compare: {problem}", file=sys.stderr)
        return 2
    finally:
        peers.close()
    output["machine"]["taken_by_others"] = f"{watch.stolen_share():.1%} of the processors' time"
    show(options, output)
    return status_of(options, output["cases"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
