"""Python's package on emulated clusters: each case of group_rank.py on each node."""

import importlib.util
import pathlib
import subprocess
import sys

import command
from command import CommandCase
from conftest import WORDS

RANK = str(pathlib.Path(__file__).resolve().with_name("group_rank.py"))


class Package(CommandCase):
    def setUp(self):
        super().setUp()
        self.environment["PYTHONPATH"] = f"{WORDS['source']}/python"
        self.environment["LD_LIBRARY_PATH"] = WORDS["libraries"]

    def run_on(self, topology, cases, lost=0, expect=0):
        self.call("up", "--emulate", topology)
        try:
            for case in cases:
                done = self.call("run", "--no-tag", *(["--keep-going"] if lost else []), "--", sys.executable, "-B", RANK, case,
                                 expect=expect)
                self.assertEqual(done.stdout.split(), ["ok"] * (int(topology.split(":")[1]) - lost), f"{case}: {done.stdout}")
        finally:
            self.call("down", "--force")

    def test_two_ranks(self):
        self.run_on("line:2", ["collectives", "others", "coroutines"])

    def test_three_ranks(self):
        self.run_on("line:3", ["collectives", "others", "bad_input"])

    def test_five_ranks(self):
        self.run_on("ring:5", ["collectives"])

    def test_signals(self):
        self.run_on("line:2", ["interrupted"])

    def test_a_rank_that_dies(self):
        self.run_on("ring:3", ["killed"], lost=1, expect=137)

    def test_ranks_that_die_or_stop_while_they_join(self):
        self.call("up", "--emulate", "ring:3")
        try:
            done = self.call("run", "--no-tag", "--", sys.executable, "-B", pathlib.Path(RANK).with_name("arrival_rank.py"),
                             self.root / "arrivals", command.TIME_SCALE, timeout=120)
            self.assertEqual(done.stdout.split(), ["ok"] * 3, done.stderr)
        finally:
            self.call("down", "--force")

    def test_numpy(self):
        if importlib.util.find_spec("numpy") is None:
            self.skipTest("no NumPy (apt install python3-numpy)")
        self.run_on("line:2", ["numpy_arrays"])

    def test_alone(self):
        done = subprocess.run([sys.executable, "-B", RANK, "alone"], env=self.environment, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual((done.stdout, done.stderr), ("ok\n", ""))

    def test_without_the_library_it_says_where_it_was_looked_for(self):
        environment = dict(self.environment, LD_LIBRARY_PATH=str(self.root))
        script = ("import sys, types; sys.path.insert(0, sys.argv[1]); import ringbolt._library as l, pathlib; "
                  "l.__file__ = '/nowhere/python/ringbolt/_library.py'; import ringbolt; ringbolt.join()")
        done = subprocess.run([sys.executable, "-B", "-c", script, f"{WORDS['source']}/python"], env=environment,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertIn("Install Ringbolt, or put the folder of libringbolt.so.0 on LD_LIBRARY_PATH", done.stderr)
