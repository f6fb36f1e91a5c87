#!/usr/bin/env python3
"""Measures what faults of frames cost: goodput of perftest's ib_send_bw between two namespaces, beside none. As root.

    faults.py --build BUILD [--rate RATE] [--rounds N] [--seconds S] [--kinds A,B] [--chances X,Y] [--json FILE]

Every round measures each fault right after a run without faults and divides the two, so that a change of the machine
hits both. Faults are of one direction at one port: of each frame that the sender's port sends. Figures are medians
over the rounds. Exit status 1: a figure is below its floor; 2: it could not be measured.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import network
from network import Lab, Unmeasured

KINDS = ("loss", "duplicate", "reorder", "corrupt")
CHANCES = ("0.01%", "0.1%", "1%", "10%")
SIZE = 65536
# Least share of the goodput without faults.
FLOORS = {("loss", "0.1%"): 0.95, ("loss", "1%"): 0.85}


def command(lab, *words):
    done = subprocess.run([lab.command, "fault", words[0], "-c", lab.name, *words[1:]], env=lab.environment,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unmeasured(done.stderr.strip())


def measure(lab, seconds, kind=None, chance=None):
    command(lab, "clear")
    if kind is not None:
        command(lab, "add", kind, chance, "node", "1", "direction", "send")
    return lab.bandwidth("ib_send_bw", SIZE, seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a build folder")
    parser.add_argument("--rate", help="hold the cable to a rate, as in 1Gbit (default: as fast as it goes)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    parser.add_argument("--chances", type=lambda text: text.split(","), default=CHANCES)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    cases = [(kind, chance) for kind in options.kinds for chance in options.chances]
    shares = {case: [] for case in cases}
    whole = []
    try:
        with Lab(options.build.resolve(), options.rate) as lab:
            for _ in range(options.rounds):
                for case in cases:
                    whole.append(measure(lab, options.seconds))
                    shares[case].append(measure(lab, options.seconds, *case) / whole[-1])
    except Unmeasured as error:
        print(f"faults.py: {error}", file=sys.stderr)
        return 2
    rows = [{"fault": kind, "chance": chance, "floor": FLOORS.get((kind, chance)),
             **network.summary(shares[kind, chance])} for kind, chance in cases]
    base = network.summary(whole)
    print(f"ib_send_bw, {SIZE} B, {options.rate or 'unshaped'}: {base['median']:.2f} Gb/s without faults "
          f"({base['least']:.2f} to {base['most']:.2f}); with faults, as a share of that:")
    print(f"{'fault':12} {'chance':>8} {'median':>8} {'least':>8} {'most':>8} {'floor':>6}")
    for row in rows:
        floor = "" if row["floor"] is None else f"{row['floor']:.2f}"
        print(f"{row['fault']:12} {row['chance']:>8} {row['median']:8.3f} {row['least']:8.3f} {row['most']:8.3f} {floor:>6}")
    load = os.getloadavg()[0]
    print(f"{options.rounds} rounds of {options.seconds} s, {os.cpu_count()} processors, load average {load:.1f} at the end")
    if options.json:
        options.json.write_text(json.dumps({"load": load, "without_faults_gbps": base, "rows": rows}, indent=2) + "\n")
    return 1 if any(row["floor"] is not None and row["median"] < row["floor"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
