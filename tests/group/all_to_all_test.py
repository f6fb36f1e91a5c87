"""All ranks talk to all others for long, over cables that most of them share: nothing stops, and nobody starves."""

import os
import time

import ranks

SOAK_S = float(os.environ.get("RINGBOLT_SOAK_S", "3600"))
WORDS = 16 * 1024  # 64 KiB a message, several chunks
# Shares of a cable are not equal: messages pass on between 1 and 4 cables, and who is further away waits longer for each.
MOST_UNEQUAL = 30
# No single stream stands still for that long, beside 56 to 90 others on as few processors as there may be.
LONGEST_GAP_S = 20


class AllToAll(ranks.GroupCase):
    def soak(self, spec, n_ranks):
        group = self.join(spec, n_ranks)
        self.streams(spec, group, SOAK_S / 2)
        calls = self.collectives(group, SOAK_S / 2)
        print(f"{spec}: {calls} calls of all_to_all", flush=True)
        for rank in group:
            rank.say("leave")
            rank.expect("left")

    def streams(self, spec, group, seconds):
        self.all_say(group, f"pairs count={WORDS} seconds={seconds}")
        messages, gaps = [], []
        for rank in group:
            arrivals = rank.expect("streamed", timeout=seconds + 2 * ranks.PATIENCE_S)["from"]
            for peer, one in enumerate(arrivals):
                self.assertEqual((one["problem"], one["wrong"]), ("", 0), f"from {peer} to {rank.node}")
                if peer != rank.node:
                    messages.append(one["messages"])
                    gaps.append(one["longest_gap_ms"])
        print(f"{spec}: {len(messages)} pairs for {seconds:.0f} s, {sum(messages)} messages, {min(messages)} to "
              f"{max(messages)} a pair, longest gap {max(gaps)} ms", flush=True)
        self.assertLess(max(gaps), LONGEST_GAP_S * 1000)
        self.assertLess(max(messages), MOST_UNEQUAL * min(messages))

    def collectives(self, group, seconds):
        end = time.monotonic() + seconds
        calls = 0
        for turn in range(10**9):
            count = (1, 1009, WORDS, 100_003)[turn % 4]
            self.all_run(group, f"call all_to_all count={count} times=5")
            calls += 5
            if time.monotonic() > end:
                return calls
        raise AssertionError("calls take no time")

    def test_on_a_ring(self):
        self.soak("ring:8", 8)

    def test_on_petersen_s_graph(self):
        self.soak("petersen", 10)


if __name__ == "__main__":
    ranks.main()
