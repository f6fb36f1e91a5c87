#!/usr/bin/env python3
"""Debian's own ARM64 programs on our ARM64 libraries, on one host.

    perftest_test.py RUN SYSROOT LIBRARIES    RUN: scripts/arm64-run
"""

import os
import sys
import unittest

import machines

RUN, SYSROOT, LIBRARIES = sys.argv[1:4]
PORT = 20000 + os.getpid() % 10000


class OnOneHost(unittest.TestCase):
    def setUp(self):
        self.kind = machines.arm64(RUN, SYSROOT, LIBRARIES)
        self.place = machines.Place()
        self.addCleanup(self.place.remove)

    def between(self, program, *options):
        return machines.between(self.place, self.kind, self.place, self.kind, program, *options, port=PORT,
                                address="127.0.0.1")

    def test_perftest(self):
        for program, *options in (["ib_send_lat"], ["ib_write_bw"], ["ib_read_bw", "-s", 4096], ["ib_atomic_lat"],
                                  ["ib_send_bw", "-c", "UD", "-s", 1024], ["ib_send_lat", "-e"]):
            with self.subTest(program=program, options=options):
                _, said = self.between(program, "-n", 200, *options)
                self.assertIn("#bytes", said)

    def test_pingpongs_verify_their_data(self):
        for program in ("ibv_rc_pingpong", "ibv_uc_pingpong"):
            with self.subTest(program):
                _, said = self.between(program, "-g", 0, "-n", 200, "-c", "-s", 70000)
                self.assertIn("200 iters", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
