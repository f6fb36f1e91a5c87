"""The NCCL plugin on clusters of machines whose ports have UC alone, with SEND, as Macs over Thunderbolt: all pairs exchange
messages, every byte and their order are compared, whatever the cables lose; and a rank that is killed is named within a second.

uc_test.py RINGBOLT NCCL_HARNESS PLUGIN [Uc.test_...]...
"""

import contextlib
import re

import harness
import command  # noqa: I001  (harness makes the path)

UC = "UC, all messages go by frames"


class Uc(command.CommandCase):
    @contextlib.contextmanager
    def macs(self, spec, like="tn3205"):
        self.call("up", "--emulate", spec, "--like", like)
        try:
            yield harness.Cluster(self, spec.replace(":", ""))
        finally:
            self.call("down", "--force")

    def test_all_pairs_of_a_mesh(self):
        with self.macs("mesh:3") as cluster:
            said = self.words_of(cluster, "connect")
            self.assertIn(UC, said)
            cluster.play("accept_first", "connect_first", "pipeline", "order", "marker", "grouped")
            streamed = cluster.stream()
            self.assertEqual(set(streamed), {(a, b) for a in cluster.nodes for b in cluster.nodes if a != b})

    def test_relays_of_a_ring(self):
        with self.macs("ring:4") as cluster:
            cluster.play("connect", "pipeline")
            cluster.play("order", options=("--messages", 20000))  # each fills a frame of 48 KiB on each of its two hops
            streamed = cluster.stream()
            self.assertEqual(len(streamed), 12)

    def test_macs_and_others(self):
        # The middle one has RC and UC, and relays between a Mac and a card.
        path = self.root / "mixed.json"
        path.write_text("""{"ringbolt": 1, "name": "mixed", "nodes": [
            {"name": "n0", "ports": ["rdma_en2"], "like": "apple"},
            {"name": "n1", "ports": ["rdma_en2", "rdma_en3"], "like": "usb4-linux"},
            {"name": "n2", "ports": ["rdma_en2"], "like": "roce"}],
            "cables": [{"between": ["n0:rdma_en2", "n1:rdma_en2"]}, {"between": ["n1:rdma_en3", "n2:rdma_en2"]}]}""")
        self.call("up", "--emulate", str(path))
        try:
            cluster = harness.Cluster(self, "mixed")
            said = self.words_of(cluster, "connect")
            self.assertIn(UC, said)
            self.assertIn("RC, all messages go by frames (the", said)
            cluster.play("pipeline", "order")
            self.assertEqual(len(cluster.stream()), 6)
        finally:
            self.call("down", "--force")

    def test_cables_that_lose_messages(self):
        with self.macs("mesh:3") as cluster:
            self.call("fault", "add", "message-loss", "2%", "seed", "5")
            cluster.play("connect", "pipeline")
            repeated = [int(n) for n in re.findall(r"(\d+) frames had been sent again", self.words_of(cluster, "order"))]
            print("frames sent again, by rails:", repeated)
            self.assertGreater(sum(repeated), 100)
            self.assertEqual(len(cluster.stream()), 6)
            self.call("fault", "clear")
            self.call("fault", "add", "completion-missing", "10%", "seed", "6")
            cluster.play("connect", "pipeline", "order")
            self.assertEqual(len(cluster.stream()), 6)

    def test_a_cable_that_falls_silent(self):
        # Its ports say that they work, and all is lost that goes there: the other one of two carries everything.
        with self.macs("ring:2") as cluster:
            def silence():
                self.call("fault", "add", "message-loss", "100%", "cable", "n0:rdma_en2-n1:rdma_en3")

            def end_it():
                self.call("fault", "clear")

            rates = cluster.stream_through({1: [silence], 5: [end_it]}, 7)
            print("GB/s in each second:", ", ".join(f"{sum(one.values()):.3f}" for one in rates))
            self.assertGreater(min(rates[4].values()), 0, "nothing has come in the fourth second after")

    def test_ranks_that_are_killed_or_stopped(self):
        with self.macs("mesh:3") as cluster:
            cluster.play("killed_receive", "killed_send", "killed_connect", "stopped")

    def words_of(self, cluster, case):
        """What the plugin says while a case is played."""
        program = cluster.start([case], "--verbose")
        said, errors = program.communicate(timeout=60 * command.TIME_SCALE)
        cluster.passed(program, "\n".join(line for line in said.splitlines() if line.startswith("{")), errors)
        return said + errors


if __name__ == "__main__":
    harness.main()
