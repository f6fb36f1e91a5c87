"""`verify` between namespaces whose frames get lost, doubled, reordered and damaged: RC hides it, UC and UD must not."""

import json

import namespaces
from namespaces import NamespaceCase, command

namespaces.need()


class Verify(NamespaceCase):
    def setUp(self):
        super().setUp()
        self.up("line:2")

    def fault(self, *words):
        self.call("fault", words[0], "-c", self.name, *words[1:])

    def verify(self, *words, expect=0):
        done = self.call("verify", *words, "--nodes", "0,1", "--cluster", self.name, "--json",
                         expect=expect, timeout=60)
        return json.loads(done.stdout)

    def test_without_faults_everything_verifies(self):
        found = self.verify("soak", "-D", 3 * command.TIME_SCALE)
        self.assertTrue(found["verified"], found)
        self.assertEqual({row["what"] for row in found["results"]},
                         {"RC stream", "UC stream", "UD stream", "RC write", "UC write", "RC read", "RC atomic", "RC churn",
                          "UC churn"})

    def test_rc_recovers_under_every_kind_of_fault(self):
        self.fault("add", "loss 1%; duplicate 1%; reorder 1%; corrupt 1%; delay 1% by 200us")
        for mode in ("stream", "write", "read", "atomic"):
            with self.subTest(mode):
                found = self.verify(mode, "-c", "RC", "-D", "1", expect=None if mode == "read" else 0)
                # An answer that was on its way for long may be taken for the one to the READ's repetition, by any card.
                self.assertLessEqual(set(found["findings"]["kinds"]), {"backwards"} if mode == "read" else set(), found)
                self.assertGreater(found["results"][0]["messages"], 0)

    def test_reads_keep_their_order_under_loss(self):
        self.fault("add", "loss 2%; corrupt 1%")
        found = self.verify("read", "-c", "RC", "-D", "2")
        self.assertEqual(found["findings"]["kinds"], {}, found)

    def test_uc_and_ud_lose_and_say_so(self):
        self.fault("add", "loss", "2%", "seed", "5")
        for transport in ("UC", "UD"):
            with self.subTest(transport):
                words = ["stream", "-c", transport, "--max", "1000", "-n", "1500"]
                found = self.verify(*words, expect=1)
                self.assertEqual(list(found["findings"]["kinds"]), ["lost"])
                self.assertGreater(found["findings"]["count"], 20)
                self.assertRegex(found["findings"]["first"][0]["text"], r"queue pair \d: \d+ of 1500 messages never came; expected")
                found = self.verify(*words, "--allow-loss", "10")
                self.assertGreater(found["results"][0]["lost"], 20)

    def test_ud_doubles_and_reorders(self):
        self.fault("add", "duplicate", "2%")
        found = self.verify("stream", "-c", "UD", "-n", "1000", expect=1)
        self.assertEqual(list(found["findings"]["kinds"]), ["doubled"])
        self.fault("clear")
        self.fault("add", "reorder", "5%", "by", "3")
        self.assertTrue(self.verify("stream", "-c", "UD", "-n", "1000")["verified"])

    def test_damaged_frames_are_lost_and_never_wrong(self):
        self.fault("add", "corrupt", "2%")
        found = self.verify("stream", "-c", "UC", "--max", "1000", "-n", "1000", expect=1)
        self.assertEqual(list(found["findings"]["kinds"]), ["lost"])


if __name__ == "__main__":
    namespaces.main()
