"""Clusters of network namespaces: made whole, with the addresses of the plan; cut, healed, shaped; removed without a trace."""

import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess

import namespaces
from namespaces import NamespaceCase, command

namespaces.need()


class Cluster(NamespaceCase):
    def test_every_cable_carries_all_three_kinds_of_address(self):
        self.up("ring:3")
        self.assertEqual(namespaces.namespaces(self.name), [f"rb-{self.name}-{node}" for node in (0, 1, 2, "management")])
        local = self.on(1, "cat", "/sys/class/infiniband/rdma_en3/ports/1/gids/0").strip()
        link_local = ":".join(local.split(":")) + "%en2"
        for address in ("10.77.0.2", "fd77::2", link_local):
            self.assertTrue(self.reaches(0, address), address)
        self.assertFalse(self.reaches(0, "10.77.1.2"), "a port reaches the other end of its cable and no more")
        self.down()
        self.assertEqual(namespaces.namespaces(self.name), [])

    def test_programs_see_their_node_and_no_other(self):
        self.up("line:3")
        self.assertEqual(self.on(1, "ls", "/sys/class/net").split(), ["en2", "en3", "lo", "mgmt0"])
        script = "ls /sys/class/net | wc -l; echo $RINGBOLT_ADDR_1"
        said = self.call("run", "-c", self.name, "--", "sh", "-c", script).stdout
        self.assertEqual(sorted(said.splitlines()), sorted(["n0 | 3", "n0 | 10.77.0.2", "n1 | 4", "n1 | ", "n2 | 3",
                                                            "n2 | 10.77.1.1"]))
        here = os.readlink("/proc/self/ns/net")
        self.assertNotEqual(self.on(0, "readlink", "/proc/self/ns/net").strip(), here)
        self.assertEqual(os.readlink("/proc/self/ns/net"), here)

    def test_exit_status_and_input_pass_through(self):
        self.up("line:2")
        self.on(0, "sh", "-c", "exit 7", expect=7)
        self.refused("exec", "-c", self.name, "0", "--", "./no-such-program", says=["./no-such-program"])
        self.refused("run", "-c", self.name, "--", "./no-such-program", says=["./no-such-program"])

    def test_cut_takes_the_link_down_and_heal_brings_back_every_address(self):
        self.up("ring:2")
        before = self.on(0, "ip", "-br", "address", "show", "en2").split()[2:]
        self.call("cut", "-c", self.name, "0:rdma_en2-1:rdma_en3")
        self.assertEqual(self.on(0, "cat", "/sys/class/net/en2/operstate").strip(), "down")
        self.assertEqual(self.on(1, "cat", "/sys/class/net/en3/operstate").strip(), "down")
        self.assertFalse(self.reaches(0, "10.77.0.2"))
        self.assertTrue(self.reaches(0, "10.77.1.1"), "the other cable is whole")
        state = self.on(0, "cat", "/sys/class/infiniband/rdma_en2/ports/1/state")
        self.assertIn("DOWN", state)
        self.call("heal", "-c", self.name, "0:rdma_en2-1:rdma_en3")
        self.assertTrue(self.reaches(0, "10.77.0.2"))
        self.assertEqual(sorted(self.on(0, "ip", "-br", "address", "show", "en2").split()[2:]), sorted(before))

    def test_mtu_and_rate(self):
        self.up("line:2", "--rate", "2.5Gbit", "--mtu", "1500")
        for node in (0, 1):
            self.assertEqual(self.on(node, "cat", "/sys/class/net/en2/mtu").strip(), "1500")
            self.assertIn("tbf", self.on(node, "tc", "qdisc", "show", "dev", "en2"))
            self.assertIn("rate 2500Mbit", self.on(node, "tc", "qdisc", "show", "dev", "en2"))

    def test_frames_of_a_shaped_cable_keep_their_order(self):
        path = self.root / "c.json"
        ports = ["rdma_en2", "rdma_en3"]
        path.write_text(json.dumps({
            "ringbolt": 1, "nodes": [{"name": node, "ports": ports} for node in "ab"],
            "cables": [{"between": ["a:rdma_en2", "b:rdma_en2"], "rate_mbps": 1000},
                       {"between": ["a:rdma_en3", "b:rdma_en3"]}]}))
        self.up(path)
        for node in "ab":
            mask = "/sys/class/net/{}/queues/rx-0/rps_cpus"
            shaped, unshaped = (int(self.on(node, "cat", mask.format(netdev)).replace(",", ""), 16)
                                for netdev in ("en2", "en3"))
            self.assertEqual(bin(shaped).count("1"), 1, "what comes in goes through one processor")
            self.assertEqual(unshaped, 0, "it is handed over at once")

    def test_file_says_names_addresses_and_rates(self):
        path = self.root / "c.json"
        path.write_text(json.dumps({
            "ringbolt": 1, "mtu": 4000,
            "nodes": [{"name": "a", "ports": [{"name": "x", "netdev": "tb0", "addresses": ["192.168.77.1/30"]}, "spare"]},
                      {"name": "b", "ports": [{"name": "x", "addresses": ["192.168.77.2/30"]}]}],
            "cables": [{"between": ["a:x", "b:x"], "rate_mbps": 100}]}))
        self.up(path)
        self.assertTrue(self.reaches("a", "192.168.77.2"))
        self.assertEqual(self.on("a", "ls", "/sys/class/net").split(), ["lo", "mgmt0", "tb0"])
        self.assertEqual(self.on("b", "cat", "/sys/class/net/en2/mtu").strip(), "4000")
        self.assertIn("rate 100Mbit", self.on("a", "tc", "qdisc", "show", "dev", "tb0"))
        kept = self.root / "clusters" / self.name / "cluster.json"
        self.assertEqual(json.loads(kept.read_text())["kind"], "netns")

    def test_all_nodes_meet_on_the_management_network_whatever_is_cut(self):
        self.up("line:3", "--rate", "100Mbit")
        self.call("cut", "-c", self.name, "0-1")
        self.call("cut", "-c", self.name, "1-2")
        for address in ("10.76.0.1", "10.76.0.2", "10.76.0.3"):
            self.assertTrue(self.reaches(0, address), address)
        self.assertEqual(self.on(1, "sh", "-c", "echo $RINGBOLT_MEETING_HOST").strip(), "10.76.0.1")
        self.assertNotIn("tbf", self.on(0, "tc", "qdisc", "show", "dev", "mgmt0"))
        devices = self.on(1, "ibv_devices") if shutil.which("ibv_devices") else self.on(1, "ls", "/sys/class/infiniband")
        self.assertNotIn("mgmt", devices)
        self.assertIn("rdma_en3", devices)

    def test_management_network_can_be_left_out(self):
        self.up("line:2", "--no-management")
        self.assertEqual(namespaces.namespaces(self.name), [f"rb-{self.name}-{node}" for node in range(2)])
        self.assertEqual(self.on(0, "ls", "/sys/class/net").split(), ["en2", "lo"])
        self.assertEqual(self.on(0, "sh", "-c", "echo $RINGBOLT_MEETING_HOST").strip(), "")
        self.refused("up", "--emulate", "line:2", "--name", "memory", "--no-management", says=["--netns"])

    def test_refuses_what_stands_in_its_way(self):
        path = self.root / "c.json"
        path.write_text(json.dumps({
            "ringbolt": 1, "nodes": [{"name": name, "ports": [{"name": "x", "addresses": [f"10.76.0.{end}/24"]}]}
                                     for name, end in (("a", 77), ("b", 78))], "cables": [{"between": ["a:x", "b:x"]}]}))
        self.refused("up", "--netns", "--emulate", path, "--name", self.name,
                     says=["a:x", "10.76.0.77/24", "--no-management"])
        self.up(path, "--no-management")
        self.assertTrue(self.reaches("a", "10.76.0.78"))

    def of_addresses(self, *addresses):
        path = self.root / "c.json"
        path.write_text(json.dumps({
            "ringbolt": 1, "nodes": [{"name": name, "ports": [{"name": "x", "addresses": [one]}]}
                                     for name, one in zip("ab", addresses)], "cables": [{"between": ["a:x", "b:x"]}]}))
        self.up(path, "--no-management")

    def test_hostfile_of_addresses_that_are_all_ipv6(self):
        self.of_addresses("fd99::1/64", "fd99::2/64")
        said = self.call("hostfile", "-c", self.name, "--format", "mlx-ring").stdout
        self.assertEqual(json.loads(said), [["[fd99::1]:32323"], ["[fd99::2]:32324"]])

    def test_hostfile_of_addresses_that_lead_nowhere_alone(self):
        self.of_addresses("fe80::1/64", "fe80::2/64")
        for form in ("mlx", "mlx-ring"):
            self.refused("hostfile", "-c", self.name, "--format", form, says=["node a has no address"])

    def test_the_greatest_rate(self):
        self.up("line:2", "--rate", "10000Gbit")

    def test_loopback_plug(self):
        self.up("loop")
        self.assertTrue(self.reaches(0, "10.77.0.1"))

    def test_status_and_devices(self):
        self.up("line:2")
        status = json.loads(self.call("status", "--json", "-c", self.name).stdout)["clusters"][0]
        self.assertEqual(status["kind"], "netns")
        listed = json.loads(self.call("devices", "--json", "-c", self.name).stdout)["devices"]
        self.assertEqual([one["address"] for one in listed], ["10.77.0.1", "10.77.0.2"])

    def test_down_refuses_while_something_runs_inside(self):
        self.up("line:2")
        inside = self.start_on(0, "sleep", "60")
        name = pathlib.Path(f"/proc/{inside.pid}/comm")  # the command becomes the program
        command.wait_until(lambda: self.running() == [inside.pid] and name.read_text() == "sleep\n", "the program is inside")
        self.refused("down", "-c", self.name, says=["programs run", f"sleep (pid {inside.pid})", "--force"])
        self.assertIn("still running", self.call("down", "--force", "-c", self.name).stdout)
        links = subprocess.run(["nsenter", "-t", str(inside.pid), "-n", "ip", "-br", "link"], capture_output=True,
                               text=True, check=True).stdout
        self.assertNotIn("en2", links)

    def running(self):
        status = json.loads(self.call("status", "--json", "-c", self.name).stdout)["clusters"]
        return [one["pid"] for one in status[0]["running"]]


