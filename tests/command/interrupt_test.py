"""Long commands: on a terminal they show how far they are, in a pipe not a word of that; Ctrl-C and SIGTERM end them with
what was measured so far, and leave nothing behind."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import termios
import time

import command
from command import CommandCase, is_alive, wait_until

LINE = re.compile(r"\r\d+ s: ([^\r]*)\x1b\[K")
ERASED = "\r\x1b[K"


class Terminal:
    """Standard error of a command, as a terminal has it."""

    def __init__(self):
        self.ours, self.theirs = pty.openpty()
        attributes = termios.tcgetattr(self.theirs)
        attributes[1] &= ~termios.OPOST
        termios.tcsetattr(self.theirs, termios.TCSANOW, attributes)
        os.set_blocking(self.ours, False)
        self.text = ""

    def look(self):
        with contextlib.suppress(OSError):
            while piece := os.read(self.ours, 65536):
                self.text += piece.decode(errors="replace")
        return self.text

    def lines(self):
        return LINE.findall(self.look())

    def close(self):
        os.close(self.ours)


def descendants(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                child = int(stat.parent.name)
                found += [child, *descendants(child)]
    return found


class Long(CommandCase):
    def on_terminal(self, *words):
        terminal = Terminal()
        self.addCleanup(terminal.close)
        process = subprocess.Popen([command.RINGBOLT, *map(str, words)], env=self.environment, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=terminal.theirs)
        os.close(terminal.theirs)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process, terminal

    def leftovers(self):
        return [file for file in self.state_files() if not file.endswith(".counters")]  # which outlive their programs

    def interrupted(self, *words, shows, end=signal.SIGINT):
        """Ends the command once it shows `shows`; what it then prints on stdout, and on the terminal behind the line."""
        before, shared = self.leftovers(), sorted(os.listdir("/dev/shm"))
        process, terminal = self.on_terminal(*words)
        wait_until(lambda: any(re.search(shows, line) for line in terminal.lines()) or process.poll() is not None,
                   f"{words} shows {shows}: {terminal.text}")
        self.assertIsNone(process.poll(), terminal.text)
        children = descendants(process.pid)
        process.send_signal(end)
        said, _ = process.communicate(timeout=command.PATIENCE_S)
        text = terminal.look()
        self.assertEqual(process.returncode, 128 + end, (said, text))
        wait_until(lambda: not any(map(is_alive, children)), f"{words} has left no process")
        self.assertEqual((self.leftovers(), sorted(os.listdir("/dev/shm"))), (before, shared), words)
        self.assertIn(ERASED, text)
        return said, text.rsplit(ERASED, 1)[1]

    def test_check(self):
        with self.cluster("line:2"):
            self.call("exec", 0, "--", "ibv_devinfo")
            said, _ = self.interrupted("check", "--scale", "full", shows=r": [1-9]\d* of 54 done, 0 wrong")
            self.assertRegex(said, r"ended early: .*[1-9]\d* calls were made")
            self.assertNotIn("all right", said)
            said, _ = self.interrupted("check", "--matrix", "--repeat", "50", "--json", shows=r"[1-9]\d* calls done", end=signal.SIGTERM)
            found = json.loads(said)
            self.assertEqual((found["interrupted"], found["verified"]), (True, False))

    def test_bench(self):
        with self.cluster("line:2"):
            words = ("bench", "all_reduce", "-b", "8", "-e", "16", "-w", "0", "-n")
            said, _ = self.interrupted(*words, "10000000", "--json", shows=r"call [1-9]\d* of 10000000", end=signal.SIGTERM)
            self.assertIn("interrupted", said)
            json.loads(said)
            said, _ = self.interrupted("bench", "all_reduce", "-b", "8", "-e", "8G", "-f", "2", "-n", "20", shows=r"call \d+ of 20")
            self.assertRegex(said, r"interrupted: this is what was measured")

    def test_matrix(self):
        with self.cluster("ring:3"):
            words = ("matrix", "--rounds", "1000000", "--messages", "1000000", "--seconds")
            said, rest = self.interrupted(*words, 1, shows="measuring cable 2 of 3")
            self.assertIn("BANDWIDTH" if "BANDWIDTH" in said else "Latency", said)
            self.assertRegex(said, r"n0 +· +[\d.]+")
            self.assertIn("interrupted: this is what was measured until then", rest)
            said, _ = self.interrupted(*words, 30, "--json", shows="measuring cable 1 of 3", end=signal.SIGTERM)
            self.assertEqual([one for one in json.loads(said)["directions"] if one["state"] == "measured"], [])

    def test_perf(self):
        with self.cluster("line:2"):
            for end in (signal.SIGINT, signal.SIGTERM):
                said, rest = self.interrupted("perf", "send", "--nodes", "0,1", "-D", 600, "--json", shows=r"bandwidth of \d+ bytes: [1-9]\d*\.\d MB",
                                              end=end)
                [result] = json.loads(said)["results"]
                self.assertGreater(result["bandwidth"][0]["goodput_gbps"], 0)
                self.assertIn("interrupted: this is what was measured until then", rest)

    def test_verify(self):
        with self.cluster("line:2"):
            for mode, shows in (("stream", r"[1-9]\d*\.\d MB verified"), ("soak", r"[1-9]\d*\.\d MB verified"), ("churn", "messages")):
                said, _ = self.interrupted("verify", mode, "--nodes", "0,1", "-D", 600, shows=shows)
                self.assertIn("ended early: it was interrupted", said)
            said, _ = self.interrupted("verify", "soak", "--nodes", "0,1", "-D", 600, shows="MB verified", end=signal.SIGTERM)
            self.assertIn("ended early", said)

    def test_map(self):
        with self.cluster("line:2"):
            for end in (signal.SIGINT, signal.SIGTERM):
                self.interrupted("map", "--once", "--interval", 60, shows="counting for 60 s", end=end)

    def test_up_waits_for_another_command(self):
        self.call("up", "--emulate", "line:2")
        self.call("down")
        with open(self.root / "clusters/.lock", "r+") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX, 1)  # the first number: docs/formats/rendezvous.md
            process, terminal = self.on_terminal("up", "--emulate", "line:2")
            wait_until(lambda: any("another ringbolt command holds" in line for line in terminal.lines()), "up says so")
            fcntl.lockf(lock, fcntl.LOCK_UN, 1)
        said, _ = process.communicate(timeout=command.PATIENCE_S)
        self.assertIn("cluster line2 is up", said)
        self.assertTrue(terminal.look().endswith(ERASED), terminal.text)
        self.call("down")

    def test_no_word_in_a_pipe(self):
        with self.cluster("line:2"):
            for words in (("map", "--once", "--interval", "1.3"), ("check", "--scale", "0.01"), ("matrix", "--seconds", "0.3"),
                          ("perf", "send", "--nodes", "0,1", "-D", "0.6"), ("verify", "--nodes", "0,1", "-D", "0.6"),
                          ("bench", "all_reduce", "-b", "8", "-e", "8", "-n", "3000")):
                self.assertEqual(self.call(*words, timeout=60).stderr, "", words)


if __name__ == "__main__":
    command.main()
