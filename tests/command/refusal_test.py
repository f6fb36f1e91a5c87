"""Wrong usage and bad input: exit code 2, a message that names the thing and the remedy, nothing half-made."""

import json
import os
import resource
import pathlib
import shutil
import signal
import subprocess
import sys

import command
from command import CommandCase

GOOD = {"ringbolt": 1, "name": "c",
        "nodes": [{"name": "a", "ports": ["p", "q"]}, {"name": "b", "ports": ["p", "q"]}],
        "cables": [{"between": ["a:p", "b:p"]}]}


def changed(**fields):
    return json.dumps(GOOD | fields)


class Refusal(CommandCase):
    def test_usage(self):
        self.refused(says=["a command is missing"])
        self.refused("fly", says=["fly"])
        self.refused("up", says=["--emulate or --hosts is required"])
        self.refused("up", "--emulate", "ring:4", "--colour", "red", says=["--colour"])
        self.refused("up", "--emulate", "ring:4", "--", "ls", says=["takes no command"])
        self.refused("run", says=["say what to run, after --"])
        self.refused("run", "--", says=["say what to run, after --"])
        self.refused("exec", "0", says=["say what to run, after --"])
        self.refused("exec", "--", "ls", says=["NODE is missing"])
        self.refused("matrix", "--size", "3", says=["--size"])

    def test_empty_values_are_not_absent_ones(self):
        self.refused("up", "--emulate", "ring:4", "--name", "", says=["--name", "empty"])
        self.refused("hostfile", "--check", "", says=["--check", "empty"])

    def test_no_number_is_in_no_range(self):
        for words in (["matrix", "--timeout"], ["matrix", "--seconds"], ["map", "--interval"], ["plan", "-n", 4, "-p", 2, "--alpha"],
                      ["perf", "send", "--duration"], ["verify", "--duration"], ["bench", "barrier", "--timeout"]):
            for number in ("nan", "-nan", "inf"):
                self.refused(*words, number, says=["give a number from"])

    def test_output_that_cannot_be_written_is_told(self):
        with self.cluster("ring:3"):
            for words in (["plan", "-n", 4, "-p", 2], ["status", "--json"], ["devices", "--json"], ["fault", "list", "--json"],
                          ["map", "--once", "--json", "--interval", 0.05], ["env", 0], ["--help"], ["run", "--", "echo", "word"]):
                with self.subTest(words), open("/dev/full", "w") as full:
                    done = subprocess.run([command.RINGBOLT, *map(str, words)], env=self.environment, stdout=full,
                                          stderr=subprocess.PIPE, text=True, timeout=command.PATIENCE_S, check=False)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn("output can't be written", done.stderr)

    def test_cables_between_names_with_dashes(self):
        nodes = [{"name": name, "ports": ["p", "q"]} for name in ("a", "a-b", "b-c", "c")]
        path = self.root / "dashes.json"
        path.write_text(json.dumps({"ringbolt": 1, "name": "d", "nodes": nodes, "cables": [
            {"between": ["a:p", "b-c:p"]}, {"between": ["a-b:p", "c:p"]}, {"between": ["a:q", "a-b:q"]}]}))
        with self.cluster(path, None):
            self.refused("cut", "a-b-c", says=["a:p-b-c:p", "a-b:p-c:p", "numbers"])
            self.refused("cut", "0:-1", says=["names no port"])
            self.call("cut", "a:p-b-c")
            self.call("cut", "a-a-b")

    def test_a_reading_with_rails_counts_as_one(self):
        nodes = [{"name": name, "ports": ["p", "q"]} for name in ("a", "a-b", "b-c", "c")]
        path = self.root / "rails.json"
        path.write_text(json.dumps({"ringbolt": 1, "name": "d", "nodes": nodes, "cables": [
            {"between": ["a:p", "b-c:p"]}, {"between": ["a:q", "b-c:q"]}, {"between": ["a-b:p", "c:p"]}]}))
        with self.cluster(path, None):
            self.refused("cut", "a-b-c", says=["a:p-b-c:p", "a:q-b-c:q", "a-b:p-c:p", "numbers"])

    def test_help_and_version_are_no_errors(self):
        self.assertRegex(self.call("--version").stdout, r"^ringbolt \d+\.\d+\.\d+\n$")
        commands = ["up", "down", "status", "devices", "run", "exec", "env", "matrix", "cut", "heal"]
        for words in [[], *([one] for one in commands)]:
            self.assertIn("Example", self.call(*words, "--help").stdout)

    def test_topologies(self):
        self.refused("up", "--emulate", "cube:3", says=["\"cube:3\"", "known are mesh:N"])
        self.refused("up", "--emulate", "ring:1", says=["\"ring:1\"", "whole number from 2 to 250"])
        self.refused("up", "--emulate", "ring:4", "--name", "../x", says=["\"../x\" is no name for a cluster"])
        self.refused("up", "--emulate", "ring:4", "--name", "x" * 33, says=["is no name for a cluster"])

    def test_cluster_files(self):
        path = self.root / "c.json"
        cases = {
            "": "there is nothing in it",
            "{": "ends in the middle, after 1 bytes",
            changed(cables=[{"between": ["a:p", "b:z"]}]): "node b has no port \"z\" (it has p, q)",
            changed(cables=[{"between": ["a:p", "7:p"]}]): "node \"7\" is out of range",
            changed(cables=[{"between": ["a:p", "b:p"]}, {"between": ["a:p", "b:q"]}]): "has cable 0 already",
            changed(cables=[]): "cables",
            changed(nodes=[{"name": "a", "ports": []}] * 2): "named twice",
            changed(colour="red"): "unknown field \"colour\"",
            "[" * 100_000: "nested deeper",
            changed(name="\x1b[2J"): "is not 1 to 32",
        }
        for text, says in cases.items():
            with self.subTest(says):
                path.write_text(text)
                done = self.refused("up", "--emulate", path, says=[str(path), says])
                self.assertNotIn("\x1b", done.stderr)

    def test_what_is_no_file(self):
        self.refused("up", "--emulate", "no/such.json", says=["no/such.json", "No such file"])
        self.refused("up", "--emulate", str(self.root), says=[str(self.root)])
        fifo = self.root / "c.json"
        os.mkfifo(fifo)
        self.refused("up", "--emulate", fifo, says=["regular file"])
        self.refused("up", "--emulate", "/dev/zero", says=["/dev/zero"])

    def test_nodes_cables_and_clusters(self):
        with self.cluster("line:3"):
            self.refused("env", "3", says=["no node \"3\"", "0 to 2 (n0 to n2)"])
            self.refused("run", "--nodes", "0,9", "--", "true", says=["no node \"9\""])
            self.refused("run", "--nodes", "0,n0", "--", "true", says=["given twice"])
            self.refused("run", "--timeout", "0", "--", "true", says=["--timeout"])
            self.refused("run", "--", "./no-such-program", says=["./no-such-program", "No such file"])
            self.refused("exec", "0", "--", "./no-such-program", says=["./no-such-program", "No such file"])
            self.refused("cut", "0-2", says=["no cable joins n0 and n2", "n0:rdma_en2-n1:rdma_en2"])
            self.refused("cut", "0", says=["\"0\" is no cable", "1-2"])
            self.refused("cut", "0-9", says=["no node \"9\""])
            self.refused("heal", "0:rdma_en9-1:rdma_en2", says=["between these nodes are"])
            self.refused("devices", "--cluster", "ring9", says=["\"ring9\" is not up (up: line3"])
            self.refused("devices", env={"RINGBOLT_CLUSTER": "ring9"}, says=["from RINGBOLT_CLUSTER"])
        self.refused("run", "--", "true", says=["no cluster is up", "ringbolt up"])
        self.refused("down", says=["no cluster is up"])

    def test_what_is_no_program(self):
        text = self.root / "text"
        text.write_text("no program")
        blob = self.root / "blob"
        blob.write_bytes(b"\x7fNOT")
        blob.chmod(0o755)
        script = self.root / "script"
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o755)
        for path, says in ((text, f"chmod +x {text}"), (blob, "no program for this machine"), (script, "interpreter"),
                           (self.root, "it is a folder"), ("/etc/passwd", "may not be executed"),
                           ("./nothing", "is the path right?"), ("no-such-program", "installed and on PATH?")):
            if os.geteuid() == 0 or path != "/etc/passwd":
                self.refused("exec", "local", "--", str(path), says=["can't start", says])
        with self.cluster("line:2"):
            self.refused("run", "--", str(blob), says=["can't start", "no program for this machine"])
        # A text without an interpreter's line is the shell's.
        text.write_text("echo it was $0 with $1")
        text.chmod(0o755)
        self.assertEqual(self.call("exec", "local", "--", text, "that").stdout, f"it was {text} with that\n")
        path = {"PATH": f"{self.root}:{os.environ['PATH']}"}
        self.assertEqual(self.call("exec", "local", "--", "text", "this", env=path).stdout, f"it was {text} with this\n")

    def test_names_from_files(self):
        for name, cluster in (("\u00fc 3.json", "3"), ("\u00fc.json", "cluster"), (".-x y.json", "x-y")):
            path = self.root / name
            path.write_text(json.dumps({key: value for key, value in GOOD.items() if key != "name"}))
            self.assertIn(f"cluster {cluster} is up", self.call("up", "--emulate", path).stdout)
            self.call("down")

    def test_clusters_that_are_not_up(self):
        self.refused("env", "0", env={"RINGBOLT_CLUSTER": "x"}, says=["from RINGBOLT_CLUSTER", "unset", "--name x"])
        with self.cluster("line:3"):
            self.refused("env", "0", "--cluster", "lin3", says=["did you mean line3?"])
            program = [sys.executable, "-c", "import ctypes; ctypes.CDLL('libibverbs.so.1').ibv_get_device_list(None)"]
            for variable, says in (("RINGBOLT_CLUSTER=x", "no cluster of this name is up"), ("RINGBOLT_NODE=7", "has no such node")):
                said = self.call("exec", 0, "--", "env", variable, *program).stderr
                self.assertIn(says, said)
                self.assertIn(variable, said)

    def test_chances_and_modes(self):
        with self.cluster("line:2"):
            self.refused("fault", "add", "completion-error", "200%", says=["completion-error takes a chance from 0% to 100%"])
            self.refused("fault", "add", "completion-error", "-1%", says=["chance"])
        self.refused("verify", "strem", says=["neither a mode (stream, write, read, atomic, churn, soak) nor a host", "did you mean stream?"])

    def test_many_cables_are_not_all_listed(self):
        with self.cluster("mesh:20"):
            self.assertLess(len(self.call("status").stdout.splitlines()), 10)
            self.assertIn("190 of 190 cables are up", self.call("status").stdout)
            self.assertGreater(len(self.call("status", "--all").stdout.splitlines()), 190)
            self.call("cut", "3-7")
            self.assertRegex(self.call("status").stdout, r"189 of 190 cables[^\0]*n3:\S+ +n7:\S+ .*cut\n")
        with self.cluster("ring:4"):
            self.assertEqual(self.call("status").stdout, self.call("status", "--all").stdout)

    def test_parallel_cables_need_ports(self):
        with self.cluster("ring:2"):
            self.refused("cut", "0-1", says=["2 cables fit", "n0:rdma_en2-n1:rdma_en3", "n1:rdma_en2-n0:rdma_en3"])
            self.assertIn("cable 1", self.call("cut", "0:rdma_en3-1:rdma_en2").stdout)

    def test_runtime_folder(self):
        loose = self.root / "loose"
        loose.mkdir()
        loose.chmod(0o755)
        for path, says in {"relative": "absolute path", str(self.root / "a/b"): "set RINGBOLT_RUNTIME_DIR",
                           str(loose): f"chmod 700 {loose}", "/proc/version": "is no folder"}.items():
            with self.subTest(path):
                self.refused("up", "--emulate", "ring:4", env={"RINGBOLT_RUNTIME_DIR": path}, says=[says])
        link = self.root / "link"
        link.symlink_to(self.root)
        self.refused("status", env={"RINGBOLT_RUNTIME_DIR": str(link)}, says=["is a symbolic link"])

    def test_full_disk(self):
        """A limit on file sizes refuses like a full file system, at a point of our choice."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        self.call("status")
        (self.root / "clusters").mkdir(mode=0o700)
        self.refused("up", "--emulate", "mesh:20", says=["File too large"], preexec_fn=limit)
        self.call("up", "--emulate", "mesh:20")

    def test_missing_libraries(self):
        built = pathlib.Path(command.RINGBOLT)
        alone = self.root / "bin"
        alone.mkdir(mode=0o700)
        shutil.copy(built, alone / "ringbolt")
        self.addCleanup(setattr, command, "RINGBOLT", str(built))
        with self.cluster("ring:4"):
            command.RINGBOLT = str(alone / "ringbolt")
            for words in (["run", "--", "true"], ["exec", "0", "--", "true"], ["env", "0"], ["matrix"]):
                self.refused(*words, says=["libibverbs.so.1 is missing", "install"])
            libraries = self.root / "lib/ringbolt"
            libraries.mkdir(parents=True, mode=0o700)
            for name in ("libibverbs.so.1", "librdmacm.so.1", "libmlx5.so.1", "libefa.so.1", "libringbolt.so.0",
                         "libringbolt-paths.so"):
                self.refused("exec", "0", "--", "true", says=[f"{name} is missing"])
                (libraries / name).symlink_to(built.parent.parent / "lib/ringbolt" / name)
            self.call("exec", "0", "--", "true")
            command.RINGBOLT = str(built)


if __name__ == "__main__":
    command.main()
