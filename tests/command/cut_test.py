"""`cut` and `heal` under running programs: Debian's ib_send_bw is the program."""

import json
import os
import shutil
import socket
import sys

import command
from command import CommandCase, wait_until
from ports import free_port, is_listening

if not shutil.which("ib_send_bw"):
    print("skip: ib_send_bw is not installed (Debian: perftest)")
    sys.exit(77)


class Cut(CommandCase):
    def setUp(self):
        super().setUp()
        self.call("up", "--emulate", "ring:4")
        self.addCleanup(self.call, "down", "--force")

    def start_in(self, node, *words):
        program = self.start("exec", node, "--", *words)
        self.addCleanup(self.end, program)
        return program

    @staticmethod
    def end(program):
        program.kill()
        program.communicate()

    def running(self):
        return {one["pid"] for one in json.loads(self.call("status", "--json").stdout)["clusters"][0]["running"]}

    def start_pair(self, *options):
        """A server on node 1 and its client on node 2, over cable 1."""
        port = free_port()
        server = self.start_in(1, "ib_send_bw", "-d", "rdma_en2", "-p", str(port), *options)
        wait_until(lambda: is_listening(port) or server.poll() is not None, "the server listens")
        client = self.start_in(2, "stdbuf", "-oL", "ib_send_bw", "-d", "rdma_en3", "-p", str(port), *options, "127.77.1.2")
        return server, client

    def start_endless_pair(self):
        server, client = self.start_pair("--run_infinitely", "-D", "1")
        while (line := client.stdout.readline()) and not line.split()[:1] == ["65536"]:
            pass
        self.assertTrue(line, "the client ended before it was cut off")
        return server, client

    def pair_works(self):
        server, client = self.start_pair("-n", "100")
        said, errors = client.communicate(timeout=command.PATIENCE_S)
        self.assertEqual(client.returncode, 0, said + errors)
        server.communicate(timeout=command.PATIENCE_S)

    def test_a_running_program_gets_its_error_and_the_next_one_works_when_healed(self):
        server, client = self.start_endless_pair()
        self.assertEqual(self.running(), {server.pid, client.pid})
        self.assertIn("2 running programs told", self.call("cut", "1-2").stdout)
        said, errors = client.communicate(timeout=command.PATIENCE_S)
        self.assertNotEqual(client.returncode, 0)
        self.assertIn("Failed status 12", said + errors)  # IBV_WC_RETRY_EXC_ERR
        self.end(server)
        self.call("heal", "1-2")
        self.pair_works()

    def test_other_cables_do_not_matter(self):
        server, client = self.start_endless_pair()
        for cable in ("0-1", "2-3", "3-0"):
            self.call("cut", cable)
        for _ in range(2):
            self.assertEqual(client.stdout.readline().split()[:1], ["65536"])
        self.assertIsNone(client.poll())
        self.end(client)
        self.end(server)

    def test_a_control_page_cut_short_ends_no_program_by_signal(self):
        server, client = self.start_endless_pair()
        cluster = self.root / "clusters" / "ring4"
        os.truncate(cluster / "control", 0)
        for _ in range(2):
            self.assertEqual(client.stdout.readline().split()[:1], ["65536"])
        for path in (cluster / "slots").glob("*.sock"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as speaker:
                speaker.connect(str(path))
                speaker.send(b"RBPOKE1\n")
        # What the page no longer says to be up is cut.
        said, errors = client.communicate(timeout=command.PATIENCE_S)
        self.assertGreater(client.returncode, 0)
        self.assertIn("Failed status 12", said + errors)
        self.end(server)
        self.refused("cut", "1-2", says=["stale", "not a control page"])

    def test_down_by_force_ends_programs(self):
        _, client = self.start_endless_pair()
        self.refused("down", says=["ib_send_bw (pid"])
        self.assertIn("still running", self.call("down", "--force").stdout)
        client.communicate(timeout=command.PATIENCE_S)
        self.assertNotEqual(client.returncode, 0)
        self.call("up", "--emulate", "ring:4")

    def test_cutting_twice_is_no_error(self):
        self.assertIn("is cut; 0 running", self.call("cut", "n3-0").stdout)
        self.assertIn("was cut already", self.call("cut", "0-3").stdout)
        self.assertEqual(json.loads(self.call("status", "--json").stdout)["clusters"][0]["cables"][3]["state"], "cut")
        self.assertIn("is healed", self.call("heal", "n0:rdma_en3-n3").stdout)
        self.assertIn("was up already", self.call("heal", "0-3").stdout)


if __name__ == "__main__":
    command.main()
