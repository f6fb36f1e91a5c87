#!/usr/bin/env python3
"""RC between two processes while the UNIX socket that joins them is cut, held up, or loses its other end.

    stream_cuts.py LIB [CASE...]        LIB: the folder with libibverbs.so.1

Uses the ibv_rc_pingpong (which checks every byte) and ibv_asyncwatch of ibverbs-utils. Exit status 77: they are missing.
"""

import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

LIB = ""
PATIENCE_S = 60
# The greetings of a stream take some 350 bytes, the frame of a message of 64 bytes 132, its answer and acknowledgements
# some 300. Until the limit has grown by a frame no connection carries one: that takes longer than the usual outage.
FIRST_CUT_BYTES, LAST_CUT_BYTES = 440, 740


class Proxy(threading.Thread):
    """Carries bytes between two UNIX sockets. `limits`: after so many bytes, in both directions, connection after
    connection is cut in the middle of what is under way; after the last of them nothing is. While `is_shut`, connections
    are ended and none is let through."""

    def __init__(self, listen_at, connect_to, limits=()):
        super().__init__(daemon=True)
        self.connect_to = connect_to
        self.limits = list(limits)
        self.cuts = 0
        self.carried_at = time.monotonic()
        self.is_shut = False
        self.ends = False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(listen_at))
        self.listener.listen(8)

    def run(self):
        while not self.ends:
            if not select.select([self.listener], [], [], 0.02)[0]:
                continue
            near, _ = self.listener.accept()
            with near, socket.socket(socket.AF_UNIX) as far:
                try:
                    if not self.is_shut:
                        far.connect(str(self.connect_to))
                        self.carry(near, far)
                except OSError:
                    pass
        self.listener.close()

    def carry(self, near, far):
        left = self.limits[0] if self.limits else None
        while not self.ends and not self.is_shut:
            for source in select.select([near, far], [], [], 0.02)[0]:
                data = source.recv(30_000)
                if not data:
                    return
                (far if source is near else near).sendall(data[:left])
                self.carried_at = time.monotonic()
                if left is not None and (left := left - len(data)) <= 0:
                    self.limits.pop(0)
                    self.cuts += 1
                    return


