"""Groups of those who are left: they agree on who that is, whoever has gone, and are exact again."""

import signal
import time

import ranks


class Shrink(ranks.GroupCase):
    def shrink(self, left):
        self.all_say(left, "shrink")
        for number, rank in enumerate(left):
            shrunk = rank.expect("shrunk", timeout=20)
            self.assertEqual((shrunk["rank"], shrunk["size"]), (number, len(left)))
        for count in (1, 1000, 300_000):
            self.all_run(left, f"call all_reduce count={count}")
        self.all_run(left, "call all_to_all count=1000")

    def test_after_the_death_of_one(self):
        self.shrink(self.kill(self.join("ring:4", 4), 2))

    def test_after_the_death_of_rank_0_over_the_cables(self):
        self.shrink(self.kill(self.join("ring:4", 4), 0))

    def test_to_a_single_rank(self):
        for victim in (0, 1):
            with self.subTest(victim=victim):
                group = self.join("line:2", 2) if victim == 0 else self.again(2)
                self.shrink(self.kill(group, victim))

    def again(self, n):
        group = self.start_ranks(n)
        self.all_say(group, "join")
        for rank in group:
            rank.expect("joined")
        return group

    def test_of_most(self):
        self.shrink(self.kill(self.join("mesh:4", 4), 0, 3))

    def test_twice(self):
        group = self.join("mesh:4", 4)
        left = self.kill(group, 1)
        self.shrink(left)
        left[0].signal(signal.SIGKILL)
        left = left[1:]
        self.all_say(left, "call all_reduce count=1000")
        for rank in left:
            rank.expect("failed", timeout=ranks.NOTICED_S + ranks.SLACK_S)
        self.shrink(left)

    def test_with_another_death_meanwhile(self):
        group = self.join("mesh:4", 4)
        left = self.kill(group, 3)
        self.all_say(left[:2], "shrink")  # rank 2 never does
        left[2].signal(signal.SIGKILL)
        for rank in left[:2]:
            self.assertEqual(rank.expect("shrunk", timeout=20)["size"], 2)
        self.all_run(left[:2], "call all_reduce count=100000")

    def test_as_often_as_ranks_die(self):
        """Ranks shrink at once what they have just shrunk, while others have not made it yet."""
        self.up("mesh:5")
        for gap_ms in (0, 1, 2, 3, 5, 8, 13, 20):
            with self.subTest(gap_ms=gap_ms):
                group = self.again(5)
                self.all_say(group, "outlive 3")
                group[1].signal(signal.SIGKILL)
                time.sleep(gap_ms / 1000)
                group[3].signal(signal.SIGKILL)
                for number, rank in enumerate((group[0], group[2], group[4])):
                    outlived = rank.expect("outlived", timeout=30)
                    self.assertEqual((outlived["rank"], outlived["wrong"]), (number, 0))
                for rank in group:
                    rank.end()

    def test_after_an_abort_keeps_all(self):
        group = self.join("ring:3", 3)
        group[1].say("abort enough")
        group[1].expect("aborted")
        self.all_say(group, "shrink")
        for rank in group:
            self.assertEqual(rank.expect("shrunk")["size"], 3)
        self.all_run(group, "call all_reduce count=100000")

    def test_with_calls_of_the_old_group_under_way(self):
        group = self.join("ring:4", 4)
        self.all_say(group, f"call all_reduce count={3000000 // ranks.SLOWNESS} times=0")
        group[1].expect("running")
        group[1].signal(signal.SIGKILL)
        left = [rank for rank in group if rank.node != 1]
        for rank in left:
            rank.expect("failed", timeout=ranks.NOTICED_S + ranks.SLACK_S)
        self.shrink(left)

    def test_without_those_beyond_a_cut(self):
        group = self.join("line:3", 3)
        self.call("cut", "1-2")
        self.all_say(group, "call all_reduce")
        for rank in group:
            rank.expect("failed", timeout=ranks.NOTICED_S + ranks.SLACK_S)
        group[2].say("shrink")
        time.sleep(0.2)
        self.shrink(group[:2])
        self.assertIn("gone on without this rank", group[2].expect("refused", timeout=20)["text"])


if __name__ == "__main__":
    ranks.main()
