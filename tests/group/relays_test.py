"""A relay whose own call has ended still relays: soon, although nobody waits in it any more."""

import statistics
import time

import ranks

# Its thread naps for 20 ms while a caller waits.
INTO_A_NAP_S = 0.022
SOON_MS = 5


class Relays(ranks.GroupCase):
    def test_is_there_when_its_caller_has_gone(self):
        group = self.join("line:3", 3)
        self.all_run(group, "call all_reduce count=16")
        took_ms = []
        for _ in range(15):
            group[1].say("call all_reduce count=16")  # it waits for the others, until its thread is in a nap
            time.sleep(INTO_A_NAP_S)
            self.all_say(group[::2], "call all_reduce count=16")
            for rank in group:
                rank.expect("done")
            group[2].say("call recv peer=0 count=16")
            group[0].say("call send peer=2 count=16")
            group[0].expect("done")
            took_ms.append(group[2].expect("done")["ms"])
        self.assertLess(statistics.median(took_ms), SOON_MS, took_ms)


if __name__ == "__main__":
    ranks.main()
