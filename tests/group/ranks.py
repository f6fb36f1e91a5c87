"""Ranks of a group: processes on the nodes of an emulated cluster that do what the test says, line by line."""

import contextlib
import errno
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "command"))

import command  # noqa: E402

# A failure is noticed a second after it; a busy machine with as many ranks as here adds to that.
NOTICED_S = 1.0
SLACK_S = 6.0
PATIENCE_S = 60 * command.TIME_SCALE
# Of the longest vectors a part is enough where filling and comparing takes so many times as long: under a sanitizer.
SLOWNESS = int(os.environ.get("RINGBOLT_TEST_TIME_SCALE", "1"))


class Rank:
    """One process. say() gives it a command; hear() is its next line."""

    def __init__(self, node, environment, words):
        self.node = node
        self.lines = queue.Queue()
        self.errors = ""
        self.process = subprocess.Popen(words, env=environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=1)
        threading.Thread(target=self.read, daemon=True).start()
        self.errors_reader = threading.Thread(target=self.read_errors, daemon=True)
        self.errors_reader.start()
        self.pid = self.expect("here")["pid"]

    def read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put({"event": "ended"})

    def read_errors(self):
        for line in self.process.stderr:
            self.errors += line

    def say(self, line):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def hear(self, timeout=PATIENCE_S):
        try:
            return self.lines.get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"rank {self.node} said nothing for {timeout} s; {self.errors}") from None

    def expect(self, *events, timeout=PATIENCE_S):
        """The next line that is none of a loop that goes on; it must be one of these."""
        heard = self.hear(timeout)
        while heard["event"] == "running" and "running" not in events:
            heard = self.hear(timeout)
        if heard["event"] not in events:
            raise AssertionError(f"rank {self.node}: {heard} instead of {events}; {self.errors}")
        return heard

    def signal(self, number):
        os.kill(self.pid, number)

    def end(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                self.signal(signal.SIGCONT)
                self.signal(signal.SIGKILL)
            self.process.kill()
            self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode


class GroupCase(command.CommandCase):
    """Tests of groups over a cluster of their own."""

    def up(self, spec, *options):
        self.call("up", "--emulate", spec, *options)
        self.addCleanup(self.call, "down", "--force")

    def start_ranks(self, n, **variables):
        ranks = []
        for node in range(n):
            rank = Rank(node, self.environment | variables,
                        [command.RINGBOLT, "exec", f"n{node}", "--", *command.EXTRA[:1]])
            self.addCleanup(rank.end)
            ranks.append(rank)
        return ranks

    def join(self, spec, n, *options, words="", **variables):
        """All ranks of a cluster, in one group."""
        self.up(spec, *options)
        ranks = self.start_ranks(n, **variables)
        self.all_say(ranks, f"join {words}")
        for rank in ranks:
            self.assertEqual(rank.expect("joined")["size"], n)
        return ranks

    @staticmethod
    def all_say(ranks, line):
        for rank in ranks:
            rank.say(line)

    def all_run(self, ranks, line):
        """A call that works, on all."""
        self.all_say(ranks, line)
        for rank in ranks:
            done = rank.expect("done", "failed")
            self.assertEqual((done["event"], done.get("wrong")), ("done", 0), (rank.node, done))

    def kill(self, group, *victims):
        """Those who are left, when they know: ranks that are at their nodes' numbers."""
        for victim in victims:
            group[victim].signal(signal.SIGKILL)
        left = [rank for rank in group if rank.node not in victims]
        self.all_say(left, "call all_reduce count=1000")
        for rank in left:
            rank.expect("failed", timeout=NOTICED_S + SLACK_S)
        return left

    def all_fail(self, ranks, since, code, says=(), within=NOTICED_S + SLACK_S):
        """Their calls end with that code (one of them, if it is a tuple) and these words, soon after `since`."""
        codes = code if isinstance(code, tuple) else (code,)
        failures = []
        for rank in ranks:
            failed = rank.expect("failed", timeout=max(0.1, since + within - time.monotonic()))
            self.assertIn(failed["code"], codes, (rank.node, errno.errorcode.get(failed["code"]), failed["text"]))
            for part in says:
                self.assertIn(part, failed["text"], rank.node)
            failures.append(failed)
        return failures


def main():
    command.main()
