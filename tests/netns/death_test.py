"""The other end of a connection hears of a killed process at once, over a network too; and never of one that lives."""

import os
import re
import select
import signal
import subprocess
import time

import namespaces
from namespaces import NamespaceCase, command

namespaces.need()

PORT = 19000  # in namespaces of our own every port is free
ADDRESSES = {"IPv4": "10.77.0.1", "IPv6": "fd77::1"}
# What is promised, and what a busy machine may take on top.
LIMIT_S = 1.0 * command.TIME_SCALE
QUIET_S = 2.5  # so long nothing is heard of a stopped process
NODE = {"serve": 0, "call": 1}
OTHER = {"serve": "call", "call": "serve"}


class Death(NamespaceCase):
    def setUp(self):
        super().setUp()
        self.up("line:2")
        self.port = PORT

    def begin(self, role, address, way, count):
        words = ["exec", "-c", self.name, NODE[role], "--", command.EXTRA[0], role, address, self.port, way, count]
        program = subprocess.Popen([command.RINGBOLT, *map(str, words)], env=self.environment_of(words), text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=1)
        self.addCleanup(self.end, program)
        return program

    def hears(self, program, pattern):
        line = program.stdout.readline().rstrip("\n")
        found = re.fullmatch(pattern, line)
        self.assertTrue(found, f"{line!r} is not {pattern}" + ("" if line else program.communicate()[1]))
        return found

    def pair(self, family="IPv4", ways=("idle", "idle"), count=1):
        """A server and a client with `count` connections; by role."""
        self.port += 1
        ends = {"serve": self.begin("serve", ADDRESSES[family], ways[0], count)}
        self.hears(ends["serve"], "listening")
        ends["call"] = self.begin("call", ADDRESSES[family], ways[1], count)
        for end in ends.values():
            self.hears(end, f"established {count}")
        return ends

    def lines(self, node=0):
        """Lifelines that stand there: connections of TCP, of which these namespaces have no others."""
        return len(self.on(node, "ss", "-Htn", "state", "established").splitlines())

    def wait_for_line(self, count=1):
        """It stands some milliseconds after the connection."""
        command.wait_until(lambda: self.lines(0) >= count and self.lines(1) >= count, "the lifeline stands")

    def over(self, program, count, what, since_s):
        """It hears in time, and its work comes back."""
        found = self.hears(program, rf"over {count} flushed (\d+) at ([0-9.]+)")
        took_s = float(found[2]) - since_s
        print(f"{self.id().rsplit('.')[-1]}: {what}: {1000 * took_s:.0f} ms, {found[1]} flushed")
        self.assertGreaterEqual(int(found[1]), count)
        self.assertLess(took_s, LIMIT_S)
        self.assertEqual(program.wait(command.PATIENCE_S), 0)

    def kill(self, ends, victim, count, what):
        since_s = time.monotonic()
        os.kill(ends[victim].pid, signal.SIGKILL)
        self.over(ends[OTHER[victim]], count, what, since_s)
        ends[victim].wait(command.PATIENCE_S)

    def is_silent(self, program, seconds):
        return not select.select([program.stdout], [], [], seconds)[0]

    def without_lines(self):
        """As behind a firewall that lets port 4791 alone through."""
        self.environment["RINGBOLT_LIFELINES"] = "off"

    @staticmethod
    def end(program):
        if program.stdin:
            program.stdin.close()
            program.stdin = None
        program.kill()
        program.communicate()

    def test_last_process_of_its_host(self):
        for family in ADDRESSES:
            for victim in ("serve", "call"):
                with self.subTest(family, victim=victim):
                    ends = self.pair(family)
                    self.wait_for_line()
                    self.kill(ends, victim, 1, f"idle, {family}, {victim} killed")

    def test_busy_ends(self):
        for victim in ("serve", "call"):
            for ways in (("send", "receive"), ("receive", "send"), ("send", "send")):
                for turn in range(3):  # what lies unread at that moment differs
                    with self.subTest(ways, victim=victim, turn=turn):
                        ends = self.pair(ways=ways)
                        self.wait_for_line()
                        self.kill(ends, victim, 1, f"server {ways[0]}, client {ways[1]}, {victim} killed")

    def test_many_connections_of_one_process(self):
        for victim in ("serve", "call"):
            with self.subTest(victim=victim):
                ends = self.pair(count=50)
                self.wait_for_line()
                self.assertEqual(self.lines(), 1)
                self.kill(ends, victim, 50, f"50 connections, {victim} killed")

    def test_each_of_many_processes(self):
        ends = [self.pair() for _ in range(4)]
        self.wait_for_line(4)
        for index, pair in enumerate(ends):
            for later in ends[index:]:
                for end in later.values():
                    self.assertTrue(self.is_silent(end, 0))
            self.kill(pair, "call" if index % 2 else "serve", 1, f"process {index}")

    def test_survivor_says_it_without_lines(self):
        self.without_lines()
        for victim in ("serve", "call"):
            with self.subTest(victim=victim):
                bystanders = self.pair()
                ends = self.pair(count=50)
                self.kill(ends, victim, 50, f"50 connections, no lines, {victim} killed beside another process")
                for end in bystanders.values():
                    self.assertTrue(self.is_silent(end, 0))
                    self.end(end)

    def test_next_process_says_it_without_lines(self):
        self.without_lines()
        ends = self.pair()
        os.kill(ends["serve"].pid, signal.SIGKILL)
        ends["serve"].wait(command.PATIENCE_S)
        self.assertTrue(self.is_silent(ends["call"], QUIET_S))  # nobody there could have said it
        since_s = time.monotonic()
        self.port += 1
        self.begin("serve", ADDRESSES["IPv4"], "idle", 1)
        self.over(ends["call"], 1, "the next process began", since_s)

    def test_stopped_process_is_alive(self):
        for has_lines in (True, False):
            if not has_lines:
                self.without_lines()
            bystanders = self.pair()
            for victim in ("serve", "call"):
                with self.subTest(victim=victim, has_lines=has_lines):
                    ends = self.pair(ways=("idle", "idle"))
                    if has_lines:
                        self.wait_for_line(2)
                    other = ends[OTHER[victim]]
                    os.kill(ends[victim].pid, signal.SIGSTOP)
                    self.assertTrue(self.is_silent(other, QUIET_S), "a living process was reported dead")
                    os.kill(ends[victim].pid, signal.SIGCONT)
                    self.assertTrue(self.is_silent(other, 0.2))
                    ends[victim].stdin.write("count\n")  # it goes on
                    self.hears(ends[victim], r"messages \d+")
                    os.kill(ends[victim].pid, signal.SIGSTOP)
                    self.kill(ends, victim, 1, f"{victim} killed while it was stopped")
            for end in bystanders.values():
                self.end(end)

    def test_child_is_not_its_parent(self):
        for victim in ("serve", "call"):
            with self.subTest(victim=victim):
                ends = self.pair()
                self.wait_for_line()
                ends[victim].stdin.write("fork\n")
                child = int(self.hears(ends[victim], r"child (\d+)")[1])
                self.assertTrue(self.is_silent(ends[OTHER[victim]], 0.2))
                self.kill(ends, victim, 1, f"{victim} killed, its child lives")
                self.assertTrue(command.is_alive(child))
                self.end(ends[victim])  # its input ends, and the child goes

    def test_child_that_is_killed_is_nobody(self):
        ends = self.pair()
        self.wait_for_line()
        ends["serve"].stdin.write("fork\n")
        os.kill(int(self.hears(ends["serve"], r"child (\d+)")[1]), signal.SIGKILL)
        self.assertTrue(self.is_silent(ends["call"], 0.5), "a living process was reported dead")
        self.kill(ends, "serve", 1, "after its child")

    def test_program_that_becomes_another(self):
        for victim in ("serve", "call"):
            with self.subTest(victim=victim):
                ends = self.pair()
                self.wait_for_line()
                since_s = time.monotonic()
                ends[victim].stdin.write("exec\n")
                self.hears(ends[victim], "became")
                self.over(ends[OTHER[victim]], 1, f"{victim} became another program", since_s)
                self.assertTrue(command.is_alive(ends[victim].pid))
                self.end(ends[victim])

    def test_line_that_others_close_says_nothing(self):
        ends = self.pair()
        self.wait_for_line()
        before = self.on(0, "ss", "-Htn", "state", "established")
        killed = self.on(0, "ss", "-KHtn", "state", "established", expect=None)
        if self.on(0, "ss", "-Htn", "state", "established") == before:
            self.skipTest(f"this kernel closes no connections of others: {killed}")
        self.wait_for_line()  # another one
        for end in ends.values():
            self.assertTrue(self.is_silent(end, 0.5), "a living process was reported dead")
        self.kill(ends, "serve", 1, "after its line was closed")


if __name__ == "__main__":
    namespaces.main()
