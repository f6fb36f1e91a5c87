#!/usr/bin/env python3
"""Measures what a second stream to the same peer adds: perftest with one queue pair over TCP streams between two network
namespaces, each on a cable of its own that is shaped. As root.

    rails.py --build BUILD [--rounds N] [--seconds S] [--rates 800,800] [--only TEXT] [--json FILE]

In every round each case runs over each rail alone and over all of them, in turns, so that a change of the machine hits
all alike. Figures are medians over the rounds of "all rails / sum of the rails alone"; of two equal rails that is half
the ratio to one. Exit status 1: a figure is below its floor; 2: it could not be measured.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from network import Unmeasured, perftest_gbps, summary

MEETING_PORT = 18600  # in namespaces of our own every port is free
STREAM_PORT = 7800
START_S = 10
# Of the sum: 1.9 of 2 where the rails are equal.
EQUAL_FLOOR = 0.95
UNEQUAL_FLOOR = 0.9
CASES = [(program, transport, size)
         for program in ("ib_write_bw", "ib_send_bw") for transport in ("RC", "UC") for size in (4096, 65536, 1 << 20)]


def sh(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unmeasured(f"{' '.join(map(str, words))}: {done.stderr.strip()}")


class Cables:
    """Two namespaces with a shaped cable per rate, and one more for perftest's own meeting, while it is entered."""

    def __init__(self, rates_mbps, library):
        self.rates = rates_mbps
        self.library = library
        self.names = [f"rails{os.getpid()}{end}" for end in "ab"]
        self.folder = None

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="rbr")
        try:
            for name in self.names:
                sh("ip", "netns", "add", name)
            for cable, rate in enumerate([*self.rates, None]):
                near, far = (f"r{cable}{end}" for end in "ab")
                sh("ip", "link", "add", near, "netns", self.names[0], "type", "veth", "peer", "name", far, "netns",
                   self.names[1])
                for end, (name, device) in enumerate(zip(self.names, (near, far))):
                    sh("ip", "-n", name, "address", "add", f"10.78.{cable}.{end + 1}/24", "dev", device)
                    sh("ip", "-n", name, "link", "set", device, "up")
                    if rate:
                        sh("tc", "-n", name, "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{rate}mbit",
                           "burst", "64kb", "latency", "10ms")
        except Unmeasured:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)
        self.folder.cleanup()

    def start(self, end, words, rails):
        streams = "+".join((f"tcp-listen::{STREAM_PORT + rail}" if end == 0 else f"tcp:10.78.{rail}.1:{STREAM_PORT + rail}")
                           for rail in rails)
        runtime = pathlib.Path(self.folder.name) / str(end)
        runtime.mkdir(mode=0o700, exist_ok=True)
        environment = dict(os.environ, LD_LIBRARY_PATH=str(self.library), RINGBOLT_STREAMS=f"rail={streams}",
                           RINGBOLT_RUNTIME_DIR=str(runtime))
        return subprocess.Popen(["ip", "netns", "exec", self.names[end], *map(str, words)], env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def listens(self):
        said = subprocess.run(["ip", "netns", "exec", self.names[0], "ss", "-ltn"], capture_output=True, text=True,
                              check=False).stdout
        return f":{MEETING_PORT} " in said

    def gbps(self, case, rails, seconds):
        """Goodput as the client reports it."""
        program, transport, size = case
        words = [program, "-d", "rdma_rail", "-x", 1, "-p", MEETING_PORT, "-c", transport, "-s", size, "-D", seconds,
                 "-f", 0, "-F", "--report_gbits"]
        server = self.start(0, words, rails)
        try:
            give_up = time.monotonic() + START_S
            while not self.listens():
                if server.poll() is not None or time.monotonic() > give_up:
                    raise Unmeasured(f"{program} does not listen: {server.stderr.read() if server.poll() else ''}")
                time.sleep(0.02)
            client = self.start(1, [*words, f"10.78.{len(self.rates)}.1"], rails)
            try:
                said, errors = client.communicate(timeout=60)
            except subprocess.TimeoutExpired as late:
                raise Unmeasured(f"{program} {transport} {size}: no result in time") from late
            finally:
                if client.poll() is None:
                    client.kill()
                    client.communicate()
            if client.returncode != 0:
                raise Unmeasured(f"{program} {transport} {size}: {(errors or said).strip()[-300:]}")
            return perftest_gbps(said)
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.communicate(timeout=2)
            if server.poll() is None:
                server.kill()
                server.communicate()


def measure(cables, case, options):
    """A row of the table: shares of the sum, round by round."""
    rails = range(len(cables.rates))
    alone = {rail: [] for rail in rails}
    together, shares = [], []
    for _ in range(options.rounds):
        for rail in rails:
            alone[rail].append(cables.gbps(case, [rail], options.seconds))
        together.append(cables.gbps(case, rails, options.seconds))
        shares.append(together[-1] / sum(samples[-1] for samples in alone.values()))
    floor = EQUAL_FLOOR if len(set(cables.rates)) == 1 else UNEQUAL_FLOOR
    return {"case": "{} {}, {} B".format(*case), "floor": floor, "alone_gbps": [summary(alone[rail]) for rail in rails],
            "together_gbps": summary(together), **summary(shares)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rates", default="800,800", help="Mbit/s of each rail")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rates = [int(rate) for rate in options.rates.split(",")]
    if len(rates) < 2 or options.rounds < 1 or options.seconds < 1:
        parser.error("give at least two rates, one round and one second")
    rows = []
    try:
        with Cables(rates, (options.build / "lib/ringbolt").resolve()) as cables:
            for case in CASES:
                if options.only not in "{} {}, {} B".format(*case):
                    continue
                rows.append(measure(cables, case, options))
                row = rows[-1]
                alone = " + ".join(f"{one['median']:.2f}" for one in row["alone_gbps"])
                print(f"{row['case']:28} {row['median']:.3f} of the sum ({row['least']:.3f} to {row['most']:.3f}), "
                      f"{row['together_gbps']['median']:.2f} of {alone} Gb/s, floor {row['floor']}", flush=True)
    except Unmeasured as problem:
        print(f"rails.py: {problem}", file=sys.stderr)
        return 2
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if any(row["median"] < row["floor"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
