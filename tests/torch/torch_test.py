"""The backend of torch.distributed on emulated clusters: each case of the programs beside this one on each node.

    torch_test.py RINGBOLT SOURCES LIBRARIES PYTHON [Case.test...]

Exit status 77: PYTHON has no torch, and why."""

import os
import pathlib
import subprocess
import sys
import unittest

import command
from command import CommandCase

HERE = pathlib.Path(__file__).resolve().parent
command.RINGBOLT, SOURCES, LIBRARIES, PYTHON = sys.argv[1:5]
del sys.argv[1:5]

VALUES = ("reductions", "scattered_reductions", "moved", "uneven", "coalesced", "objects", "layouts", "functional", "ddp")
MESSAGES = ("tags", "any_source", "around", "by_thread", "futures", "groups", "monitored")


class TorchCase(CommandCase):
    def setUp(self):
        super().setUp()
        self.n_jobs = 0
        self.environment |= {"PYTHONPATH": f"{SOURCES}/python:{HERE}", "LD_LIBRARY_PATH": LIBRARIES, "OMP_NUM_THREADS": "1",
                             "PYTHONWARNINGS": "ignore", "GLOG_minloglevel": "2"}

    def words(self, extent, cases):
        self.n_jobs += 1
        return [PYTHON, "-B", str(HERE / "torch_rank.py"), str(self.root / f"store{self.n_jobs}"), extent, *cases]

    def run_on(self, topology, *cases, extent="quick", lost=0, expect=0, timeout=120):
        self.call("up", "--emulate", topology, "--name", "c")
        try:
            done = self.call("run", "--no-tag", *(["--keep-going"] if lost else []), "--", *self.words(extent, cases),
                             expect=expect, timeout=timeout)
            self.assertEqual(done.stdout.split(), ["ok"] * (int(topology.rsplit(":", 1)[1]) - lost), done.stdout + done.stderr)
        finally:
            self.call("down", "--force")


class Quick(TorchCase):
    def test_three_ranks(self):
        self.run_on("line:3", *VALUES, "tags", "around", "futures", "groups", "monitored", "bad_input", "late", "interrupted",
                    "killed", lost=1, expect=137)


class Arrivals(TorchCase):
    def test_ranks_that_die_or_stop_while_they_join(self):
        self.environment["PYTHONPATH"] += f":{HERE.parent / 'python'}"
        self.call("up", "--emulate", "ring:3", "--name", "c")
        try:
            done = self.call("run", "--no-tag", "--", PYTHON, "-B", HERE / "arrivals.py", self.root / "arrivals",
                             command.TIME_SCALE, timeout=120)
            self.assertEqual(done.stdout.split(), ["ok"] * 3, done.stderr)
        finally:
            self.call("down", "--force")


class Grid(TorchCase):
    """All types, and sizes up to 1 MiB and a bit."""

    def test_one_rank(self):
        environment = self.environment | {"RANK": "0", "WORLD_SIZE": "1"}
        done = subprocess.run(self.words("grid", VALUES), env=environment, text=True, timeout=400, capture_output=True,
                              check=False)
        self.assertEqual(done.stdout, "ok\n", done.stderr)

    def test_two_ranks(self):
        self.run_on("line:2", *VALUES, extent="grid", timeout=400)

    def test_three_ranks_in_a_ring(self):
        self.run_on("ring:3", *VALUES, extent="grid", timeout=400)

    def test_four_ranks_in_a_mesh(self):
        self.run_on("mesh:4", *VALUES, extent="grid", timeout=400)

    def test_five_ranks_in_a_line(self):
        self.run_on("line:5", *VALUES, extent="grid", timeout=400)

    def test_five_ranks_in_a_ring(self):
        self.run_on("ring:5", *VALUES, extent="grid", timeout=400)


class Slow(TorchCase):
    def test_messages(self):
        for topology in ("line:2", "ring:5"):
            self.run_on(topology, *MESSAGES)

    def test_an_end_for_all(self):
        self.run_on("ring:3", "forked", "misused", "lives", "aborted")

    def test_a_rank_that_stands_still(self):
        self.environment["RINGBOLT_FROZEN_MS"] = "1000"
        self.run_on("ring:3", "stopped")

    def test_a_thousand_lives(self):
        self.run_on("line:2", "many_lives", timeout=900)

    def test_torchrun_starts_a_job_again(self):
        notes = self.root / "notes"
        notes.mkdir()
        self.call("up", "--emulate", "ring:3", "--name", "c")
        try:
            # Debian's torchrun does not take its own default for -r and -t under Python 3.11.
            subprocess.run([PYTHON, "-B", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "3",
                            "--max_restarts", "1", "-r", "1", "-t", "1", "--log_dir", str(self.root / "logs"),
                            HERE / "elastic_worker.py", notes],
                           env=self.environment | {"RINGBOLT_CLUSTER": "c"}, check=True, timeout=120, capture_output=True)
        finally:
            self.call("down", "--force")
        seen = {note.name: note.read_text() for note in notes.iterdir()}
        for rank in range(3):
            self.assertEqual(seen[f"1.{rank}"], "done 3")
        self.assertNotIn("0.2", seen)
        told = [text for name, text in seen.items() if name.startswith("0.")]  # torchrun may have ended one before it heard
        for text in told:
            self.assertIn("rank 2", text)
            self.assertLess(float(text.split()[1]), 5)


class Package(TorchCase):
    def refusal(self, script):
        done = subprocess.run([PYTHON, "-B", "-c", script], env=self.environment, capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr.strip().splitlines()[-1]

    def test_torch_finds_it_by_its_name(self):
        """Where it has entry points for backends: as pip lays them down."""
        package = self.root / "ringbolt-0.1.0.dist-info"
        package.mkdir()
        (package / "METADATA").write_text("Metadata-Version: 2.1\nName: ringbolt\nVersion: 0.1.0\n")
        lines = pathlib.Path(SOURCES, "python/pyproject.toml").read_text(encoding="utf-8").splitlines()
        at = lines.index('[project.entry-points."torch.distributed.backends"]')
        (package / "entry_points.txt").write_text("[torch.distributed.backends]\n" + lines[at + 1].replace('"', "") + "\n")
        script = """
import sys
import torch.distributed as dist
if not hasattr(dist.Backend, "_ensure_backend_registered"):
    sys.exit("none")
dist.init_process_group("ringbolt", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
dist.barrier()
sys.exit(dist.get_backend())
"""
        self.environment["PYTHONPATH"] += f":{self.root}"
        done = subprocess.run([PYTHON, "-B", "-c", script, self.root / "store"], env=self.environment, capture_output=True,
                              text=True, timeout=60, check=False)
        if done.stderr.strip() == "none":
            self.skipTest("this torch has no entry points for backends")
        self.assertEqual(done.stderr.strip().splitlines()[-1], "ringbolt", done.stderr)

    def test_a_torch_that_will_not_do(self):
        self.assertIn("needs PyTorch", self.refusal("import sys; sys.modules['torch'] = None; import ringbolt.torch"))
        self.assertIn("1.12.1 is too old", self.refusal("import torch; torch.__version__ = '1.12.1'; import ringbolt.torch"))


if __name__ == "__main__":
    if not os.path.exists(PYTHON) or subprocess.run([PYTHON, "-c", "import torch.distributed"], capture_output=True,
                                                    check=False).returncode != 0:
        print(f"skip: {PYTHON} has no torch (apt install python3-torch, or scripts/setup-python torch)")
        sys.exit(77)
    unittest.main()
