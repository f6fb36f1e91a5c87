"""The NCCL plugin between network namespaces, over RoCEv2 in UDP, a rank in each; also where members have no network but the
cables to find each other by, so that what they tell each other goes by way of others.

netns_test.py RINGBOLT NCCL_HARNESS PLUGIN [Between.test_...]...
"""

import subprocess

import harness
import namespaces
from namespaces import NamespaceCase

namespaces.need()


class Between(NamespaceCase):
    def up_with_ranks(self, spec, *options):
        self.up(spec, *options)
        cluster = harness.Cluster(self, self.name, f"rb-{self.name}-")
        cluster.play("connect", "pipeline", "killed_receive", "stopped")
        return cluster

    def cut_and_heal(self, cluster, cable):
        deeds = {1: [lambda: self.call("cut", cable, "-c", self.name)], 2: [lambda: self.call("heal", cable, "-c", self.name)]}
        rates = cluster.stream_through(deeds, 5)
        totals = [sum(one.values()) for one in rates]
        print(f"GB/s of all in each second: {', '.join(f'{one:.3f}' for one in totals)}")
        self.assertGreater(max(totals[2:]), 0.5 * totals[0])

    def test_ring(self):
        self.cut_and_heal(self.up_with_ranks("ring:4"), "0-1")

    def test_ring_without_a_management_network(self):
        self.cut_and_heal(self.up_with_ranks("ring:4", "--no-management"), "0-1")

    def test_line(self):
        """No other way: what is under way waits for the cable."""
        self.cut_and_heal(self.up_with_ranks("line:3"), "1-2")

    def test_line_without_a_management_network(self):
        """Who is behind the cable that is cut can't be told from one that is dead."""
        cluster = self.up_with_ranks("line:3", "--no-management")
        cluster.stream()
        taken_s, told = cluster.sever("1-2")
        self.assertLess(taken_s, 5 * harness.command.TIME_SCALE, told)

    def test_down_at_the_start(self):
        """A cable that is cut when ranks start, so that its ports have no addresses, is used once it is healed."""
        self.up("ring:3", "--no-management")
        cluster = harness.Cluster(self, self.name, f"rb-{self.name}-")
        self.call("cut", "0-1", "-c", self.name)
        seen = []

        def look():
            seen.append({port: sent for port, (sent, _) in cluster.counted().items()})

        look()
        cluster.stream_through({2: [look, lambda: self.call("heal", "0-1", "-c", self.name)], 5: [look], 7: [look]}, 7)
        before, _, after = [{port: late[port] - early[port] for port in early} for early, late in zip(seen, seen[1:])]
        print(f"sent by each port before the heal {before}, and later {after}")
        idle = [port for port, sent in before.items() if sent < 1 << 20]
        self.assertEqual(len(idle), 2, "the ends of the cable that is cut carry nothing")
        for port in idle:
            self.assertGreater(after[port], 4 << 20, f"{port} is used")

    def test_parted_at_the_start(self):
        """Two halves of a ring that have no cable between them when ranks start hear of each other by the first one that is healed."""
        self.up("ring:4", "--no-management")
        cluster = harness.Cluster(self, self.name, f"rb-{self.name}-")
        for cable in ("1-2", "0-3"):
            self.call("cut", cable, "-c", self.name)
        program = cluster.start(["connect"])
        with self.assertRaises(subprocess.TimeoutExpired, msg="there is no way"):
            program.communicate(timeout=2)
        self.call("heal", "1-2", "-c", self.name)
        said, errors = program.communicate(timeout=60 * harness.command.TIME_SCALE)
        cluster.passed(program, said, errors)


if __name__ == "__main__":
    harness.main()
