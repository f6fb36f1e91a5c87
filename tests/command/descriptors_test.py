"""Standard descriptors that are closed: every command, in every combination, leaves a live cluster as it was, and ends
as it does otherwise; only output that nobody can have is an error."""

import itertools
import json
import os
import pathlib
import subprocess
import sys

import command
from command import CommandCase

CLOSED = [combination for n in range(4) for combination in itertools.combinations((0, 1, 2), n)]
# A command line of each subcommand, its exit code, and whether it prints. All that measure do so for a moment.
SHORT = ["--seconds", "0.001", "--size", "64", "--messages", "1", "--rounds", "1"]
LINES = {
    "up": ("up --emulate line:2 --name other", 0, True),
    "down": ("down --cluster other", 0, True),
    "status": ("status --cluster line2", 0, True),
    "devices": ("devices", 0, True),
    "reboot": ("reboot 0", 0, True),
    "agent": ("agent --start", 2, False),  # the cluster has no overlay
    "hostfile": ("hostfile", 0, True),
    "doctor": ("doctor --cluster line2", 0, True),
    "cut": ("cut 0-1", 0, True),
    "heal": ("heal 0-1", 0, True),
    "fault add": ("fault add completion-error 1% status 12", 0, True),
    "fault list": ("fault list", 0, True),
    "fault clear": ("fault clear", 0, True),
    "run": ("run -- sh -c", 0, False),  # what it runs: see below
    "exec": ("exec 0 -- sh -c", 0, False),
    "env": ("env 0", 0, True),
    "matrix": (" ".join(["matrix", *SHORT]), 0, True),
    "map": ("map --once --interval 0.05", 0, True),
    "metrics": ("metrics --cluster line2", 0, True),
    "decode": ("decode CAPTURE", 0, True),
    "trace": ("trace --cluster line2", 1, False),  # nothing was recorded
    "perf": ("perf send --nodes 0,1 -n 1 -s 8", 0, True),
    "verify": ("verify --nodes 0,1 -n 1", 0, True),
    "check": ("check --scale 0.000001 --timeout 20", 0, True),
    "bench": ("bench barrier -n 1 -w 0", 0, True),
    "nccl": ("nccl", 0, True),
    "nccl test": ("nccl test -e 8", 0, True),
    "bridge": ("bridge --listen unix:x", 2, False),  # to nowhere: it would not end
    "plan": ("plan ring:3", 0, True),
    "help": ("help run", 0, True),
    "complete": ("complete -- st", 0, True),
    # What is for our own processes refuses to be anything else.
    "probe": ("probe", 2, False),
    "relay-probe": ("relay-probe", 2, False),
    "host": ("host counters", 2, False),
}
NEVER = ("fault",)  # has subcommands
# A program that opens a file: with a descriptor below 3 missing, the file would get its number.
PROGRAM = "exec 9<\"$0\"; for fd in 0 1 2; do [ -e /proc/self/fd/$fd ] || exit 7; done; [ /proc/$$/fd/1 -ef \"$0\" ] && exit 8; exit 0"


def closing(words, closed):
    redirections = " ".join(f"{fd}>&-" for fd in closed)
    return ["sh", "-c", f'exec "$@" {redirections}', "sh", *map(str, words)]


