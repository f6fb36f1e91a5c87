"""The programs whose instructions are counted, and how each is started."""

import os
import shutil
import subprocess
import sys
import tempfile

from counting import CountError, TUNABLES, Valgrind, figures_of, run, series_of

OPERATIONS = 1000
# Of two processes; of MPI's sends and one-sided calls each one is a series of its own.
CALLS = 400
PEER_PATIENCE_S = 30
PAGE_BYTES = 4096
NETWORK = {"RINGBOLT_NETDEVS": "lo", "RINGBOLT_LOOPBACK": "network"}
OPEN_MPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--quiet"]

VERBS_KINDS = ["send", "send_inline", "send_list", "write", "write_inline", "write_private", "write_list", "read",
               "read_private", "fetch_add", "empty_poll", "arm"]
NETWORK_KINDS = ["ping_pong"]
NCCL_KINDS = ["nccl"]
GROUP_KINDS = ["all_reduce_64", "all_reduce_4096", "barrier"]
UCX_KINDS = ["send", "write", "read", "fetch_add", "empty_poll"]
# MPICH's one-sided calls are carried out by their target, so that who counts them counts waiting.
MPICH_KINDS = ["send"] + GROUP_KINDS
OPEN_MPI_KINDS = MPICH_KINDS + ["write", "read", "fetch_add"]
# Kinds, and series of the same name, whose count depends on when a packet or another process gets its turn.
DISTURBED = GROUP_KINDS
KINDS = VERBS_KINDS + NETWORK_KINDS + NCCL_KINDS + GROUP_KINDS  # the others count some of these
SIDES = ("ours", "ucx-sysv", "ucx-posix", "ompi", "mpich")


