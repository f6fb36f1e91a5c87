#!/usr/bin/env python3
"""Measures groups over shaped cables between network namespaces: rails, relays, and collectives. As root.

    group.py --build BUILD [--only rails,unequal,cut,relay,reduce] [--rounds N] [--rate MBIT] [--reduce-rate MBIT]
             [--json FILE]

rails    one stream of messages over 1, 2 and 4 equal cables: how many times as much as one carries
unequal  over two cables, one twice as fast: share of the sum of what each carries alone
cut      over four cables, of which one is cut: share of three quarters from 100 ms after the cut on; nothing is lost
relay    along lines of 1, 2, 4 and 8 cables: share of what one carries, and when the first byte of 16 MiB is there
reduce   all_reduce of 16 MiB on rings and meshes: share of what the cables' rates allow by the topology's bound

Cases that are compared run in turn in each round, so that a change of the machine hits all; figures are medians. Exit
status 1: a figure is beyond its limit; 2: it could not be measured.
"""

import argparse
import contextlib
import fractions
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

CHUNK_BYTES = 65536
MESSAGE_BYTES = 1 << 20
DEPTH = 4
RUN_S = 150
RAILS = {2: 1.96, 4: 3.88}
UNEQUAL = 0.95
AFTER_CUT = 0.95
CUT_NOTICED_S = 0.1
RELAYS = {2: 0.98, 4: 0.96, 8: 0.95}
# The first byte has a chunk's time per hop, and so long besides: a relay that sleeps has to be woken.
WAKING_US = 250
REDUCE = 0.90
REDUCED_BYTES = 16 << 20


class Unmeasured(Exception):
    """A program that has no result; the message says which and what it said."""


class Cluster:
    """A cluster of namespaces for as long as it is entered."""

    def __init__(self, build, name, cables, rates_mbps):
        self.command = str(build / "bin/ringbolt")
        self.program = str(build / "bench/bench_group_stream")
        self.name = f"g{os.getpid()}{name}"
        self.cables = cables
        self.rates = rates_mbps
        self.n_nodes = 1 + max(max(cable) for cable in cables)

    def file(self):
        ports = [0] * self.n_nodes
        cables = []
        for (a, b), rate in zip(self.cables, self.rates):
            ends = []
            for node in (a, b):
                ends.append(f"n{node}:rdma_en{ports[node] + 2}")
                ports[node] += 1
            cables.append({"between": ends, "rate_mbps": rate})
        nodes = [{"name": f"n{node}", "ports": [f"rdma_en{port + 2}" for port in range(count)]}
                 for node, count in enumerate(ports)]
        return {"ringbolt": 1, "name": self.name, "nodes": nodes, "cables": cables}

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rbg"))
        self.environment = dict(os.environ, RINGBOLT_RUNTIME_DIR=str(self.folder))
        try:
            self.up()
        except Unmeasured:
            shutil.rmtree(self.folder)
            raise
        return self

    def up(self):
        (self.folder / "cluster.json").write_text(json.dumps(self.file()))
        self.call("up", "--netns", "--emulate", self.folder / "cluster.json")

    def __exit__(self, *_):
        with contextlib.suppress(Unmeasured):
            self.call("down", "--force", "--cluster", self.name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, *words):
        try:
            done = subprocess.run([self.command, *map(str, words)], env=self.environment, capture_output=True,
                                  text=True, check=False, timeout=RUN_S)
        except subprocess.TimeoutExpired as late:
            raise Unmeasured(f"ringbolt {words[0]}: no result in {RUN_S} s") from late
        if done.returncode != 0:
            raise Unmeasured(f"ringbolt {' '.join(map(str, words))}: {(done.stderr or done.stdout).strip()[-500:]}")
        if done.stderr and "BENCH_REPORT" in os.environ:
            print(done.stderr, file=sys.stderr)
        return done.stdout

    def run(self, *words):
        said = self.call("run", "--no-tag", "--", self.program, *words)
        result = json.loads(said)
        if result["wrong"]:
            raise Unmeasured(f"{' '.join(map(str, words))}: {result['wrong']} wrong words")
        return result

    def stream(self, seconds):
        """Messages from node 0 to the last one, as many as the cables carry in that time."""
        rate = sum(self.rates) if self.n_nodes == 2 else self.rates[0]
        count = max(20, int(seconds * rate * 1e6 / 8 / MESSAGE_BYTES))
        return self.run("stream", 0, self.n_nodes - 1, MESSAGE_BYTES, DEPTH, count)

    def first(self, times):
        return self.run("first", 0, self.n_nodes - 1, REDUCED_BYTES, times)


