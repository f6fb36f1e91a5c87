"""pytest: emulated clusters as a fixture, each gone with its test.

    def test_survives_a_cut_cable(ringbolt_cluster):
        cluster = ringbolt_cluster("ring:3", like="tn3205")
        ranks = cluster.start("./my_rank", "--rounds", "1000")
        cluster.cut("0-1")
        assert ranks.wait(timeout=60) == 0

pytest finds it where the package is installed; elsewhere: `-p ringbolt.pytest_plugin`. The command is the wheel's, else the one
on PATH, else the clone's; RINGBOLT_COMMAND names another."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from ._library import NATIVE

_PATIENCE_S = 60


def find_command() -> str:
    """The path of `ringbolt`. Raises pytest.UsageError where there is none."""
    clone = pathlib.Path(__file__).resolve().parents[2] / "build/release/bin/ringbolt"
    for path in (os.environ.get("RINGBOLT_COMMAND"), str(NATIVE / "bin/ringbolt"), shutil.which("ringbolt"), str(clone)):
        if path and os.access(path, os.X_OK):
            return path
    raise pytest.UsageError("ringbolt_cluster: there is no command `ringbolt`: install the wheel, or name it in RINGBOLT_COMMAND")


class Cluster:
    """One emulated cluster. Not for threads."""

    def __init__(self, command: str, name: str, environment: dict[str, str]) -> None:
        self._command, self.name, self._environment = command, name, environment
        self._started: list[subprocess.Popen] = []

    def call(self, *words, check: bool = True) -> subprocess.CompletedProcess:
        """`ringbolt WORDS...`; raises AssertionError with what it said where it fails."""
        done = subprocess.run([self._command, *map(str, words)], env=self._environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=_PATIENCE_S, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"ringbolt {' '.join(map(str, words))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def _words(self, command, nodes, options) -> list[str]:
        chosen = [] if nodes is None else ["--nodes", ",".join(map(str, [nodes] if isinstance(nodes, (int, str)) else nodes))]
        return [self._command, "run", "--cluster", self.name, *chosen, *map(str, options), "--", *map(str, command)]

    def run(self, *command, nodes=None, timeout: float = _PATIENCE_S, options=()) -> subprocess.CompletedProcess:
        """The program on all nodes, or some (2, "n2", [0, 1]), to its end: `returncode`, `stdout`, `stderr` as text, each line with
        its node. After `timeout` seconds all are ended, and `returncode` is 124. `options`: more of `ringbolt run`, such as
        "--sanitize"."""
        words = self._words(command, nodes, ["--timeout", timeout, *options])
        return subprocess.run(words, env=self._environment, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=timeout + _PATIENCE_S, check=False)

    def start(self, *command, nodes=None, options=(), **popen) -> subprocess.Popen:
        """The same, running: what is still there when the test ends is ended."""
        process = subprocess.Popen(self._words(command, nodes, options), env=self._environment, **popen)
        self._started.append(process)
        return process

    def fault(self, *words) -> None:
        """`cluster.fault("completion-error 1% status 12")`: adds one, also under running programs."""
        self.call("fault", "add", "--cluster", self.name, *" ".join(map(str, words)).split())

    def clear_faults(self) -> None:
        self.call("fault", "clear", "--cluster", self.name)

    def cut(self, cable: str) -> None:
        """`cluster.cut("0-1")`: pulls the cable."""
        self.call("cut", "--cluster", self.name, cable)

    def heal(self, cable: str) -> None:
        self.call("heal", "--cluster", self.name, cable)

    def close(self) -> None:
        """Ends what it started, and removes the cluster; again does nothing."""
        for process in self._started:
            if process.poll() is None:
                process.terminate()  # the command ends its programs, by SIGKILL if need be
        for process in self._started:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._started.clear()
        if self.name:
            self.call("down", "--force", "--cluster", self.name)
            self.name = ""


@pytest.fixture
def ringbolt_cluster():
    """A function that makes clusters: (spec, like=None, faults=(), netns=False, overlay=False) -> Cluster. `spec`: a topology, such
    as "ring:4", or the path of a cluster file."""
    command = find_command()
    folder = tempfile.mkdtemp(prefix="rb-", dir="/tmp")  # a short path, for sockets lie in it; other tests' clusters are elsewhere
    environment = {**os.environ, "RINGBOLT_RUNTIME_DIR": folder}
    environment.pop("RINGBOLT_CLUSTER", None)
    made: list[Cluster] = []

    def make(spec: str, *, like: str | None = None, faults=(), netns: bool = False, overlay: bool = False) -> Cluster:
        cluster = Cluster(command, f"t{len(made)}", environment)
        options = [*(["--like", like] if like else []), *(["--netns"] if netns else []), *(["--overlay"] if overlay else [])]
        try:
            cluster.call("up", "--emulate", spec, "--name", cluster.name, *options)
        except AssertionError:
            cluster.name = ""
            raise
        made.append(cluster)
        for fault in faults:
            cluster.fault(fault)
        return cluster

    yield make
    problems = []
    for cluster in made:
        try:
            cluster.close()
        except (AssertionError, subprocess.SubprocessError) as problem:
            problems.append(str(problem))
    shutil.rmtree(folder, ignore_errors=True)
    if problems:
        pytest.fail("\n".join(problems))
