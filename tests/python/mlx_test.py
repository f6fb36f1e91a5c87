"""ringbolt.mlx on emulated clusters: each case of mlx_rank.py on each node; and beside MLX's own ring of TCP."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess

import pytest

import command
from command import CommandCase
from conftest import WORDS

HERE = pathlib.Path(__file__).resolve().parent


def python_with_mlx():
    """The interpreter of build/python-mlx, made the first time."""
    made = subprocess.run([HERE.parents[1] / "scripts/setup-python", "mlx"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip((made.stderr.strip().splitlines() or ["scripts/setup-python gives no reason"])[-1], allow_module_level=True)
    return str(HERE.parents[1] / "build/python-mlx/bin/python3")


def free_ports():
    """Two, one behind the other, at which MLX's ranks can listen: below those that Linux gives out and that groups make up."""
    for port in range(10000 + 2 * os.getpid() % 9000, 20000, 2):
        with contextlib.suppress(OSError):
            with socket.create_server(("127.0.0.1", port)), socket.create_server(("127.0.0.1", port + 1)):
                return port
    raise AssertionError("no two ports are free")


PYTHON = python_with_mlx()


class Mlx(CommandCase):
    def setUp(self):
        super().setUp()
        self.environment |= {"PYTHONPATH": f"{WORDS['source']}/python", "LD_LIBRARY_PATH": WORDS["libraries"]}

    def run_on(self, topology, *cases, lost=0, expect=0):
        with self.cluster(topology):
            done = self.call("run", "--no-tag", *(["--keep-going"] if lost else []), "--", PYTHON, "-B", HERE / "mlx_rank.py",
                             *cases, expect=expect)
        self.assertEqual(done.stdout.split(), ["ok"] * (int(topology.split(":")[1]) - lost), done.stdout)

    def test_ring(self):
        self.run_on("ring:4", "integrity", "types", "messages", "groups", "gradients")

    def test_line(self):
        self.run_on("line:3", "integrity", "messages", "bad_input")

    def test_star(self):
        self.run_on("star:4", "integrity")

    def test_a_rank_that_dies(self):
        self.run_on("ring:3", "killed", lost=1, expect=137)

    def test_ranks_that_die_or_stop_while_they_join(self):
        with self.cluster("ring:3"):
            done = self.call("run", "--no-tag", "--", PYTHON, "-B", HERE / "arrival_rank.py", self.root / "arrivals",
                             command.TIME_SCALE, "mlx", timeout=120)
        self.assertEqual(done.stdout.split(), ["ok"] * 3, done.stderr)

    def test_alone(self):
        done = subprocess.run([PYTHON, "-B", HERE / "mlx_rank.py", "alone"], env=self.environment, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual((done.stdout, done.stderr), ("ok\n", ""))

    def launched(self, package, *command, hosts=("-n", "2", "--hosts", "127.0.0.1")):
        """What came out of the two ranks of mlx_program.py, started by mlx.launch, by default for MLX's ring of TCP."""
        launch = [pathlib.Path(PYTHON).parent / "mlx.launch", *hosts, "--starting-port", free_ports(), "--"]
        words = [*launch, *command, PYTHON, "-B", HERE / "mlx_program.py", package, self.results]
        done = subprocess.run(list(map(str, words)), env=self.environment, capture_output=True, text=True, timeout=120,
                              check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {path.name: path.read_text() for path in self.results.iterdir()}
        self.assertEqual(sorted(found), ["0", "1"], f"{done.stdout}{done.stderr}")
        for path in self.results.iterdir():
            path.unlink()
        return found

    def test_the_same_program_with_mlx_and_with_this_package(self):
        self.results = self.root / "results"
        self.results.mkdir()
        mlx = self.launched("mlx.core.distributed")
        on_its_node = ["ringbolt.mlx", "sh", "-c", f'exec {WORDS["ringbolt"]} exec $MLX_RANK -- "$@"', "-"]
        with self.cluster("line:2"):
            self.assertEqual(self.launched(*on_its_node), mlx)
            # And as it starts ranks of JACCL, by a hostfile of ours.
            hosts = json.loads(self.call("hostfile").stdout)
            for host in hosts["hosts"]:
                host.update(ssh="127.0.0.1", ips=["127.0.0.1"])
            path = self.root / "hosts.json"
            path.write_text(json.dumps(hosts))
            self.assertEqual(self.launched(*on_its_node, hosts=("--backend", "jaccl", "--hostfile", path)), mlx)
