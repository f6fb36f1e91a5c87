"""`status`, and `run` at its time limit: whose program died and how, and which stand still behind what."""

import json
import re
import signal

import command
from command import CommandCase, wait_until

# Opens its device, and then waits for events that don't come.
WAITER = "exec ibv_asyncwatch -d rdma_en2"


class Status(CommandCase):
    """In a ring rdma_en2 leads to the next node."""

    def setUp(self):
        super().setUp()
        self.call("up", "--emulate", "ring:4")
        self.addCleanup(self.call, "down", "--force")

    def start_run(self, script, *options):
        run = self.start("run", *options, "--", "sh", "-c", script)
        self.addCleanup(self.end, run)
        return run

    @staticmethod
    def end(run):
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=command.PATIENCE_S)

    def seen(self):
        return json.loads(self.call("status", "--json", expect=None).stdout)["clusters"][0]

    def states(self):
        """By node: all waiters, once they have been looked at twice."""
        return {one.get("node"): one.get("state") for one in self.seen()["running"]}

    def await_states(self, **expected):
        wait_until(lambda: self.states() == expected, f"status says {expected}")

    def test_programs_that_nothing_holds_up_are_idle_and_no_problem(self):
        self.start_run(WAITER, "--nodes", "0,1")
        self.await_states(n0="idle", n1="idle")
        done = self.call("status")
        self.assertRegex(done.stdout, r"n0 +\d+ ibv_asyncwatch +idle")
        self.assertEqual(done.stderr, "")

    def test_a_cut_cable_is_named_by_who_stands_still_behind_it(self):
        self.start_run(WAITER, "--nodes", "0,1,2")
        self.await_states(n0="idle", n1="idle", n2="idle")
        self.call("cut", "1-2")
        done = self.call("status", expect=1)
        cable = r"cable 1 \(n1:rdma_en2 - n2:rdma_en3\) is cut"
        self.assertRegex(done.stderr, rf"node n1's ibv_asyncwatch \(pid \d+\) moves nothing: {cable}")
        self.assertRegex(done.stderr, rf"node n0's ibv_asyncwatch \(pid \d+\) moves nothing: {cable}")
        self.assertRegex(done.stdout, rf"n1 +\d+ ibv_asyncwatch +stalled +{cable}")
        self.assertEqual(self.states(), {"n0": "stalled", "n1": "stalled", "n2": "idle"})

    def test_whose_program_died_and_how_while_the_others_go_on(self):
        run = self.start_run(f"test $RINGBOLT_NODE != 3 || kill -ABRT $$; {WAITER}", "--nodes", "0,2,3", "--keep-going")
        self.assertIn("killed by signal 6", run.stderr.readline())
        self.await_states(n0="idle", n2="stalled")
        died = self.seen()["died"]
        self.assertEqual([(one["node"], one["how"], one["run_is_over"]) for one in died],
                         [("n3", "was killed by signal 6 (Aborted)", False)])
        done = self.call("status", expect=1)
        self.assertRegex(done.stderr, r"node n3's sh \(pid \d+\) was killed by signal 6 \(Aborted\); the others")
        self.assertRegex(done.stderr, r"n2's ibv_asyncwatch \(pid \d+\) moves nothing: node n3's sh \(pid \d+\) was killed")
        self.assertRegex(done.stdout, r"n3 +\d+ sh +died +was killed by signal 6 \(Aborted\) \d+ s ago")

    def test_how_the_last_run_failed_is_known_until_the_next(self):
        self.call("run", "--", "sh", "-c", "exit $((RINGBOLT_NODE == 1 ? 7 : 0))", expect=7)
        done = self.call("status")  # that was then; nothing is wrong now
        self.assertRegex(done.stdout, r"n1 +\d+ sh +died +exited with 7 \d+ s ago")
        self.call("run", "--", "true")
        self.assertEqual(self.seen()["died"], [])
        self.assertEqual([path for path in self.state_files() if "/runs" in path], [])

    def test_a_killed_run_leaves_nothing_that_counts(self):
        run = self.start_run(WAITER, "--nodes", "0")
        self.await_states(n0="idle")
        run.kill()
        run.wait(timeout=command.PATIENCE_S)
        wait_until(lambda: not self.seen()["running"], "its program has ended")
        self.assertEqual(self.seen()["died"], [])
        self.call("run", "--", "true")
        self.assertEqual([path for path in self.state_files() if "/runs" in path], [])

    def test_a_scribbled_record_is_passed_over(self):
        runs = self.root / "clusters/ring4/runs"
        runs.mkdir(mode=0o700)
        for name, text in {"1": "", "2": "\0" * 100, "3": "ringbolt-run 1 x\nend n1 x", "4": "ringbolt-run 1 x\nend n1 5 9 half",
                           "5": "ringbolt-run 2 x\nend n1 5 9 new\n"}.items():
            (runs / name).write_text(text)
        self.assertEqual(self.seen()["died"], [])

    def test_run_says_before_its_time_limit_ends_it_who_stands_still(self):
        self.call("cut", "1-2")
        done = self.call("run", "--nodes", "1,3", "--timeout", "4", "--", "sh", "-c", WAITER, expect=124)
        lines = re.findall(r"^ringbolt run: (.*)$", done.stderr, re.MULTILINE)
        self.assertRegex(lines[0], r"node n1's ibv_asyncwatch \(pid \d+\) moves nothing: cable 1 \(n1:rdma_en2 - n2:rdma_en3\)")
        self.assertRegex(lines[1], r"node n3's ibv_asyncwatch \(pid \d+\) moves nothing, and no cut cable or failed program")
        self.assertIn("time limit of 4 s reached", lines[2])

    def test_an_exit_code_that_stands_for_a_signal_is_said_to(self):
        done = self.call("run", "--node", "0", "--", "sh", "-c", "exit 139", expect=139)
        self.assertIn("exited with 139, as after signal 11 (Segmentation fault)", done.stderr)


if __name__ == "__main__":
    command.main()
