"""The test equipment itself: what it must notice, it notices; what it must end, ends."""

from __future__ import annotations

import fcntl
import os
import pathlib
import socket
import sys
import tempfile
import time
import unittest

from perftest import clocks_missed, table, table_problems
from perftest_grid import Cell, cells

from harness import leaks
from harness.ports import free_port, wait_listening
from harness.processes import Child, run, session_members

_ENV = dict(os.environ)
_PYTHON = sys.executable

_BANDWIDTH = """
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]
 2          500              3.12               2.98                 1.562
 4          500              0.00               0.00                 1.100
---------------------------------------------------------------------------------------
"""
_LATENCY = """
 local address: LID 0000 QPN 0x0011 PSN 0x9f
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99%   99.9%
 2       500          1.00           9.00         1.25             1.30             0.20            2.00  9.00
"""


class Processes(unittest.TestCase):
    def test_output_and_exit_code_are_kept(self) -> None:
        done = run(["sh", "-c", "echo out; echo err >&2; exit 3"], _ENV, 10)
        self.assertEqual((done.returncode, done.output, done.timed_out), (3, "out\nerr\n", False))

    def test_limit_ends_the_whole_session(self) -> None:
        child = Child(["sh", "-c", "sleep 600 & sleep 600"], _ENV)
        done = child.wait(0.2)
        self.assertTrue(done.timed_out)
        self.assertEqual(session_members(child.pid), [])
        self.assertIn("time limit", done.describe())

    def test_descendants_of_a_leader_that_ended_are_ended_too(self) -> None:
        child = Child(["sh", "-c", "sleep 600 & exit 0"], _ENV)
        self.assertTrue(child.wait(10).ok)
        self.assertEqual(session_members(child.pid), [])


class Ports(unittest.TestCase):
    def test_listener_of_the_session_is_seen(self) -> None:
        port = free_port()
        program = f"import socket, time; s = socket.create_server(('', {port})); time.sleep(60)"
        child = Child([_PYTHON, "-c", program], _ENV)
        self.assertTrue(wait_listening(child, port, 20))
        child.kill()

    def test_listener_of_somebody_else_does_not_count(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            child = Child(["sleep", "60"], _ENV)
            self.assertFalse(wait_listening(child, other.getsockname()[1], 0.05))
            child.kill()

    def test_end_of_the_server_ends_the_wait(self) -> None:
        self.assertFalse(wait_listening(Child(["true"], _ENV), free_port(), 20))


class Leaks(unittest.TestCase):
    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rb-")
        self.addCleanup(self._folder.cleanup)
        self.runtime = pathlib.Path(self._folder.name)
        self.slots = self.runtime / "default" / "slots"
        self.slots.mkdir(parents=True)

    def test_clean_folder_has_no_complaints(self) -> None:
        self.assertEqual(leaks.complaints(self.runtime, leaks.shared_memory_files()), [])

    def test_left_over_process_is_named_and_killed(self) -> None:
        child = Child(["sleep", "600"], dict(_ENV, RINGBOLT_RUNTIME_DIR=str(self.runtime)))
        deadline = time.monotonic() + 20  # a process that has just called exec shows no environment for a moment
        while child.pid not in leaks.processes_using(self.runtime) and time.monotonic() < deadline:
            time.sleep(0.01)
        found = leaks.complaints(self.runtime, leaks.shared_memory_files())
        self.assertIn(str(child.pid), found[0])
        child.kill()

    def test_slot_of_the_dead_may_stay_but_a_held_one_may_not(self) -> None:
        lock = self.slots / "0.lock"
        lock.touch()
        before = leaks.shared_memory_files()
        self.assertEqual(len(leaks.complaints(self.runtime, before)), 1)
        self.assertEqual(leaks.complaints(self.runtime, before, slots_may_stay=True), [])
        with open(lock, "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assertEqual(len(leaks.complaints(self.runtime, before, slots_may_stay=True)), 1)


class PerftestTable(unittest.TestCase):
    @staticmethod
    def cell(program: str, rows: int) -> Cell:
        return Cell(program, "RC", "plain", (), rows, True)

    def test_rows_are_read(self) -> None:
        self.assertEqual([row[0] for row in table(_BANDWIDTH)], [2, 4])
        self.assertEqual(table(_LATENCY)[0][4], 1.25)

    def test_rounded_bandwidth_with_a_message_rate_is_alive(self) -> None:
        self.assertEqual(table_problems(self.cell("ib_send_bw", 2), table(_BANDWIDTH), 0), [])

    def test_missing_rows_and_dead_figures_are_found(self) -> None:
        self.assertEqual(len(table_problems(self.cell("ib_send_bw", 3), table(_BANDWIDTH), 0)), 1)
        self.assertEqual(len(table_problems(self.cell("ib_send_bw", 1), [[2, 5, 0, 0, 0]], 0)), 1)
        self.assertEqual(len(table_problems(self.cell("ib_send_lat", 1), [[2, 5, 0, 0, 0, 0, 0]], 0)), 1)
        self.assertEqual(len(table_problems(self.cell("ib_send_lat", 1), [], 0)), 1)

    def test_figures_that_perftest_could_not_compute_are_no_fault_of_the_device(self) -> None:
        output = "Correlation coefficient r^2: 0.87 < 0.9\n" + _LATENCY + " 4 500 inf inf inf inf -nan inf inf\n"
        rows = table(output)
        self.assertEqual((len(rows), clocks_missed(output)), (2, 1))
        self.assertEqual(table_problems(self.cell("ib_send_lat", 2), rows, clocks_missed(output)), [])
        self.assertEqual(len(table_problems(self.cell("ib_send_lat", 2), rows, 0)), 1)

    def test_a_complaint_in_the_middle_of_a_row_hides_no_row(self) -> None:
        complaint = "Correlation coefficient r^2: 0.826025 < 0.9"
        self.assertEqual(table(_LATENCY.rstrip("\n") + complaint + "\n\n"), table(_LATENCY))

    def test_grid_has_no_cell_twice(self) -> None:
        commands = [tuple(cell.command("d", 1)) for cell in cells()]
        self.assertEqual(len(commands), len(set(commands)))


if __name__ == "__main__":
    unittest.main()
