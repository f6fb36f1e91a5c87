"""Clusters whose nodes are like other machines: what programs see there, in verbs and in /sys, and what is refused."""

import json
import pathlib
import re

import command
from command import CommandCase, wait_until
from ports import free_port, is_listening


class Like(CommandCase):
    def devinfo(self, node):
        return self.call("exec", node, "--", "ibv_devinfo", "-v").stdout

    def gids(self, node, device):
        """The table as /sys has it, without empty slots."""
        program = f"grep . /sys/class/infiniband/{device}/ports/1/gids/*"
        found = {}
        for line in self.call("exec", node, "--", "sh", "-c", program).stdout.splitlines():
            path, gid = line.split(":", 1)
            if set(gid) - set("0:"):
                found[int(path.rsplit("/", 1)[1])] = gid
        return found

    def test_a_mac_is_seen_the_same_in_verbs_and_in_sys(self):
        self.call("up", "--emulate", "mesh:3", "--like", "tn3205")
        said = self.devinfo(1)
        self.assertRegex(said, r"max_qp:\s+11\n")
        self.assertRegex(said, r"max_mr:\s+100\n")
        self.assertRegex(said, r"transport:\s+unspecified")
        guids = re.findall(r"node_guid:\s+([0-9a-f:]+)", said)
        self.assertEqual([guid[:2] for guid in guids], ["e0", "e1"])
        self.assertEqual(guids[0][2:], guids[1][2:])
        gids = self.gids(1, "rdma_en2")
        self.assertEqual(sorted(gids), [0, 1, 2])
        self.assertTrue(gids[1].startswith("0000:0000:0000:0000:0000:ffff:7f4d"), gids)
        verbs = re.findall(r"GID\[\s*(\d+)\]:\s+(\S+)", said)[:3]
        self.assertEqual(verbs[1][1].rstrip(","), "::ffff:127.77.1.2")
        folder = "/sys/class/infiniband/rdma_en2"
        shown = self.call("exec", 1, "--", "cat", f"{folder}/node_guid", f"{folder}/ports/1/lid").stdout.split()
        self.assertEqual(shown[0], guids[0])
        self.assertEqual(int(shown[1], 16), int(re.search(r"port_lid:\s+(\d+)", said)[1]))

    def test_nodes_of_a_file_may_differ(self):
        self.call("up", "--emulate", "line:2", "--name", "model")
        model = json.loads((self.root / "clusters/model/cluster.json").read_text())
        self.call("down")
        model["nodes"][0]["like"] = "apple,gid=2"
        path = pathlib.Path(self.root.parent / f"{self.root.name}-mixed.json")
        self.addCleanup(path.unlink)
        path.write_text(json.dumps(model))
        self.call("up", "--emulate", path, "--like", "spark")
        self.assertEqual(sorted(self.gids(0, "rdma_en2")), [0, 2, 3])
        self.assertEqual(sorted(self.gids(1, "rdma_en2")), [0, 1, 2, 3])
        self.assertRegex(self.devinfo(0), r"max_qp:\s+11\n")
        self.assertNotRegex(self.devinfo(1), r"max_qp:\s+11\n")
        # They reach each other all the same: UC is what both have.
        port = free_port()
        server = self.start("exec", 1, "--", "ibv_uc_pingpong", "-g", "3", "-n", "100", "-p", port)
        self.addCleanup(server.kill)
        wait_until(lambda: is_listening(port), f"the server listens on port {port}")
        self.call("exec", 0, "--", "ibv_uc_pingpong", "-g", "2", "-n", "100", "-p", port, "127.77.1.2")
        self.assertEqual(server.wait(20), 0)
        server.communicate()

    def test_ports_are_named_as_on_the_machine(self):
        for profile, names in (("spark", ["rocep1s0f0", "rocep1s0f1"]), ("usb4-linux", ["usb4_rdma0", "usb4_rdma1"]),
                               ("apple", ["rdma_en2", "rdma_en3"])):
            self.call("up", "--emulate", "ring:3", "--like", profile)
            listed = json.loads(self.call("devices", "--json").stdout)["devices"]
            self.assertEqual([one["device"] for one in listed][:2], names)
            self.assertIn(names[1], self.devinfo(0))
            self.call("down")

    def test_what_is_unknown_is_refused_before_anything_is_made(self):
        for text, word in (("mac", "tn3205"), ("apple,gid=9", "0|1|2|3|empty"), ("apple;rm", "no profile")):
            refused = self.call("up", "--emulate", "ring:3", "--like", text, expect=2)
            self.assertIn(word, refused.stderr)
        self.assertIn("no cluster is up", self.call("status").stdout)

    def test_a_program_may_choose_by_itself(self):
        with self.cluster("line:2"):
            said = self.call("exec", 0, "--", "ibv_devinfo", "-v", env={"RINGBOLT_LIKE": "usb4-linux"}).stdout
            self.assertRegex(said, r"max_mr:\s+1024\n")
            refused = self.call("exec", 0, "--", "ibv_devinfo", env={"RINGBOLT_LIKE": "nonsense"}, expect=255)
            self.assertIn("RINGBOLT_LIKE=nonsense", refused.stderr)

    def test_faults_of_calls_come_and_go_in_a_cluster_of_memory(self):
        self.call("up", "--emulate", "line:2")
        refused = self.call("fault", "add", "loss", "1%", expect=2)
        self.assertIn("carries no frames", refused.stderr)
        pingpong = ["--", "ibv_rc_pingpong", "-g", "1", "-n", "10"]
        self.assertIn("pd-null 100% node 0", self.call("fault", "add", "pd-null", "100%", "node", "n0").stdout)
        self.assertIn("Couldn't allocate PD", self.call("exec", 0, *pingpong, expect=1).stderr)
        self.call("fault", "clear")
        self.call("fault", "add", "rtr-errno", "100%", "errno", "EBUSY", "node", 1)
        port = free_port()
        server = self.start("exec", 0, *pingpong, "-p", port)
        self.addCleanup(server.kill)
        wait_until(lambda: is_listening(port), f"the server listens on port {port}")
        self.assertIn("Failed to modify QP to RTR", self.call("exec", 1, *pingpong, "-p", port, "127.77.0.2", expect=1).stderr)
        server.kill()
        server.communicate()

    def test_what_we_only_try_ourselves_is_not_told_of(self):
        for profile in ("tn3205", "usb4-linux"):
            with self.subTest(profile):
                self.call("up", "--emulate", "ring:4", "--like", profile)
                for words in (("check", "--scale", "0.001"), ("bench", "all_reduce", "-b", "1K", "-e", "1K", "-n", "1"),
                              ("matrix", "--rounds", "20", "--messages", "20", "--size", "65536", "--seconds", "0.2")):
                    # With a sanitizer a cable may be below a hundredth of its stated rate, which matrix tells.
                    done = self.call(*words, timeout=90, expect=0 if command.TIME_SCALE == 1 else None)
                    told = [line for line in done.stderr.splitlines() if command.TIME_SCALE == 1 or "its stated rate is" not in line]
                    self.assertEqual(told, [], words)
                self.call("down")
        # What a program does is told of, also after we have tried the same.
        self.call("up", "--emulate", "line:2", "--like", "tn3205")
        self.assertIn("like tn3205", self.call("exec", 0, "--", "ibv_rc_pingpong", "-g", "1", expect=1).stderr)

    def test_matrix_measures_by_what_the_ports_have(self):
        for profile, operation in (("tn3205", "UC SEND"), ("apple", "UC SEND"), ("usb4-linux", "RC SEND"), ("spark", "RC SEND")):
            with self.subTest(profile):
                self.call("up", "--emulate", "line:2", "--like", profile)
                for size, messages in ((16, 500), (4097, 100), (1 << 20, 20), (16_773_120, 2)):
                    if size > 1 << 20 and profile != "tn3205":
                        continue
                    measured = json.loads(self.call("matrix", "--json", "--size", size, "--messages", messages, "--rounds", "50",
                                                    "--seconds", "0.5", timeout=90).stdout)
                    self.assertEqual(measured["operation"], operation)
                    for one in measured["directions"]:
                        self.assertEqual((one["state"], one["verified_bytes"] % size), ("measured", 0), one)
                # Two messages on a busy machine may show a slow cable, which is exit status 1.
                shown = self.call("matrix", "--messages", "2", "--seconds", "0.1", expect=None, timeout=90)
                self.assertIn(f"\n{operation}; latency", shown.stdout, shown.stderr)
                self.call("down")
        self.call("up", "--emulate", "line:2", "--like", "tn3205")
        done = self.call("matrix", "--size", 16_773_121, expect=1, timeout=90)
        self.assertIn("takes messages of up to 16773120 bytes, not 16773121: give a smaller --size", done.stderr)

    def test_a_reboot_gives_back_what_the_dead_have_left(self):
        self.call("up", "--emulate", "line:2", "--like", "apple,leak=boot")
        for _ in range(11):
            victim = self.start("exec", 0, "--", "ibv_uc_pingpong", "-g", "1", "-p", "0")
            ledger = self.root / "clusters/line2/0-rdma_en2.ledger"
            wait_until(lambda: ledger.exists() and f"process {victim.pid} " in ledger.read_text(), "it holds objects")
            victim.kill()
            victim.communicate()
        refused = self.call("exec", 0, "--", "ibv_uc_pingpong", "-g", "1", expect=1)
        self.assertIn("pd-limit", refused.stderr)
        self.call("exec", 1, "--", "ibv_devinfo")  # the other node has its own
        self.assertIn("11 leaked protection domains came back", self.call("reboot", 0).stdout)
        holder = self.start("exec", 0, "--", "ibv_uc_pingpong", "-g", "1", "-p", "0")
        wait_until(lambda: ledger.exists() and f"process {holder.pid} " in ledger.read_text(), "it holds objects")
        refused = self.call("reboot", "n0", expect=2)
        self.assertIn(f"ibv_uc_pingpong (pid {holder.pid})", refused.stderr)
        self.assertIn("1 program killed", self.call("reboot", "n0", "--force").stdout)
        self.assertEqual(holder.wait(20), -9)
        holder.communicate()

    def test_no_domain_while_the_port_is_down(self):
        self.call("up", "--emulate", "line:2", "--like", "apple")
        self.call("cut", "0-1")
        refused = self.call("exec", 0, "--", "ibv_uc_pingpong", "-g", "1", expect=1)
        self.assertIn("pd-port-down", refused.stderr)
        self.assertIn("Couldn't allocate PD", refused.stderr)


if __name__ == "__main__":
    command.main()
