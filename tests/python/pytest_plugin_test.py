"""ringbolt.pytest_plugin, by a pytest of its own: what its users' tests would be."""

import os
import pathlib
import subprocess
import sys

from conftest import WORDS

TESTS = '''
import subprocess, sys, pytest

def test_runs_on_all_nodes(ringbolt_cluster):
    cluster = ringbolt_cluster("ring:3")
    done = cluster.run("sh", "-c", "echo $RINGBOLT_NODE of $RINGBOLT_NODES")
    assert done.returncode == 0 and sorted(done.stdout.split()) == sorted("n0 | 0 of 3 n1 | 1 of 3 n2 | 2 of 3".split())
    assert cluster.run("sh", "-c", "echo me", nodes=2).stdout == "me\\n"
    assert cluster.run("sleep", "60", timeout=0.5).returncode == 124

def test_faults_and_profiles_reach_the_program(ringbolt_cluster):
    cluster = ringbolt_cluster("line:2", like="tn3205", faults=["completion-error 100% status 12"])
    assert "completion-error" in cluster.call("fault", "list", "--cluster", cluster.name).stdout
    cluster.clear_faults()
    cluster.cut("0-1")
    assert "PORT_DOWN" in cluster.run("ibv_devinfo", nodes=0).stdout
    cluster.heal("0-1")
    assert "PORT_ACTIVE" in cluster.run("ibv_devinfo", nodes=0).stdout

def test_two_clusters_and_what_is_left_running(ringbolt_cluster):
    first, second = ringbolt_cluster("ring:3"), ringbolt_cluster("mesh:3")
    first.start("sleep", "1000")
    with pytest.raises(AssertionError, match="no topology"):
        ringbolt_cluster("circle:3")

def test_that_fails(ringbolt_cluster):
    ringbolt_cluster("ring:3").start("sleep", "1000")
    assert False, "on purpose"
'''


def sleepers():
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == b"sleep\x001000\x00":
                found.append(path)
        except OSError:
            pass
    return found


def test_clusters_are_made_used_and_gone(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    before, folders = len(sleepers()), set(pathlib.Path("/tmp").glob("rb-*"))
    python = pathlib.Path(WORDS["source"]) / "python"
    environment = {**os.environ, "PYTHONPATH": str(python), "RINGBOLT_COMMAND": WORDS["ringbolt"], "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "ringbolt.pytest_plugin", "-p", "no:cacheprovider", tmp_path],
                          env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    assert "on purpose" in done.stdout
    assert len(sleepers()) <= before
    assert set(pathlib.Path("/tmp").glob("rb-*")) <= folders
