"""Groups that are made of others while something happens."""

import threading
import time

import ranks

# As many as fit in the time; there may be any number.
MOST_SPLITS = 16_000


class Split(ranks.GroupCase):
    def test_while_a_cable_is_cut_and_healed(self):
        """Some ranks have the news already, others have not: all make the same schedules."""
        group = self.join("ring:4", 4)
        is_over = threading.Event()

        problems = []

        def cut_and_heal():
            try:
                for _ in range(4):
                    self.call("cut", "0-1")
                    time.sleep(0.3)
                    self.call("heal", "0-1")
                    time.sleep(3.5)  # a cable is used again when it has worked for 3 s
            except Exception as problem:  # pylint: disable=broad-exception-caught
                problems.append(problem)
            finally:
                is_over.set()

        cutter = threading.Thread(target=cut_and_heal)
        cutter.start()
        self.addCleanup(cutter.join)
        for _ in range(MOST_SPLITS):
            if is_over.is_set():
                break
            self.all_say(group, "split 0 0")
            for number, rank in enumerate(group):
                split = rank.expect("split")
                self.assertEqual((split["rank"], split["size"]), (number, 4))
            self.all_run(group, "call all_reduce count=30000 times=3 timeout=20000")
        self.assertEqual(problems, [])


    def test_more_often_than_there_are_numbers(self):
        group = self.join("line:2", 2)
        self.all_say(group, "splits 20000")
        for rank in group:
            self.assertEqual(rank.expect("split")["times"], 20_000)


if __name__ == "__main__":
    ranks.main()
