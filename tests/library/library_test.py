"""libringbolt.so: every call of its API on emulated clusters, and the examples as a user would build them."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import command
from command import CommandCase

sanitize = sys.argv.pop()
libraries = sys.argv.pop()
sources = pathlib.Path(sys.argv.pop())
c_program = sys.argv.pop()
rank_program = sys.argv.pop()


class Library(CommandCase):
    def run_on(self, topology, *options):
        self.call("up", "--emulate", topology, *options)
        try:
            done = self.call("run", "--no-tag", "--", rank_program)
            self.assertEqual(set(done.stdout.split()), {"ok"}, done.stdout)
        finally:
            self.call("down", "--force")

    def test_two_ranks(self):
        self.run_on("line:2")

    def test_two_rails(self):
        self.run_on("ring:2")

    def test_line(self):
        self.run_on("line:3")

    def test_mesh(self):
        self.run_on("mesh:4")

    def test_ring_of_five(self):
        self.run_on("ring:5")

    def test_like_a_mac(self):
        self.run_on("ring:4", "--like", "tn3205")

    def test_in_c(self):
        for topology, words, said in (("line:3", [], ["ok"] * 3), ("mesh:3", ["die"], ["ok"] * 2)):
            self.call("up", "--emulate", topology)
            try:
                done = self.call("run", "--no-tag", "--", c_program, *words)
                self.assertEqual(done.stdout.split(), said, done.stdout)
            finally:
                self.call("down", "--force")

    def test_one_rank(self):
        environment = dict(self.environment, RANK="0", WORLD_SIZE="1")
        done = subprocess.run([rank_program], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout, "ok\n", done.stderr)

    def test_without_ranks_it_says_how_to_start(self):
        done = subprocess.run([rank_program], env=self.environment, capture_output=True, text=True, timeout=60)
        self.assertIn("ringbolt run", done.stdout)
        self.assertEqual(done.returncode, 1)

    def test_disconnected_cabling(self):
        # Two pairs without a cable between them: all four say so.
        self.call("up", "--emulate", "line:4")
        try:
            self.call("cut", "1-2")
            done = self.call("run", "--no-tag", "--keep-going", "--", rank_program, expect=1)
            self.assertEqual(done.stdout.count("no cables lead from ranks 0, 1 to ranks 2, 3"), 4, done.stdout)
        finally:
            self.call("down", "--force")

    @unittest.skipIf(sanitize, "a sanitizer's run time comes with the program")
    def test_examples(self):
        with tempfile.TemporaryDirectory() as folder:
            programs = []
            for source, compiler in (("all_reduce.cpp", ["g++", "-std=c++20"]), ("all_reduce.c", ["gcc", "-std=c11"])):
                programs.append(os.path.join(folder, source.replace(".", "_")))
                subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", f"-I{sources}/include",
                                str(sources / "examples/collectives" / source), f"-L{libraries}", "-lringbolt",
                                f"-Wl,-rpath,{libraries}", "-o", programs[-1]], check=True)
            self.call("up", "--emulate", "ring:3")
            try:
                for program in programs:
                    done = self.call("run", "--no-tag", "--", program)
                    self.assertEqual(sorted(done.stdout.splitlines()),
                                     [f"rank {rank} of 3: every element is 6" for rank in range(3)])
            finally:
                self.call("down", "--force")


if __name__ == "__main__":
    command.main()
