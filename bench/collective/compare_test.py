#!/usr/bin/env python3
"""Tests of the collectives' comparison: cases, the best MPI, peers under another name. No peer is started."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "compare")]
# pylint: disable=wrong-import-position
from cases import Rival  # noqa: E402
from collective_peers import CABLINGS, MPIS, ClusterPeer, CollectivePeers, SameAs  # noqa: E402
from collectives import COLLECTIVES, Collective, with_best  # noqa: E402
from compare import FULL, QUICK, SMOKE, chosen_cases, parse  # noqa: E402
from interleave import summarize  # noqa: E402
from profile_ours import share_of, split  # noqa: E402
from report import floors_missed, rows  # noqa: E402


def block(p50_ns):
    return {"p50_ns": p50_ns, "p99_ns": 2 * p50_ns, "max_ns": 3 * p50_ns, "probe_ns": 120}


def result(case, **figures):
    """As a run gives it; figures: p50 of each peer in nanoseconds, `_` for `-`."""
    blocks = {name.replace("_", "-"): {"near": [block(p50)]} for name, p50 in figures.items()}
    return with_best(case, summarize(case, blocks, {}))


CASE = Collective("T", "a test", "all_reduce/float32/out", 64,
                  (Rival("ompi"), Rival("ompi-nosc"), Rival("mpich"), Rival("ringbolt/float32")),
                  ours="ours", best_goal=1.5, best_floor=1)


class Best(unittest.TestCase):
    def test_the_fastest_mpi_is_what_counts(self):
        near = result(CASE, ours=100, ompi=300, ompi_nosc=140, mpich=200)["classes"]["near"]["peers"]
        self.assertEqual([name for name in near if name.startswith("best")], ["best: ompi-nosc"])
        self.assertAlmostEqual(near["best: ompi-nosc"]["ratio"], 1.4)
        self.assertIsNone(near["ompi-nosc"]["goal"])

    def test_goal_and_floor_are_against_the_best(self):
        for best, verdict in ((150, "goal met"), (149, "goal missed"), (100, "goal missed"), (99, "FLOOR MISSED")):
            one = result(CASE, ours=100, ompi=900, mpich=best)
            self.assertEqual([row[8] for row in rows([one]) if row[3] == "best: mpich"], [verdict])
            self.assertEqual(len(floors_missed([one])), 1 if verdict == "FLOOR MISSED" else 0)

    def test_without_an_mpi_there_is_no_best(self):
        one = summarize(CASE, {"ours": {"near": [block(1)]}, "ringbolt/float32": {"near": [block(1)]}}, {})
        peers = with_best(CASE, one)["classes"]["near"]["peers"]
        self.assertEqual(list(peers), ["ringbolt/float32"])

    def test_without_goals_there_is_no_best(self):
        case = next(case for case in COLLECTIVES if case.id == "C1-in")
        self.assertEqual(list(result(case, ringbolt=1, ompi=2)["classes"]["near"]["peers"]), ["ompi"])


class Cases(unittest.TestCase):
    def test_ids_are_unique_and_all_goals_are_there(self):
        ids = [case.id for case in COLLECTIVES]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual({name.split("-")[0] for name in ids}, {f"C{i}" for i in range(1, 10)})

    def test_every_peer_is_known(self):
        known = set(CABLINGS) | set(MPIS) | {"ringbolt/float32", "verbs"}
        for case in COLLECTIVES:
            self.assertLessEqual({case.ours} | {rival.peer for rival in case.rivals}, known, case.id)

    def test_mpi_is_not_asked_for_types_that_it_lacks(self):
        for case in COLLECTIVES:
            if "float16" in case.operation:
                self.assertEqual([rival.peer for rival in case.rivals], ["ringbolt/float32"])

    def test_ranks_are_as_many_on_both_sides(self):
        ranks = {name: ranks for name, (_, _, ranks) in MPIS.items()} | {n: r for n, (_, r) in CABLINGS.items()}
        ranks["verbs"] = 2
        for case in COLLECTIVES:
            for rival in case.rivals:
                self.assertEqual(ranks[rival.peer.split("/")[0]], ranks[case.ours], case.id)


class Options(unittest.TestCase):
    def test_lengths(self):
        for words, length in (([], FULL), (["--quick"], QUICK), (["--smoke"], SMOKE),
                              (["--rounds", "3"], (3, FULL[1]))):
            options = parse(words)
            self.assertEqual((options.rounds, options.block_ms), length)

    def test_cases_peers_and_cabling(self):
        cases = chosen_cases(parse(["--cases", "C6,C8", "--only", "ompi", "--ours", "ringbolt-ring2"]))
        self.assertEqual([(case.id, case.ours, len(case.rivals)) for case in cases], [("C8", "ringbolt-ring2", 1)])

    def test_an_unknown_case_is_named(self):
        with self.assertRaisesRegex(ValueError, "no case C99"):
            chosen_cases(parse(["--cases", "C99"]))


class Peers(unittest.TestCase):
    def test_another_type_is_another_order_to_the_same_processes(self):
        class Recorder:
            name = "ringbolt"

            def run(self, *order):
                return order

        other = SameAs("ringbolt/float32", Recorder(), "float32")
        self.assertEqual(other.run("all_reduce/bfloat16/out", 64, 5, True), ("all_reduce/float32/out", 64, 5, True))

    def test_a_cluster_that_does_not_come_up_is_refused_and_leaves_nothing(self):
        peer = ClusterPeer("ringbolt", "/bin/false", "line:2", 2, "/bin/true")
        with self.assertRaisesRegex(Exception, "ringbolt: .*up --emulate line:2"):
            peer.start()
        self.assertFalse(os.path.exists(os.path.dirname(peer.runtime_dir())))

    def test_one_that_is_told_to_end_while_it_starts_leaves_nothing(self):
        class Interrupted(ClusterPeer):
            def _start_processes(self):
                raise KeyboardInterrupt

        peer = Interrupted("ringbolt", "/bin/false", "line:2", 2, "/bin/true")
        with self.assertRaises(KeyboardInterrupt):
            peer.start()
        self.assertFalse(os.path.exists(os.path.dirname(peer.runtime_dir())))

    def test_a_peer_that_is_not_built_is_refused_with_its_path(self):
        with self.assertRaisesRegex(Exception, "/nowhere/bin/ringbolt is not built"):
            CollectivePeers("/nowhere").get("ringbolt")


class Profile(unittest.TestCase):
    ROWS = ("# comment", "    40.00%  worker     [.] ringbolt::bench::StartLine::wait()",
            "    30.00%  libc.so.6  [.] memcpy", "    12.00%  [kernel]   [k] schedule",
            "     3.00%  [kernel]   [k] futex_wake")

    def test_the_kernel_is_one_row_and_rows_are_sorted(self):
        rows = share_of(self.ROWS)
        self.assertEqual([name for _, _, name in rows], ["ringbolt::bench::StartLine::wait()", "memcpy", "all of it"])
        self.assertAlmostEqual(rows[2][0], 0.15)

    def test_the_benchmark_itself_does_not_count(self):
        rows, bench = split(share_of(self.ROWS))
        self.assertAlmostEqual(bench, 0.4)
        self.assertAlmostEqual(rows[0][0], 0.30 / 0.45)


if __name__ == "__main__":
    unittest.main()
