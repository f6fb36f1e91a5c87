"""Clusters come up whole, are told apart, survive nothing stale, and go away without a trace."""

import contextlib
import fcntl
import json
import os
import pathlib
import signal
import subprocess

import command
from command import CommandCase


class State(CommandCase):
    def test_up_shows_in_status_and_down_leaves_nothing(self):
        said = self.call("up", "--emulate", "ring:4").stdout
        self.assertIn("cluster ring4 is up: 4 nodes, 4 cables", said)
        status = json.loads(self.call("status", "--json").stdout)["clusters"]
        self.assertEqual([one["cluster"] for one in status], ["ring4"])
        self.assertEqual(len(status[0]["cables"]), 4)
        self.assertEqual(status[0]["cables"][0],
                         {"cable": 0, "a": "n0:rdma_en2", "b": "n1:rdma_en3", "speed_gbps": 40, "state": "up"})
        self.call("down")
        self.assertEqual(self.state_files(), ["clusters"])
        self.assertIn("no cluster is up", self.call("status").stdout)

    def test_files_are_private(self):
        os.umask(0)
        self.addCleanup(os.umask, 0o022)
        with self.cluster("mesh:3"):
            for path in self.root.rglob("*"):
                if not path.is_symlink():
                    self.assertEqual(path.stat().st_mode & 0o077, 0, path)

    def test_node_files_pair_up(self):
        with self.cluster("petersen"):
            ports = {}
            for node in range(10):
                for line in (self.root / f"clusters/petersen/node-{node}.ports").read_text().splitlines()[3:]:
                    words = line.split()
                    fields = dict(zip(words[::2], words[1::2]))
                    ports[(node, fields["port"])] = fields
            self.assertEqual(len(ports), 30)
            for (node, name), port in ports.items():
                peer = ports[(int(port["peer-node"]), port["peer-port"])]
                self.assertEqual((int(peer["peer-node"]), peer["peer-port"]), (node, name))
                self.assertEqual((peer["guid"], peer["addr"]), (port["peer-guid"], port["peer-addr"]))
                self.assertEqual(peer["cable"], port["cable"])

    def test_devices_lists_every_port(self):
        with self.cluster("line:3"):
            listed = json.loads(self.call("devices", "--json").stdout)["devices"]
            self.assertEqual([(one["node"], one["device"], one["leads_to"]) for one in listed],
                             [("n0", "rdma_en2", "n1:rdma_en2"), ("n1", "rdma_en2", "n0:rdma_en2"),
                              ("n1", "rdma_en3", "n2:rdma_en2"), ("n2", "rdma_en2", "n1:rdma_en3")])
            self.assertEqual(listed[0]["address"], "127.77.0.2")

    def test_devices_without_a_cluster_are_the_default_one(self):
        listed = json.loads(self.call("devices", "--json").stdout)["devices"]
        self.assertEqual([one["device"] for one in listed], ["rdma_lo"])

    def test_up_does_not_replace_a_cluster(self):
        with self.cluster("ring:4"):
            self.refused("up", "--emulate", "ring:4", says=["\"ring4\" is up already", "ringbolt down --cluster ring4"])

    def test_several_clusters_must_be_told_apart(self):
        with self.cluster("ring:3"), self.cluster("line:2", name="other"):
            self.refused("devices", says=["several clusters are up (other, ring3)", "--cluster"])
            self.assertIn("\nn2 ", self.call("devices", "--cluster", "ring3").stdout)
            self.assertNotIn("\nn2 ", self.call("devices", env={"RINGBOLT_CLUSTER": "other"}).stdout)
            self.assertIn("other", self.call("status").stdout)
            self.refused("down", says=["several clusters"])

    def test_stale_state_is_named_cleaned_and_said(self):
        for damage in ("control", "cluster.json", "boot"):
            with self.subTest(damage):
                self.call("up", "--emulate", "ring:4")
                broken = self.root / "clusters/ring4" / damage
                broken.write_bytes(b"\0" * 7)
                self.assertIn("stale", self.call("status", expect=1).stdout)
                self.refused("devices", says=["is stale", "ringbolt down --cluster ring4"])
                said = self.call("up", "--emulate", "ring:4").stdout
                self.assertIn("removed stale state of cluster ring4", said)
                self.call("down")

    def test_a_boot_that_nobody_knows_makes_nothing_stale(self):
        self.without_proc("true")  # skips where that can't be played
        with self.cluster("ring:4"):
            self.assertIn("ring4", self.without_proc("status", expect=0).stdout)
            done = self.without_proc("up", "--emulate", "ring:4", expect=2)
            self.assertIn("is up already", done.stderr)
            self.call("devices")
        self.without_proc("up", "--emulate", "ring:4", expect=0)
        self.assertNotIn("stale", self.call("status").stdout)
        self.call("down")

    def without_proc(self, *words, expect=None):
        maps = [] if os.geteuid() == 0 else ["--map-root-user"]
        program = words if words == ("true",) else (command.RINGBOLT, *words)
        done = subprocess.run(["unshare", "--mount", *maps, "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh",
                               *program], env=self.environment, capture_output=True, text=True, check=False)
        if expect is None and done.returncode != 0:
            self.skipTest(f"no mounts here: {done.stderr.strip()}")
        if "AddressSanitizer" in done.stderr:
            self.skipTest("AddressSanitizer needs /proc itself")
        if expect is not None:
            self.assertEqual(done.returncode, expect, done.stderr)
        return done

    def test_what_can_not_be_opened_is_not_stale(self):
        with self.cluster("ring:4"):
            folder = self.root / "clusters/ring4"
            before = (folder.stat().st_ino, self.state_files())
            answers = set()
            for most_open in range(3, 14):
                done = subprocess.run(["prlimit", f"--nofile={most_open}", command.RINGBOLT, "up", "--emulate", "ring:4"],
                                      env=self.environment, capture_output=True, text=True, check=False)
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertNotIn("removed", done.stdout)
                self.assertEqual((folder.stat().st_ino, self.state_files()), before, f"{most_open}: {done.stderr}")
                answers.add("is up already" in done.stderr)
            self.assertEqual(answers, {True, False})  # too few for something, and enough

    def test_down_removes_stale_state(self):
        self.call("up", "--emulate", "ring:4")
        (self.root / "clusters/ring4/control").unlink()
        self.call("down")
        self.assertEqual(self.state_files(), ["clusters"])

    def test_up_clears_what_an_interrupted_up_left(self):
        half = self.root / "clusters/.new-ring4/slots"
        (self.root / "clusters").mkdir(mode=0o700)
        half.mkdir(parents=True, mode=0o700)
        self.assertIn("no cluster is up", self.call("status").stdout)
        said = self.call("up", "--emulate", "ring:4").stdout
        self.assertIn("removed what 1 interrupted command left", said)
        self.call("down")

    def test_killed_up_leaves_all_or_nothing(self):
        for _ in range(20):
            up = self.start("up", "--emulate", "mesh:20")
            os.kill(up.pid, signal.SIGKILL)
            up.communicate()
            names = [one["state"] for one in json.loads(self.call("status", "--json").stdout)["clusters"]]
            self.assertIn(names, ([], ["up"]))
            if names:
                self.call("down")
        self.call("up", "--emulate", "mesh:20")
        self.call("down")
        self.assertEqual(self.state_files(), ["clusters"])

    def test_concurrent_ups_make_one_cluster(self):
        ups = [self.start("up", "--emulate", "ring:5") for _ in range(8)]
        codes = []
        for up in ups:
            _, said = up.communicate(timeout=command.PATIENCE_S)
            codes.append(up.returncode)
            self.assertTrue(up.returncode == 0 or "is up already" in said, said)
        self.assertEqual(sorted(codes), [0] + [2] * 7)
        self.call("down")

    def test_concurrent_downs_take_one_cluster_away(self):
        self.call("up", "--emulate", "ring:4")
        with open(self.root / "clusters/.lock", "r+") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX, 1)  # the first number: docs/formats/rendezvous.md
            both = [self.start("down") for _ in range(2)]
            for one in both:  # each has chosen the cluster, and waits
                command.wait_until(lambda: f"{self.root}/clusters/.lock" in self.open_files(one.pid), "it waits for the lock")
        said = [one.communicate(timeout=command.PATIENCE_S) for one in both]
        self.assertEqual(sorted(one.returncode for one in both), [0, 2], said)
        self.assertIn("no cluster is up", said[0][1] + said[1][1])

    @staticmethod
    def open_files(pid):
        found = []
        for one in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(OSError):
                found.append(os.readlink(one))
        return found

    def test_down_refuses_while_programs_run(self):
        self.call("up", "--emulate", "ring:4")
        lock = self.root / "clusters/ring4/slots/7.lock"
        with open(lock, "w", encoding="ascii") as held:
            held.write(f"{os.getpid()}\n")
            held.flush()
            fcntl.flock(held, fcntl.LOCK_EX)
            self.refused("down", says=["programs run", f"pid {os.getpid()}", "--force"])
            running = json.loads(self.call("status", "--json").stdout)["clusters"][0]["running"]
            self.assertEqual([one["pid"] for one in running], [os.getpid()])
            self.assertIn("still running", self.call("down", "--force").stdout)
        self.assertEqual(self.state_files(), ["clusters"])

    def test_locks_that_nobody_holds_do_not_count(self):
        self.call("up", "--emulate", "ring:4")
        (self.root / "clusters/ring4/slots/7.lock").write_text("1\n")
        self.call("down")

    def test_loop_and_names(self):
        with self.cluster("loop", name="my.loop-1"):
            listed = json.loads(self.call("devices", "--json").stdout)["devices"]
            self.assertEqual([(one["device"], one["leads_to"]) for one in listed], [("rdma_en2", "n0:rdma_en2")])

    def test_file_becomes_a_cluster_and_is_kept(self):
        path = self.root / "two racks.json"
        path.write_text(json.dumps({"ringbolt": 1, "nodes": [{"name": "a", "ports": ["x", "spare"]},
                                                             {"name": "b", "ports": ["x"]}],
                                    "cables": [{"between": ["a:x", "b:x"], "speed_gbps": 200}]}))
        said = self.call("up", "--emulate", path).stdout
        self.assertIn("cluster two-racks is up: 2 nodes, 1 cable ", said)
        listed = json.loads(self.call("devices", "--json").stdout)["devices"]
        self.assertEqual([(one["device"], one["state"], one["speed_gbps"]) for one in listed],
                         [("x", "up", 200), ("spare", "no cable", None), ("x", "up", 200)])
        kept = self.root / "clusters/two-racks/cluster.json"
        self.call("up", "--emulate", kept, "--name", "again")
        self.call("down", "--cluster", "again")
        self.call("down")


if __name__ == "__main__":
    command.main()
