"""Ranks that die, freeze or leave, in every phase: all others get an error that says who, in time."""

import errno
import signal
import time

import ranks

DEAD = (errno.ECONNRESET,)
LONG = 5_000_000 // ranks.SLOWNESS  # elements
OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter", "all_to_all",
              "barrier")


class Killed(ranks.GroupCase):
    def kill_in(self, group, line, victim, warm=True):
        """kill -9 while all do that; the others fail, and so does whatever they do after that."""
        self.all_say(group, line)
        if warm:
            group[victim].expect("running")
        group[victim].signal(signal.SIGKILL)
        since = time.monotonic()
        others = [rank for rank in group if rank.node != victim]
        self.all_fail(others, since, DEAD, [f"rank {victim}", "rdma_en", "cable"])
        self.all_say(others, "call barrier")
        self.all_fail(others, time.monotonic(), DEAD, [f"rank {victim}"])

    def test_in_small_and_large_collectives(self):
        self.up("ring:3")
        for operation in OPERATIONS:
            for count in (10, LONG):
                with self.subTest(operation=operation, count=count):
                    group = self.start_ranks(3)
                    self.all_say(group, "join")
                    for rank in group:
                        rank.expect("joined")
                    self.kill_in(group, f"call {operation} count={count} times=0", 1)
                    for rank in group:
                        rank.end()

    def test_of_rank_0_which_is_the_hub_of_the_side_channel(self):
        group = self.join("ring:4", 4)
        self.kill_in(group, "call all_reduce count=1000000 times=0", 0)

    def test_of_the_only_other_rank(self):
        group = self.join("line:2", 2)
        self.kill_in(group, "call all_reduce count=1000000 times=0", 1)

    def test_while_idle(self):
        group = self.join("line:3", 3)
        self.all_run(group, "call all_reduce")
        group[2].signal(signal.SIGKILL)
        since = time.monotonic()
        self.all_say(group[:2], "call all_reduce count=10")
        self.all_fail(group[:2], since, DEAD, ["rank 2 is dead"])

    def test_between_send_and_recv(self):
        group = self.join("line:3", 3)
        group[0].say(f"call send peer=2 count={LONG} times=0")
        group[2].say(f"call recv peer=0 count={LONG} times=0")
        group[1].say("call recv peer=0 count=10")
        group[2].expect("running")
        group[2].signal(signal.SIGKILL)
        self.all_fail(group[:2], time.monotonic(), DEAD, ["rank 2 is dead"])

    def test_of_a_relay(self):
        group = self.join("line:3", 3)
        group[0].say(f"call send peer=2 count={LONG} times=0")
        group[2].say(f"call recv peer=0 count={LONG} times=0")
        group[2].expect("running")
        group[1].signal(signal.SIGKILL)
        self.all_fail([group[0], group[2]], time.monotonic(), DEAD, ["rank 1", "cable"])

    def test_before_it_splits(self):
        group = self.join("ring:4", 4)
        self.all_say(group[:3], "split 0 0")
        group[3].signal(signal.SIGKILL)
        since = time.monotonic()
        for rank in group[:3]:
            refused = rank.expect("refused", timeout=ranks.NOTICED_S + ranks.SLACK_S)
            self.assertIn("split: rank 3 is dead", refused["text"])
        self.assertLess(time.monotonic() - since, ranks.NOTICED_S + ranks.SLACK_S)

    def test_while_joining(self):
        self.up("line:3")
        group = self.start_ranks(3)
        self.all_say(group[:2], "join")
        group[2].signal(signal.SIGKILL)
        self.all_say(group[2:], "join")
        group[1].signal(signal.SIGKILL)
        refused = group[0].expect("refused", "joined", timeout=70)
        self.assertEqual(refused["event"], "refused")


