#!/usr/bin/env python3
"""Programs that sleep until something comes: ours, asleep on verbs events, beside an eventfd, UNIX sockets and TCP.

The peers take turns in short blocks, each two fresh processes on two cores; figures are medians of blocks, and ratios
are of two figures of one run. Exit status 0; 2: something could not be measured, or wrong usage."""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from blocks import Blocks, BenchError  # noqa: E402  (after the path)

PING_PONG = ("eventfd", "verbs", "verbs-write", "unix", "tcp")
SERVERS = ("tcp", "verbs", "verbs-write")
CROWDS = ((0, 0), (1000, 0), (5000, 0), (0, 10000))  # idle connections, and how many were opened and closed before
SHAPES = [(connections, size, pipeline) for connections in (1, 50) for size in (64, 4096) for pipeline in (1, 16)]


def tell_ping_pong(blocks):
    print(f"{'8 bytes to and fro, both asleep':34} {'p50 us':>8} {'p99 us':>8} {'of eventfd':>11}")
    floor = blocks.median("p50_ns", "ping-pong", "eventfd", 8)
    for kind in PING_PONG:
        median = blocks.median("p50_ns", "ping-pong", kind, 8)
        late = blocks.median("p99_ns", "ping-pong", kind, 8)
        print(f"  {kind:32} {median / 1000:8.2f} {late / 1000:8.2f} {median / floor:11.2f}")


def tell_servers(blocks):
    print(f"\n{'request and reply':34} {'per second':>10} {'p50 us':>8} {'p99 us':>8} {'of TCP':>7}")
    for shape in SHAPES:
        connections, size, pipeline = shape
        print(f"  {connections} connection{'s' if connections > 1 else ''}, {size} B, {pipeline} at a time")
        base = blocks.median("per_second", "serve", "tcp", *shape)
        for kind in SERVERS:
            rate = blocks.median("per_second", "serve", kind, *shape)
            median = blocks.median("p50_ns", "serve", kind, *shape)
            late = blocks.median("p99_ns", "serve", kind, *shape)
            print(f"    {kind:30} {rate:10.0f} {median / 1000:8.1f} {late / 1000:8.1f} {rate / base:7.2f}")


def tell_crowds(blocks):
    print(f"\n{'one busy connection, 8 B':34} {'per second':>10} {'of alone':>9}")
    for way in ("sleeps", "polls"):
        alone = blocks.median("per_second", "crowd", way, 0, 0)
        for idle, churn in CROWDS:
            rate = blocks.median("per_second", "crowd", way, idle, churn)
            print(f"  {f'{way}, {idle} idle, {churn} gone':32} {rate:10.0f} {rate / alone:9.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="build folder")
    parser.add_argument("--rounds", type=int, default=7, help="blocks of each series")
    parser.add_argument("--block-ms", type=int, default=300, help="length of a block")
    parser.add_argument("--no-crowds", action="store_true", help="leave thousands of connections out")
    arguments = parser.parse_args()
    environment = dict(os.environ, LD_LIBRARY_PATH=os.path.join(arguments.build, "lib", "ringbolt"))
    blocks = Blocks(os.path.join(arguments.build, "bench", "bench_events"), arguments.block_ms, environment)
    try:
        for _ in range(arguments.rounds):
            for kind in PING_PONG:
                blocks.run("ping-pong", kind, 8)
            for shape in SHAPES:
                for kind in SERVERS:
                    blocks.run("serve", kind, *shape)
            for way in () if arguments.no_crowds else ("sleeps", "polls"):
                for crowd in CROWDS:
                    blocks.run("crowd", way, *crowd)
    except (BenchError, OSError) as problem:
        print(f"events.py: {problem}", file=sys.stderr)
        return 2
    tell_ping_pong(blocks)
    tell_servers(blocks)
    if not arguments.no_crowds:
        tell_crowds(blocks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