class Topology(Cluster):
    """One that `up` knows by its name."""

    def __init__(self, build, spec, rate):
        super().__init__(build, "t", [(0, 1)], [rate])
        self.spec = spec

    def up(self):
        self.call("up", "--netns", "--emulate", self.spec, "--name", self.name, "--rate", f"{self.rates[0]}Mbit")


def summary(samples):
    return {"median": statistics.median(samples), "least": min(samples), "most": max(samples)}


def row(case, figure, samples, least=None, most=None):
    return {"case": case, "figure": figure, **summary(samples), "floor": least, "ceiling": most}


def parallel(build, name, rates):
    return Cluster(build, name, [(0, 1)] * len(rates), rates)


def line(build, hops, rate):
    return Cluster(build, f"l{hops}", [(node, node + 1) for node in range(hops)], [rate] * hops)


def rails(options):
    with contextlib.ExitStack() as stack:
        clusters = {n: stack.enter_context(parallel(options.build, f"r{n}", [options.rate] * n)) for n in (1, *RAILS)}
        goodput = {n: [] for n in clusters}
        for _ in range(options.rounds):
            for n, cluster in clusters.items():
                goodput[n].append(cluster.stream(options.seconds)["gbps"])
    yield row(f"1 rail of {options.rate} Mb/s", "share of the rate", [one * 1000 / options.rate for one in goodput[1]])
    for n, least in RAILS.items():
        yield row(f"{n} rails", "times one rail", [all_ / one for all_, one in zip(goodput[n], goodput[1])], least)


def unequal(options):
    rates = [2 * options.rate, options.rate]
    with contextlib.ExitStack() as stack:
        alone = [stack.enter_context(parallel(options.build, f"u{rate}", [rate])) for rate in rates]
        both = stack.enter_context(parallel(options.build, "u", rates))
        shares = []
        for _ in range(options.rounds):
            total = sum(cluster.stream(options.seconds)["gbps"] for cluster in alone)
            shares.append(both.stream(options.seconds)["gbps"] / total)
    yield row(f"rails of {rates[0]} and {rates[1]} Mb/s", "share of the sum", shares, UNEQUAL)


def received(result, begin_s, end_s):
    """Gb/s between two times of CLOCK_MONOTONIC."""
    bucket_s = result["bucket_ns"] / 1e9
    origin = result["begin_ns"] / 1e9
    inside = [count for i, count in enumerate(result["buckets"])
              if begin_s <= origin + i * bucket_s and origin + (i + 1) * bucket_s <= end_s]
    if not inside:
        raise Unmeasured(f"nothing was under way {end_s - origin:.1f} s after the first message")
    return sum(inside) * 8 / 1e9 / (len(inside) * bucket_s)


def longest_pause_s(result, begin_s, end_s):
    """How long no message was complete between these times."""
    bucket_s = result["bucket_ns"] / 1e9
    first = max(0, int((begin_s - result["begin_ns"] / 1e9) / bucket_s))
    longest = pause = 0
    for count in result["buckets"][first:first + int((end_s - begin_s) / bucket_s)]:
        pause = 0 if count else pause + 1
        longest = max(longest, pause)
    return longest * bucket_s


def cut(options):
    """What four rails carry is taken from just before the cut; the cable is out when the command returns."""
    shares, pauses = [], []
    cable = "n0:rdma_en3-n1:rdma_en3"
    with parallel(options.build, "c", [options.rate] * 4) as cluster:
        for _ in range(options.rounds):
            times = []

            def pull():
                time.sleep(options.seconds)
                times.append(time.monotonic())
                cluster.call("cut", cable)
                times.append(time.monotonic())

            puller = threading.Thread(target=pull)
            puller.start()
            try:
                result = cluster.stream(options.seconds * 2)
            finally:
                puller.join()
                cluster.call("heal", cable)
            begun, done = times
            whole = received(result, begun - options.seconds / 2, begun)
            left = received(result, done + CUT_NOTICED_S, done + CUT_NOTICED_S + options.seconds / 2)
            shares.append(left / (whole * 3 / 4))
            pauses.append(longest_pause_s(result, begun, done + options.seconds / 2) * 1000)
    yield row("4 rails, one of them cut", f"share of 3/4, {CUT_NOTICED_S * 1000:.0f} ms after", shares, AFTER_CUT)
    yield row("4 rails, one of them cut", "ms without a message", pauses)


