"""Builds each peer of the collectives' comparison by name."""

import os
import subprocess
import sys

from peers import NO_SINGLE_COPY, OPEN_MPI, PLACES, Peers
from resident import PeerError, ResidentPeer

COMMAND_TIMEOUT_S = 30

# mpirun lets ranks yield by itself where it counts more of them than cores, and it may count two hyper-threads as one.
SPINNING = ["--mca", "mpi_yield_when_idle", "0"]
YIELDING = ["--mca", "mpi_yield_when_idle", "1"]

CABLINGS = {"ringbolt": ("line:2", 2), "ringbolt-ring2": ("ring:2", 2), "ringbolt-mesh4": ("mesh:4", 4),
            "ringbolt-ring4": ("ring:4", 4)}
MPIS = {"ompi": ("ompi", SPINNING, 2), "ompi-nosc": ("ompi", SPINNING + NO_SINGLE_COPY, 2),
        "ompi-yield": ("ompi", YIELDING, 2), "ompi-yield4": ("ompi", YIELDING, 4),
        "ompi-threads": ("ompi", SPINNING, 2), "mpich": ("mpich", [], 2), "mpich4": ("mpich", [], 4)}


class ClusterPeer(ResidentPeer):
    """Ranks on the nodes of an emulated cluster that lives as long as they do."""

    def __init__(self, name, tool, cabling, ranks, program):
        super().__init__(name, [[tool, "run", "--cluster", "bench", "--", program] + PLACES], ranks)
        self._tool = tool
        self._cabling = cabling
        self._is_up = False

    def _start_processes(self):
        self._call("up", "--emulate", self._cabling, "--name", "bench")
        self._is_up = True
        super()._start_processes()

    def _clear(self):
        if self._is_up:
            self._is_up = False
            try:
                self._call("down", "--cluster", "bench")
            except PeerError as problem:  # its folder goes anyway
                print(f"compare: {problem}", file=sys.stderr)

    def _call(self, *words):
        command = [self._tool] + list(words)
        environment = dict(os.environ, RINGBOLT_RUNTIME_DIR=self.runtime_dir())
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S,
                                  check=False)
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise PeerError(f"{self.name}: {problem}") from problem
        if done.returncode != 0:
            raise PeerError(f"{self.name}: {' '.join(command)}: {(done.stderr + done.stdout).strip()}")


class SameAs:
    """A running peer under another name, whose calls are of another element type. Owns nothing."""

    def __init__(self, name, peer, element_type):
        self.name = name
        self.description = f"as {peer.name}, {element_type}"
        self._peer = peer
        self._type = element_type

    def run(self, operation, size, iterations, is_touched):
        kind, _, place = operation.split("/")
        return self._peer.run(f"{kind}/{self._type}/{place}", size, iterations, is_touched)

    def start(self):
        """It runs already."""

    def close(self):
        """The other one is closed."""


class CollectivePeers(Peers):
    """Starts peers when they are first wanted and keeps them resident. close() ends them all. Not thread-safe."""

    def __init__(self, build):
        super().__init__(build)
        self._tool = os.path.join(build, "bin", "ringbolt")

    def _make(self, name):
        base, _, element_type = name.partition("/")
        if element_type:
            return SameAs(name, self.get(base), element_type)
        if name == "probe":
            return super()._make(name)
        if name in CABLINGS:
            cabling, ranks = CABLINGS[name]
            if not os.access(self._tool, os.X_OK):
                raise PeerError(f"{self._tool} is not built")
            return ClusterPeer(name, self._tool, cabling, ranks, self._program("bench_collective_group"))
        if name == "verbs":
            return self._ranked(name, "bench_collective_verbs", 2, "shared", {"LD_LIBRARY_PATH": self._library_dir})
        if name in MPIS:
            library, words, ranks = MPIS[name]
            threads = "many" if name.endswith("-threads") else "one"  # that may call the library at once; one does
            start = OPEN_MPI + words if library == "ompi" else ["mpirun.mpich"]
            self._need(start[0])
            program = self._program(f"bench_collective_{library}")
            return ResidentPeer(name, [start + ["-np", str(ranks), program, "--threads", threads] + PLACES], ranks)
        raise PeerError(f"{name}: unknown peer")
