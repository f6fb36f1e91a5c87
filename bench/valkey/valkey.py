#!/usr/bin/env python3
"""Redis and Valkey over TCP, UNIX sockets and RDMA in one run: Debian's redis-server, stock valkey-server with its RDMA
transport over Ringbolt's device, their own benchmarks and a client of ours, and bridges between them.

The ways take turns, cell by cell and round by round, servers on core 0 and clients on core 1. Figures are the best and the
median of rounds, and ratios are of medians of one run: of the same server over TCP.

Exit status 0; 2: something could not be measured, or wrong usage; 77: there is no Valkey here."""

import argparse
import contextlib
import csv
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
VALKEY = ROOT / "build/valkey"
RDMA_PORT, BRIDGE_PORT = 6379, 6380  # of the runtime folder's own: nobody else's is in the way
PATIENCE_S = 20
BLOCK_LIMIT_S = 300


class BenchError(Exception):
    """A way gave no figures."""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Servers:
    """All of them, on core 0, until the end."""

    def __init__(self, build, runtime):
        self.build, self.runtime, self.stack = build, pathlib.Path(runtime), contextlib.ExitStack()
        self.environment = dict(os.environ, RINGBOLT_RUNTIME_DIR=runtime, RINGBOLT_VERBS="soft",
                                LD_LIBRARY_PATH=f"{build}/lib:{build}/lib/ringbolt")
        for name in ("RINGBOLT_CLUSTER", "RINGBOLT_NODE", "RINGBOLT_LIKE", "RINGBOLT_FAULTS"):
            self.environment.pop(name, None)

    def start(self, program, *words, name=None):
        process = subprocess.Popen([name or str(program), *map(str, words)], executable=program, env=self.environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.runtime)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        os.sched_setaffinity(process.pid, {0})

    def await_answer(self, *words):
        """Asks a client until the server answers."""
        until, said = time.monotonic() + PATIENCE_S, b""
        while b"PONG" not in said:
            if time.monotonic() > until:
                raise BenchError(f"{' '.join(map(str, words))}: no answer within {PATIENCE_S} s")
            with contextlib.suppress(subprocess.TimeoutExpired):  # Valkey's client waits long for who does not listen yet
                said = subprocess.run(list(map(str, words)), env=self.environment, capture_output=True, check=False,
                                      timeout=1).stdout

    def server(self, program, *more, name=None):
        """Over TCP and a UNIX socket: its port and path."""
        port, path = free_port(), self.runtime / f"{pathlib.Path(program).name}.sock"
        self.start(program, "--port", port, "--bind", "127.0.0.1", "--unixsocket", path, "--save", "", "--appendonly", "no",
                   "--protected-mode", "no", *more, name=name)
        self.await_answer(VALKEY / "valkey-cli", "-p", port, "PING")
        return port, path


def ways(servers, bench_stream):
    """Name: (benchmark command, the name of what it is compared with). Says what is left out and why."""
    cli, benchmark = VALKEY / "valkey-cli", VALKEY / "valkey-benchmark"
    found = {}
    valkey_port, valkey_path = servers.server(VALKEY / "valkey-server", "--rdma-bind", "127.0.0.1", "--rdma-port", RDMA_PORT)
    rdma = ["--rdma", "-h", "127.0.0.1"]
    found["valkey, TCP"] = ([benchmark, "-p", valkey_port], "valkey, TCP")
    found["valkey, UNIX"] = ([benchmark, "-s", valkey_path], "valkey, TCP")
    found["valkey, RDMA"] = ([benchmark, *rdma, "-p", RDMA_PORT], "valkey, TCP")
    found["valkey, TCP, our client"] = ([bench_stream, "tcp", valkey_port], "valkey, TCP, our client")
    found["valkey, RDMA, our client"] = ([bench_stream, "stream", RDMA_PORT], "valkey, TCP, our client")
    # Debian's redis-tools has the server under the name of a tool that is the same program; the package redis-server adds
    # a daemon that runs.
    redis, redis_benchmark = shutil.which("redis-check-rdb"), shutil.which("redis-benchmark")
    ringbolt = servers.build / "bin/ringbolt"
    has_bridge = b"--listen" in subprocess.run([ringbolt, "bridge", "--help"], capture_output=True, check=False).stdout
    if not has_bridge:
        print("skip: bridges: this ringbolt has no command `bridge`")
    if redis and redis_benchmark:
        port, path = servers.server(redis, name="redis-server")
        found["redis, TCP"] = ([redis_benchmark, "-p", port], "redis, TCP")
        found["redis, UNIX"] = ([redis_benchmark, "-s", path], "redis, TCP")
        if has_bridge:
            servers.start(ringbolt, "bridge", "--listen", f"rdma:127.0.0.1:{BRIDGE_PORT}", "--connect", f"unix:{path}")
            servers.await_answer(cli, *rdma, "-p", BRIDGE_PORT, "PING")
            found["redis, RDMA by a bridge"] = ([benchmark, *rdma, "-p", BRIDGE_PORT], "redis, TCP")
    else:
        print("skip: redis: no redis-check-rdb and redis-benchmark (Debian: redis-tools)")
    if has_bridge:
        forward = free_port()
        servers.start(ringbolt, "bridge", "--listen", f"tcp:127.0.0.1:{forward}", "--connect", f"rdma:127.0.0.1:{RDMA_PORT}")
        servers.await_answer(cli, "-p", forward, "PING")
        found["valkey, TCP by a bridge to RDMA"] = ([benchmark, "-p", forward], "valkey, TCP")
    return found


