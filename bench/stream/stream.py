#!/usr/bin/env python3
"""Byte streams over RDMA (libringbolt-stream) beside UNIX sockets and TCP: `ringbolt bench stream`, and one key-value server
(examples/key-value) over both.

The peers take turns in short blocks, on two cores; figures are medians of blocks, and ratios are of two figures of one run.
Exit status 0; 2: something could not be measured, or wrong usage."""

import argparse
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from blocks import Blocks, BenchError  # noqa: E402  (after the path)

LOADS = [(clients, size, verb) for clients in (1, 50) for size in (64, 512) for verb in ("get", "set")]
SPIN_US = 50  # of the server and its clients, where they poll


class Server:
    """The example on core 0, over both; ended with this."""

    def __init__(self, build, environment, spin_us):
        program = os.path.join(build, "bin", "key_value_server")
        command = [program, "--bind", "127.0.0.1", "--rdma", "0", "--tcp", "0", "--spin", str(spin_us)]
        self._process = subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL)  # it tells of clients that left in the middle
        os.sched_setaffinity(self._process.pid, {0})
        self.ports = {}
        for _ in range(2):
            kind, port = self._process.stdout.readline().split()
            self.ports["stream" if kind == "rdma" else kind] = port

    def end(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


def tell_loads(blocks):
    print(f"\n{'key-value server':34} {'per second':>10} {'p50 us':>8} {'p99 us':>8} {'of TCP':>7}")
    for load in LOADS:
        clients, size, verb = load
        print(f"  {clients} client{'s' if clients > 1 else ''}, {verb} of {size} B")
        base = blocks.median("per_second", "load", "tcp, asleep", *load)
        for kind in ("tcp, asleep", "stream, asleep", "tcp, polling", "stream, polling"):
            rate, median, late = (blocks.median(key, "load", kind, *load) for key in ("per_second", "p50_ns", "p99_ns"))
            print(f"    {kind:30} {rate:10.0f} {median / 1000:8.1f} {late / 1000:8.1f} {rate / base:7.2f}")


def measure(blocks, arguments, environment):
    for _ in range(arguments.rounds):
        for spin_us, way in ((0, "asleep"), (SPIN_US, "polling")):
            server = Server(arguments.build, environment, spin_us)
            try:
                for load in LOADS:
                    for kind in ("tcp", "stream"):
                        clients, size, verb = load
                        blocks.run(kind, server.ports[kind], clients, size, verb, spin_us,
                                   series=("load", f"{kind}, {way}", *load))
            finally:
                server.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="build folder")
    parser.add_argument("--rounds", type=int, default=7, help="blocks of each series")
    parser.add_argument("--block-ms", type=int, default=300, help="length of a block")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rbs-") as runtime:
        environment = dict(os.environ, RINGBOLT_RUNTIME_DIR=runtime, RINGBOLT_VERBS="soft")
        environment.pop("RINGBOLT_CLUSTER", None)
        environment.pop("RINGBOLT_NODE", None)
        blocks = Blocks(os.path.join(arguments.build, "bench", "bench_stream"), arguments.block_ms, environment)
        try:
            bench = [os.path.join(arguments.build, "bin/ringbolt"), "bench", "stream", "-N", str(arguments.rounds),
                     "--block-ms", str(arguments.block_ms)]
            if subprocess.run(bench, env=environment, check=False).returncode != 0:
                return 2
            measure(blocks, arguments, environment)
        except (BenchError, OSError, ValueError) as problem:
            print(f"stream.py: {problem}", file=sys.stderr)
            return 2
    tell_loads(blocks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
