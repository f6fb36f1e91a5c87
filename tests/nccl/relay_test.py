"""What it costs a rank of the NCCL plugin to relay for others: memory in proportion to the credits, not to the messages.

relay_test.py RINGBOLT NCCL_HARNESS PLUGIN [Relays.test_...]...
"""

import harness
from command import CommandCase

MIB = 1 << 20


class Relays(CommandCase):
    def memory(self, size, connections):
        with self.cluster("line:3"):
            cluster = harness.Cluster(self, "line3")
            for one in connections:
                [row] = cluster.play("relay_memory", options=("--bytes", size, "--channels", one))
                print(row)

    def test_memory_of_short_messages(self):
        self.memory(4 * MIB, (1, 8))

    def test_memory_of_long_messages(self):
        self.memory(64 * MIB, (1, 8))

    def test_memory_of_very_long_messages(self):
        self.memory(256 * MIB, (1, 8))


if __name__ == "__main__":
    harness.main()
