"""Unmodified programs between namespaces: every byte over RoCEv2 in UDP, by every kind of address."""

import json
import re
import shutil

import namespaces
from namespaces import NamespaceCase, command

namespaces.need("ib_send_bw", "ibv_rc_pingpong")

PORT = 18600  # in namespaces of our own every port is free
# Places in the GID table of a port of the plan.
GIDS = {"link-local": 0, "IPv4": 1, "IPv6": 2}


class Traffic(NamespaceCase):
    def listens(self, node, port=PORT):
        return f":{port} " in self.on(node, "ss", "-ltn")

    def between(self, *words, client_words=(), address="10.77.0.1"):
        """Runs a program as server on node 0 and as client on node 1; both must succeed. Returns what the client said."""
        server = self.start_on(0, *words)
        command.wait_until(lambda: self.listens(0) or server.poll() is not None, f"{words[0]} listens")
        said = self.on(1, *words, *client_words, address, timeout=60)
        _, complaint = server.communicate(timeout=command.PATIENCE_S)
        self.assertEqual(server.returncode, 0, complaint)
        return said

    def pingpong(self, program, *options):
        return self.between(program, "-d", "rdma_en2", "-p", PORT, "-n", 200, *options)

    def perftest(self, program, *options):
        return self.between(program, "-d", "rdma_en2", "-p", PORT, *options)

    def test_pingpongs_verify_their_data_by_every_address(self):
        self.up("line:2")
        for name, index in GIDS.items():
            for program in ("ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong"):
                with self.subTest(program=program, address=name):
                    options = [] if program == "ibv_ud_pingpong" else ["-s", 70000]
                    self.assertIn("200 iters", self.pingpong(program, "-g", index, "-c", *options))

    def test_pingpongs_sleep_for_completions(self):
        self.up("line:2")
        for program in ("ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong"):
            with self.subTest(program):
                if program == "ibv_srq_pingpong":
                    self.assertIn("iters", self.pingpong(program, "-g", 1, "-e", "-c"))
                else:
                    self.assertIn("200 iters", self.pingpong(program, "-g", 1, "-e"))

    def test_small_interfaces_make_small_packets(self):
        self.up("line:2", "--mtu", "1500")
        self.assertRegex(self.on(0, "ibv_devinfo", "-d", "rdma_en2"), r"active_mtu:\s+1024")
        self.assertIn("200 iters", self.pingpong("ibv_rc_pingpong", "-g", 1, "-c", "-m", 1024, "-s", 70000))

    def test_perftest_grid(self):
        self.up("line:2")
        cases = [("ib_send_bw", "RC"), ("ib_send_bw", "UC"), ("ib_send_bw", "UD"), ("ib_write_bw", "RC"),
                 ("ib_write_bw", "UC"), ("ib_read_bw", "RC"), ("ib_atomic_bw", "RC"), ("ib_send_lat", "RC"),
                 ("ib_send_lat", "UD"), ("ib_write_lat", "RC"), ("ib_read_lat", "RC"), ("ib_atomic_lat", "RC")]
        for index, (program, kind) in enumerate(cases):
            with self.subTest(program=program, kind=kind):
                size = [] if "atomic" in program else ["-s", "2048" if kind == "UD" else "65536"]
                self.perftest(program, "-c", kind, "-x", 1 + index % 2, "-n", 200, *size)

    def test_many_queue_pairs_of_one_process(self):
        self.up("line:2")
        self.perftest("ib_write_bw", "-x", 1, "-q", 16, "-n", 50)

    def test_several_processes_share_a_node(self):
        self.up("line:2")
        ports = [PORT + k for k in range(4)]
        servers = [self.start_on(0, "ib_send_bw", "-d", "rdma_en2", "-x", "1", "-n", "500", "-p", port) for port in ports]
        for port in ports:
            command.wait_until(lambda: self.listens(0, port), f"the server on {port} listens")
        clients = [self.start_on(1, "ib_send_bw", "-d", "rdma_en2", "-x", "1", "-n", "500", "-p", port, "10.77.0.1")
                   for port in ports]
        for program in clients + servers:
            said, complaint = program.communicate(timeout=60)
            self.assertEqual(program.returncode, 0, said + complaint)

    def test_both_cables_of_a_node_carry_data(self):
        self.up("ring:2")
        for device, peer_device, address in (("rdma_en2", "rdma_en3", "10.77.0.1"), ("rdma_en3", "rdma_en2", "10.77.1.2")):
            server = self.start_on(0, "ib_send_bw", "-d", device, "-x", "1", "-n", "100", "-p", PORT)
            command.wait_until(lambda: self.listens(0), "the server listens")
            self.on(1, "ib_send_bw", "-d", peer_device, "-x", "1", "-n", "100", "-p", PORT, address)
            server.communicate(timeout=command.PATIENCE_S)

    def test_matrix(self):
        self.up("line:2")
        said = self.call("matrix", "-c", self.name, "--seconds", "0.2", timeout=90).stdout
        self.assertRegex(said, r"n0 +· +[0-9.]+")
        self.assertIn("Network namespaces", said)

    def test_matrix_names_a_cable_far_from_its_rate(self):
        self.up("line:2", "--rate", "2Gbit")
        words = ("matrix", "-c", self.name, "--seconds", "0.2", "--rounds", "20", "--messages", "8")
        self.assertEqual(self.call(*words, timeout=90).stderr, "")
        self.call("fault", "add", "-c", self.name, "shape", "rate", "130Mbit", "node", "n0")
        done = self.call(*words, expect=1, timeout=90)
        self.assertRegex(done.stderr, r"cable 0, n0:rdma_en2 to n1:rdma_en2: 0\.1\d+ Gb/s, and its stated rate is 2\.00 Gb/s")

    def test_matrix_relays_on_both_sides_of_a_cut(self):
        self.up("line:4")
        self.call("cut", "-c", self.name, "0-1")
        done = self.call("matrix", "-c", self.name, "--json", "--seconds", "0.2", "--rounds", "50", "--messages", "8",
                         expect=1, timeout=90)
        relayed = {(one["from"], one["to"]): one for one in json.loads(done.stdout)["directions"] if one["cable"] is None}
        for ends, through in ((("n1", "n3"), ["n2"]), (("n3", "n1"), ["n2"])):  # without node 0
            one = relayed[ends]
            self.assertEqual(one["state"], "measured", one)
            self.assertEqual((one["hops"], one["through"]), (2, through))
        self.assertEqual(relayed["n0", "n3"]["state"], "unreachable")

    def test_losing_every_tenth_packet_changes_no_byte(self):
        self.up("line:2")
        for node in (0, 1):
            if self.call("exec", "-c", self.name, node, "--", "sh", "-c",
                         "tc qdisc add dev en2 root netem loss 10% || echo no netem").stdout:
                self.skipTest("this kernel has no netem")
        self.assertIn("200 iters", self.pingpong("ibv_rc_pingpong", "-g", 1, "-c", "-s", 70000))

    def test_programs_that_find_devices_by_sysfs(self):
        if not shutil.which("ucx_info"):
            self.skipTest("ucx_info is not installed (Debian: ucx-utils)")
        self.up("line:2")
        # Its hooks in malloc end it under thread sanitizer, with our libraries and without.
        self.assertTrue(re.search("rdma_en2:1", self.on(0, "env", "UCX_MEM_EVENTS=n", "ucx_info", "-d")))


if __name__ == "__main__":
    namespaces.main()
