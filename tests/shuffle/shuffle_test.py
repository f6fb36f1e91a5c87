#!/usr/bin/env python3
"""RINGBOLT_SHUFFLE: each program that works by luck alone fails with some seed, by the kind that it is there for; its
corrected twin works with all; the same seed does the same again; and a failure is shrunk to its kind.

    shuffle_test.py RINGBOLT MISTAKES

SHUFFLE_SEEDS: how many seeds."""

import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import unittest

import command
from command import CommandCase

SEEDS = range(1, int(os.environ.get("SHUFFLE_SEEDS", "20")) + 1)
KINDS = ("late", "events", "order", "pairs", "buffers", "fence", "acks", "rnr", "async")
LIMIT_S = 60
LOST = 3  # exit status of what was found out


class Corpus(CommandCase):
    def device(self, **more):
        library = pathlib.Path(command.RINGBOLT).resolve().parent.parent / "lib/ringbolt"
        return command.sanitizer_first(self.environment) | {"LD_LIBRARY_PATH": str(library)} | more

    def run_case(self, name, **more):
        done = subprocess.run([command.EXTRA[0], name], env=self.device(**more), capture_output=True, text=True,
                              timeout=LIMIT_S * command.TIME_SCALE, check=False)
        self.assertIn(done.returncode, (0, LOST), f"{name} {more}: {done.stdout}{done.stderr}")
        return done.returncode

    def names(self):
        return subprocess.run([command.EXTRA[0]], env=self.device(), capture_output=True, text=True, check=True).stdout.split()

    def each(self, jobs):
        """Of each (name, value of RINGBOLT_SHUFFLE) the exit status, some at a time."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda job: self.run_case(job[0], RINGBOLT_SHUFFLE=job[1]), jobs))

    def test_there_are_two_of_each_kind(self):
        self.assertEqual([name.split(".")[0] for name in self.names()], [kind for kind in KINDS for _ in range(2)])

    def test_without_it_all_work(self):
        names = [name + end for name in self.names() for end in ("", "-fixed")]
        self.assertEqual(self.each([(name, "off") for name in names]), [0] * len(names))

    def test_each_fails_by_its_kind_with_some_seed(self):
        for name in self.names():
            with self.subTest(name):
                kind = name.split(".")[0]
                self.assertTrue(any(self.run_case(name, RINGBOLT_SHUFFLE=f"{seed}:{kind}") for seed in SEEDS))

    def test_corrected_twins_work_with_all(self):
        jobs = [(f"{name}-fixed", str(seed)) for seed in SEEDS for name in self.names()]
        self.assertEqual([job for job, status in zip(jobs, self.each(jobs)) if status != 0], [])

    def test_the_same_seed_does_the_same_again(self):
        """Of a program for which it does not matter how long something is late."""
        jobs = [("fence.sent-behind-read", f"{seed}:fence") for seed in SEEDS]
        self.assertEqual(self.each(jobs), self.each(jobs))


class Slips(CommandCase):
    def test_a_value_that_is_none_is_told(self):
        for value, says in (("7:lat", '"lat" is no kind: give some of late, events'), ("x", '"x" is no seed'),
                            ("1-9", "one seed at a time; `ringbolt run --shuffle 1-1000 -- CMD` tries many")):
            done = self.call("exec", "local", "--", command.EXTRA[0], "late.polled-once", expect=None,
                             env={"RINGBOLT_SHUFFLE": value})
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(says, done.stderr)
        self.refused("run", "--shuffle", "9-1", "--", "true", says=['--shuffle 9-1: "9-1" is no seed'])
        self.refused("run", "--shuffle", "1-2", "--report", "sarif:x", "--", "true", says=["--report takes one run"])


class Run(CommandCase):
    def test_it_finds_the_seed_and_shrinks_it(self):
        program = str(pathlib.Path(command.EXTRA[0]).resolve())
        with self.cluster("line:2"):
            done = self.call("run", "--shuffle", "1-20", "--node", "0", "--", program, "order.last-byte", expect=LOST, timeout=120)
            self.assertRegex(done.stdout, r"seed \d+: exit status 3, after .* s and \d+ seeds? that passed\nshrunk in \d+ more runs\n")
            again = re.search(r"^again: ringbolt (run --shuffle \d+:order@2 --nodes '0' --limit 60 -- .+)$", done.stdout, re.M)
            self.assertTrue(again, done.stdout)
            self.assertIn("failed", done.stderr, "what the program said")
            self.call(*shlex.split(again[1]), expect=LOST)
            done = self.call("run", "--shuffle", "1-3", "--", program, "order.last-byte-fixed", timeout=120)
            self.assertEqual(done.stdout, "3 seeds passed\n")
            self.call("run", "--shuffle", "5", "--sanitize", "--explain", "--", program, "pairs.first-comes-first-fixed")

    def test_a_run_over_its_limit_has_failed(self):
        with self.cluster("line:2"):
            done = self.call("run", "--shuffle", "4-9", "--limit", "0.2", "--node", "1", "--", "sleep", "9", expect=124, timeout=120)
            self.assertIn("seed 4: over its limit of 0.2 s", done.stdout)

    def test_a_program_that_can_t_be_started_is_no_finding(self):
        with self.cluster("line:2"):
            done = self.call("run", "--shuffle", "4-9", "--", "/no/such", expect=2)
            self.assertIn("/no/such", done.stderr)
            self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    command.main()