class Streams(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="rbc")
        self.root = pathlib.Path(self.folder.name)
        self.children = []
        self.proxy = None

    def tearDown(self):
        for child in self.children:
            child.kill()
            child.wait()
            child.stdout.close()
        if self.proxy:
            self.proxy.ends = True
            self.proxy.join()
        self.folder.cleanup()

    def put_between(self, limits=()):
        self.proxy = Proxy(self.root / "near", self.root / "far", limits)
        self.proxy.start()

    def start(self, stream, *words):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("RINGBOLT_")}
        environment |= {"LD_LIBRARY_PATH": LIB, "RINGBOLT_RUNTIME_DIR": str(self.root), "RINGBOLT_STREAMS": stream}
        self.children.append(subprocess.Popen(["stdbuf", "-oL", *words], env=environment, text=True,
                                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        return self.children[-1]

    def ping_pong(self, *options, near="near", outage=""):
        """The two sides: the one that waits, and the one that connects through `near`."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        words = ["ibv_rc_pingpong", "-g", "1", "-p", port, *options]
        server = self.start(f"far{outage}=unix-listen:{self.root}/far", *words, "-d", "rdma_far")
        give_up = time.monotonic() + PATIENCE_S
        while f":{port} " not in subprocess.run(["ss", "-ltn"], capture_output=True, text=True, check=True).stdout:
            self.assertLess(time.monotonic(), give_up, "the server does not listen")
            time.sleep(0.02)
        client = self.start(f"near{outage}=unix:{self.root}/{near}", *words, "-d", "rdma_near", "127.0.0.1")
        return server, client

    def expect_success(self, *children):
        for child in children:
            said = child.communicate(timeout=PATIENCE_S)[0]
            self.assertEqual(child.returncode, 0, said)
            self.assertNotIn("invalid data", said)

    def test_a_cut_after_every_byte_of_small_messages_loses_and_doubles_nothing(self):
        limits = range(FIRST_CUT_BYTES, LAST_CUT_BYTES)
        self.put_between(limits)
        self.expect_success(*self.ping_pong("-c", "-s", "64", "-n", "6000", outage=",outage:60"))
        self.assertEqual(self.proxy.cuts, len(limits), "the messages did not last")

    def test_cuts_in_large_messages_lose_and_double_nothing(self):
        limits = [1000 + (i * 7919 * 13) % 300_000 for i in range(60)]
        self.put_between(limits)
        self.expect_success(*self.ping_pong("-c", "-s", "65536", "-n", "300"))
        self.assertEqual(self.proxy.cuts, len(limits), "the messages did not last")

    def interrupt(self, seconds, outage):
        """Both sides of traffic that is interrupted; when, and who ends first: the other one may wait for a receive."""
        self.put_between()
        sides = self.ping_pong("-c", "-n", "20000", outage=outage)
        time.sleep(0.5)
        self.assertIsNone(sides[1].poll(), "it is over before the interruption")
        self.proxy.is_shut = True
        began = time.monotonic()
        ended = threading.Timer(seconds, setattr, (self.proxy, "is_shut", False))
        ended.start()
        self.addCleanup(ended.cancel)
        while all(side.poll() is None for side in sides):
            self.assertLess(time.monotonic(), max(began, self.proxy.carried_at) + PATIENCE_S, "nothing moves, nobody ends")
            time.sleep(0.01)
        return sides, next(side for side in sides if side.poll() is not None), time.monotonic() - began

    def test_an_outage_longer_than_the_retry_time_is_survived(self):
        # It programs 4.096 us * 2^14 * 8 = 537 ms.
        sides, _, _ = self.interrupt(2.5, "")
        self.expect_success(*sides)

    def test_an_outage_longer_than_its_limit_is_not(self):
        _, first, took = self.interrupt(30, ",outage:1")
        self.assertIn("transport retry counter exceeded", first.stdout.read())
        self.assertGreater(took, 1.4)
        self.assertLess(took, 6)

    def test_no_outage_is_excused_where_none_is_wanted(self):
        _, first, took = self.interrupt(30, ",outage:0")
        self.assertIn("transport retry counter exceeded", first.stdout.read())
        self.assertGreater(took, 0.4)
        self.assertLess(took, 4)

    def watch(self, name, text):
        return self.start(f"{name}={text}", "ibv_asyncwatch", "-d", f"rdma_{name}")

    def expect_line(self, child, pattern):
        give_up = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up:
            if select.select([child.stdout], [], [], 1)[0]:
                line = child.stdout.readline()
                if re.search(pattern, line):
                    return
                self.assertTrue(line, f"it ended before it said {pattern}")
        self.fail(f"it did not say {pattern}")

    def test_a_port_whose_peer_goes_and_comes_back_says_so(self):
        for how in (signal.SIGKILL, signal.SIGTERM):
            name = f"a{int(how)}"
            near = self.watch(name, f"unix-listen:{self.root}/{name}")
            self.expect_line(near, "async event FD")
            far = self.watch("b", f"unix:{self.root}/{name}")
            self.expect_line(far, "async event FD")
            time.sleep(0.5)  # for the greetings; a peer that was never there can't go
            far.send_signal(how)
            self.expect_line(near, "port error|event_type 10|PORT_ERR")
            far = self.watch("b", f"unix:{self.root}/{name}")
            self.expect_line(near, "port active|event_type 9|PORT_ACTIVE")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    LIB = sys.argv.pop(1)
    missing = [word for word in ("ibv_rc_pingpong", "ibv_asyncwatch", "ss", "stdbuf") if not shutil.which(word)]
    if missing:
        print(f"skip: {', '.join(missing)} missing")
        sys.exit(77)
    unittest.main()