class Crash(NamespaceCase):
    def test_killed_up_leaves_nothing_that_the_next_one_does_not_clear(self):
        for millisecond in (1, 5, 10, 20, 40, 60, 80, 120, 200):
            up = self.start("up", "--netns", "--emulate", "ring:6", "--name", self.name)
            try:
                up.wait(millisecond / 1000)
            except subprocess.TimeoutExpired:
                os.kill(up.pid, signal.SIGKILL)
            up.communicate()
            self.addCleanup(self.down)
            if (self.root / "clusters" / self.name).exists():
                self.call("down", "-c", self.name)
            self.call("up", "--netns", "--emulate", "line:2", "--name", self.name)
            self.assertTrue(self.reaches(0, "10.77.0.2"))
            self.call("down", "-c", self.name)
            self.assertEqual(namespaces.namespaces(self.name), [])

    def test_any_up_or_down_of_the_folder_clears_what_an_interrupted_one_left(self):
        self.up("line:2")
        state = self.root / "clusters" / self.name
        state.rename(state.with_name(f".gone-{self.name}"))
        self.call("up", "--emulate", "loop")
        self.assertEqual(namespaces.namespaces(self.name), [])
        self.call("down", "-c", "loop")

    def test_namespaces_without_any_state_are_removed_by_name(self):
        self.up("line:2")
        shutil.rmtree(self.root / "clusters")
        self.assertEqual(len(namespaces.namespaces(self.name)), 3)
        self.assertIn("dead cluster", self.call("down", "--force", "-c", self.name).stdout)
        self.assertEqual(namespaces.namespaces(self.name), [])
        self.up("line:2")
        shutil.rmtree(self.root / "clusters")
        self.assertIn("removed", self.up("line:3").stdout)
        self.assertTrue(self.reaches(1, "10.77.1.2"))

    def test_a_namespace_that_somebody_removed_makes_the_state_stale(self):
        self.up("line:2")
        subprocess.run(["ip", "netns", "delete", f"rb-{self.name}-1"], check=True)
        self.refused("exec", "-c", self.name, "0", "--", "true", says=["is stale", f"rb-{self.name}-1 is gone"])
        self.assertIn("removed stale state", self.up("line:2").stdout)
        self.assertTrue(self.reaches(0, "10.77.0.2"))

    def test_a_name_belongs_to_one_runtime_folder(self):
        self.up("line:2")
        other = self.root / "other"
        other.mkdir(mode=0o700)
        elsewhere = {"RINGBOLT_RUNTIME_DIR": str(other)}
        self.call("up", "--netns", "--emulate", "line:2", "--name", self.name, env=elsewhere, expect=2)
        self.assertTrue(self.reaches(0, "10.77.0.2"))
        self.call("down", "--force", "-c", self.name, env=elsewhere, expect=2)
        self.assertTrue(self.reaches(0, "10.77.0.2"))

    def test_what_ip_refuses_is_shown_and_undone(self):
        path = self.root / "c.json"
        # Two interfaces of one name in a namespace, which only the kernel sees: "all" is no name for one.
        path.write_text(json.dumps({"ringbolt": 1, "nodes": [{"name": "a", "ports": [{"name": "x", "netdev": "dev"}]},
                                                             {"name": "b", "ports": [{"name": "x", "netdev": "all"}]}],
                                    "cables": [{"between": ["a:x", "b:x"]}]}))
        done = subprocess.run([command.RINGBOLT, "up", "--netns", "--emulate", str(path), "--name", self.name],
                              env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode == 0:  # this kernel takes both
            self.addCleanup(self.down)
            return
        self.assertEqual(done.returncode, 2)
        self.assertIn("ip", done.stderr)
        self.assertEqual(namespaces.namespaces(self.name), [])
        self.assertFalse((self.root / "clusters" / self.name).exists())


class Rights(NamespaceCase):
    def test_refuses_without_rights_and_says_what_to_do(self):
        done = subprocess.run(["setpriv", "--bounding-set=-all", "--inh-caps=-all", command.RINGBOLT, "up", "--netns",
                               "--emulate", "line:2", "--name", self.name], env=self.environment, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("CAP_NET_ADMIN", done.stderr)
        self.assertEqual(self.state_files(), [])

    def test_works_in_a_user_namespace(self):
        if subprocess.run(["unshare", "-Urnm", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no user namespaces here")
        script = f"""mount -t tmpfs tmpfs /run && {command.RINGBOLT} up --netns --emulate line:2 --name {self.name} &&
                     {command.RINGBOLT} exec 0 -- {shlex.join(namespaces.KNOCK)} 10.77.0.2 && {command.RINGBOLT} down"""
        done = subprocess.run(["unshare", "-Urnm", "sh", "-c", script], env=self.environment, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_refuses_options_that_do_not_fit(self):
        self.refused("up", "--emulate", "ring:4", "--rate", "1Gbit", says=["--netns"])
        self.refused("up", "--emulate", "ring:4", "--mtu", "1500", says=["--netns"])
        self.refused("up", "--netns", "--emulate", "ring:4", "--overlay", "--no-management", says=["--no-management"])
        self.refused("up", "--netns", "--emulate", "ring:4", "--rate", "fast", says=["\"fast\"", "2.5Gbit"])
        self.refused("up", "--netns", "--emulate", "ring:4", "--mtu", "100", says=["--mtu"])
        self.refused("up", "--hosts", "a,b", "--netns", says=["--netns"])
        self.refused("up", "--hosts", "a,,b", says=["\"\" is no host"])
        self.refused("up", "--hosts", "a,a", says=["given twice"])
        self.refused("up", "--hosts", "-oProxyCommand=x", says=["host"])


if __name__ == "__main__":
    namespaces.main()
