#!/usr/bin/env python3
"""Tests of the comparison's arithmetic: classes, ratios, verdicts. No peer is started."""

import unittest

from cases import CASES, Case, Rival, select
from interleave import Interleaver, class_of, summarize
from report import floors_missed, rows, table
from resident import PeerError


class FakePeer:
    """Answers every block with the next of its figures."""

    def __init__(self, figures):
        self._figures = list(figures)
        self.blocks = []
        self.description = "fake"

    def run(self, operation, size, iterations, is_touched):
        self.blocks.append((operation, size, iterations, is_touched))
        figures = self._figures.pop(0) if len(self._figures) > 1 else self._figures[0]
        return [figures, figures]


class FakePeers:
    def __init__(self, **peers):
        self._peers = peers

    def get(self, name):
        if name not in self._peers:
            raise PeerError(f"{name} is not installed")
        return self._peers[name]

    def drop(self, name, why):
        del why
        self._peers.pop(name)

    def descriptions(self):
        return {name: peer.description for name, peer in self._peers.items()}


def latency(p50_ns):
    return {"p50_ns": p50_ns, "p99_ns": 2 * p50_ns, "max_ns": 3 * p50_ns, "seconds": 0.05}


CASE = Case("T1", "a test", "send", 8, (Rival("slow", 1.5, 1.2), Rival("absent", 1)), ours="ours")


def run(probes, ours, slow, rounds):
    peers = FakePeers(probe=FakePeer([latency(p) for p in probes]), ours=FakePeer([latency(p) for p in ours]),
                      slow=FakePeer([latency(p) for p in slow]))
    interleaver = Interleaver(peers, 0.05, rounds, lambda text: None)
    return summarize(CASE, *interleaver.run(CASE))


class Classes(unittest.TestCase):
    def test_a_probe_is_named_by_its_round_trip(self):
        self.assertEqual([class_of(ns) for ns in (45, 120, 280, 580)], ["sibling", "near", "near", "far"])

    def test_blocks_of_one_class_are_compared(self):
        result = run(probes=[120], ours=[100], slow=[150], rounds=3)
        near = result["classes"]["near"]
        self.assertEqual(list(result["classes"]), ["near"])
        self.assertEqual(near["ours"]["median"], 100)
        self.assertEqual(near["peers"]["slow"]["ratio"], 1.5)

    def test_a_block_between_two_classes_is_dropped(self):
        # Probes: before and after each of our two blocks and the rival's two, in turn.
        result = run(probes=[120, 580, 120, 120, 120, 120, 120, 120], ours=[100], slow=[150], rounds=2)
        self.assertEqual(result["mixed_blocks"], {"ours": 1})
        self.assertEqual(result["classes"]["near"]["ours"]["blocks"], 1)
        self.assertEqual(result["classes"]["near"]["peers"]["slow"]["blocks"], 2)

    def test_a_drift_within_a_class_is_mixed_too(self):
        result = run(probes=[100, 200], ours=[100], slow=[150], rounds=1)
        self.assertEqual(result["mixed_blocks"]["ours"], 1)


class Verdicts(unittest.TestCase):
    def test_one_that_is_not_installed_is_missing_not_fatal(self):
        result = run(probes=[120], ours=[100], slow=[150], rounds=1)
        self.assertEqual(result["missing"], {"absent": "absent is not installed"})

    def test_goal_floor_and_neither(self):
        for theirs, verdict in ((150, "goal met"), (130, "goal missed"), (110, "FLOOR MISSED")):
            result = run(probes=[120], ours=[100], slow=[theirs], rounds=1)
            self.assertEqual([row[8] for row in rows([result])], [verdict])
            self.assertEqual(len(floors_missed([result])), 1 if verdict == "FLOOR MISSED" else 0)
            self.assertIn(verdict, table([result]))


class Selection(unittest.TestCase):
    def test_a_part_before_the_dash_selects_all_of_it(self):
        self.assertEqual([case.id for case in select(["P7"])], ["P7-64K", "P7-1M"])

    def test_nothing_selects_everything(self):
        self.assertEqual(select([]), list(CASES))

    def test_an_unknown_id_is_named(self):
        with self.assertRaisesRegex(ValueError, "no case P99"):
            select(["P2", "P99"])


if __name__ == "__main__":
    unittest.main()
