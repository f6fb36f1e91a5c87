"""Builds each peer by name."""

import os
import shutil

from one_shot import FabricPingpong, UcxPerftest
from resident import PeerError, ResidentPeer

PLACES = ["--control", "{control}", "--page", "{page}"]
OPEN_MPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--quiet"]
NO_SINGLE_COPY = ["--mca", "btl_vader_single_copy_mechanism", "none"]


class Peers:
    """Starts peers when they are first wanted and keeps them resident. close() ends them all. Not thread-safe."""

    def __init__(self, build, library_dir=None):
        self._bench = os.path.join(build, "bench")
        self._library_dir = library_dir or os.path.join(build, "lib", "ringbolt")
        self._started = {}
        self._refused = {}

    def get(self, name):
        """The running peer. Raises PeerError, always the same one, where it cannot be had."""
        if name in self._refused:
            raise self._refused[name]
        if name not in self._started:
            try:
                peer = self._make(name)
                peer.start()
            except PeerError as refusal:
                self._refused[name] = refusal
                raise
            self._started[name] = peer
        return self._started[name]

    def drop(self, name, why):
        """Ends a peer that failed; it stays away for the rest of the run."""
        self._started.pop(name).close()
        self._refused[name] = why

    def descriptions(self):
        return {name: peer.description for name, peer in self._started.items()}

    def close(self):
        for peer in self._started.values():
            peer.close()
        self._started = {}

    def _make(self, name):
        if name.startswith("ucx_perftest:"):
            self._need("ucx_perftest")
            return UcxPerftest(name, name.split(":")[1], "sysv")
        if name == "libfabric":
            self._need("fi_pingpong")
            return FabricPingpong(name)
        ranks = 4 if name.endswith("-ring4") else 2
        threads = "many" if name.endswith("-threads") else "one"
        base = name.removesuffix("-ring4").removesuffix("-threads")
        if base in ("ringbolt", "ringbolt-private"):
            memory = "private" if base.endswith("private") else "shared"
            return self._ranked(name, "bench_verbs", ranks, memory, {"LD_LIBRARY_PATH": self._library_dir})
        if base == "ringbolt-nccl":
            plugin = os.path.join(os.path.dirname(self._library_dir), "libnccl-net-ringbolt.so")
            return self._ranked(name, "bench_nccl", ranks, "private",
                                {"RINGBOLT_NCCL_PLUGIN": plugin, "RINGBOLT_VERBS": "soft"})
        if base == "ucx-sysv":
            return self._ranked(name, "bench_ucp", ranks, "shared", {"UCX_TLS": "sysv", "UCX_LOG_LEVEL": "error"},
                                threads)
        if base == "ucx-cma":
            return self._ranked(name, "bench_ucp", ranks, "private", {"UCX_TLS": "posix,cma", "UCX_LOG_LEVEL": "error"})
        if base == "tcp":
            return self._ranked(name, "bench_tcp", ranks, "private", {})
        if base == "probe":
            return self._ranked(name, "bench_probe", ranks, "private", {})
        if base in ("ompi", "ompi-nosc"):
            self._need(OPEN_MPI[0])
            extra = NO_SINGLE_COPY if base == "ompi-nosc" else []
            return ResidentPeer(name, [OPEN_MPI + extra + ["-np", str(ranks), self._program("bench_ompi"), "--threads",
                                                           threads] + PLACES], ranks)
        if base == "mpich":
            self._need("mpirun.mpich")
            return ResidentPeer(name, [["mpirun.mpich", "-np", str(ranks), self._program("bench_mpich"), "--threads",
                                        threads] + PLACES], ranks)
        raise PeerError(f"{name}: unknown peer")

    def _ranked(self, name, program, ranks, memory, environment, threads="one"):
        path = self._program(program)
        commands = [[path] + PLACES + ["--rank", str(rank), "--ranks", str(ranks), "--memory", memory,
                              "--threads", threads]
                    for rank in range(ranks)]
        return ResidentPeer(name, commands, ranks, environment)

    def _program(self, name):
        path = os.path.join(self._bench, name)
        if not os.access(path, os.X_OK):
            raise PeerError(f"{path} is not built; configure with RINGBOLT_BENCH=ON and the peer's headers installed")
        return path

    @staticmethod
    def _need(program):
        if shutil.which(program) is None:
            raise PeerError(f"{program} is not installed")
