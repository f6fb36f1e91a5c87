"""Chunks that are lost or damaged and completions with errors: results are exact, or all ranks get an error."""

import errno
import time

import ranks


class Faults(ranks.GroupCase):
    def exact(self, spec, n, *faults, count=300_000, times=20):
        group = self.join(spec, n)
        for fault in faults:
            self.call("fault", "add", *fault.split())
        self.all_run(group, f"call all_reduce count={count} times={times} timeout=60000")
        self.all_run(group, f"call all_to_all count={count // 10} times={times} timeout=60000")
        return group

    def test_lost_messages(self):
        self.exact("ring:3", 3, "message-loss 1% seed 7")

    def test_lost_messages_through_a_relay(self):
        self.exact("line:3", 3, "message-loss 1% seed 5")

    def test_turned_bits(self):
        self.exact("ring:3", 3, "bitflip 1% seed 3")

    # Of a call of one chunk nothing follows what is lost.
    def test_lost_and_damaged_single_chunks(self):
        group = self.join("line:2", 2)
        for fault in ("message-loss 3% seed 7", "bitflip 3% seed 3"):
            self.call("fault", "add", *fault.split())
            for count in (1024, 1500, 2000):
                with self.subTest(fault=fault, count=count):
                    self.all_run(group, f"call all_reduce count={count} times=40 timeout=20000")
            self.call("fault", "clear")

    def test_late_completions(self):
        self.exact("line:2", 2, "completion-late 5% by 5ms seed 2")

    def test_lost_and_damaged_on_two_rails(self):
        self.exact("ring:2", 2, "message-loss 1% seed 7", "bitflip 1% seed 9")

    def exact_or_error(self, spec, n, fault, codes=(errno.ECONNRESET, errno.EHOSTDOWN, errno.ETIMEDOUT)):
        """Whether it completed. Nobody waits, and nothing wrong is called right."""
        group = self.join(spec, n)
        self.all_say(group, "call all_reduce count=300000 times=30 timeout=20000")
        group[0].expect("running")
        self.call("fault", "add", *fault.split())
        since = time.monotonic()
        events = []
        for rank in group:
            ended = rank.expect("done", "failed", timeout=40)
            self.assertEqual(ended["wrong"], 0, ended)
            if ended["event"] == "failed":
                self.assertIn(ended["code"], codes, ended)
                self.assertIn("cable", ended["text"])
            events.append(ended["event"])
        self.assertEqual(len(set(events)), 1, events)
        self.assertLess(time.monotonic() - since, 40)
        return events[0] == "done"

    def test_completion_error_of_the_only_cable(self):
        self.exact_or_error("line:2", 2, "completion-error status 5 count 3-3 node n0")

    def test_completion_error_of_a_relay(self):
        self.exact_or_error("line:3", 3, "completion-error status 12 count 3-3 node n1")

    def test_completion_error_of_one_cable_of_a_ring(self):
        self.assertTrue(self.exact_or_error("ring:4", 4, "completion-error status 5 count 0-0 cable 0-1 node n0"))

    def test_receive_error_of_one_of_two_rails(self):
        self.assertTrue(self.exact_or_error("ring:2", 2, "receive-error status 4 count 0-0 port rdma_en2 node n0"))

    def test_cable_whose_queue_pair_failed_is_used_again(self):
        group = self.join("ring:4", 4)
        self.call("fault", "add", *"completion-error status 5 count 0-0 cable 0-1 node n0".split())
        self.all_run(group, "call all_reduce count=300000 times=10")
        self.call("fault", "clear")
        time.sleep(5)  # a cable is used again when it has worked for 3 s
        self.call("cut", "2-3")  # now the other half of the ring is needed
        self.all_run(group, "call all_reduce count=300000 times=10")

    def test_of_a_cable_that_loses_everything_for_long(self):
        """Longer than there are credits for the beats that are lost."""
        group = self.join("ring:3", 3)
        self.call("fault", "add", *"message-loss 100% cable 0-1".split())
        self.all_run(group, "call all_reduce count=100000 times=3 timeout=20000")
        time.sleep(12)
        self.all_run(group, "call all_reduce count=100000 times=3 timeout=20000")
        self.call("fault", "clear")
        time.sleep(9)  # out for up to 3 s until it is connected anew, and 3 s until it is trusted
        self.call("cut", "0-2")
        self.all_run(group, "call all_reduce count=100000 times=10 timeout=10000")

    def test_of_a_cable_that_works_again_one_way(self):
        group = self.join("ring:3", 3)
        for node in ("n0", "n1"):
            self.call("fault", "add", *f"message-loss 100% cable 0-1 node {node}".split())
        self.all_run(group, "call all_reduce count=100000 times=3 timeout=20000")
        self.call("fault", "clear")
        self.call("fault", "add", *"message-loss 100% cable 0-1 node n0".split())
        time.sleep(5)  # a cable is used again when it has worked for 3 s
        self.all_run(group, "call all_reduce count=100000 times=10 timeout=10000")
        self.call("fault", "clear")
        time.sleep(5)
        self.call("cut", "0-2")
        self.all_run(group, "call all_reduce count=100000 times=10 timeout=10000")

    def test_frozen_machine(self):
        group = self.join("line:2", 2, RINGBOLT_FROZEN_MS="1000")
        self.all_say(group, "call all_reduce count=100000 times=0 timeout=20000")
        group[0].expect("running")
        self.call("fault", "add", "frozen", "node", "n1")
        self.all_fail(group, time.monotonic(), (errno.EHOSTDOWN, errno.ECONNRESET), ["cable"])


if __name__ == "__main__":
    ranks.main()
