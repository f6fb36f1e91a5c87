"""What the tests of `perf` and `verify` share: a server that waits on a TCP port of its own."""

import json

import command
from command import CommandCase, wait_until
from ports import free_port, is_listening


class TwoEndsCase(CommandCase):
    """Server and client as perftest has them, on the default device."""

    subcommand = None

    def server(self, port, *words):
        server = self.start(self.subcommand, *words, "-p", port)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        wait_until(lambda: is_listening(port) or server.poll() is not None, "the server listens")
        return server

    def check_both_print_the_result(self, mode, *words):
        """Of a run with these words, which both ends get."""
        port = free_port()
        server = self.server(port, *mode, *words, "--json")
        mine = json.loads(self.call(self.subcommand, *mode, "localhost", "-p", port, *words, "--json").stdout)
        theirs, _ = server.communicate(timeout=command.PATIENCE_S)
        self.assertEqual(json.loads(theirs), mine)
        self.assertEqual(server.returncode, 0)
