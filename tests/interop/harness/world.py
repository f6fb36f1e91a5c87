"""The places programs run at: the default device, the nodes of an emulated cluster, network namespaces, the two ends of a
stream, or two nodes without a cable between them that reach each other by ringbolt0."""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import shutil
import signal
import tempfile
from types import TracebackType
from typing import Optional

from harness import leaks, processes
from harness.ports import free_port
from harness.report import SKIP_EXIT_CODE

_FOREIGN_PREFIXES = ("RINGBOLT_", "LD_", "UCX_", "OMPI_", "FI_", "PMIX_", "ASAN_", "UBSAN_", "TSAN_")


@dataclasses.dataclass(frozen=True)
class Place:
    """Where one program runs: what goes before its command line, and the device it has there."""

    prefix: tuple[str, ...]
    env: dict[str, str] = dataclasses.field(hash=False)
    device: str
    gid_index: int
    address: str
    side_address: str = ""  # for what programs agree on over TCP; `address` where there is no choice

    @property
    def is_ipv6(self) -> bool:
        return ":" in self.address

    def command(self, *argv: str) -> list[str]:
        return [*self.prefix, *argv]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that every driver has."""
    parser.add_argument("--lib", required=True, type=pathlib.Path, help="folder with libibverbs.so.1")
    parser.add_argument("--ringbolt", required=True, type=pathlib.Path, help="the ringbolt command")
    parser.add_argument("--place", default="default", choices=["default", "mesh", "netns", "netns6", "stream-unix", "stream-tcp", "overlay"],
                        help="the default device, two neighbours of mesh:3, two network namespaces by IPv4 or IPv6, "
                             "the ends of a UNIX socket or TCP connection, or opposite nodes of ring:4 by ringbolt0")
    parser.add_argument("--only", help="run only the cases whose name contains this text")


class World:
    """A fresh runtime folder, with a cluster where one is asked for; on leaving, everything is gone.

    `server` and `client` are the two places of a pair; over the default device they are the same. with_sysfs: there
    too, programs are started by the launcher. Not thread-safe.
    """

    def __init__(self, lib: pathlib.Path, ringbolt: pathlib.Path, place: str, with_sysfs: bool = False) -> None:
        self._with_sysfs = with_sysfs
        self.lib = lib.resolve()
        self.ringbolt = ringbolt.resolve()
        self.place = place
        self._cluster = f"t{os.getpid()}"
        self._shm_before = leaks.shared_memory_files()
        self._residents = leaks.Residents()
        self.runtime = pathlib.Path(tempfile.mkdtemp(prefix="rb-"))
        if len(str(self.runtime)) > 40:
            raise SystemExit(f"{self.runtime}: too long for UNIX socket paths below it; set TMPDIR to a shorter folder")
        self.base_env = {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN_PREFIXES)}
        self.base_env["RINGBOLT_RUNTIME_DIR"] = str(self.runtime)
        if self._has_cluster:
            self.base_env["RINGBOLT_CLUSTER"] = self._cluster
        self.server: Place
        self.client: Place

    def __enter__(self) -> World:
        try:
            if self.place == "default":
                self.server = self.client = self.default_place(self._with_sysfs)
            elif self.is_stream:
                self.server, self.client = self._stream_ends()
            elif self.is_network:
                self._raise_cluster("line:2", "--netns")
                self.server = self.namespace(0)
                self.client = self.namespace(1)
            elif self.place == "overlay":
                self._raise_cluster("ring:4", "--overlay")
                self._residents = leaks.residents(self.runtime)
                self.server, self.client = (self._over_agents(node) for node in (0, 2))
            else:
                self._raise_cluster("mesh:3")
                self.server = self.node(0, towards=1)
                self.client = self.node(1, towards=0)
        except BaseException:
            shutil.rmtree(self.runtime, ignore_errors=True)
            raise
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        for pid, command in leaks.processes_using(self.runtime).items():
            if pid in self._residents.processes:
                continue
            print(f"killing a left-over process: {pid} {command}")
            os.kill(pid, signal.SIGKILL)
        if self._has_cluster:
            done = processes.run([str(self.ringbolt), "down"], self.base_env, 30)
            if not done.ok:
                print(f"taking the cluster down failed:\n{done.describe()}")
        shutil.rmtree(self.runtime, ignore_errors=True)

    def default_place(self, with_sysfs: bool = False) -> Place:
        """The device that exists without any cluster: found by the search path alone, or through the launcher, which
        also shows programs the files below /sys and /dev that belong to it."""
        if with_sysfs:
            return Place((str(self.ringbolt), "exec", "local", "--"), dict(self.base_env), "rdma_lo", 1, "127.0.0.1")
        env = dict(self.base_env, LD_LIBRARY_PATH=str(self.lib))
        return Place((), env, "rdma_lo", 1, "127.0.0.1")

    def node(self, number: int, towards: int) -> Place:
        """A node of the cluster, with the port that has a cable to the node `towards`."""
        spec = self.runtime / "clusters" / self._cluster / f"node-{number}.ports"
        for line in spec.read_text().splitlines():
            words = line.split()
            if not words or words[0] != "port":
                continue
            fields = dict(zip(words[2::2], words[3::2]))
            if int(fields["peer-node"]) == towards:
                prefix = (str(self.ringbolt), "exec", str(number), "--")
                return Place(prefix, dict(self.base_env), words[1], 1, fields["addr"])
        raise SystemExit(f"{spec}: no port with a cable to node {towards}")

    def _over_agents(self, number: int) -> Place:
        """A node of the cluster, with the device that leads to all."""
        return Place((str(self.ringbolt), "exec", str(number), "--"), dict(self.base_env), "ringbolt0", 1, "127.0.0.1")

    @property
    def is_network(self) -> bool:
        """Whether the two places reach each other over a network, not through shared memory."""
        return self.place.startswith("netns") or self.is_stream

    @property
    def is_stream(self) -> bool:
        """Whether a stream of bytes joins them."""
        return self.place.startswith("stream-")

    @property
    def _has_cluster(self) -> bool:
        return self.place != "default" and not self.is_stream

    def _stream_ends(self) -> tuple[Place, Place]:
        """The end that listens, and the one that connects."""
        where = f"{self.runtime}/stream" if self.place == "stream-unix" else f"127.0.0.1:{free_port()}"
        kind = self.place.removeprefix("stream-")
        ends = []
        for how in (f"{kind}-listen", kind):
            env = dict(self.base_env, LD_LIBRARY_PATH=str(self.lib), RINGBOLT_STREAMS=f"s={how}:{where}")
            ends.append(Place((), env, "rdma_s", 1, "127.0.0.1"))
        return ends[0], ends[1]

    def namespace(self, number: int) -> Place:
        """A namespace of the pair, with the addresses of the plan; in its GID table IPv4 has place 1 and IPv6 2."""
        index, address = (2, f"fd77::{number + 1}") if self.place == "netns6" else (1, f"10.77.0.{number + 1}")
        return Place((str(self.ringbolt), "exec", str(number), "--"), dict(self.base_env), "rdma_en2", index, address,
                     f"10.77.0.{number + 1}")

    def counters(self) -> str:
        """What `ringbolt metrics` says of its ports and is not 0, a line each: a message lost is one more sent than received."""
        told = processes.run([str(self.ringbolt), "metrics"], self.base_env, 10.0)
        return "".join(f"\n  {line}" for line in told.output.splitlines() if line[:1] != "#" and not line.endswith(" 0"))

    def leftovers(self, slots_may_stay: bool = False) -> list[str]:
        """What programs left behind up to now; see leaks.complaints."""
        return leaks.complaints(self.runtime, self._shm_before, slots_may_stay, self._residents)

    def stale_slots(self) -> int:
        """How many slots of dead processes wait to be taken over."""
        return sum(name.endswith(".lock") for name in leaks.slot_files(self.runtime))

    def _raise_cluster(self, shape: str, *options: str) -> None:
        command = [str(self.ringbolt), "up", "--emulate", shape, "--name", self._cluster, *options]
        done = processes.run(command, self.base_env, 30)
        if self.is_network and "CAP_NET_ADMIN" in done.output:
            print("skip: network namespaces take root")
            raise SystemExit(SKIP_EXIT_CODE)
        if not done.ok:
            raise SystemExit(f"cannot raise the cluster:\n{done.describe()}")


def check_parts(arguments: argparse.Namespace) -> None:
    """Ends the driver with a clear message where the library or the command is not built."""
    for path in (arguments.lib / "libibverbs.so.1", arguments.ringbolt):
        if not path.exists():
            raise SystemExit(f"{path} does not exist: build the project first")
