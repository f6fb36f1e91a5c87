"""The two ends of an exchange: programs on the host over the library under test, programs in a guest over rdma_rxe."""

from __future__ import annotations

import dataclasses
from typing import Protocol

from harness.processes import Child, Finished, run
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