class Frozen(ranks.GroupCase):
    def test_fails_calls_when_its_time_is_over(self):
        group = self.join("ring:3", 3, RINGBOLT_FROZEN_MS="1000")
        self.all_say(group, "call all_reduce count=100000 times=0")
        group[1].expect("running")
        group[1].signal(signal.SIGSTOP)
        self.all_fail([group[0], group[2]], time.monotonic(), errno.EHOSTDOWN, ["rank 1 is frozen"])
        group[1].signal(signal.SIGCONT)
        self.all_fail([group[1]], time.monotonic(), (errno.EHOSTDOWN, errno.ECONNRESET))

    def test_of_rank_0(self):
        group = self.join("ring:4", 4, RINGBOLT_FROZEN_MS="1000")
        self.all_say(group, "call all_reduce count=100000 times=0")
        group[0].expect("running")
        group[0].signal(signal.SIGSTOP)
        self.all_fail(group[1:], time.monotonic(), errno.EHOSTDOWN, ["rank 0"])
        group[0].signal(signal.SIGCONT)

    def test_beyond_a_relay_leaves_the_others_their_cables(self):
        """What the relay could not pass on holds no receives of its other cables once that rank has been given up."""
        group = self.join("line:3", 3, RINGBOLT_FROZEN_MS="1000")
        group[2].signal(signal.SIGSTOP)
        group[0].say("call send peer=2 count=2000000 timeout=20000")
        group[0].expect("failed")
        self.all_say(group[:2], "call all_reduce count=1000")
        for rank in group[:2]:
            rank.expect("failed")
        self.all_say(group[:2], "shrink")
        for rank in group[:2]:
            rank.expect("shrunk", timeout=20)
        self.all_run(group[:2], "call all_reduce count=200000 times=5 timeout=10000")

    def test_is_waited_for_by_default_and_named_when_the_deadline_passes(self):
        group = self.join("line:2", 2)
        group[0].say("call all_reduce timeout=2000")
        group[1].signal(signal.SIGSTOP)
        self.all_fail(group[:1], time.monotonic(), errno.ETIMEDOUT, ["rank 1 is frozen"], within=2 + ranks.SLACK_S)
        group[1].signal(signal.SIGCONT)

    def stop(self, group, victim, seconds):
        """A call of all that one, who stands still for so long, enters late."""
        for rank in group:
            if rank != victim:
                rank.say("call all_reduce count=1000")
        victim.signal(signal.SIGSTOP)
        time.sleep(seconds)
        victim.signal(signal.SIGCONT)
        victim.say("call all_reduce count=1000")
        for rank in group:
            done = rank.expect("done", "failed")
            self.assertEqual((done["event"], done.get("wrong")), ("done", 0), (rank.node, done))

    def test_for_longer_than_its_buffers_last_goes_on(self):
        group = self.join("ring:16", 16)  # whose heartbeats fill them in 4 s
        self.stop(group, group[1], 8)

    def without_rank_0(self, number):
        left = self.kill(self.join("ring:4", 4), 0)
        self.all_say(left, "shrink")
        for rank in left:
            rank.expect("shrunk", timeout=20)
        self.all_say(left, "call all_reduce count=1000 times=0")
        left[1].expect("running")
        left[1].signal(number)
        self.all_fail([left[0], left[2]], time.monotonic(), (errno.EHOSTDOWN, errno.ECONNRESET), ["is dead or frozen"])
        left[1].signal(signal.SIGKILL)

    def test_without_rank_0_counts_as_death(self):
        self.without_rank_0(signal.SIGSTOP)

    def test_a_death_without_rank_0_is_noticed_as_soon(self):
        self.without_rank_0(signal.SIGKILL)

    def test_for_a_moment_nothing_happens(self):
        group = self.join("ring:3", 3)
        self.all_say(group, f"call all_reduce count={100000 // ranks.SLOWNESS} times=300")
        for _ in range(3):
            group[1].signal(signal.SIGSTOP)
            time.sleep(0.25)
            group[1].signal(signal.SIGCONT)
            time.sleep(0.25)
        for rank in group:
            self.assertEqual(rank.expect("done")["wrong"], 0)


class Leaving(ranks.GroupCase):
    def test_while_others_call(self):
        group = self.join("line:3", 3)
        self.all_say(group[:2], "call all_reduce")
        since = time.monotonic()
        group[2].say("leave")
        group[2].expect("left")
        self.all_fail(group[:2], since, errno.ECONNRESET, ["rank 2 left"])

    def test_right_after_the_last_call(self):
        group = self.join("ring:4", 4)
        for _ in range(5):
            self.all_say(group, "call broadcast root=1 count=300000")
            self.all_say(group, "leave")
            self.all_say(group, "join")
            for rank in group:
                self.assertEqual(rank.expect("done")["wrong"], 0)
                rank.expect("left")
                rank.expect("joined")


if __name__ == "__main__":
    ranks.main()
