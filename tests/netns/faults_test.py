"""Faults of frames between namespaces: set, changed and cleared by the command while unmodified programs run."""

import json
import re

import namespaces
from namespaces import NamespaceCase, command

namespaces.need("ib_send_bw", "ibv_rc_pingpong")

PORT = 18800  # in namespaces of our own every port is free
# Of the 14,000 frames and more that either side of pingpong() sends, the last ones get through: whoever leaves first repeats
# its last acknowledgement no more, on any card, and the other one would miss it in one run of twenty.
BUT_THE_LAST = ("frames", "0-13000")


class Faults(NamespaceCase):
    def setUp(self):
        super().setUp()
        self.environment["RINGBOLT_LOG"] = "debug"
        self.up("line:2")

    def fault(self, *words, expect=0):
        return self.call("fault", words[0], "-c", self.name, *words[1:], expect=expect)

    def between(self, *words):
        """What a program on both nodes said on standard error; both have to succeed."""
        server = self.start_on(0, *words)
        command.wait_until(lambda: f":{PORT} " in self.on(0, "ss", "-ltn") or server.poll() is not None,
                           f"{words[0]} listens")
        client = self.call("exec", "-c", self.name, 1, "--", *words, "10.77.0.1", timeout=90, expect=None)
        said, complaint = server.communicate(timeout=command.PATIENCE_S)
        self.assertEqual((server.returncode, client.returncode), (0, 0), said + complaint + client.stdout + client.stderr)
        return complaint + client.stderr

    def pingpong(self):
        """With all data compared."""
        return self.between("ibv_rc_pingpong", "-d", "rdma_en2", "-g", "2", "-p", PORT, "-n", "200", "-s", "70000", "-c")

    @staticmethod
    def counted(said, word):
        return sum(int(number) for number in re.findall(rf"(\d+) {word}", said))

    def test_unmodified_programs_verify_their_data_under_every_kind(self):
        kinds = ("loss 1%", "duplicate 1%", "reorder 1%", "corrupt 1%", "truncate 1%", "delay 1% by 200us")
        self.fault("add", "; ".join(" ".join((kind, *BUT_THE_LAST)) for kind in kinds))
        said = self.pingpong()
        for word in ("lost", "duplicated", "reordered", "corrupted", "truncated", "delayed"):
            self.assertGreater(self.counted(said, word), 10, said)
        self.assertGreater(self.counted(said, "a wrong checksum"), 10, said)
        self.fault("clear")
        self.fault("add", "; ".join(kinds))
        for program in ("ib_send_bw", "ib_write_bw", "ib_read_bw"):
            self.between(program, "-d", "rdma_en2", "-x", "2", "-p", PORT, "-n", "500", "--report_gbits")

    def test_chosen_node_and_direction_alone_suffer(self):
        self.fault("add", "loss", "5%", "node", "n1", "direction", "receive", "cable", "0-1", "seed", "3",
                   *BUT_THE_LAST)
        self.assertEqual(self.fault("list").stdout, "  1  loss 5% seed 3 node 1 cable 0 direction receive frames 0-13000\n")
        said = self.pingpong()
        self.assertGreater(self.counted(said, "lost"), 50)
        for line in said.splitlines():
            if "faults on sending" in line:
                self.assertIn(" 0 lost", line)

    def test_switched_while_a_program_runs(self):
        words = ["ib_send_bw", "-d", "rdma_en2", "-x", "2", "-p", PORT, "--run_infinitely", "-D", "1", "--report_gbits"]
        self.start_on(0, *words)
        command.wait_until(lambda: f":{PORT} " in self.on(0, "ss", "-ltn"), "the server listens")
        client = self.start_on(1, "stdbuf", "-oL", *words, "10.77.0.1")

        def next_gbps():
            while line := client.stdout.readline():
                figures = line.split()
                if figures[:1] == ["65536"]:
                    return float(figures[3])
            raise AssertionError(f"the client ended: {client.communicate()}")

        whole = next_gbps()
        told = self.fault("add", "delay", "100%", "by", "20ms").stdout
        self.assertIn("2 running programs told", told)
        next_gbps()  # the second in which it changed
        slow = next_gbps()
        self.assertLess(slow, whole / 2)
        self.assertIn("no faults are left; 2 running programs told", self.fault("clear").stdout)
        next_gbps()
        self.assertGreater(next_gbps(), slow * 1.5)

    def test_list_and_clear_by_number(self):
        self.assertEqual(self.fault("list").stdout, f'cluster "{self.name}" has no faults\n')
        for text in ("loss 1%", "duplicate 2%", "corrupt 3%"):
            self.fault("add", *text.split())
        self.assertEqual(self.fault("clear", "2").stdout.split(";")[0], "2 faults are left")
        listed = json.loads(self.fault("list", "--json").stdout)["faults"]
        self.assertEqual(listed, [{"number": 1, "fault": "loss 1%"}, {"number": 2, "fault": "corrupt 3%"}])
        path = self.root / "more"
        path.write_text("# two more\nloss 0.5% node n0\nreorder 1% by 5 cable 0-1\n")
        self.fault("add", "--file", path)
        self.assertEqual(len(self.fault("list").stdout.splitlines()), 4)
        self.fault("clear")
        self.assertFalse((self.root / "clusters" / self.name / "faults").exists())

    def test_refusals_change_nothing(self):
        self.fault("add", "loss", "1%")
        for words, says in (
                (["add", "los", "1%"], ['"los" is no fault']), (["add", "loss", "2"], ["takes a chance"]),
                (["add", "loss", "1%", "port", "rdma_nix"], ["fits no cabled port"]),
                (["add", "loss", "1%", "node", "n7"], ['no node "n7"']), (["add"], ["give a fault"]),
                (["add", "loss", "1%", "cable", "0-0"], ["no cable joins"]), (["clear", "2"], ["no fault 2"])):
            self.refused("fault", words[0], "-c", self.name, *words[1:], says=says)
        self.assertEqual(self.fault("list").stdout, "  1  loss 1%\n")

    def test_cluster_in_memory_has_no_frames(self):
        self.call("up", "--emulate", "line:2", "--name", f"{self.name}m")
        self.addCleanup(self.call, "down", "--cluster", f"{self.name}m")
        self.refused("fault", "add", "-c", f"{self.name}m", "loss", "1%", says=["is emulated in memory", "--netns"])


if __name__ == "__main__":
    namespaces.main()
