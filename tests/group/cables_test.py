"""Cables that are cut and healed: calls complete by another way, exactly, or all ranks get an error that says which."""

import errno
import signal
import time

import ranks

UNREACHABLE = (errno.ECONNRESET, errno.EHOSTDOWN)


class Cut(ranks.GroupCase):
    def still_run_exactly(self, group):
        """Calls without an end have not failed so far; the last rank dies for them to end."""
        for rank in group:
            self.assertTrue(rank.lines.empty(), f"rank {rank.node} has said something")
        group[-1].signal(signal.SIGKILL)
        for failed in self.all_fail(group[:-1], time.monotonic(), UNREACHABLE):
            self.assertEqual(failed["wrong"], 0)
            self.assertNotIn("frozen", failed["text"])

    def test_of_a_ring_is_gone_round_and_healed(self):
        group = self.join("ring:4", 4)
        self.all_say(group, f"call all_reduce count={4000000 // ranks.SLOWNESS} times=60")
        for rank in group:
            rank.expect("running")
        self.call("cut", "0-1")
        time.sleep(2)
        self.call("heal", "0-1")
        for rank in group:
            done = rank.expect("done", "failed", timeout=200)
            self.assertEqual((done["event"], done.get("wrong")), ("done", 0), done)

    def test_of_one_of_two_rails(self):
        group = self.join("ring:2", 2)
        self.all_say(group, f"call all_reduce count={1000000 // ranks.SLOWNESS} times=60")
        for rank in group:
            rank.expect("running")
        self.call("cut", "n0:rdma_en2-n1:rdma_en3")
        time.sleep(2)
        for rank in group:
            self.assertTrue(rank.lines.empty(), "all calls were over before the rail was healed")
        self.call("heal", "n0:rdma_en2-n1:rdma_en3")
        for rank in group:
            done = rank.expect("done", "failed", timeout=200)
            self.assertEqual((done["event"], done.get("wrong")), ("done", 0), done)

    def test_of_every_cable_in_turn(self):
        group = self.join("ring:3", 3)
        for cable in ("0-1", "1-2", "0-2"):
            self.call("cut", cable)
            self.all_run(group, "call all_reduce count=100000 times=3")
            self.call("heal", cable)
            time.sleep(4.5)  # a cable is used again when it has worked for 3 s

    def test_of_the_only_cable(self):
        group = self.join("line:2", 2)
        self.all_say(group, "call all_reduce count=100000 times=0")
        group[0].expect("running")
        self.call("cut", "0-1")
        for failed in self.all_fail(group, time.monotonic(), UNREACHABLE, ["cable 0-1", "rdma_en"]):
            self.assertRegex(failed["text"], r"rank [01]")

    def test_of_a_line_is_told_to_those_who_don_t_see_it(self):
        group = self.join("line:4", 4)
        self.all_say(group, "call all_reduce count=100000 times=0")
        group[0].expect("running")
        self.call("cut", "2-3")
        self.all_fail(group, time.monotonic(), UNREACHABLE, ["rank", "cable 2-3", "rdma_en"])

    def test_of_all_cables_of_a_node(self):
        group = self.join("ring:3", 3)
        self.all_say(group, "call all_reduce count=100000 times=0")
        group[0].expect("running")
        self.call("cut", "0-1")
        self.call("cut", "1-2")
        self.all_fail(group, time.monotonic(), UNREACHABLE, ["cable", "rank"])

    def test_whose_device_blocks_when_it_is_connected_anew_holds_up_nobody(self):
        group = self.join("ring:4", 4)
        self.call("fault", "add", *"rtr-block by 30s node n0".split())
        self.all_say(group, f"call all_reduce count={200000 // ranks.SLOWNESS} times=0 timeout=8000")
        for rank in group:
            rank.expect("running")
        self.call("fault", "add", *"unplug mode flush restore 1s cable 0-1".split())
        time.sleep(13)  # longer than ranks are waited for that are frozen
        self.still_run_exactly(group)
        for rank in group[:3]:
            self.assertEqual(rank.end(), 0, rank.errors)

    def test_that_says_nothing_gives_back_what_it_was_given(self):
        """What its device keeps for later holds neither the receives of a relay nor the memory of a chunk."""
        group = self.join("ring:4", 4)
        self.call("fault", "add", *"unplug mode hang cable 1-2".split())
        for _ in range(3):
            group[2].say("call recv peer=0 count=2000000 timeout=20000")
            group[0].say("call send peer=2 count=2000000 timeout=20000")
            for rank in (group[0], group[2]):
                done = rank.expect("done", "failed")
                self.assertEqual((done["event"], done["wrong"]), ("done", 0), done)
        self.all_run(group, "call all_to_all count=200000 times=5 timeout=20000")
        self.call("fault", "clear")
        time.sleep(5)  # a cable is used again when it has worked for 3 s
        self.call("cut", "0-3")
        self.all_run(group, "call all_to_all count=200000 times=5 timeout=20000")

    def test_that_says_nothing_while_its_chunks_are_kept(self):
        """What has come for a call that has not begun holds up nothing."""
        group = self.join("ring:4", 4)
        group[0].say("call send peer=1 count=20000 timeout=60000")
        group[0].expect("done")  # rank 1 has it, and has not asked for it
        self.call("fault", "add", *"unplug mode hang cable 0-1".split())
        time.sleep(2)
        self.call("fault", "clear")
        time.sleep(5)
        self.call("cut", "2-3")
        group[1].say("call recv peer=0 count=20000")
        self.assertEqual(group[1].expect("done")["wrong"], 0)
        self.all_run(group, "call all_reduce count=100000 times=5 timeout=10000")

    def test_that_says_nothing_under_one_short_chunk(self):
        group = self.join("ring:3", 3)
        self.call("fault", "add", *"unplug mode hang cable 0-1".split())
        group[1].say("call recv peer=0 count=1250 timeout=10000")
        group[0].say("call send peer=1 count=1250 timeout=10000")
        for rank in group[:2]:
            done = rank.expect("done", "failed")
            self.assertEqual((done["event"], done["wrong"]), ("done", 0), done)

    def test_that_says_nothing_one_after_the_other(self):
        group = self.join("mesh:4", 4)
        for cable in ("0-1", "0-2"):
            self.call("fault", "add", *f"unplug mode hang cable {cable}".split())
            group[1].say("call recv peer=0 count=20000 timeout=10000")
            group[0].say("call send peer=1 count=20000 timeout=10000")
            time.sleep(0.3)  # its repetition is under way by now
        for rank in group[:2] * 2:
            done = rank.expect("done", "failed")
            self.assertEqual((done["event"], done["wrong"]), ("done", 0), done)

    def test_is_used_again_when_its_device_comes_back(self):
        group = self.join("ring:3", 3)
        self.call("fault", "add", *"rtr-block by 1s node n0".split())
        self.all_say(group, f"call all_reduce count={200000 // ranks.SLOWNESS} times=0 timeout=8000")
        for rank in group:
            rank.expect("running")
        self.call("fault", "add", *"unplug mode flush restore 1s cable 0-1".split())
        time.sleep(9)  # out for a second, two queue pairs, and three until it is trusted
        self.call("cut", "0-2")
        time.sleep(3)
        self.still_run_exactly(group)

    def test_of_a_long_ring_leaves_ways_that_are_too_long(self):
        group = self.join("ring:15", 15)
        self.all_say(group, "call all_reduce count=1000 times=0")
        group[0].expect("running")
        self.call("cut", "0-14")
        self.all_fail(group, time.monotonic(), UNREACHABLE,
                      ["is 14 hops away now, more than the 13 that chunks can go", "cable 0-14"])

    def test_with_nothing_under_way(self):
        group = self.join("line:2", 2)
        self.call("cut", "0-1")
        time.sleep(1.5)
        self.all_say(group, "call barrier")
        self.all_fail(group, time.monotonic(), UNREACHABLE, ["cable 0-1"])

    def test_for_less_than_a_second_is_not_noticed(self):
        group = self.join("line:2", 2)
        self.all_say(group, f"call all_reduce count={100000 // ranks.SLOWNESS} times=300")
        group[0].expect("running")
        for _ in range(3):
            self.call("cut", "0-1")
            time.sleep(0.3)
            self.call("heal", "0-1")
            time.sleep(0.3)
        for rank in group:
            self.assertEqual(rank.expect("done")["wrong"], 0)


if __name__ == "__main__":
    ranks.main()
