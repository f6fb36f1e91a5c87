"""The path shim: programs see the synthetic /sys and /dev of their node, and nothing else changes for them."""

import os
import pathlib
import subprocess

import command
from command import CommandCase

FOLDER = "/sys/class/infiniband/rdma_en2"
FILE = f"{FOLDER}/node_guid"
LINK = "/dev/infiniband/uverbs0"


class Paths(CommandCase):
    def setUp(self):
        super().setUp()
        self.call("up", "--emulate", "ring:4")
        self.addCleanup(self.call, "down", "--force")

    def cat(self, node, path):
        return self.call("exec", node, "--", "cat", path).stdout

    def test_every_function_is_answered(self):
        calls = command.EXTRA[0]
        bare = subprocess.run([calls, FOLDER, FILE, LINK], capture_output=True, text=True, check=True).stdout
        if "found" in bare:
            self.skipTest(f"this machine has a device of that name: {FOLDER}")
        said = self.call("exec", "1", "--", calls, FOLDER, FILE, LINK).stdout
        self.assertEqual(len(said.splitlines()), 33)
        for line in said.splitlines():
            self.assertTrue(line.endswith(": found"), line)

    def test_other_paths_stay_as_they_are(self):
        calls = command.EXTRA[0]
        real = self.root / "folder"
        real.mkdir()
        (real / "file").write_text("x")
        (real / "link").symlink_to("file")
        for folder, file, link in ((real, real / "file", real / "link"), ("/sys/class", "/sys/class/net/lo/mtu", "/none"),
                                   ("/sys/class/infiniband_mad", "/dev/infinibandx", "/dev/infiniband_/y")):
            words = [calls, str(folder), str(file), str(link)]
            bare = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            self.assertEqual(self.call("exec", "1", "--", *words).stdout, bare)

    def test_tree_tells_what_the_device_tells(self):
        port = f"{FOLDER}/ports/1"
        self.assertEqual(self.cat(0, f"{port}/gid_attrs/types/1"), "RoCE v2\n")
        self.assertEqual(self.cat(0, f"{port}/gid_attrs/ndevs/0"), "lo\n")
        self.assertEqual(self.cat(0, f"{port}/pkeys/0"), "0xffff\n")
        self.assertEqual(self.cat(2, f"{port}/gids/1"), "0000:0000:0000:0000:0000:ffff:7f4d:0202\n")
        self.assertEqual(self.cat(0, f"{port}/state"), "4: ACTIVE\n")
        self.assertEqual(self.cat(0, f"{port}/link_layer"), "Ethernet\n")
        self.assertEqual(self.cat(0, "/sys/class/infiniband_verbs/uverbs1/ibdev"), "rdma_en3\n")
        guid = self.cat(3, FILE).replace(":", "").strip()
        listed = (self.root / "clusters/ring4/node-3.ports").read_text()
        self.assertIn(f"rdma_en2 guid 0x{guid}", listed)

    def test_link_local_gid_is_made_of_the_guid(self):
        guid = int(self.cat(0, FILE).replace(":", ""), 16)
        gid = self.cat(0, f"{FOLDER}/ports/1/gids/0").strip()
        self.assertEqual(int(gid.replace(":", ""), 16), (0xfe80 << 112) | (guid ^ (2 << 56)))

    def test_nodes_see_only_their_own(self):
        self.call("down")
        self.call("up", "--emulate", "line:3")
        self.assertEqual(self.call("exec", "0", "--", "ls", "/sys/class/infiniband").stdout.split(), ["rdma_en2"])
        self.assertEqual(self.call("exec", "1", "--", "ls", "/sys/class/infiniband").stdout.split(),
                         ["rdma_en2", "rdma_en3"])

    def test_device_nodes_look_like_character_devices(self):
        script = f"test -c {LINK} && test -r {LINK} && test -w {LINK} && ls /dev/infiniband"
        self.assertEqual(self.call("exec", "0", "--", "sh", "-c", script).stdout.split(), ["rdma_cm", "uverbs0", "uverbs1"])

    def test_devices_have_different_real_paths(self):
        paths = {self.call("exec", "0", "--", "realpath", f"/sys/class/infiniband/{name}/device").stdout
                 for name in ("rdma_en2", "rdma_en3")}
        self.assertEqual(len(paths), 2)

    def test_a_cut_cable_shows(self):
        self.cat(0, FILE)
        self.call("cut", "0-1")
        self.assertEqual(self.cat(0, f"{FOLDER}/ports/1/state"), "1: DOWN\n")
        self.assertEqual(self.cat(1, "/sys/class/infiniband/rdma_en3/ports/1/state"), "1: DOWN\n")
        self.assertEqual(self.cat(1, f"{FOLDER}/ports/1/state"), "4: ACTIVE\n")
        self.call("heal", "0-1")
        self.assertEqual(self.cat(0, f"{FOLDER}/ports/1/state"), "4: ACTIVE\n")
        self.assertEqual(self.cat(1, "/sys/class/infiniband/rdma_en3/ports/1/state"), "4: ACTIVE\n")

    def test_default_device_has_a_tree_without_a_cluster(self):
        self.assertEqual(self.call("exec", "local", "--", "ls", "/sys/class/infiniband").stdout, "rdma_lo\n")
        self.assertEqual(self.cat("local", "/sys/class/infiniband/rdma_lo/ports/1/gids/1"),
                         "0000:0000:0000:0000:0000:ffff:7f00:0001\n")

    def test_bad_roots_are_ignored(self):
        library = pathlib.Path(command.RINGBOLT).parent.parent / "lib/ringbolt/libringbolt-paths.so"
        for root in ("", "relative", "/" + "x" * 5000):
            done = subprocess.run(["cat", FILE], capture_output=True, text=True, check=False,
                                  env=os.environ | {"LD_PRELOAD": str(library), "RINGBOLT_SYSROOT": root})
            self.assertEqual(done.returncode, 1)
            self.assertIn("No such file", done.stderr)


if __name__ == "__main__":
    command.main()