class Descriptors(CommandCase):
    def call_closed(self, words, closed):
        return subprocess.run(closing([command.RINGBOLT, *words], closed), env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=command.PATIENCE_S, check=False)

    def commands(self):
        listed = json.loads(self.call("help", "--json").stdout)["commands"]
        return [one["command"] for one in listed]

    def words_of(self, name):
        line, code, prints = LINES[name]
        words = [str(self.capture) if word == "CAPTURE" else word for word in line.split()]
        return (words + [PROGRAM, str(self.control)] if words[-1] == "-c" else words), code, prints

    def test_every_command_is_here(self):
        self.assertEqual(sorted(self.commands()), sorted([*LINES, *NEVER]))

    def test_no_damage_and_the_right_exit_code(self):
        self.capture = pathlib.Path(command.EXTRA[0]) / "tests/golden/captures/rping-v4.txt"
        with self.cluster("line:2"):
            self.control = self.root / "clusters/line2/control"
            for closed in CLOSED:
                for name in LINES:
                    words, code, prints = self.words_of(name)
                    if 1 in closed and prints:
                        code = 2
                    with self.subTest(command=name, closed=closed):
                        done = self.call_closed(words, closed)
                        self.assertEqual(done.returncode, code, done.stderr)
                        if 1 in closed and prints and 2 not in closed:
                            self.assertIn("standard output is closed", done.stderr)
                self.assertEqual(self.control.read_bytes()[:16], b"RBCTL1\0\0\1\0\0\0\1\0\0\0", closed)
                self.assertEqual(self.control.stat().st_size, 24, closed)
                status = json.loads(self.call("status", "--json", "--cluster", "line2").stdout)["clusters"][0]
                self.assertEqual([cable["state"] for cable in status["cables"]], ["up"], closed)

    def test_closed_output_is_said_once_however_much_goes_there(self):
        """What comes behind the first failure fails as well, and took the words with it."""
        with self.cluster("line:2"):
            for _ in range(5):
                done = self.call_closed(["run", "--", "yes"], (1,))
                self.assertEqual((done.returncode, done.stderr.count("standard output is closed")), (2, 1), done.stderr)

    def test_what_cannot_be_said_ends_no_command(self):
        for words in (["nonsense"], [], ["plan"], ["up", "--emulate", "ring:1"], ["run", "--", "true"], ["perf", "fly"]):
            for closed in ((2,), (0, 2), (1, 2), (0, 1, 2)):
                with self.subTest(words=words, closed=closed):
                    self.assertEqual(self.call_closed(words, closed).returncode, 2)
            with open("/dev/full", "w") as full:
                done = subprocess.run([command.RINGBOLT, *words], env=self.environment, stdout=subprocess.DEVNULL,
                                      stderr=full, timeout=command.PATIENCE_S, check=False)
                self.assertEqual(done.returncode, 2, words)

    def test_no_error_is_printed_by_what_throws(self):
        """fmt::print() throws where nothing can be written, and ended the command (134); base::say() does not."""
        sources = pathlib.Path(command.EXTRA[0])
        found = [str(file) for top in ("src", "tools") for file in (sources / top).rglob("*.cpp") if "fmt::print(stderr" in file.read_text()]
        self.assertEqual(found, [])

    def test_programs_have_descriptors_that_work(self):
        """As launchers do it: what was closed is /dev/null, which can be read and written."""
        program = "import os; os.read(0, 1); os.write(1, b'x'); os.write(2, b'x')"
        with self.cluster("line:2"):
            for words in (["exec", "0"], ["exec", "local"], ["run"]):
                for closed in CLOSED if words[0] == "exec" else ((0,), (2,), (0, 2)):
                    with self.subTest(words=words, closed=closed):
                        done = self.call_closed([*words, "--", sys.executable, "-c", program], closed)
                        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_page_that_is_only_read_is_open_for_reading(self):
        """`map` has the cluster's files open while it looks."""
        with self.cluster("line:2"):
            show = self.start("map", "--json", "--interval", "0.05")
            try:
                show.stdout.readline()
                folder = pathlib.Path(f"/proc/{show.pid}/fd")
                ours = [fd for fd in folder.iterdir() if os.readlink(fd).startswith(str(self.root))]
                self.assertTrue(ours)
                for fd in ours:
                    flags = int((folder.parent / "fdinfo" / fd.name).read_text().split("flags:")[1].split()[0], 8)
                    self.assertEqual(flags & os.O_ACCMODE, os.O_RDONLY, os.readlink(fd))
                maps = (folder.parent / "maps").read_text().splitlines()
                self.assertEqual([line for line in maps if str(self.root) in line and "w" in line.split()[1]], [])
            finally:
                show.terminate()
                show.communicate(timeout=command.PATIENCE_S)


if __name__ == "__main__":
    command.main()
