"""Who calls a listener that is not there, or dies, hears of it: REJECTED or UNREACHABLE, in time; on one host and between two."""

import os
import re
import signal

import namespaces
from namespaces import NamespaceCase, command

namespaces.need()

PORT, OTHER_PORT = 18900, 18901
NO_SUCH_SERVICE = 8
TIMED_OUT = -110
# A request is repeated every 6.1 s, 16 times in all: ../../docs/rdma-cm.md. Busy machines get a second on top.
NEXT_TRY_MS, ALL_TRIES_MS, SLACK_MS = 6144, 16 * 6144, 2500


class Listener(NamespaceCase):
    """Callers of 10.77.0.1 come from the other namespace; those of 127.0.0.1 from the same host."""

    def begin(self, where, *words):
        words = [command.EXTRA[0], *words]
        if where == "host":
            program = self.start("exec", "local", "--", *words)
            self.addCleanup(self.end, program)
            return program
        return self.start_on(1 if words[1] == "call" else 0, *words)

    @staticmethod
    def address(where):
        return {"host": "127.0.0.1", "IPv4": "10.77.0.1", "IPv6": "fd77::1"}[where]

    def listen(self, where, role, port=PORT):
        program = self.begin(where, role, self.address(where), port)
        self.assertEqual(program.stdout.readline(), "listening\n")
        return program

    def begin_call(self, where, limit_s=40):
        return self.begin(where, "call", self.address(where), PORT, limit_s)

    def kill(self, program):
        os.kill(program.pid, signal.SIGKILL)
        program.wait(command.PATIENCE_S)

    def hears(self, caller, event, status, least_ms, most_ms):
        said, complaint = caller.communicate(timeout=command.PATIENCE_S + most_ms / 1000)
        self.assertEqual(caller.returncode, 0, said + complaint)
        print(f"{self.id().rsplit('.')[-1]}: {said.strip()}")
        found = re.fullmatch(r"RDMA_CM_EVENT_(\w+) (-?\d+) after (\d+) ms", said.splitlines()[-1])
        self.assertTrue(found, said)
        self.assertEqual((found[1], int(found[2])), (event, status))
        self.assertLessEqual(int(found[3]), most_ms)
        self.assertGreaterEqual(int(found[3]), least_ms)

    def test_no_listener(self):
        self.up("line:2")
        for where in ("host", "IPv4", "IPv6"):
            with self.subTest(where):
                other = self.listen(where, "serve", OTHER_PORT)  # somebody has to be there to refuse
                self.hears(self.begin_call(where), "REJECTED", NO_SUCH_SERVICE, 0, SLACK_MS)
                self.kill(other)

    def test_listener_that_died_before_the_request(self):
        self.up("line:2")
        for where in ("host", "IPv4", "IPv6"):
            with self.subTest(where):
                other = self.listen(where, "serve", OTHER_PORT)
                self.kill(self.listen(where, "serve"))
                self.hears(self.begin_call(where), "REJECTED", NO_SUCH_SERVICE, 0, SLACK_MS)
                self.kill(other)

    def test_listener_that_dies_with_the_request_in_its_hands(self):
        self.up("line:2")
        callers = {}
        for where in ("host", "IPv4", "IPv6"):
            self.listen(where, "serve", OTHER_PORT)
            listener = self.listen(where, "hold")
            callers[where] = self.begin_call(where)
            self.assertEqual(listener.stdout.readline(), "request\n")
            self.kill(listener)
        for where, caller in callers.items():
            with self.subTest(where):  # over a network the next try shows it
                self.hears(caller, "REJECTED", NO_SUCH_SERVICE, 0, (0 if where == "host" else NEXT_TRY_MS) + SLACK_MS)

    def test_server_that_dies_with_a_connection(self):
        server = self.listen("host", "serve")
        caller = self.begin_call("host")
        self.assertRegex(caller.stdout.readline(), "ESTABLISHED 0")
        self.kill(server)
        self.hears(caller, "DISCONNECTED", 0, 0, NEXT_TRY_MS)

    def test_a_host_where_nobody_is_left(self):
        if "patient" not in command.EXTRA:
            self.skipTest("takes 98 s: with ctest -C soak")
        self.up("line:2")
        listener = self.listen("IPv4", "hold")
        early = self.begin_call("IPv4", 120)
        self.assertEqual(listener.stdout.readline(), "request\n")
        self.kill(listener)
        late = self.begin_call("IPv4", 120)
        for caller in (early, late):
            self.hears(caller, "UNREACHABLE", TIMED_OUT, ALL_TRIES_MS - SLACK_MS, ALL_TRIES_MS + 2 * SLACK_MS)


if __name__ == "__main__":
    namespaces.main()
