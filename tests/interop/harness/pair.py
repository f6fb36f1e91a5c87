"""A server and a client of one program, run to their ends."""

from __future__ import annotations

import dataclasses
import shutil
from typing import Sequence

from harness.ports import free_port, wait_listening
from harness.processes import Child, Finished
from harness.report import Skip
from harness.world import World

_PORT_TAKEN = ("Address already in use", "Couldn't listen to port", "Unable to bind")
_START_LIMIT_S = 20.0


@dataclasses.dataclass
class PairResult:
    """How both sides ended."""

    server: Finished
    client: Finished
    counters: str = ""  # what the ports have counted since the world was made, if a side did not end

    def problems(self) -> list[str]:
        """One text per side that failed; the other side's story follows, because it often has the cause."""
        if self.server.ok and self.client.ok:
            return []
        return ["server:\n" + self.server.describe() + "\nclient:\n" + self.client.describe() + self.counters]


def require(program: str) -> None:
    """Skips the case when a program of another package is not installed."""
    if shutil.which(program) is None:
        raise Skip(f"{program} is not installed")


def run_pair(world: World, server: Sequence[str], client: Sequence[str], limit_s: float,
             port_options: tuple[str, str] = ("-p", "-p")) -> PairResult:
    """Starts the server, waits until it listens, starts the client towards it, and waits for both.

    port_options: how the server and the client are told the port. The client gets the server's address as last word.
    """
    require(server[0])
    for _ in range(3):
        result = _attempt(world, server, client, limit_s, port_options)
        if not any(text in result.server.output for text in _PORT_TAKEN):
            break
    return result


def _attempt(world: World, server: Sequence[str], client: Sequence[str], limit_s: float,
             port_options: tuple[str, str]) -> PairResult:
    port = free_port()
    first = Child(world.server.command(*server, port_options[0], str(port)), world.server.env)
    if not wait_listening(first, port, _START_LIMIT_S):
        ended = first.wait(0.0)
        return PairResult(ended, Finished(list(client), -1, "(not started: the server does not listen)", False, 0.0))
    address = world.server.side_address or world.server.address
    second = Child(world.client.command(*client, port_options[1], str(port), address), world.client.env)
    ended_client = second.wait(limit_s, partner=first)
    # A server outlives its client by no more than the tear-down; a failed client leaves it waiting for nothing.
    ended_server = first.wait(10.0 if ended_client.ok else 2.0)
    if not (ended_client.timed_out or ended_server.timed_out):
        return PairResult(ended_server, ended_client)
    return PairResult(ended_server, ended_client, "\ncounted by the ports:" + world.counters())
