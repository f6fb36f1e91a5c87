"""The NCCL plugin with more ranks and threads than processors and 64 channels of each ordered pair: no call is long, and none waits
for a thread that may be off its processor.

crowd_test.py RINGBOLT NCCL_HARNESS PLUGIN [Crowd.test_...]...
"""

import harness
from command import CommandCase


class Crowd(CommandCase):
    def test_ring_4(self):
        with self.cluster("ring:4"):
            harness.Cluster(self, "ring4").play("crowded", options=("--channels", 64))


if __name__ == "__main__":
    harness.main()
