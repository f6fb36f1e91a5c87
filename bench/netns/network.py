#!/usr/bin/env python3
"""Measures RoCEv2 over UDP between two network namespaces, beside the kernel's own TCP and UDP. As root.

    network.py --build BUILD [--rounds N] [--seconds S] [--json FILE]

Shaped cables (1 and 2.5 Gb/s): the goodput of perftest's ib_send_bw and ib_write_bw, as a share of the rate.
The unshaped cable: its ratio to iperf3, and the latency of ib_send_lat to that of a spinning UDP ping-pong, in turns:
every round runs each of them once, so that a change of the machine hits all. Figures are medians over the rounds.
Exit status 1: a figure is below its floor; 2: it could not be measured.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ADDRESS = "10.77.0.1"
PORT = 18500  # in namespaces of our own every port is free
START_S = 10
SIZES = (65536, 1 << 20)
# Least share of a shaped cable's rate; least ratio to iperf3. Latency has no floor: the aim is 1.3 at most.
SHARE_FLOOR = 0.97
RATIO_FLOOR = 0.5


class Unmeasured(Exception):
    """A program that has no result; the message says which and what it said."""


def perftest_gbps(text):
    """The average of ib_*_bw --report_gbits: the fourth figure of its only line of figures."""
    return float(_figures(text, 5)[3])


def perftest_typical_us(text):
    """The median of ib_*_lat: the fifth figure."""
    return float(_figures(text, 7)[4])


def iperf_gbps(text):
    """What iperf3's receiver got, of its --json."""
    return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 1e9


def _figures(text, least):
    for line in text.splitlines():
        words = line.split()
        if len(words) >= least and words[0].isdigit() and words[1].isdigit():
            return words
    raise Unmeasured(f"no figures in: {text.strip()[-300:]}")


def summary(samples):
    return {"median": statistics.median(samples), "least": min(samples), "most": max(samples), "samples": samples}


