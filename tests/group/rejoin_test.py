"""All ranks meet anew after some have gone: those that are left, and those that have been started again."""

import time

import ranks


class Rejoin(ranks.GroupCase):
    def restart(self, node):
        rank = ranks.Rank(node, self.environment, [ranks.command.RINGBOLT, "exec", f"n{node}", "--", ranks.command.EXTRA[0]])
        self.addCleanup(rank.end)
        return rank

    def meet(self, left, fresh):
        self.all_say(left, "rejoin")
        self.all_say(fresh, "join")
        everybody = sorted(left + fresh, key=lambda rank: rank.node)
        for rank in everybody:
            told = rank.expect("rejoined", "joined")
            self.assertEqual((told["rank"], told["size"]), (rank.node, len(everybody)))
        for count in (1, 1000, 300_000):
            self.all_run(everybody, f"call all_reduce count={count}")
        return everybody

    def test_after_the_death_of_one(self):
        left = self.kill(self.join("ring:4", 4), 2)
        group = self.meet(left, [self.restart(2)])
        left = self.kill(group, 1)  # and again
        self.meet(left, [self.restart(1)])

    def test_after_the_death_of_rank_0(self):
        left = self.kill(self.join("ring:4", 4), 0)
        self.meet(left, [self.restart(0)])

    def test_after_shrinking(self):
        left = self.kill(self.join("mesh:4", 4), 3)
        self.all_say(left, "shrink")
        for rank in left:
            rank.expect("shrunk")
        self.meet(left, [self.restart(3)])

    def test_in_any_order(self):
        left = self.kill(self.join("ring:3", 3), 1)
        fresh = self.restart(1)
        fresh.say("join")
        left[1].say("rejoin")
        time.sleep(1.5)  # both are at it; rank 0, whom they ask for, still has the old group
        left[0].say("rejoin")
        for rank in (*left, fresh):
            self.assertEqual(rank.expect("rejoined", "joined")["size"], 3)
        self.all_run([*left, fresh], "call all_reduce count=1000")

    def test_with_nothing_wrong(self):
        group = self.join("line:2", 2)
        self.all_say(group, "rejoin")
        for rank in group:
            self.assertEqual(rank.expect("rejoined")["size"], 2)
        self.all_run(group, "call all_reduce count=1000")

    def shared_bytes(self, rank):
        """Of memory that devices share, as the rank's process maps it: its own and its neighbours'."""
        total = 0
        with open(f"/proc/{rank.pid}/maps", encoding="ascii") as maps:
            for line in maps:
                if "ringbolt-arena" in line:
                    first, end = line.split()[0].split("-")
                    total += int(end, 16) - int(first, 16)
        return total

    def test_what_was_left_is_given_back(self):
        group = self.join("line:2", 2)
        self.all_run(group, "call all_reduce count=1000")
        before = [self.shared_bytes(rank) for rank in group]
        self.assertGreater(min(before), 0)
        for _ in range(3):
            self.all_say(group, "rejoin")
            for rank in group:
                rank.expect("rejoined")
        deadline = time.monotonic() + 20
        while [self.shared_bytes(rank) for rank in group] != before and time.monotonic() < deadline:
            self.all_run(group, "call all_reduce count=1000")  # the neighbour's word may come a moment later
        self.assertEqual([self.shared_bytes(rank) for rank in group], before)

    def test_in_vain(self):
        left = self.kill(self.join("line:2", 2, RINGBOLT_JOIN_TIMEOUT_MS="4000"), 1)
        left[0].say("rejoin")
        refused = left[0].expect("refused")
        self.assertIn("none of the others has come", refused["text"])
        left[0].say("call all_reduce count=1")
        self.assertIn("no ranks", left[0].expect("failed", "refused")["text"])
        self.meet(left, [self.restart(1)])


if __name__ == "__main__":
    ranks.main()
