"""`run`: whole lines, true exit codes, and nobody left alive, however it ends."""

import os
import pathlib
import re
import signal

import command
from command import CommandCase, is_alive, wait_until


class Run(CommandCase):
    def setUp(self):
        super().setUp()
        self.call("up", "--emulate", "ring:4")
        self.addCleanup(self.call, "down", "--force")

    def sh(self, script, *options, **more):
        return self.call("run", *options, "--", "sh", "-c", script, **more)

    def start_sh(self, script, *options, **more):
        return self.start("run", *options, "--", "sh", "-c", script, **more)

    def test_one_process_per_node_prefixed(self):
        done = self.sh("echo $RINGBOLT_NODE of $RINGBOLT_NODES; echo oops >&2")
        self.assertEqual(sorted(done.stdout.splitlines()), [f"n{k} | {k} of 4" for k in range(4)])
        self.assertEqual(sorted(done.stderr.splitlines()), [f"n{k} | oops" for k in range(4)])

    def test_prefix_depends_on_count_and_options(self):
        self.assertEqual(self.sh("echo hi", "--node", "2").stdout, "hi\n")
        self.assertEqual(self.sh("echo hi", "--node", "n2", "--tag").stdout, "n2 | hi\n")
        self.assertEqual(self.sh("echo hi", "--nodes", "3,1", "--no-tag").stdout, "hi\n" * 2)

    def test_lines_are_not_torn(self):
        script = "for i in $(seq 300); do printf a; printf \"b$i\"; printf 'c\\n'; done; printf end"
        done = self.sh(script)
        for node in range(4):
            mine = [line for line in done.stdout.splitlines() if line.startswith(f"n{node} | ")]
            self.assertEqual(mine, [f"n{node} | ab{i}c" for i in range(1, 301)] + [f"n{node} | end"])

    def test_much_output_arrives_whole(self):
        done = self.sh("seq 100000", "--nodes", "0,1", "--no-tag")
        self.assertEqual(len(done.stdout.splitlines()), 200_000)

    def test_arguments_arrive_as_given(self):
        done = self.call("run", "--node", "0", "--", "printf", "[%s]", "--json", "", "a b", "--", "-c")
        self.assertEqual(done.stdout, "[--json][][a b][--][-c]\n")

    def test_stdin_is_empty(self):
        self.assertEqual(self.sh("cat", "--node", "0").stdout, "")

    def test_exit_code_is_that_of_the_first_failure(self):
        done = self.sh("exit $((RINGBOLT_NODE == 2 ? 7 : 0))", expect=7)
        self.assertRegex(done.stderr, r"node n2 \(pid \d+\) exited with 7")
        done = self.sh("test $RINGBOLT_NODE != 1 || kill -ABRT $$", expect=128 + signal.SIGABRT)
        self.assertIn("was killed by signal 6", done.stderr)

    def test_a_failure_ends_the_others(self):
        script = "test $RINGBOLT_NODE != 1 || exit 3; exec sleep 1000"
        done = self.sh(script, expect=3)
        self.assertIn("5 s after the failure", done.stderr)

    def test_keep_going_lets_the_others_finish(self):
        fifo = self.root / "gate"
        os.mkfifo(fifo)
        script = f"test $RINGBOLT_NODE != 0 || exit 3; read line < {fifo}; echo done"
        running = self.start_sh(script, "--nodes", "0,1", "--keep-going")
        self.assertIn("exited with 3", running.stderr.readline())
        with open(fifo, "w", encoding="ascii") as gate:
            gate.write("go\n")
        out, _ = running.communicate(timeout=command.PATIENCE_S)
        self.assertEqual((out, running.returncode), ("n1 | done\n", 3))

    def test_time_limit_names_and_kills(self):
        done = self.sh("trap '' TERM; echo $$; sleep 1000 & echo $!; wait; wait", "--nodes", "0,3", "--timeout", "0.3",
                       expect=124)
        self.assertRegex(done.stderr, r"time limit of 0\.3 s reached; ending node n0 \(pid \d+\), node n3 \(pid \d+\)")
        self.all_gone(done.stdout, 4)

    def all_gone(self, said, count):
        pids = [int(pid) for pid in re.findall(r"(\d+)$", said, re.MULTILINE)]
        self.assertEqual(len(pids), count, said)
        for pid in pids:
            wait_until(lambda pid=pid: not is_alive(pid), f"{pid} is gone")

    def signalled(self, number, script, lines):
        running = self.start_sh(script)
        said = "".join(running.stdout.readline() for _ in range(lines))
        running.send_signal(number)
        rest, _ = running.communicate(timeout=command.PATIENCE_S)
        return said + rest, running.returncode

    def test_signals_end_whole_groups(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                said, code = self.signalled(number, "sleep 1000 & echo $!; echo $$; wait", 8)
                self.assertEqual(code, 128 + number)
                self.all_gone(said, 8)

    def test_signals_end_also_the_stubborn(self):
        said, code = self.signalled(signal.SIGTERM, "trap '' TERM INT; echo $$; while :; do sleep 1; done", 4)
        self.assertEqual(code, 128 + signal.SIGTERM)
        self.all_gone(said, 4)

    def test_signals_end_also_the_stopped(self):
        said, code = self.signalled(signal.SIGTERM, "echo $$; kill -STOP $$", 4)
        self.assertEqual(code, 128 + signal.SIGTERM)
        self.all_gone(said, 4)

    def test_background_processes_end_with_their_leader(self):
        done = self.sh("sleep 1000 & echo $!")
        self.all_gone(done.stdout, 4)

    def test_killed_run_takes_its_programs_along(self):
        running = self.start_sh("echo $$; exec sleep 1000")
        said = "".join(running.stdout.readline() for _ in range(4))
        running.kill()
        running.communicate(timeout=command.PATIENCE_S)
        self.all_gone(said, 4)

    def test_reader_that_goes_away_ends_the_run(self):
        running = self.start_sh("echo $$ >&2; while :; do echo y; done")
        said = "".join(running.stderr.readline() for _ in range(4))
        running.stdout.close()
        running.wait(timeout=command.PATIENCE_S)
        running.stderr.close()
        self.assertEqual(running.returncode, 128 + signal.SIGPIPE)
        self.all_gone(said, 4)

    def test_reader_that_sleeps_does_not_break_the_time_limit(self):
        running = self.start_sh("while :; do echo y; done", "--timeout", "0.5")
        running.wait(timeout=command.PATIENCE_S)
        self.assertEqual(running.returncode, 124)
        running.communicate()

    def test_nothing_is_started_if_one_can_not_be(self):
        self.refused("run", "--", str(self.root), says=["can't start", str(self.root)])


class Emulated(CommandCase):
    """`run --emulate`: a cluster for one run, which is gone however that ends."""

    def nothing_is_up(self):
        self.assertIn("no cluster is up", self.call("status", expect=None).stdout)

    def started(self):
        running = self.start("run", "--emulate", "ring:3", "--", "sh", "-c", "echo up; exec sleep 1000")
        self.addCleanup(running.communicate)
        self.addCleanup(running.kill)
        for _ in range(3):
            running.stdout.readline()
        return running

    def test_runs_with_profile_and_faults_and_is_gone(self):
        done = self.call("run", "--emulate", "ring:3", "--like", "tn3205", "--fault", "completion-error 1% status 12", "--fault",
                         "rnr 1%", "--node", "1", "--", "sh", "-c", "ibv_devices; ringbolt fault list", env={"PATH": self.with_command()})
        self.assertIn("rdma_en2", done.stdout)
        self.assertIn("completion-error", done.stdout)
        self.assertIn("rnr", done.stdout)
        self.nothing_is_up()
        self.call("run", "--emulate", "line:2", "--", "false", expect=1)
        self.call("run", "--emulate", "line:2", "--timeout", "0.5", "--", "sleep", "1000", expect=124)
        self.nothing_is_up()

    def with_command(self):
        return f"{pathlib.Path(command.RINGBOLT).parent}:{os.environ['PATH']}"

    def test_is_gone_when_interrupted(self):
        running = self.started()
        running.send_signal(signal.SIGTERM)
        running.wait(timeout=command.PATIENCE_S)
        self.nothing_is_up()

    def test_what_a_killed_one_leaves_the_next_one_removes(self):
        running = self.started()
        running.kill()
        running.wait()
        self.assertIn(f"run-{running.pid}", self.call("status", expect=None).stdout)
        self.call("run", "--emulate", "line:2", "--", "true")
        self.nothing_is_up()

    def test_refusals_leave_nothing(self):
        self.call("run", "--emulate", "line:2", "--", "true")  # makes the folder of clusters, which stays
        self.refused("run", "--emulate", "circle:3", "--", "true", says=["is no topology"])
        self.refused("run", "--emulate", "ring:3", "--fault", "nonsense", "--", "true", says=["is no fault"])
        self.refused("run", "--fault", "rnr 1%", "--", "true", says=["--emulate"])
        self.refused("run", "--emulate", "ring:3", "--node", "7", "--", "true", says=["7"])
        self.refused("up", "--emulate", "ring:3", "--name", "run-7", says=["another --name"])


if __name__ == "__main__":
    command.main()
