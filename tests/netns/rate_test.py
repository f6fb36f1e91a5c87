"""Connections between two namespaces at a rate, many of them open at once; nothing is left of them afterwards.

rate_test.py RINGBOLT PROGRAM RATE SECONDS OPEN [strict]

strict: the rate must be kept; else, for machines that have other things to do, half of it.
"""

import os
import pathlib
import re
import subprocess

import namespaces
from namespaces import NamespaceCase, command

namespaces.need()

PORT = 18950


def figures(pid):
    """Descriptors and resident KiB of a process."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return len(os.listdir(f"/proc/{pid}/fd")), int(re.search(r"VmRSS:\s+(\d+)", text)[1])


class Rate(NamespaceCase):
    def client(self, program, *words):
        client = subprocess.Popen([command.RINGBOLT, "exec", "-c", self.name, "1", "--", program, "rate", "10.77.0.1", str(PORT),
                                   *words], env=self.environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self.end, client)
        return client

    def reach(self, client, wanted):
        """The client's next line; then it may go on."""
        line = client.stdout.readline()
        self.assertRegex(line, wanted)
        return line

    @staticmethod
    def go(client):
        client.stdin.write("\n")
        client.stdin.flush()

    def one_round(self, server, program, rate, seconds, at_once):
        """Figures of the server with all open, and when all is over."""
        client = self.client(program, rate, seconds, at_once)
        self.reach(client, "^ready")
        before = figures(client.pid)
        self.go(client)
        self.reach(client, "^full")
        found = re.match(r"(\d+) connections in ([0-9.]+) s, (\d+) open", self.reach(client, "connections"))
        loaded = figures(server.pid), figures(client.pid)
        self.go(client)
        self.reach(client, "^closed")
        command.wait_until(lambda: figures(client.pid)[0] <= before[0], "the client's descriptors are closed")
        after = figures(client.pid)
        self.go(client)
        self.assertEqual(client.wait(command.PATIENCE_S), 0)
        print(f"{found[0]}; descriptors and resident KiB with all open: server {loaded[0]}, client {loaded[1]}; "
              f"client before {before}, after {after}")
        self.assertEqual((int(found[1]), int(found[3])), (int(rate) * int(seconds), int(at_once)))
        # Two queue descriptors a connection, no more.
        self.assertLess(max(loaded[0][0], loaded[1][0]), 2.1 * int(at_once) + 100)
        self.assertLess(float(found[2]), int(seconds) + 2 if "strict" in command.EXTRA else 2 * int(seconds) + 10)

    def test_rate_is_kept_and_nothing_is_left(self):
        # What is freed goes back to the kernel, so that resident memory is what is in use.
        self.environment |= {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
        self.up("line:2")
        shm = set(os.listdir("/dev/shm"))
        server = self.start_on(0, command.EXTRA[0], "serve", "10.77.0.1", PORT)
        self.assertEqual(server.stdout.readline(), "listening\n")
        first = figures(server.pid)
        resident = []
        for _ in range(2):
            self.one_round(server, *command.EXTRA[:4])
            command.wait_until(lambda: figures(server.pid)[0] <= first[0] + 8, "the server's descriptors are closed")
            resident.append(figures(server.pid))
        print(f"server before {first}, after each round {resident}")
        self.assertLess(resident[1][1], resident[0][1] + 4096 * command.TIME_SCALE, "memory grows with connections that are over")
        self.assertEqual({name for name in set(os.listdir("/dev/shm")) - shm if "ringbolt" in name}, set())


if __name__ == "__main__":
    namespaces.main()
