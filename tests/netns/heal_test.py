"""A cable that is cut and healed while an all_reduce runs over two: the sums are exact, and the rate comes back."""

import os
import pathlib
import sys
import time

import namespaces
from namespaces import command

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "group"))

import ranks  # noqa: E402  (after the path)

CABLE = "n0:rdma_en2-n1:rdma_en3"
# A cable is used again when it has worked for 3 s.
HEALED_S = 20


class Healing(ranks.GroupCase):
    def seconds(self, group, count, times=1):
        """Of an all_reduce of so many float32, exact on all ranks."""
        self.all_say(group, f"call all_reduce count={count} times={times} timeout=120000")
        return self.finished(group) / times

    def finished(self, group):
        done = [rank.expect("done", "failed", timeout=150) for rank in group]
        for one in done:
            self.assertEqual((one["event"], one.get("wrong")), ("done", 0), one)
        return max(one["ms"] for one in done) / 1000

    def cut_and_heal(self, group, count, times, cut_s):
        """While calls run; how long they took."""
        self.all_say(group, f"call all_reduce count={count} times={times} timeout=120000")
        for rank in group:
            rank.expect("running", timeout=150)
        self.call("cut", CABLE)
        time.sleep(cut_s)
        self.call("heal", CABLE)
        return self.finished(group) / times

    def comes_back(self, group, count, whole_s):
        give_up = time.monotonic() + HEALED_S
        while (taken_s := self.seconds(group, count)) > 1.2 * whole_s:
            self.assertLess(time.monotonic(), give_up, f"{taken_s:.2f} s, where {whole_s:.2f} s were before the cut")

    def test_between_namespaces(self):
        namespaces.need()
        group = self.join("ring:2", 2, "--netns", "--rate", "250Mbit", "--name", f"t{os.getpid()}")
        count = 8 << 20
        self.seconds(group, count)
        whole_s = self.seconds(group, count, 2)
        self.assertGreater(self.cut_and_heal(group, count, 6, 2.5), 1.2 * whole_s, "one cable was out")
        self.comes_back(group, count, whole_s)

    def test_of_a_gibibyte_over_memory(self):
        if os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 12 << 30:
            self.skipTest("takes 12 GiB of memory")
        group = self.join("ring:2", 2)
        count = (1 << 30) // 4
        whole_s = self.seconds(group, count)
        self.cut_and_heal(group, count, 6, 2.5)
        self.comes_back(group, count, whole_s)


if __name__ == "__main__":
    command.main()
