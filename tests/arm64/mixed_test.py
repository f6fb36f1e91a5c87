#!/usr/bin/env python3
"""An x86-64 program and an ARM64 one, over UDP between two network namespaces, each kind as server and as client.

    mixed_test.py RUN SYSROOT ARM64_LIBRARIES OWN_LIBRARIES    RUN: scripts/arm64-run
"""

import os
import pathlib
import subprocess
import sys
import time
import unittest

import machines

RUN, SYSROOT, ARM64_LIBRARIES, OWN_LIBRARIES = sys.argv[1:5]
PORT = 18600  # in namespaces of our own every port is free
NAMES = [f"rb-arm{os.getpid()}-{k}" for k in range(2)]
ADDRESSES = ["10.78.0.1", "10.78.0.2"]
# Places in the GID table: the link-local address, and the IPv4 one.
GIDS = (0, 1)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def wait_until_up(name):
    """The kernel says so up to a second after the cable's other end came up: until then a port is down."""
    state = ["ip", "netns", "exec", name, "cat", "/sys/class/net/cable/operstate"]
    until = time.monotonic() + machines.PATIENCE_S
    while subprocess.run(state, capture_output=True, text=True, check=True).stdout.strip() != "up":
        if time.monotonic() > until:
            raise AssertionError(f"{name}: the cable did not come up in {machines.PATIENCE_S} s")
        time.sleep(0.02)


class Mixed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for k, name in enumerate(NAMES):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            cls.addClassCleanup(ip, "netns", "delete", NAMES[k])
        ip("link", "add", "cable", "netns", NAMES[0], "type", "veth", "peer", "name", "cable", "netns", NAMES[1])
        for k, name in enumerate(NAMES):
            # The link-local address is there at once: there is nobody who could have it too.
            ip("netns", "exec", name, "sysctl", "-q", "-w", "net.ipv6.conf.cable.accept_dad=0")
            ip("-n", name, "address", "add", f"{ADDRESSES[k]}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "mtu", "4300", "up")
        for name in NAMES:
            wait_until_up(name)
        cls.places = [machines.Place(name, RINGBOLT_NETDEVS="cable") for name in NAMES]
        for place in cls.places:
            cls.addClassCleanup(place.remove)

    def both_ways(self, program, *options, **more):
        kinds = [machines.own(OWN_LIBRARIES), machines.arm64(RUN, SYSROOT, ARM64_LIBRARIES)]
        for server, client in ((0, 1), (1, 0)):
            with self.subTest(program=program, options=options, server=kinds[server].name):
                machines.between(self.places[0], kinds[server], self.places[1], kinds[client], program, *options,
                                 port=PORT, address=ADDRESSES[0], **more)

    def test_pingpongs_verify_their_data(self):
        for gid in GIDS:
            self.both_ways("ibv_rc_pingpong", "-g", gid, "-n", 200, "-c", "-s", 70000)
        self.both_ways("ibv_uc_pingpong", "-g", 1, "-n", 200, "-c", "-s", 70000)
        self.both_ways("ibv_ud_pingpong", "-g", 1, "-n", 200)

    def test_every_operation(self):
        for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw"):
            size = [] if "atomic" in program else ["-s", 65536]
            self.both_ways(program, "-x", 1, "-n", 100, *size)
        self.both_ways("ib_send_lat", "-x", 0, "-n", 100, "-e")

    def test_connection_manager(self):
        self.both_ways("rping", "-V", "-C", 20, server_options=["-s", "-a", ADDRESSES[0]],
                       client_options=["-c", "-a", ADDRESSES[0]], waits_for_port=False)


if __name__ == "__main__":
    if not list(pathlib.Path(OWN_LIBRARIES).glob("libibverbs.so.1")):
        machines.skip(f"no libraries of this machine in {OWN_LIBRARIES}: ./test builds them")
    probe = subprocess.run(["ip", "netns", "add", NAMES[0]], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "delete", NAMES[0]], capture_output=True, check=False)
    if probe.returncode != 0:
        machines.skip(f"no network namespaces here: {probe.stderr.strip()} (they take root)")
    unittest.main(argv=sys.argv[:1])
