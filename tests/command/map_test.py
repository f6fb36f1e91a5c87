"""`map`: the state and the rates of every cable, once, as lines, as JSON, and live on a terminal that gets back its page."""

import fcntl
import json
import os
import pathlib
import pty
import signal
import struct
import subprocess
import termios
import time

import command
from command import CommandCase


class Map(CommandCase):
    def once(self, **options):
        return json.loads(self.call("map", "--once", "--json", "--interval", "0.1", **options).stdout)

    def test_idle_cables_are_active_and_still(self):
        with self.cluster("ring:4"):
            seen = self.once()
            self.assertEqual(seen["nodes"], ["n0", "n1", "n2", "n3"])
            self.assertEqual([one["state"] for one in seen["cables"]], ["active"] * 4)
            for one in seen["cables"]:
                self.assertEqual((one["a_to_b_bytes_per_s"], one["b_to_a_bytes_per_s"], one["errors"]), (0, 0, {}))
            said = self.call("map", "--once", "--interval", "0.1").stdout
            self.assertIn("4 cables, 4 active", said)
            self.assertIn("⠉", said.translate(dict.fromkeys(range(0x2801, 0x2900), "⠉")))  # something is drawn
            self.assertNotIn("\x1b", said)

    def test_rates_move_while_data_do(self):
        with self.cluster("line:2"):
            with self.start("perf", "send", "--nodes", "0,1", "-D", "3", "-s", "65536", "--json") as perf:
                def moves():
                    cable = self.once()["cables"][0]
                    return cable["a_to_b_bytes_per_s"] > 1e6 or cable["b_to_a_bytes_per_s"] > 1e6
                command.wait_until(moves, "bytes move")
                perf.send_signal(signal.SIGINT)
                perf.communicate(timeout=command.PATIENCE_S)
            cable = self.once()["cables"][0]
            self.assertGreater(max(cable["a_to_b_bytes"], cable["b_to_a_bytes"]), 1 << 16)

    def test_cut_cables_are_told(self):
        with self.cluster("line:3"):
            self.call("cut", "0-1")
            cables = self.once(expect=1)["cables"]
            self.assertEqual([(one["state"], one["cuts"]) for one in cables], [("cut", 1), ("active", 0)])
            self.call("heal", "0-1")
            self.assertEqual([one["state"] for one in self.once()["cables"]], ["active"] * 2)

    def test_lines_until_it_is_told_to_end(self):
        with self.cluster("line:2"), self.start("map", "--interval", "0.05") as shown:
            for _ in range(2):
                self.assertTrue(shown.stdout.readline().startswith("CABLE"))
                self.assertIn("n0:rdma_en2", shown.stdout.readline())
                self.assertEqual(shown.stdout.readline(), "\n")
            shown.send_signal(signal.SIGINT)
            self.assertNotIn("\x1b", shown.communicate(timeout=command.PATIENCE_S)[0])
            self.assertEqual(shown.returncode, 0)

    def live(self, end):
        """What a terminal sees of it, until `end` does something to the process or the terminal; its modes are as before."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 90, 0, 0))
        modes = termios.tcgetattr(theirs)
        with subprocess.Popen([command.RINGBOLT, "map", "--interval", "0.05"], env=self.environment, stdin=theirs,
                              stdout=theirs, stderr=subprocess.DEVNULL, start_new_session=True) as shown:
            said = b""
            while said.count(b"\x1b[H") < 3:
                said += os.read(ours, 65536)
            end(shown, ours)
            give_up = time.monotonic() + command.PATIENCE_S
            while b"\x1b[?1049l" not in said:
                self.assertLess(time.monotonic(), give_up)
                said += os.read(ours, 65536)
            self.assertEqual(shown.wait(timeout=command.PATIENCE_S), 0)
        self.assertEqual(termios.tcgetattr(theirs), modes)
        os.close(ours)
        os.close(theirs)
        return said.decode()

    def test_live_on_a_terminal(self):
        with self.cluster("ring:4"):
            for end in (lambda shown, ours: os.write(ours, b"q"), lambda shown, ours: shown.send_signal(signal.SIGINT),
                        lambda shown, ours: shown.send_signal(signal.SIGTERM)):
                said = self.live(end)
                self.assertTrue(said.startswith("\x1b[?1049h\x1b[?25l"))
                self.assertTrue(said.endswith("\x1b[?25h\x1b[?1049l"))
                self.assertIn("n2:rdma_en3", said)

    def test_interrupted_before_it_has_shown_anything(self):
        with self.cluster("ring:3"):
            once = self.start("map", "--once", "--interval", 60)
            command.wait_until(lambda: "SigBlk:\t0000000000000000" not in
                               pathlib.Path(f"/proc/{once.pid}/status").read_text(), "it waits for signals")
            once.send_signal(signal.SIGTERM)
            out, _ = once.communicate(timeout=command.PATIENCE_S)
            self.assertEqual((once.returncode, out), (128 + signal.SIGTERM, ""))

    def test_wrong_usage(self):
        self.refused("map", says=["no cluster"])
        self.refused("map", "--interval", "0", says=["--interval"])


if __name__ == "__main__":
    command.main()
