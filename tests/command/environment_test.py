"""`env`, `exec` and `run` put a program on its node in the same way, and `env` is safe to eval."""

import json
import os
import pathlib
import subprocess

import command
from command import CommandCase

SHOW = "env | grep -E '^(RINGBOLT|LD)_' | sort"


class Environment(CommandCase):
    def setUp(self):
        super().setUp()
        self.call("up", "--emulate", "ring:4")
        self.addCleanup(self.call, "down", "--force", "--cluster", "ring4")

    def shown(self, *words):
        return self.call(*words, "--", "sh", "-c", SHOW).stdout

    def evaluated(self, *nodes):
        lines = [f'eval "$("{command.RINGBOLT}" env {node})"' for node in nodes]
        done = subprocess.run(["sh", "-ec", "\n".join([*lines, SHOW])], text=True, env=command.sanitizer_first(self.environment),
                              capture_output=True, check=True)
        return done.stdout

    def test_exec_run_and_env_agree(self):
        by_exec = self.shown("exec", "2")
        self.assertEqual(self.shown("run", "--node", "2"), by_exec)
        self.assertEqual(self.evaluated("2"), by_exec)
        self.assertEqual(self.shown("exec", "n2"), by_exec)

    def test_tells_node_and_neighbours(self):
        shown = dict(line.split("=", 1) for line in self.shown("exec", "3").splitlines())
        expected = {"RINGBOLT_CLUSTER": "ring4", "RINGBOLT_NODE": "3", "RINGBOLT_NODES": "4",
                    "RINGBOLT_ADDR_0": "127.77.0.3", "RINGBOLT_DEVICE_0": "rdma_en2",
                    "RINGBOLT_ADDR_2": "127.77.2.2", "RINGBOLT_DEVICE_2": "rdma_en3",
                    "RINGBOLT_RUNTIME_DIR": str(self.root)}
        self.assertEqual({name: shown.get(name) for name in expected}, expected)
        self.assertNotIn("RINGBOLT_ADDR_1", shown)
        libraries = pathlib.Path(command.RINGBOLT).resolve().parent.parent / "lib/ringbolt"
        self.assertEqual(shown["LD_LIBRARY_PATH"], str(libraries))
        before = os.environ.get("SANITIZER_RUNTIME")
        self.assertEqual(shown["LD_PRELOAD"], ":".join(filter(None, [before, str(libraries / "libringbolt-paths.so")])))

    def test_moving_on_leaves_nothing_of_the_old_node(self):
        self.assertEqual(self.evaluated("0", "2"), self.evaluated("2"))
        self.assertEqual(self.evaluated("2", "local"), self.evaluated("local"))

    def test_local_is_outside_the_cluster(self):
        names = [line.split("=")[0] for line in self.shown("exec", "local").splitlines()]
        self.assertEqual(names, ["LD_LIBRARY_PATH", "LD_PRELOAD", "RINGBOLT_RUNTIME_DIR", "RINGBOLT_SYSROOT"])

    def test_own_library_paths_stay_behind_ours(self):
        done = self.call("env", "0", "--json", env={"LD_LIBRARY_PATH": "/a::/b", "LD_PRELOAD": ""})
        self.assertRegex(json.loads(done.stdout)["set"]["LD_LIBRARY_PATH"], r"/lib/ringbolt:/a:/b$")

    def test_values_are_quoted(self):
        odd = self.root / "o'd $(x) \"d"
        odd.mkdir(mode=0o700)
        self.environment["RINGBOLT_RUNTIME_DIR"] = str(odd)
        self.call("up", "--emulate", "loop")
        self.assertIn(f"RINGBOLT_RUNTIME_DIR={odd}\n", self.evaluated("0"))
        self.call("down")
        self.environment["RINGBOLT_RUNTIME_DIR"] = str(self.root)

    def test_odd_variables_are_said_once(self):
        for name, value, says in (("RINGBOLT_LOG", "verbose", "RINGBOLT_LOG=verbose: give one of quiet, debug"),
                                  ("RINGBOLT_CRC", "maybe", "RINGBOLT_CRC=maybe: give one of on, off, every"),
                                  ("RINGBOLT_GROUP_PORT", "99999", "RINGBOLT_GROUP_PORT=99999: give a whole number from 1 to 65535"),
                                  ("RINGBOLT_LIKE", "toaster", "RINGBOLT_LIKE=toaster: "),
                                  ("RINGBOLT_FAULTS", "lsos 1%", "RINGBOLT_FAULTS: "),
                                  ("RINGBOLT_CLUTSER", "x", "did you mean RINGBOLT_CLUSTER?")):
            for words in (["status"], ["run", "--node", 0, "--", "true"]):
                with self.subTest(name=name, words=words):
                    said = self.call(*words, env={name: value}).stderr
                    self.assertEqual(said.count(says), 1, said)
        self.assertEqual(self.call("status", env={"RINGBOLT_LOG": "debug", "RINGBOLT_MINE": "1"}).stderr, "")

    def test_programs_say_odd_variables_once(self):
        """The library looks again and again; the command has taken away what it has said already."""
        program = "import ctypes; v = ctypes.CDLL('libibverbs.so.1'); [v.ibv_get_device_list(None) for _ in range(3)]"
        for inside in ((), ("env", "RINGBOLT_LOG=verbose")):
            done = self.call("exec", "local", "--", *inside, "python3", "-c", program, env={} if inside else {"RINGBOLT_LOG": "verbose"})
            self.assertEqual(done.stderr.count("RINGBOLT_LOG=verbose"), 1, done.stderr)

    def test_exec_is_the_program(self):
        done = self.start("exec", "0", "--", "sh", "-c", "echo $$; exit 9")
        out, _ = done.communicate(timeout=command.PATIENCE_S)
        self.assertEqual((int(out), done.returncode), (done.pid, 9))

    def test_exec_passes_stdin_on(self):
        read, write = os.pipe()
        os.write(write, b"word\n")
        os.close(write)
        done = subprocess.run([command.RINGBOLT, "exec", "0", "--", "cat"], env=self.environment, stdin=read,
                              capture_output=True, check=True)
        os.close(read)
        self.assertEqual(done.stdout, b"word\n")


if __name__ == "__main__":
    command.main()
