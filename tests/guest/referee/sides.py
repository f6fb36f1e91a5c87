"""The two ends of an exchange: programs on the host over the library under test, programs in a guest over rdma_rxe."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from typing import Protocol

from harness.processes import Child, Finished, run
from referee import place
from referee.machine import Guest

# Both ends make their tables of GIDs in the same order: the link-local address, then the others as they were added.
GID_INDEX = {"link-local": 0, "IPv4": 1, "IPv6": 2}


class Running(Protocol):
    """What harness.processes.Child and referee.channel.GuestCommand have in common."""

    @property
    def has_ended(self) -> bool: ...
    def output(self) -> str: ...
    def pause(self, seconds: float) -> None: ...
    def wait(self, limit_s: float) -> Finished: ...
    def kill(self) -> None: ...


class Side(Protocol):
    """Where one end's program runs."""

    name: str
    device: str
    ipv4: str
    ipv6: str
    def start(self, *argv: str) -> Running: ...
    def run(self, argv: list[str], limit_s: float) -> Finished: ...


@dataclasses.dataclass
class HostSide:
    """The device under test on a tap of the host."""

    env: dict[str, str]
    device: str
    ipv4: str
    ipv6: str
    name: str = "host"

    @classmethod
    def on_tap(cls, tap: str, mtu: int, lib: pathlib.Path) -> HostSide:
        """Makes the tap and its addresses, and a folder for what the library keeps at run time."""
        ipv4, ipv6 = "10.77.0.1", "fd77::1"
        place.add_tap(tap, mtu)
        place.add_address(tap, f"{ipv4}/24", f"{ipv6}/64")
        runtime = place.SCRATCH / "run"
        runtime.mkdir(mode=0o700)
        env = {name: value for name, value in os.environ.items() if not name.startswith(("RINGBOLT_", "LD_"))}
        env |= {"LD_LIBRARY_PATH": str(lib.resolve()), "RINGBOLT_NETDEVS": tap, "RINGBOLT_RUNTIME_DIR": str(runtime)}
        return cls(env, f"rdma_{tap}", ipv4, ipv6)

    def start(self, *argv: str) -> Child:
        return Child(argv, self.env)

    def run(self, argv: list[str], limit_s: float) -> Finished:
        return run(argv, self.env, limit_s)


@dataclasses.dataclass
class GuestSide:
    """rdma_rxe in a guest."""

    guest: Guest
    name: str = "guest"
    device: str = "rxe0"

    @property
    def ipv4(self) -> str:
        return self.guest.card.address

    @property
    def ipv6(self) -> str:
        return self.guest.card.address6

    def start(self, *argv: str) -> Running:
        command = self.guest.start(*argv)
        command.feed(b"")
        return command

    def run(self, argv: list[str], limit_s: float) -> Finished:
        return self.guest.run(argv, limit_s)
