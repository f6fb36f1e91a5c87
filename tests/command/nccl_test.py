"""`ringbolt nccl` says which way an NCCL job's messages go, and tries it."""

import json

import command
from command import CommandCase


class Nccl(CommandCase):
    def enter(self, context):
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def plan(self, *words, expect=0):
        return json.loads(self.call("nccl", "--json", *words, expect=expect).stdout)["pairs"]

    def test_ring_relays_its_diagonals_both_ways_round(self):
        self.enter(self.cluster("ring:4"))
        pairs = {(row["a"], row["b"]): row for row in self.plan()}
        self.assertEqual(len(pairs), 6)
        self.assertEqual(pairs["n0", "n1"]["hops"], 1)
        self.assertEqual(pairs["n0", "n2"]["hops"], 2)
        self.assertEqual(set(pairs["n0", "n2"]["ways"].split("; ")), {"by n1", "by n3"})

    def test_text_says_what_to_export_and_in_which_order(self):
        self.enter(self.cluster("ring:4"))
        text = self.call("nccl").stdout
        self.assertIn("export NCCL_NET=Ringbolt", text)
        self.assertRegex(text, r"export NCCL_NET_PLUGIN=/\S+/libnccl-net-ringbolt\.so")
        self.assertRegex(text, r"order of ranks +n0 n1 n2 n3\n")
        self.assertRegex(text, r"without it +no: no cable joins n0 and n2, n1 and n3\n")

    def test_petersen_has_no_ring_and_says_so(self):
        self.enter(self.cluster("petersen"))
        self.assertRegex(self.call("nccl").stdout, r"order of ranks +none")

    def test_parallel_cables_are_ways_of_one_pair(self):
        self.enter(self.cluster("ring:2"))
        (pair,) = self.plan()
        self.assertEqual(len(pair["ways"].split("; ")), 2)

    def test_cut_leads_round_or_nowhere(self):
        self.enter(self.cluster("ring:3"))
        self.call("cut", "0-1")
        pairs = {(row["a"], row["b"]): row for row in self.plan()}
        self.assertEqual(pairs["n0", "n1"]["ways"], "by n2")
        self.call("cut", "0-2")
        pairs = {(row["a"], row["b"]): row for row in self.plan(expect=1)}
        self.assertEqual(pairs["n0", "n1"]["ways"], "none")

    def test_test_sends_between_all_pairs_on_a_cluster_of_its_own(self):
        done = self.call("nccl", "test", "--emulate", "line:3", "-b", "8", "-e", "64K", "-f", "8192")
        rows = [line.split() for line in done.stdout.splitlines() if line[:1] == " "]
        self.assertEqual({(row[0], row[1]) for row in rows}, {(a, b) for a in "012" for b in "012" if a != b})
        self.assertEqual({row[2] for row in rows}, {"8", "65536"})
        self.assertEqual({row[5] for row in rows}, {"0"})
        self.assertIn("# none of all messages were wrong", done.stdout)
        self.assertIn("no cluster is up", self.call("status", expect=None).stdout + self.call("status", expect=None).stderr)

    def test_wrong_usage(self):
        for words in (("-b", "9", "-e", "8"), ("-e", "2G"), ("--like", "spark"), ("--emulate", "nonsense")):
            with self.subTest(words=words):
                self.call("nccl", "test", *words, expect=2)
        self.assertIn("no cluster is up", self.call("nccl", expect=2).stderr)

    def test_plugin_that_is_not_there_is_named(self):
        done = self.call("nccl", "test", "--emulate", "line:2", "--plugin", "/nowhere.so", expect=1)
        self.assertIn("/nowhere.so", done.stdout + done.stderr)


if __name__ == "__main__":
    command.main()
