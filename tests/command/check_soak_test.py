"""The matrix of collectives on many cablings, in ten orders of ranks: every call right, and one checksum per size of group.

RINGBOLT_SOAK_S (default 3600) bounds it: what is left then is left out, and counted. One order after the other, so that whatever
the time, every cabling has had about as many. RINGBOLT_SOAK_FROM: the turn to go on with, as the last line of a run says."""

import json
import os
import random
import time

import command
from command import CommandCase

SOAK_S = float(os.environ.get("RINGBOLT_SOAK_S", "3600"))
FROM = int(os.environ.get("RINGBOLT_SOAK_FROM", "0"))
ORDERS = 10
MIB = 1 << 20
COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "all_gatherv", "broadcast", "reduce", "gather", "scatter",
               "all_to_all", "all_to_allv", "send_recv")
TOPOLOGIES = ("line:2", "line:3", "ring:4", "ring:5", "mesh:4", "star:5", "petersen", "torus:3x3")
CALL_S = 1200


def cluster_file(name, n_nodes, cables):
    """`cables`: pairs of nodes and what their speed is."""
    used = [0] * n_nodes
    listed = []
    for a, b, speed in cables:
        listed.append({"between": [f"m{a}:p{used[a]}", f"m{b}:p{used[b]}"], "speed_gbps": speed})
        used[a] += 1
        used[b] += 1
    nodes = [{"name": f"m{node}", "ports": [f"p{port}" for port in range(used[node])]} for node in range(n_nodes)]
    return {"ringbolt": 1, "name": name, "nodes": nodes, "cables": listed}


def random_cables(n_nodes, n_more, seed):
    """A random tree, and that many more cables, some of them beside others."""
    chance = random.Random(seed)
    cables = [(chance.randrange(node), node, 40) for node in range(1, n_nodes)]
    for _ in range(n_more):
        a, b = chance.sample(range(n_nodes), 2)
        cables.append((a, b, chance.choice((10, 40, 80))))
    return cables


FILES = {
    "random9": (9, random_cables(9, 5, 9)),
    "random16": (16, random_cables(16, 8, 16)),
    "uneven2": (2, [(0, 1, 10), (0, 1, 40), (0, 1, 80)]),
    "uneven4": (4, [(0, 1, 40), (0, 1, 10), (1, 2, 40), (2, 3, 80), (2, 3, 20), (3, 0, 40)]),
}


class Soak(CommandCase):
    def setUp(self):
        super().setUp()
        self.end = time.monotonic() + SOAK_S
        self.hashes = {}
        self.runs = self.calls = 0

    def spec_of(self, name):
        if name not in FILES:
            return name
        path = self.root / f"{name}.json"
        path.write_text(json.dumps(cluster_file(name, *FILES[name])), encoding="utf-8")
        return path

    def check(self, name, order, *words):
        done = self.call("check", "--matrix", "--json", "--rank-order", order, *words, expect=None, timeout=CALL_S)
        result = json.loads(done.stdout) if done.stdout else {"verified": False, "problems": [done.stderr]}
        self.assertTrue(result["verified"], f"{name}, order {order}, {words}: {result['problems']}\n{done.stdout}")
        n_calls = sum(rank["done"] for rank in result["ranks"])
        # Whatever the cables, their speeds, the profile and the order.
        key = (result["n_ranks"], words)
        self.assertEqual(self.hashes.setdefault(key, result["crc32c"]), result["crc32c"], f"{name}, order {order}, {words}")
        self.runs += 1
        self.calls += n_calls
        print(f"{name}, order {order}, {' '.join(map(str, words))}: {result['cases']} cases, {n_calls} calls, "
              f"{result['elapsed_ns'] / 1e9:.1f} s, {result['crc32c']}", flush=True)

    def bench(self, name, collective, size):
        done = self.call("bench", collective, "-b", size, "-e", size, "-n", 1, "-w", 0, "-c", 1, "--json",
                         expect=None, timeout=CALL_S)
        self.assertEqual(done.returncode, 0, f"{name}, {collective} of {size}: {done.stdout}{done.stderr}")
        self.runs += 1
        print(f"{name}: {collective} of {size} bytes, compared", flush=True)

    def turn(self, name, profile, order):
        """One cabling in one order: all sizes up to 4 KiB - 1 of all collectives, larger ones of one after the other."""
        self.call("up", "--emulate", self.spec_of(name), "--like", profile)
        try:
            label = f"{name}, {profile}"
            n_nodes = len(json.loads(self.call("status", "--json").stdout)["clusters"][0]["nodes"])
            self.check(label, order, "--largest", 4095)
            for step, largest in ((0, MIB + 3), (3, MIB + 3), *([(6, 16 * MIB)] if n_nodes <= 5 else [])):
                only = COLLECTIVES[(order + step) % len(COLLECTIVES)]
                self.check(label, order, "--only", only, "--largest", largest)
        finally:
            self.call("down", "--force")

    def test_all_orders(self):
        turns = [(name, profile, order) for order in range(ORDERS) for name in (*TOPOLOGIES, *FILES)
                 for profile in ("roce", "tn3205")]
        done = FROM
        for turn in turns[FROM:]:
            if time.monotonic() >= self.end:
                break
            self.turn(*turn)
            done += 1
        print(f"turns {FROM} to {done} of {len(turns)}: {self.runs} runs, {self.calls} calls of ranks, "
              f"{len(self.hashes)} checksums", flush=True)
        self.assertGreater(self.runs, 0)

    def test_of_a_gibibyte(self):
        with self.cluster("line:2"):
            for collective in ("all_reduce", "broadcast", "all_to_all", "reduce_scatter", "all_gather"):
                self.bench("line:2", collective, 1 << 30)
        with self.cluster("line:3"):
            self.bench("line:3", "all_reduce", 1 << 30)


if __name__ == "__main__":
    command.main()
