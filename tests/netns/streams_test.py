"""Byte streams between namespaces: exact over a cable that loses frames, and ended with a reason on both sides when it is
cut. EXTRA: netns_streams."""

import re
import time

import namespaces
from namespaces import NamespaceCase, command

namespaces.need()

PORT = 18900  # in namespaces of our own every port is free
CUT_S = 40  # until both ends have given up: a card's seven retries


class Streams(NamespaceCase):
    def begin(self, total, client=1):
        program = command.EXTRA[0]
        server = self.start_on(0, program, "serve", "10.77.0.1", PORT, total)
        self.assertEqual(server.stdout.readline(), f"port {PORT}\n")
        return server, self.start_on(client, program, "connect", "10.77.0.1", PORT, total)

    def ends(self, pair, timeout):
        """Exit code, the last line, and what it said on standard error, of each."""
        said = [end.communicate(timeout=timeout * command.TIME_SCALE) for end in pair]
        return [(end.returncode, (out.splitlines() or ["nothing"])[-1], complaint)
                for end, (out, complaint) in zip(pair, said)]

    def test_loss_leaves_every_byte_exact(self):
        self.environment["RINGBOLT_LOG"] = "debug"  # says at the end what was lost
        self.up("line:2")
        self.call("fault", "add", "-c", self.name, "loss 1%")
        for code, line, complaint in self.ends(self.begin(20_000_003), 60):
            self.assertEqual((code, line), (0, "exact"), complaint)
            self.assertGreater(sum(map(int, re.findall(r"(\d+) lost", complaint))), 10, complaint)

    def test_cut_cable_ends_both_sides_with_a_reason(self):
        self.up("line:2")
        pair = self.begin("endless")
        for end in pair:
            self.assertEqual(end.stdout.readline(), "runs\n")
        self.call("cut", "-c", self.name, "0-1")
        began = time.monotonic()
        for code, line, complaint in self.ends(pair, CUT_S):
            self.assertEqual(code, 3, complaint)
            self.assertRegex(line, r"ended (peer-lost|peer-closed): .* through rdma_en\d: ")
        print(f"both ended {time.monotonic() - began:.1f} s after the cut")

    def test_node_without_a_cable_is_told_so(self):
        self.up("line:3")
        server, client = self.begin(1, client=2)
        (code, line, complaint), = self.ends([client], 20)
        self.assertEqual(code, 3, complaint)
        self.assertTrue(re.match(r"ended (unreachable|refused): ", line), line)
        self.end(server)


if __name__ == "__main__":
    namespaces.main()