class Lab:
    """A line of two namespaces, for as long as it is entered."""

    def __init__(self, build, rate=None):
        self.command = str(build / "bin/ringbolt")
        self.name = f"bench{os.getpid()}"
        self.rate = rate
        self.folder = None

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="rbb")
        self.environment = dict(os.environ, RINGBOLT_RUNTIME_DIR=self.folder)
        rate = ["--rate", self.rate] if self.rate else []
        made = subprocess.run([self.command, "up", "--netns", "--emulate", "line:2", "--name", self.name, *rate],
                              env=self.environment, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            shutil.rmtree(self.folder)
            raise Unmeasured(made.stderr.strip())
        return self

    def __exit__(self, *_):
        subprocess.run([self.command, "down", "--force", "-c", self.name], env=self.environment, capture_output=True,
                       check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def words(self, node, words):
        return [self.command, "exec", "-c", self.name, str(node), "--", *map(str, words)]

    def listens(self, kind):
        said = subprocess.run(self.words(0, ["ss", "-ln", kind]), env=self.environment, capture_output=True, text=True,
                              check=False).stdout
        return f":{PORT} " in said

    def pair(self, server_words, client_words, kind="-t"):
        """The client's output. The server ends by itself or is ended."""
        server = subprocess.Popen(self.words(0, server_words), env=self.environment, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        try:
            give_up = time.monotonic() + START_S
            while not self.listens(kind):
                if server.poll() is not None or time.monotonic() > give_up:
                    raise Unmeasured(f"{server_words[0]} does not listen")
                time.sleep(0.02)
            done = subprocess.run(self.words(1, client_words), env=self.environment, capture_output=True, text=True,
                                  timeout=120, check=False)
            if done.returncode != 0:
                raise Unmeasured(f"{client_words[0]}: {(done.stderr or done.stdout).strip()[-300:]}")
            return done.stdout
        except subprocess.TimeoutExpired as late:
            raise Unmeasured(f"{client_words[0]}: no result in time") from late
        finally:
            try:
                server.wait(timeout=1)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()

    def bandwidth(self, program, size, seconds):
        words = [program, "-d", "rdma_en2", "-x", 1, "-p", PORT, "-s", size, "-D", seconds, "--report_gbits"]
        return perftest_gbps(self.pair(words, [*words, ADDRESS]))

    def latency(self, program):
        words = [program, "-d", "rdma_en2", "-x", 1, "-p", PORT, "-s", 8, "-n", 5000]
        return perftest_typical_us(self.pair(words, [*words, ADDRESS]))

    def iperf(self, seconds):
        return iperf_gbps(self.pair(["iperf3", "-s", "-1", "-p", PORT],
                                    ["iperf3", "-c", ADDRESS, "-p", PORT, "-t", seconds, "--json"]))

    def udp(self, program, *way):
        said = self.pair([program, "server", ADDRESS, PORT, *way], [program, "client", ADDRESS, PORT, 5000, *way], "-u")
        return float(said.split()[0]) / 1000


def shaped(build, options):
    rows = []
    for rate, gbps in (("1Gbit", 1.0), ("2.5Gbit", 2.5)):
        with Lab(build, rate) as lab:
            for program in ("ib_send_bw", "ib_write_bw"):
                for size in SIZES:
                    samples = [lab.bandwidth(program, size, options.seconds) / gbps for _ in range(options.rounds)]
                    rows.append({"case": f"{program}, {size} B, {rate}", "figure": "share of the rate",
                                 **summary(samples), "floor": SHARE_FLOOR})
    return rows


def unshaped(build, options):
    goodput = {program: [] for program in ("ib_send_bw", "ib_write_bw")}
    latency, reliable, calls = [], [], []
    with Lab(build) as lab:
        for _ in range(options.rounds):
            tcp = lab.iperf(options.seconds)
            for program, samples in goodput.items():
                samples.append(lab.bandwidth(program, SIZES[-1], options.seconds) / tcp)
            program = str(build / "bench/bench_udp_pingpong")
            udp = lab.udp(program)
            latency.append(lab.latency("ib_send_lat") / udp)
            reliable.append(lab.udp(program, "reliable") / udp)
            calls.append(lab.udp(program, "device") / udp)
    rows = [{"case": f"{program}, {SIZES[-1]} B, unshaped", "figure": "ratio to iperf3", **summary(samples),
             "floor": RATIO_FLOOR} for program, samples in goodput.items()]
    rows.append({"case": "ib_send_lat, 8 B", "figure": "ratio to UDP, spinning", **summary(latency), "floor": None})
    rows.append({"case": "UDP with acknowledgements, 64 B", "figure": "ratio to UDP, spinning", **summary(reliable),
                 "floor": None})
    rows.append({"case": "UDP by the device's calls, 64 B", "figure": "ratio to UDP, spinning", **summary(calls),
                 "floor": None})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a build folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5, help="of one figure; perftest leaves out a part at either end")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    try:
        rows = shaped(options.build.resolve(), options) + unshaped(options.build.resolve(), options)
    except Unmeasured as error:
        print(f"network.py: {error}", file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    print(f"{'case':40} {'figure':24} {'median':>8} {'least':>8} {'most':>8} {'floor':>6}")
    for row in rows:
        floor = "" if row["floor"] is None else f"{row['floor']:.2f}"
        print(f"{row['case']:40} {row['figure']:24} {row['median']:8.3f} {row['least']:8.3f} {row['most']:8.3f} {floor:>6}")
    print(f"{options.rounds} rounds of {options.seconds} s, {os.cpu_count()} processors, load average {load:.1f} at the end")
    if options.json:
        options.json.write_text(json.dumps({"load": load, "processors": os.cpu_count(), "rows": rows}, indent=2) + "\n")
    return 1 if any(row["floor"] is not None and row["median"] < row["floor"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