def relay(options):
    with contextlib.ExitStack() as stack:
        clusters = {n: stack.enter_context(line(options.build, n, options.rate)) for n in (1, *RELAYS)}
        goodput = {n: [] for n in clusters}
        first = {n: [] for n in clusters}
        for _ in range(options.rounds):
            for n, cluster in clusters.items():
                goodput[n].append(cluster.stream(options.seconds)["gbps"])
                first[n] += cluster.first(3)["first_us"]
    yield row(f"1 hop of {options.rate} Mb/s", "share of the rate", [one * 1000 / options.rate for one in goodput[1]])
    chunk_us = CHUNK_BYTES * 8 / options.rate
    for n, least in RELAYS.items():
        yield row(f"{n} hops", "share of one hop", [all_ / one for all_, one in zip(goodput[n], goodput[1])], least)
    for n in clusters:
        yield row(f"first byte of 16 MiB, {n} hop{'s' * (n > 1)}", "us", first[n], None, n * (chunk_us + WAKING_US))


def bound(build, spec):
    """Cables' worth of rate at which no all_reduce can be beaten, by ringbolt plan."""
    said = subprocess.run([build / "bin/ringbolt", "plan", spec, "--json"], capture_output=True, text=True, check=True)
    return float(fractions.Fraction(json.loads(said.stdout)["rates"]["all_reduce"]["cables"]))


def reduce(options):
    for spec in options.topologies.split(","):
        share = []
        with Topology(options.build, spec, options.reduce_rate) as cluster:
            limit = bound(options.build, spec) * options.reduce_rate * 1e6 / 8
            for _ in range(options.rounds):
                path = cluster.folder / "bench.json"
                cluster.call("bench", "all_reduce", "-b", REDUCED_BYTES, "-e", REDUCED_BYTES, "-n", 3, "-w", 1, "-d",
                             "int32", "-J", path, "--cluster", cluster.name)
                result = json.loads(path.read_text())["results"][0]["out_of_place"]
                if result["nwrong"]:
                    raise Unmeasured(f"all_reduce on {spec}: {result['nwrong']} wrong elements")
                share.append(REDUCED_BYTES / (result["p50_us"] / 1e6) / limit)
        yield row(f"all_reduce of 16 MiB, {spec}", "share of the bound", share, REDUCE)


CASES = {"rails": rails, "unequal": unequal, "cut": cut, "relay": relay, "reduce": reduce}


def is_beyond(one):
    return (one["floor"] is not None and one["median"] < one["floor"]) or (
        one["ceiling"] is not None and one["median"] > one["ceiling"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a build folder")
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="of one figure")
    parser.add_argument("--rate", type=int, default=1000, help="of a cable, in Mb/s")
    parser.add_argument("--reduce-rate", type=int, default=250,
                        help="the same of the case reduce: all cables are full there, both ways")
    parser.add_argument("--topologies", default="ring:4,mesh:4", help="of the case reduce")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.build = options.build.resolve()
    rows = []
    try:
        for name in options.only.split(","):
            for one in CASES[name](options):
                rows.append(one)
                limit = "" if one["floor"] is None else f"at least {one['floor']:.2f}"
                limit = limit if one["ceiling"] is None else f"at most {one['ceiling']:.0f}"
                print(f"{one['case']:34} {one['figure']:28} {one['median']:9.3f} ({one['least']:.3f} to "
                      f"{one['most']:.3f}) {limit}{'  MISSED' if is_beyond(one) else ''}", flush=True)
    except Unmeasured as problem:
        print(f"group.py: {problem}", file=sys.stderr)
        return 2
    print(f"{options.rounds} rounds of {options.seconds} s, {os.cpu_count()} processors, load average "
          f"{os.getloadavg()[0]:.1f} at the end")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 1 if any(map(is_beyond, rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
