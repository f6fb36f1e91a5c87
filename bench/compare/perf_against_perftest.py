#!/usr/bin/env python3
"""Runs `ringbolt perf` and perftest in turns, over our library and the default device, and prints the ratios.

    perf_against_perftest.py BUILD [--rounds N] [--json FILE]

Both measure RC with the same sizes and counts. perftest looks at no payload, so bandwidth is compared with
`--check none`; the last column shows what it costs to compare every byte as well. Medians of the rounds, and the best
round of each. A figure that was taken while somebody else used the processors is taken again; the count of those that
never had the machine for themselves is told. Exit 1 if the ratio of the medians is more than 10 % off.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from one_shot import free_port, is_listening
from quiet import undisturbed

PATIENCE_S = 60
MOST_OFF = 0.10

# perftest's program, our operation, whether latency, bytes, operations.
CASES = [("ib_send_lat", "send", True, 8, 20000), ("ib_send_lat", "send", True, 65536, 5000),
         ("ib_write_lat", "write", True, 8, 20000), ("ib_read_lat", "read", True, 8, 20000),
         ("ib_send_bw", "send", False, 8, 200000), ("ib_send_bw", "send", False, 65536, 20000),
         ("ib_write_bw", "write", False, 8, 200000), ("ib_write_bw", "write", False, 65536, 20000)]
TYPICAL_US, AVERAGE_GBPS = 4, 3  # columns of perftest's last line


def run_pair(command, environment):
    """The client's output. Server on the first core, client on the second."""
    port = free_port()
    words = command + ["-p", str(port)]
    with subprocess.Popen(["taskset", "-c", "0"] + words, env=environment, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not is_listening(port):
                if time.monotonic() > deadline or server.poll() is not None:
                    raise RuntimeError(f"{words}: the server does not listen")
                time.sleep(0.01)
            client = subprocess.run(["taskset", "-c", "1"] + words + ["127.0.0.1"], env=environment, text=True,
                                    capture_output=True, timeout=PATIENCE_S, check=False)
            if client.returncode != 0:
                raise RuntimeError(f"{words}: {client.stdout[-300:]} {client.stderr[-300:]}")
            server.wait(timeout=PATIENCE_S)
            return client.stdout
        finally:
            server.kill()


def perftest_figure(case, environment):
    program, _, is_latency, size, count = case
    words = [program, "-F", "-s", str(size), "-n", str(count)] + ([] if is_latency else ["--report_gbits"])
    lines = [line for line in run_pair(words, environment).splitlines() if line.split()[:1] == [str(size)]]
    return float(lines[-1].split()[TYPICAL_US if is_latency else AVERAGE_GBPS])


def our_figure(case, environment, ringbolt, check):
    _, operation, is_latency, size, count = case
    words = [ringbolt, "perf", operation, "--json", "--line-rate", "0", "-s", str(size), "-n", str(count)]
    words += ["--lat"] if is_latency else ["--check", check]
    row = json.loads(run_pair(words, environment))["results"][0]
    return row["latency"]["p50_us"] if is_latency else row["bandwidth"][0]["goodput_gbps"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json")
    parser.add_argument("--only", help="cases whose names hold this")
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    ringbolt = str(build / "bin/ringbolt")
    rows = []
    with tempfile.TemporaryDirectory(prefix="rbperf") as folder:
        environment = dict(os.environ, LD_LIBRARY_PATH=str(build / "lib/ringbolt"), RINGBOLT_RUNTIME_DIR=folder)
        print(f"{'case':<22}{'perftest':>10}{'perf':>10}{'ratio':>8}{'of best':>9}   perf, every byte compared")
        disturbed = 0
        for case in CASES:
            name = f"{case[0]} {case[3]} B"
            if options.only and options.only not in name:
                continue
            theirs, ours, checked = [], [], []
            measures = [(theirs, lambda case=case: perftest_figure(case, environment)),
                        (ours, lambda case=case: our_figure(case, environment, ringbolt, "none")),
                        (checked, lambda case=case: our_figure(case, environment, ringbolt, "full"))]
            for _ in range(options.rounds):
                for figures, measure in measures[:2 if case[2] else 3]:
                    figure, is_undisturbed = undisturbed(measure)
                    figures.append(figure)
                    disturbed += not is_undisturbed
            row = {"case": name, "unit": "us" if case[2] else "Gb/s", "perftest": statistics.median(theirs),
                   "perf": statistics.median(ours), "checked": statistics.median(checked) if checked else None,
                   "perftest_all": theirs, "perf_all": ours}
            best = min if case[2] else max
            row["ratio"] = row["perf"] / row["perftest"]
            row["ratio_of_best"] = best(ours) / best(theirs)
            rows.append(row)
            more = f"{row['checked']:10.3f}" if checked else ""
            print(f"{name:<22}{row['perftest']:>10.3f}{row['perf']:>10.3f}{row['ratio']:>8.3f}"
                  f"{row['ratio_of_best']:>9.3f}   {more} {row['unit']}",
                  flush=True)
    if disturbed:
        print(f"{disturbed} figures were taken while others used the machine")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=2), encoding="utf-8")
    return 1 if any(abs(row["ratio"] - 1) > MOST_OFF for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