class Programs:
    """Counts side by side. `keep`: a folder for callgrind's dumps, else they go. close() removes the traces."""

    def __init__(self, build, counter, keep=None, more=None):
        self._bench = os.path.join(build, "bench")
        self._tool = os.path.join(build, "bin", "ringbolt")
        self._library = os.path.join(build, "lib", "ringbolt")
        self._counter = counter
        self._keep = keep
        if keep:
            os.makedirs(keep, exist_ok=True)
        self._tmp = tempfile.mkdtemp(prefix="rbcount-")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("RINGBOLT_", "OMPI_", "UCX_"))}
        self._environment = dict(kept, TMPDIR=self._tmp, RINGBOLT_RUNTIME_DIR=os.path.join(self._tmp, "rb"),
                                 GLIBC_TUNABLES=TUNABLES, **(more or {}))

    def close(self):
        shutil.rmtree(self._tmp, ignore_errors=True)

    def figures(self, side, wanted=None):
        """By the name of the series; of the kinds in `wanted` alone, if it says any."""
        if side == "ours":
            found = self._count("verbs", self._on_device(), _of(VERBS_KINDS, wanted))
            kinds = _of(NETWORK_KINDS, wanted)
            if kinds and self._has_own_network():
                found |= self._count("verbs", self._on_device(NETWORK), kinds, start=self._in_own_network)
            plugin = {"RINGBOLT_NCCL_PLUGIN": os.path.join(os.path.dirname(self._library), "libnccl-net-ringbolt.so"),
                      "RINGBOLT_VERBS": "soft"}
            found |= self._count("nccl", self._environment | plugin, _of(NCCL_KINDS, wanted))
            return found | self._count_group(_of(GROUP_KINDS, wanted))
        if side.startswith("ucx-"):
            extra = {"UCX_TLS": side.removeprefix("ucx-"), "UCX_LOG_LEVEL": "error"}
            return self._count("ucp", self._environment | extra, _of(UCX_KINDS, wanted))
        launcher, kinds = (OPEN_MPI, OPEN_MPI_KINDS) if side == "ompi" else (["mpirun.mpich"], MPICH_KINDS)
        if shutil.which(launcher[0]) is None:
            raise CountError(f"{launcher[0]} is not installed")
        return self._count_mpi(side, launcher, _of(kinds, wanted))

    def system_calls(self, wanted=None):
        """Of our operations, by the name of the series, without callgrind: it would delay what is polled for."""
        found = {}
        for kinds, extra in ((_of(VERBS_KINDS, wanted), {}), (_of(NETWORK_KINDS, wanted), NETWORK)):
            if kinds and self._has_own_network():
                command = self._in_own_network(self._command("verbs", kinds, OPERATIONS))
                found |= figures_of(series_of(run("verbs", command, self._on_device(extra))))
        if any(figure.calls is None for figure in found.values()):
            raise CountError("no system calls are counted: that takes root, and `mount -t tracefs none /sys/kernel/tracing`")
        return {name: figure.calls for name, figure in found.items()}

    def _on_device(self, more=None):
        return self._environment | {"LD_LIBRARY_PATH": self._library} | (more or {})

    def _command(self, name, kinds, operations):
        return [self._program(name), "--kinds", ",".join(kinds), "--operations", str(operations)]

    def _page(self):
        """Of two processes that tell each other where they are."""
        file, path = tempfile.mkstemp(prefix="page-", dir=self._tmp)
        os.truncate(file, PAGE_BYTES)
        os.close(file)
        return ["--page", path]

    def _program(self, name):
        path = os.path.join(self._bench, f"bench_instructions_{name}")
        if not os.access(path, os.X_OK):
            raise CountError(f"{path} is not built; configure with RINGBOLT_BENCH=ON and the peer's headers installed")
        return path

    @staticmethod
    def _in_own_network(words):
        """In a network namespace of its own, where the RoCE port is nobody's."""
        return ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c",
                'ip link set lo up && exec "$@"', "sh", *words]

    def _has_own_network(self):
        done = subprocess.run(self._in_own_network(["true"]), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"instructions: without the network: no namespace of our own: {done.stderr.strip()}", file=sys.stderr)
        return done.returncode == 0

    def _count(self, name, environment, kinds, operations=OPERATIONS, start=lambda words: words):
        """One program under callgrind, which `start` may start by way of another."""
        if not kinds:
            return {}
        return self._counted(name, self._command(name, kinds, operations), environment, start)

    def _count_mpi(self, name, launcher, kinds):
        """Two ranks, the first of which counts."""
        if not kinds:
            return {}
        command = self._command(name, kinds, CALLS) + self._page()
        return self._counted(name, command, self._environment,
                             lambda words: [*launcher, "-np", "1", *words, ":", "-np", "1", *command])

    def _count_group(self, kinds):
        if not kinds:
            return {}
        command = self._command("group", kinds, CALLS) + self._page()

        def on_node(node, words):
            return [self._tool, "exec", str(node), "--cluster", "count", "--", *words]

        run("up", [self._tool, "up", "--emulate", "line:2", "--name", "count"], self._environment)
        try:
            with subprocess.Popen(on_node(1, command), env=self._environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as peer:
                try:
                    found = self._counted("group", command, self._environment, lambda words: on_node(0, words))
                    peer.wait(PEER_PATIENCE_S)
                    return found
                finally:
                    if peer.poll() is None:
                        os.killpg(peer.pid, 9)
        finally:
            run("down", [self._tool, "down", "--cluster", "count", "--force"], self._environment)

    def _counted(self, name, command, environment, started_as):
        if self._counter == "processor":
            series = series_of(run(name, started_as(command), environment))
            if not series or series[0].instructions is None:
                raise CountError("the kernel gives no counter of instructions here")
            return figures_of(series)
        folder = tempfile.mkdtemp(prefix=f"{name}-", dir=self._keep or self._tmp)
        valgrind = Valgrind(folder)
        output = run(name, started_as(valgrind.words + command), environment)
        return figures_of(valgrind.fill(series_of(output)))


def _of(kinds, wanted):
    return [kind for kind in kinds if not wanted or kind in wanted]