def cells(quick):
    """(clients, pipelined requests, bytes, verb)"""
    shapes = [(1, 1, 64), (50, 16, 64)] if quick else [(c, p, size) for c in (1, 50) for p in (1, 16)
                                                       for size in (3, 64, 4096, 65536)]
    return [(*shape, verb) for shape in shapes for verb in ("SET", "GET")]


def run_block(servers, words, cell, requests, block_ms):
    """Requests a second, and the median time of one in microseconds. None: that way has no such cell."""
    clients, pipeline, size, verb = cell
    is_ours = "bench_stream" in str(words[0])
    if is_ours and pipeline != 1:
        return None
    command = [*words, clients, size, verb.lower(), 0, block_ms] if is_ours else [
        *words, "-c", clients, "-P", pipeline, "-d", size, "-t", verb.lower(), "-n", requests, "--csv"]
    command = list(map(str, command))
    try:
        done = subprocess.run(command, env=servers.environment, text=True, capture_output=True, check=False,
                              timeout=BLOCK_LIMIT_S, cwd=servers.runtime,
                              preexec_fn=lambda: os.sched_setaffinity(0, set(list(os.sched_getaffinity(0))[-1:])))
    except subprocess.TimeoutExpired as late:
        raise BenchError(f"{' '.join(command)}: no figures within {BLOCK_LIMIT_S} s") from late
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    if is_ours:
        fields = done.stdout.split()
        figures = dict(zip(fields[::2], map(float, fields[1::2])))
        return figures["per_second"], figures["p50_ns"] / 1000
    for row in csv.DictReader(done.stdout.splitlines()):
        if row.get("test") == verb:
            return float(row["rps"]), float(row["p50_latency_ms"]) * 1000
    raise BenchError(f"{' '.join(command)}: no line for {verb}: {done.stdout[-500:]}")


def measure(servers, found, arguments):
    """figures[cell][way]: a list of (requests a second, median us)."""
    figures = {cell: {name: [] for name in found} for cell in cells(arguments.quick)}
    for number in range(arguments.rounds):
        for cell, of_ways in figures.items():
            # Fewer requests where each takes longer, so that blocks take about equally long.
            requests = max(100, arguments.requests * (cell[1] if cell[2] < 65536 else 1) // (1 if cell[2] < 65536 else 4))
            for name, (words, _) in found.items():
                block = run_block(servers, words, cell, requests, arguments.block_ms)
                if block:
                    of_ways[name].append(block)
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
    return figures


def tell(figures, found, load):
    print(f"load average {load[0]:.1f} before, {load[1]:.1f} after")
    rows = []
    for (clients, pipeline, size, verb), of_ways in figures.items():
        print(f"{verb} of {size} B, {clients} client{'s' if clients > 1 else ''}, {pipeline} at a time")
        print(f"  {'':34} {'best krps':>10} {'median':>8} {'p50 us':>8} {'of TCP':>7}")
        for name, blocks in of_ways.items():
            if not blocks:
                continue
            rates = [rate for rate, _ in blocks]
            base = statistics.median(rate for rate, _ in of_ways[found[name][1]])
            row = {"clients": clients, "pipeline": pipeline, "bytes": size, "verb": verb, "way": name, "best_rps": max(rates),
                   "median_rps": statistics.median(rates), "p50_us": statistics.median(p50 for _, p50 in blocks),
                   "times_tcp": statistics.median(rates) / base}
            rows.append(row)
            print(f"  {name:34} {row['best_rps'] / 1000:10.1f} {row['median_rps'] / 1000:8.1f} {row['p50_us']:8.1f} "
                  f"{row['times_tcp']:7.2f}")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build/release", type=pathlib.Path, help="build folder")
    parser.add_argument("--rounds", type=int, default=5, help="blocks of each way in each cell")
    parser.add_argument("--requests", type=int, default=20000, help="of a block without pipelining")
    parser.add_argument("--block-ms", type=int, default=500, help="length of a block of our client")
    parser.add_argument("--quick", action="store_true", help="four cells only")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures there as well")
    arguments = parser.parse_args()
    setup = subprocess.run([ROOT / "scripts/setup-valkey"], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True,
                           check=False)
    if setup.returncode != 0:
        print(f"skip: no Valkey: {(setup.stdout.strip().splitlines() or ['no word of why'])[-1]}")
        return 77
    build = arguments.build.resolve()
    with tempfile.TemporaryDirectory(prefix="rbv-") as runtime:
        servers = Servers(build, runtime)
        with servers.stack:
            try:
                found = ways(servers, build / "bench/bench_stream")
                before = os.getloadavg()[0]
                figures = measure(servers, found, arguments)
            except (BenchError, OSError, ValueError, subprocess.TimeoutExpired) as problem:
                print(f"valkey.py: {problem}", file=sys.stderr)
                return 2
        load = (before, os.getloadavg()[0])
    rows = tell(figures, found, load)
    if arguments.json:
        arguments.json.write_text(json.dumps({"load_average": load, "rounds": arguments.rounds, "figures": rows}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
