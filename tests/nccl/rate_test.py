"""How much of its cables the NCCL plugin uses: between namespaces with cables of 1 Gb/s at most, against what plain verbs
reach there.

rate_test.py RINGBOLT NCCL_HARNESS PLUGIN [Rates.test_...]...
"""

import json

import harness
import namespaces
from namespaces import NamespaceCase

namespaces.need()

SECONDS = 2


class Rates(NamespaceCase):
    def verbs(self):
        """GB/s of one cable."""
        said = self.call("perf", "send", "--nodes", "0,1", "--cluster", self.name, "-s", 1 << 20, "-D", SECONDS, "--json").stdout
        [way] = json.loads(said)["results"][0]["bandwidth"]
        self.assertTrue(way["verified"])
        return way["goodput_gbps"] / 8

    def at_least(self, ratio, *figures, of, to, what):
        """`figures` are functions. A machine that has other things to do is slow once, and not again."""
        seen = []
        for _ in range(3):
            one, other = (figure() for figure in figures)
            seen.append(one / other)
            print(f"{what}: {of} {one:.4f} GB/s, {to} {other:.4f}: {seen[-1]:.3f}, at least {ratio}")
            if seen[-1] >= ratio:
                return
        self.fail(f"{what}: {of} against {to} is {max(seen):.3f} at best, less than {ratio}")

    def ring(self, spec, rate="1Gbit"):
        self.up(spec, "--rate", rate)
        return harness.Cluster(self, self.name, f"rb-{self.name}-")

    def test_neighbours(self):
        cluster = self.ring("line:2")
        self.at_least(0.97, lambda: cluster.bandwidth(0, 1, SECONDS), self.verbs, of="NCCL", to="verbs", what="neighbours")

    def test_two_rails(self):
        cluster = self.ring("ring:2")
        self.at_least(1.96, lambda: cluster.bandwidth(0, 1, SECONDS), self.verbs, of="NCCL over two", to="verbs over one",
                      what="two rails")

    def test_diagonal(self):
        """Relayed both ways round."""
        cluster = self.ring("ring:4")
        self.at_least(0.95, lambda: cluster.bandwidth(0, 2, SECONDS), lambda: cluster.bandwidth(0, 1, SECONDS), of="two hops",
                      to="one", what="relayed")

    def test_everybody_at_once(self):
        """All pairs of a ring of four: each cable carries its neighbours' messages, and a half of two diagonals' each way.
        Equal shares would be a half of a cable for each pair; cables' ends, and relays, give nobody much less. With
        1 Gb/s two cores of an EPYC had 0.6 % of their time left, and who had a core had the share: 0.47 to 0.72 were used."""
        cluster = self.ring("ring:4", "500Mbit")
        seen = []
        for _ in range(3):
            cable = cluster.bandwidth(0, 1, SECONDS)
            rates = cluster.stream_through({}, 5)[1:]
            shares = {pair: sum(one[pair] for one in rates) / len(rates) / (cable / 2) for pair in rates[0]}
            diagonals = [share for (a, b), share in shares.items() if (a + b) % 2 == 0]
            neighbours = [share for (a, b), share in shares.items() if (a + b) % 2 == 1]
            used = (2 * sum(diagonals) + sum(neighbours)) / 16
            print(f"of an equal share, neighbours have {min(neighbours):.2f} to {max(neighbours):.2f}, diagonals {min(diagonals):.2f} "
                  f"to {max(diagonals):.2f}; all together use {used:.2f} of the cables")
            seen.append(min(min(diagonals) / 0.5, min(neighbours) / 0.5, used / 0.75, 2.5 * min(diagonals) / max(neighbours),
                            2.5 * min(neighbours) / max(diagonals)))
            if seen[-1] >= 1:
                return
        self.fail(f"unfair, or slow: {seen}")


if __name__ == "__main__":
    harness.main()
