"""Groups that come and go, also those that fail, leave nothing behind in their processes."""

import os

import ranks

LIVES = int(os.environ.get("RINGBOLT_TEST_LIVES", "40"))


class Lifetimes(ranks.GroupCase):
    def census(self, rank):
        rank.say("census")
        counted = rank.expect("census")
        del counted["event"]
        return counted

    def check(self, group, before):
        for rank, then in zip(group, before):
            now = self.census(rank)
            self.assertEqual((now["descriptors"], now["threads"]), (then["descriptors"], then["threads"]))
            if ranks.SLOWNESS == 1:  # a sanitizer maps what it likes
                self.assertLess(now["maps"], then["maps"] + 20)

    def test_of_groups_that_work(self):
        self.up("line:2")
        group = self.start_ranks(2)
        self.all_say(group, "lifetimes 2")
        for rank in group:
            rank.expect("lived")
        before = [self.census(rank) for rank in group]
        self.all_say(group, f"lifetimes {LIVES}")
        for rank in group:
            rank.expect("lived", timeout=10 + LIVES)
        self.check(group, before)

    def test_of_groups_that_fail(self):
        self.up("line:2")
        group = self.start_ranks(2)
        before = []
        for life in range(1 + LIVES // 4):
            self.all_say(group, "join")
            for rank in group:
                rank.expect("joined")
            group[life % 2].say("leave")
            group[1 - life % 2].say("call all_reduce")
            group[life % 2].expect("left")
            group[1 - life % 2].expect("failed")
            group[1 - life % 2].say("leave")
            group[1 - life % 2].expect("left")
            before = before or [self.census(rank) for rank in group]
        self.check(group, before)

    def test_of_groups_that_never_come_about(self):
        self.up("line:2")
        group = self.start_ranks(2)
        before = []
        for _ in range(1 + LIVES // 4):
            group[0].say("join crc=off")
            group[1].say("join")
            for rank in group:
                rank.expect("refused")
            before = before or [self.census(rank) for rank in group]
        self.check(group, before)


if __name__ == "__main__":
    ranks.main()
