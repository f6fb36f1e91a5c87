"""Bring-up between processes of an emulated cluster: every cable is found, and leads where the cluster file says."""

import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "netns"))

import namespaces  # noqa: E402  (it knows where `command` is)
import command  # noqa: E402


class Bringup:
    """Of a cluster that up() makes."""

    def cables(self):
        """As the cluster has them: "rank 0's rdma_en2 - rank 1's rdma_en3", sorted."""
        cluster = json.loads(self.call("status", "--json").stdout)["clusters"][0]
        found = []
        for cable in cluster["cables"]:
            ends = sorted((end["node"], end["port"]) for end in self.ends(cable))
            found.append(" - ".join(f"rank {node}'s {port}" for node, port in ends))
        return sorted(found)

    def ends(self, cable):
        return [self.end(cable["a"]), self.end(cable["b"])]

    @staticmethod
    def end(text):
        node, port = text.split(":")
        return {"node": int(node.removeprefix("n")), "port": port}

    def check(self):
        with tempfile.TemporaryDirectory(dir=self.root) as folder:
            said = self.call("run", "--", command.EXTRA[0], folder, timeout=60).stdout.splitlines()
        lines = {}
        for line in said:
            node, text = line.split(" | ", 1)
            lines.setdefault(int(node.removeprefix("n")), []).append(text)
        expected = self.cables()
        for node, texts in lines.items():
            got = [text.removeprefix("cable: ") for text in texts if text.startswith("cable: ")]
            self.assertEqual(sorted(got), expected, node)
            self.assertEqual([t for t in texts if t.startswith(("conflict", "unmatched", "failed"))], [])
            own = [cable for cable in expected if f"rank {node}'s " in cable]
            self.assertEqual(len([t for t in texts if t.startswith("ok: ")]), len(own), texts)
        return len(expected)


class Emulated(Bringup, command.CommandCase):
    """Addresses say nothing here: trials do."""

    def up(self, spec, *options):
        self.call("up", "--emulate", spec, *options)
        self.addCleanup(self.call, "down", "--force")

    def test_ring_of_four(self):
        self.up("ring:4")
        self.assertEqual(self.check(), 4)

    def test_two_nodes_with_two_rails(self):
        self.up("ring:2")
        self.assertEqual(self.check(), 2)

    def test_ring_of_macs(self):
        self.up("ring:4", "--like", "tn3205")
        self.assertEqual(self.check(), 4)


class Network(Bringup, namespaces.NamespaceCase):
    """A subnet for each cable."""

    def test_ring_of_three(self):
        self.up("ring:3")
        self.assertEqual(self.check(), 3)

    def test_two_nodes_with_two_rails(self):
        self.up("ring:2")
        self.assertEqual(self.check(), 2)

    def test_gid_tables_of_every_profile(self):
        for like in ("tn3205", "apple,gid=2", "usb4-linux", "spark", "spark,gid=0"):
            with self.subTest(like):
                self.up("ring:3", "--like", like)
                self.assertEqual(self.check(), 3)
                self.down()


if __name__ == "__main__":
    try:
        namespaces.need()
    except SystemExit:
        del Network  # it has said why
    command.main()
