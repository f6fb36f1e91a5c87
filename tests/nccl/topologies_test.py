"""The NCCL plugin on emulated clusters, a rank on each node: all pairs connect and exchange messages, over the cables and by way
of the nodes that the plan says.

topologies_test.py RINGBOLT NCCL_HARNESS PLUGIN [Topologies.test_...]...
"""

import json

import harness
from command import CommandCase

# Headers of packets and of frames, credits, and what members tell each other.
MOST_OVERHEAD = 1.05
# As ranks meet, one may know of those behind a longer way first: its messages go there until the plan is made anew, which
# takes half a second at most.
MOST_ASTRAY = 0.25
LITTLE = 4 << 20


class Topologies(CommandCase):
    def everything(self, spec, name=None):
        with self.cluster(spec, name):
            cluster = harness.Cluster(self, name or spec.replace(":", ""))
            cluster.play("connect", "accept_first", "connect_first")
            ways = cluster.ways()
            nodes = cluster.nodes
            self.assertEqual(set(ways), {(a, b) for a in nodes for b in nodes if a != b})
            self.check_all_pairs(cluster, ways)
            far = max(ways, key=lambda pair: len(ways[pair][0]))
            if ways[far][0]:
                self.check_one_pair(cluster, ways[far], far)

    def check_all_pairs(self, cluster, ways):
        streamed, counted = cluster.moved(cluster.stream)
        self.assertEqual(set(streamed), set(ways))
        self.check_counters(cluster.nodes, ways, streamed, counted)

    def check_counters(self, nodes, ways, streamed, counted):
        """Every cable carries data both ways, and nodes receive what is theirs, and what the plan has them relay."""
        for port, (sent, received) in counted.items():
            self.assertGreater(min(sent, received), LITTLE // 4, f"{port} of {counted}")
        in_all = 0
        for node in nodes:
            received = sum(of[1] for port, of in counted.items() if port[0] == node)
            own = sum(n for pair, n in streamed.items() if pair[1] == node)
            by_it_alone = sum(n for pair, n in streamed.items() if all(node in way for way in ways[pair]))
            by_it_too = sum(n for pair, n in streamed.items() if any(node in way for way in ways[pair]))
            print(f"{node}: received {received / 1e9:.3f} GB, {own / 1e9:.3f} its own, "
                  f"relays {by_it_alone / 1e9:.3f} to {by_it_too / 1e9:.3f}")
            self.assertGreaterEqual(received, own + (1 - MOST_ASTRAY) * by_it_alone)
            self.assertLess(received, (MOST_OVERHEAD + MOST_ASTRAY) * (own + by_it_too) + LITTLE)
            in_all += received
        # Whatever way it takes, a message crosses as many cables as the plan says.
        crossed = sum(n * (len(ways[pair][0]) + 1) for pair, n in streamed.items())
        self.assertGreaterEqual(in_all, crossed * 0.999)
        self.assertLess(in_all, (MOST_OVERHEAD + MOST_ASTRAY) * crossed + LITTLE)

    def check_one_pair(self, cluster, ways, pair):
        """A stream of two alone: once it has found its ways, nobody else has its bytes."""
        ranks = [cluster.nodes.index(node) for node in pair]
        looks = []

        def look():
            looks.append(cluster.counted())

        rates = cluster.stream_through({1: [look], 3: [look]}, 3, "--pair", ",".join(map(str, ranks)))
        both = sum(sum(rate for of, rate in one.items() if set(of) == set(ranks)) for one in rates[1:]) * 1e9
        through = dict.fromkeys(cluster.nodes, 0)
        for (node, device), (_, received) in looks[1].items():
            through[node] += received - looks[0][node, device][1]
        print(f"{pair} by {ways}: {both / 1e9:.3f} GB in two seconds; received: {through}")
        relays = {node for way in ways for node in way}
        for node in set(cluster.nodes) - set(pair):
            if node in relays:
                self.assertGreater(through[node], 0.1 * both / len(ways), node)
            else:
                self.assertLess(through[node], LITTLE, node)
        # Seconds, and what ports have counted, are not looked at in the same moment.
        relayed = sum(through[node] for node in relays) / len(ways[0])
        self.assertGreater(relayed, 0.7 * both)
        self.assertLess(relayed, 1.3 * both)

    def test_line_3(self):
        self.everything("line:3")

    def test_ring_2(self):
        self.everything("ring:2")

    def test_ring_3(self):
        self.everything("ring:3")

    def test_ring_4(self):
        self.everything("ring:4")

    def test_ring_5(self):
        self.everything("ring:5")

    def test_ring_6(self):
        self.everything("ring:6")

    def test_ring_7(self):
        self.everything("ring:7")

    def test_ring_8(self):
        self.everything("ring:8")

    def test_star_5(self):
        self.everything("star:5")

    def test_petersen(self):
        self.everything("petersen")

    def test_mixed_speeds(self):
        # Two cables of different speeds, and nodes that a slower one joins by way of the one between.
        path = self.root / "speeds.json"
        path.write_text(json.dumps({
            "ringbolt": 1, "name": "speeds",
            "nodes": [{"name": "fast", "ports": ["rocep1s0f0", "rocep1s0f1"]},
                      {"name": "middle", "ports": ["rocep1s0f0", "rocep1s0f1", "rdma_en2"]},
                      {"name": "slow", "ports": ["rdma_en2"]}],
            "cables": [{"between": ["fast:rocep1s0f0", "middle:rocep1s0f0"], "speed_gbps": 200},
                       {"between": ["fast:rocep1s0f1", "middle:rocep1s0f1"], "speed_gbps": 100},
                       {"between": ["middle:rdma_en2", "slow:rdma_en2"], "speed_gbps": 10}]}))
        self.everything(str(path), "speeds")


if __name__ == "__main__":
    harness.main()
