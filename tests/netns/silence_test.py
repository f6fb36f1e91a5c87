"""A peer that falls silent ends in IBV_WC_RETRY_EXC_ERR when the programmed time is over, not before and not much later."""

import os
import re
import signal

import namespaces
from namespaces import NamespaceCase, command

namespaces.need()

PORT = 18800  # in namespaces of our own every port is free
RETRY_EXCEEDED, ERROR_STATE, IN_FLIGHT = 12, 6, 8
# timeout and retry_cnt: many short tries, few long ones, one, and twice as long.
MANY, FEW, ONE, LONG = (14, 7), (16, 1), (17, 0), (16, 3)
SLACK_MS = 1000  # for a machine that is busy with other things


def programmed_ms(timeout, retries):
    """Each try lasts 4.096 us * 2^timeout at least; the specification allows four times as much, we take two."""
    return (retries + 1) * 4.096e-3 * 2**timeout


class Silence(NamespaceCase):
    """Node 1 sends to node 0: en2 there and en3 here are the ends of one cable, en3 and en2 of another."""

    def setUp(self):
        super().setUp()
        self.up("ring:2")
        self.port = PORT  # each server has one of its own: one that a failure left behind takes no other's client

    def serve(self, device):
        """A server, and the port that it listens on."""
        self.port += 1
        server = self.start_on(0, command.EXTRA[0], "serve", device, 1, self.port)
        command.wait_until(lambda: f":{self.port} " in self.on(0, "ss", "-ltn"), "the server listens")
        return server, self.port

    def watch(self, programming, way, *peers):
        """A client that sends already."""
        client = self.start_on(1, command.EXTRA[0], "watch", 1, *programming, way, *peers)
        line = client.stdout.readline()
        self.assertEqual(line, "flowing\n", client.communicate(timeout=command.PATIENCE_S) if not line else line)
        return client

    def check(self, client, programming, has_bystander):
        said, complaint = client.communicate(timeout=command.PATIENCE_S)
        self.assertEqual(client.returncode, 0, said + complaint)
        found = re.search(r"status (\d+) after ([0-9.]+) ms, state (\d+), flushed (\d+)", said)
        self.assertTrue(found, said)
        print(f"{self.id().rsplit('.')[-1]} {programming}: programmed {programmed_ms(*programming):.0f} ms; {said.strip()}")
        status, took, state, flushed = (float(word) for word in found.groups())
        self.assertEqual((status, state, flushed), (RETRY_EXCEEDED, ERROR_STATE, IN_FLIGHT - 1))
        self.assertGreater(took, 0.95 * programmed_ms(*programming))
        self.assertLess(took, 2 * programmed_ms(*programming) + SLACK_MS)
        if has_bystander:
            self.assertGreater(int(re.search(r"bystander (\d+)", said)[1]), 0)

    def signalled(self, number, programming, way, has_bystander):
        victim, port = self.serve("rdma_en2")
        peers = ["rdma_en3", "10.77.0.1", port]
        if has_bystander:  # another process of the same machine, by the same cable
            bystander, port = self.serve("rdma_en2")
            peers += ["rdma_en3", "10.77.0.1", port]
        client = self.watch(programming, way, *peers)
        os.kill(victim.pid, number)
        self.check(client, programming, has_bystander)
        for program in [victim, *([bystander] if has_bystander else [])]:
            self.end(program)

    def test_killed_peer(self):
        for programming in (MANY, FEW, ONE, LONG):
            with self.subTest(programming):
                self.signalled(signal.SIGKILL, programming, "POLL", True)
        self.signalled(signal.SIGKILL, MANY, "SLEEP", False)

    def test_frozen_peer(self):
        self.signalled(signal.SIGSTOP, MANY, "POLL", True)
        self.signalled(signal.SIGSTOP, FEW, "SLEEP", False)

    def test_link_that_goes_down(self):
        for way, programming in (("POLL", FEW), ("SLEEP", MANY)):
            with self.subTest(way):
                victim, port = self.serve("rdma_en2")
                peers = ["rdma_en3", "10.77.0.1", port]
                bystander, port = self.serve("rdma_en3")
                peers += ["rdma_en2", "10.77.1.2", port] if way == "POLL" else []
                client = self.watch(programming, way, *peers)
                self.on(0, "ip", "link", "set", "en2", "down")
                self.check(client, programming, way == "POLL")
                self.end(victim)
                self.end(bystander)
                self.call("heal", "-c", self.name, "0:rdma_en2-1:rdma_en3")


if __name__ == "__main__":
    namespaces.main()
