"""Cables that are cut and healed while ranks of the NCCL plugin exchange messages: all arrives, once and in order, and the rate
comes back. The last cable: an error, no hang.

cuts_test.py RINGBOLT NCCL_HARNESS PLUGIN [Cuts.test_...]...
"""

import os

import harness
from command import CommandCase

RING_2 = "n0:rdma_en2-n1:rdma_en3"
RING_2_TOO = "n0:rdma_en3-n1:rdma_en2"


def total(rates):
    return sum(rates.values())


class Cuts(CommandCase):
    def deeds(self, cable):
        return lambda: self.call("cut", cable), lambda: self.call("heal", cable)

    def check_it_comes_back(self, play):
        """`play()`: GB/s before and after. Both share two processors with whatever else runs there."""
        before, after = play()
        print(f"{before:.3f} GB/s before, {after:.3f} at the end")
        self.assertGreater(after, 0.25 * before, "GB/s at the end, and a quarter of those before the cut")

    def end_of(self, cluster, cable):
        """What the port at the first end of a cable has sent."""
        words = cable.split("-")[0].split(":")
        return cluster.counted()[tuple(words) if len(words) == 2 else (f"n{words[0]}", "rdma_en2")][0]

    def check_way(self, cluster, is_everywhere=True):
        """Whether messages were written straight to their receivers, as they were to be; by all ports, unless some relay."""
        writes = cluster.writes()
        is_direct = os.environ.get("RINGBOLT_NCCL_WAY") == "direct"
        is_there = all(writes.values()) if is_direct and is_everywhere else any(writes.values())
        self.assertEqual(is_there, is_direct, f"RDMA WRITEs: {writes}")

    def cut_and_heal(self, spec, cable):
        with self.cluster(spec):
            cluster = harness.Cluster(self, spec.replace(":", ""))
            cut, heal = self.deeds(cable)
            seen = []

            def look():
                seen.append(self.end_of(cluster, cable))

            def play():
                rates = cluster.stream_through({2: [cut, look], 4: [look, heal, look], 5: [look]}, 6)
                print("GB/s in each second:", ", ".join(f"{total(one):.3f}" for one in rates))
                # The fourth second lies between the cut and the heal.
                still = [f"{a}>{b}" for (a, b), rate in rates[3].items() if rate == 0]
                self.assertEqual(still, [], "nothing has come for a second, though there was another way")
                # What was under way when the cut came may be counted a little later.
                self.assertLess(seen[1] - seen[0], 16 << 20, "the cable that is cut carries data")
                self.assertGreater(seen[3] - seen[2], 16 << 20, "the healed cable carries nothing")
                return total(rates[1]), max(total(one) for one in rates[4:])

            self.check_it_comes_back(play)
            self.check_way(cluster, spec.startswith("ring:2"))

    def test_ring_4(self):
        self.cut_and_heal("ring:4", "0-1")

    def test_ring_2(self):
        self.cut_and_heal("ring:2", RING_2)

    def test_down_at_the_start(self):
        """A cable that is cut when ranks start is used once it is healed, beside the other one."""
        with self.cluster("ring:2"):
            cluster = harness.Cluster(self, "ring2")
            cut, heal = self.deeds(RING_2)
            cut()
            ends = (RING_2, RING_2_TOO)
            seen = [[self.end_of(cluster, one) for one in ends]]

            def look():
                seen.append([self.end_of(cluster, one) for one in ends])

            cluster.stream_through({1: [look, heal], 3: [look], 5: [look]}, 5)  # a look may take long itself
            cut_sent, other_sent = ([late - early for early, late in zip(of, of[1:])]
                                    for of in zip(*seen))
            print(f"bytes sent before the heal, in the two seconds after it, and then: by the cable that was cut {cut_sent}, "
                  f"by the other one {other_sent}")
            self.assertLess(cut_sent[0], 1 << 20, "the cable that is cut carries data")
            self.assertGreater(other_sent[0], 16 << 20)
            for sent in (cut_sent, other_sent):
                self.assertGreater(sent[2], 16 << 20, "both cables carry data")
            self.check_way(cluster)

    def two_cuts(self, spec, first, second):
        with self.cluster(spec):
            cluster = harness.Cluster(self, spec.replace(":", ""))
            (cut, heal), (cut_again, heal_again) = self.deeds(first), self.deeds(second)

            def play():
                rates = cluster.stream_through({1: [cut], 2: [heal], 3: [cut_again], 4: [heal_again]}, 6)
                print("GB/s in each second:", ", ".join(f"{total(one):.3f}" for one in rates))
                return total(rates[0]), max(total(one) for one in rates[4:])

            self.check_it_comes_back(play)

    def test_two_cuts_of_ring_4(self):
        self.two_cuts("ring:4", "0-1", "2-3")

    def test_two_cuts_of_ring_2(self):
        self.two_cuts("ring:2", RING_2, RING_2_TOO)

    def test_last_cable(self):
        with self.cluster("line:2"):
            taken_s, told = harness.Cluster(self, "line2").sever("0-1")
            self.assertLess(taken_s, 15, told)

    def test_last_cable_of_who_only_receives(self):
        with self.cluster("line:2"):
            taken_s, told = harness.Cluster(self, "line2").sever("0-1", "severed_one_way")
            self.assertLess(taken_s, 15, told)
            self.assertTrue(any(note.startswith("rank 1 was told") and "returned 2" in note for note in told), told)


if __name__ == "__main__":
    harness.main()
