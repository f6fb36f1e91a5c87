"""Groups of ranks between network namespaces, over RoCEv2 in UDP: they meet on the management network, and move bytes over cables."""

import json
import sys

import namespaces
from namespaces import NamespaceCase, command

namespaces.need()


class Between(NamespaceCase):
    def check(self, *options):
        said = json.loads(self.call("check", "-c", self.name, "--json", *options, timeout=150).stdout)
        self.assertTrue(said["verified"], said)
        return said

    def library(self):
        """Every call of libringbolt's API, on every rank."""
        done = self.call("run", "-c", self.name, "--no-tag", "--", command.EXTRA[0], timeout=150)
        self.assertEqual(done.stdout.split(), ["ok"] * len(namespaces.namespaces(self.name)[1:]), done.stdout)


class Collectives(Between):
    def test_of_ranks_that_only_relays_join(self):
        self.up("line:3")
        self.check()
        self.library()

    def test_of_devices_like_a_mac(self):
        self.up("ring:4", "--like", "tn3205")
        self.check()

    def test_of_devices_like_a_spark(self):
        for spec in ("ring:3", "line:3"):
            self.up(spec, "--like", "spark")
            self.check()
            self.down()

    def test_without_a_management_network_say_what_to_do(self):
        self.up("line:3", "--no-management")
        done = self.call("check", "-c", self.name, expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("RINGBOLT_COORDINATOR", done.stderr + done.stdout)
        # Rank 0's neighbour reaches it by the cable between them.
        self.call("run", "-c", self.name, "--node", "0", "--node", "1", "--", "sh", "-c",
                  "RINGBOLT_RANK=$RINGBOLT_NODE RINGBOLT_WORLD_SIZE=2 RINGBOLT_COORDINATOR=10.77.0.1:4000 "
                  f"exec {command.RINGBOLT} check --as-rank", timeout=60)


class Topologies(Between):
    def everything(self, spec, *options):
        self.up(spec, *options)
        self.check("--matrix")
        self.library()

    def test_ring(self):
        self.everything("ring:4")

    def test_line(self):
        self.everything("line:3")

    def test_mesh(self):
        self.everything("mesh:4")

    def test_ring_like_a_mac(self):
        self.everything("ring:4", "--like", "tn3205")

    def test_mesh_like_a_mac(self):
        self.everything("mesh:4", "--like", "tn3205")

    def test_petersen(self):
        self.up("petersen")
        self.check()
        self.library()

    def test_shaped_ring(self):
        self.up("ring:4", "--rate", "250Mbit")
        self.check()
        self.library()


if __name__ == "__main__":
    sys.exit(namespaces.main())
