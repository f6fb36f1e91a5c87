"""Descriptors that are closed or run out, under a program that is not ours: ibv_rc_pingpong on the library alone."""

import os
import pathlib
import resource
import subprocess
import unittest

import command
from command import CommandCase
import ports

TIGHTEST, LOOSEST = 8, 44


class Descriptors(CommandCase):
    def setUp(self):
        super().setUp()
        self.environment["LD_LIBRARY_PATH"] = str(pathlib.Path(command.RINGBOLT).parent.parent / "lib/ringbolt")
        self.environment = command.sanitizer_first(self.environment)

    def pingpong(self, port, *words, before=None):
        return subprocess.Popen(["ibv_rc_pingpong", "-g", "0", "-n", "10", "-p", str(port), *words], env=self.environment,
                                text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                preexec_fn=before)

    def test_a_program_with_closed_standard_descriptors_is_given_none_of_ours(self):
        port = ports.free_port()
        server = self.pingpong(port, before=lambda: [os.close(fd) for fd in range(3)])
        try:
            command.wait_until(lambda: ports.is_listening(port) or server.poll() is not None, "ibv_rc_pingpong listens")
            # Its own TCP socket, which it opens last, gets 0: what a program opens itself is its own affair.
            links = {int(fd.name): os.readlink(fd) for fd in pathlib.Path(f"/proc/{server.pid}/fd").iterdir()}
            self.assertEqual([fd for fd in links if fd < 3], [0], links)
            self.assertIn(links[0].removeprefix("socket:[").removesuffix("]"), ports.listening_inodes(port))
            self.assertGreater(len(links), 3)
        finally:
            server.kill()
            server.communicate(timeout=command.PATIENCE_S)

    @unittest.skipIf("SANITIZED" in os.environ, "UndefinedBehaviorSanitizer opens a pipe to look at an object's type")
    def test_a_limit_that_is_too_low_is_named(self):
        outcomes = set()
        for limit in range(TIGHTEST, LOOSEST + 1, 3):
            with self.subTest(limit=limit):
                port = ports.free_port()
                tighten = lambda most=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
                server = self.pingpong(port, before=tighten)
                command.wait_until(lambda: ports.is_listening(port) or server.poll() is not None, "the server listens")
                client = self.pingpong(port, "127.0.0.1", before=tighten)
                said = "".join(client.communicate(timeout=command.PATIENCE_S))
                if client.returncode != 0:
                    server.kill()
                said += "".join(server.communicate(timeout=command.PATIENCE_S))
                outcomes.add(client.returncode == 0)
                is_own = "accept() failed" in said  # the last descriptor would have been the program's own
                if (client.returncode != 0 or server.returncode != 0) and not is_own:
                    self.assertIn("ulimit -n", said)
                    self.assertIn(str(limit), said)
        self.assertEqual(outcomes, {False, True})  # the range holds both what is too low and what is enough


if __name__ == "__main__":
    command.main()
